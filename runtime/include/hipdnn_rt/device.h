// Device objects as move-only values: buffers, streams, events, hipDNN handles, and the device they belong to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "hipdnn_rt/library.h"

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

/// Device memory, in bytes.
struct MemoryInfo {
  std::size_t free_bytes;
  std::size_t total_bytes;
};

class PlanCache;

/// One device of a port, with its settings and the plans built on it. Safe to share between threads.
class Device {
 public:
  struct Options {
    int ordinal = 0;
    /// Threads that one execution may use where the library computes on CPU threads; 0 leaves the library's default.
    int threads = 0;
    /// Record runs as graphs of the device and replay them where addresses repeat. Ports without graphs run step by step.
    bool uses_graphs = false;
  };

  Device(std::shared_ptr<const Library> library, Options options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Library& library() const { return *library_; }
  const std::shared_ptr<const Library>& shared_library() const { return library_; }
  const Port& port() const { return library_->port(); }
  const Options& options() const { return options_; }
  /// Whether runs are recorded: asked for, and the port can.
  bool uses_graphs() const;
  /// Whether plans take the constants extension: pointers that never change, known at plan time.
  bool takes_constants() const { return takes_constants_; }
  /// Engine names by id, empty where the library does not tell.
  const std::map<std::int64_t, std::string>& engine_names() const { return engine_names_; }
  /// The instruction set, as targets are named; empty where the port does not tell.
  const std::string& architecture() const { return architecture_; }
  /// What to compile for to run here.
  std::string target() const { return architecture_.empty() ? std::string(port().name) : architecture_; }
  PlanCache& plans() const { return *plans_; }

  /// Make this the calling thread's device. Everything below does so itself.
  void activate() const;
  DeviceBuffer allocate(std::size_t bytes) const;
  /// Whether `allocate_pinned` works on this port.
  bool has_pinned_memory() const { return library_->hip().host_malloc != nullptr && library_->hip().host_free != nullptr; }
  /// Throws DeviceError where the port has no pinned memory or none is left.
  PinnedBuffer allocate_pinned(std::size_t bytes) const;
  /// What is left of the device's memory; nothing where the port does not tell.
  std::optional<MemoryInfo> memory_info() const;
  Stream create_stream() const;
  Event create_event(bool is_timed = true) const;
  /// A handle with this device's thread setting; `stream` may be null for a handle that only builds plans.
  Handle create_handle(hipStream_t stream) const;

 private:
  std::shared_ptr<const Library> library_;
  Options options_;
  /// With one device there is nothing to choose: it is every thread's from the start.
  bool has_choice_ = true;
  bool takes_constants_ = false;
  std::string architecture_;
  std::map<std::int64_t, std::string> engine_names_;
  std::unique_ptr<PlanCache> plans_;
};

}  // namespace hipdnn_rt
