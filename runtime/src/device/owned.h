// Device objects as move-only values: buffers, streams, events, modules, hipDNN handles.
#pragma once

#include <memory>
#include <utility>

#include "device/library.h"

namespace hipdnn_rt {

/// Owns one ABI object and the library it came from. `Traits::destroy(library, raw)` frees it.
template <typename Raw, typename Traits>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Library> library, Raw raw) : library_(std::move(library)), raw_(raw) {}
  Owned(Owned&& other) noexcept : library_(std::move(other.library_)), raw_(std::exchange(other.raw_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Owned() {
    if (raw_ != nullptr) Traits::destroy(*library_, raw_);
  }

  Raw get() const { return raw_; }
  const Library& library() const { return *library_; }
  const std::shared_ptr<const Library>& shared_library() const { return library_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  std::shared_ptr<const Library> library_;
  Raw raw_ = nullptr;
};

struct BufferTraits {
  static void destroy(const Library& library, void* raw) { library.hip().free(raw); }
};
struct PinnedTraits {
  static void destroy(const Library& library, void* raw) { library.hip().host_free(raw); }
};
struct StreamTraits {
  static void destroy(const Library& library, hipStream_t raw) { library.hip().stream_destroy(raw); }
};
struct EventTraits {
  static void destroy(const Library& library, hipEvent_t raw) { library.hip().event_destroy(raw); }
};
struct ModuleTraits {
  static void destroy(const Library& library, hipModule_t raw) { library.hip().module_unload(raw); }
};
struct HandleTraits {
  static void destroy(const Library& library, hipdnnHandle_t raw) { library.hipdnn().destroy(raw); }
};

/// Device memory. Free it only when no stream uses it any more.
using DeviceBuffer = Owned<void*, BufferTraits>;
/// Host memory that a device copies to and from without a detour, asynchronously. The same rule for freeing it.
using PinnedBuffer = Owned<void*, PinnedTraits>;
/// An in-order queue of device work, used by one thread at a time.
using Stream = Owned<hipStream_t, StreamTraits>;
/// A point in a stream that others can wait for, and that can be timed where it was created so.
using Event = Owned<hipEvent_t, EventTraits>;
/// Kernels loaded on a device.
using Module = Owned<hipModule_t, ModuleTraits>;
/// A hipDNN handle, bound to at most one stream, used by one thread at a time.
using Handle = Owned<hipdnnHandle_t, HandleTraits>;

}  // namespace hipdnn_rt
