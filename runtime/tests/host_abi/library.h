// The library under test: its symbols, and descriptors that destroy themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

namespace abi {

/// One opened shared library. A symbol that is missing is an error where it is asked for.
class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& path);
  void* find(const char* name) const;
  template <class Function>
  Function* get(const char* name) const {
    void* symbol = find(name);
    if (symbol == nullptr) throw std::runtime_error(path_ + " lacks the symbol " + name);
    return reinterpret_cast<Function*>(symbol);
  }
  /// A function that a library may lack; the case is refused then.
  template <class Function>
  Function* optional(const char* name) const {
    void* symbol = find(name);
    if (symbol == nullptr) throw check::Refused("the library lacks the symbol " + std::string(name));
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  struct Close {
    void operator()(void* library) const;
  };
  std::string path_;
  std::unique_ptr<void, Close> library_;
};

/// The functions the cases call, by the names they have in the ABI.
struct Library {
  explicit Library(const std::string& backend_path, const std::string& hip_path);

  SharedLibrary backend, hip;
  decltype(&::hipdnnCreate) create;
  decltype(&::hipdnnDestroy) destroy;
  decltype(&::hipdnnSetStream) set_stream;
  decltype(&::hipdnnGetStream) get_stream;
  decltype(&::hipdnnBackendCreateDescriptor) create_descriptor;
  decltype(&::hipdnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&::hipdnnBackendFinalize) finalize;
  decltype(&::hipdnnBackendSetAttribute) set_attribute;
  decltype(&::hipdnnBackendGetAttribute) get_attribute;
  decltype(&::hipdnnBackendExecute) execute;
  decltype(&::hipdnnGetErrorString) error_string;
  decltype(&::hipdnnGetLastErrorString) last_error_string;
  decltype(&::hipdnnPeekLastErrorString_ext) peek_last_error_string;
  decltype(&::hipMalloc) hip_malloc;
  decltype(&::hipFree) hip_free;
  decltype(&::hipMemcpyAsync) hip_memcpy;
  decltype(&::hipStreamSynchronize) hip_synchronize;

  /// The calling thread's last error, kept.
  std::string last_error() const;
  /// Of what a library may do or refuse: a refusal must have a message, which becomes that of the case.
  void allow_refusal(hipdnnStatus_t status, const std::string& what, const std::source_location& at = std::source_location::current()) const;
  /// The same where only this status is a refusal; any other but success is a failure.
  void allow_not_supported(hipdnnStatus_t status, const std::string& what,
                           const std::source_location& at = std::source_location::current()) const;
};

class Handle {
 public:
  explicit Handle(const Library& library);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  hipdnnHandle_t get() const { return handle_; }

 private:
  const Library& library_;
  hipdnnHandle_t handle_ = nullptr;
};

using Location = std::source_location;

/// A descriptor handle. The typed setters and getters require success; `set` and `get` return the status.
class Descriptor {
 public:
  Descriptor(const Library& library, hipdnnBackendDescriptorType_t type);
  Descriptor(const Library& library, hipdnnBackendDescriptor_t adopted) : library_(&library), handle_(adopted) {}
  Descriptor(Descriptor&& other) noexcept : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();
  hipdnnBackendDescriptor_t get() const { return handle_; }

  hipdnnStatus_t set(int name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data) const;
  hipdnnStatus_t get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const;
  hipdnnStatus_t try_finalize() const { return library_->finalize(handle_); }

  Descriptor& integers(int name, const std::vector<std::int64_t>& values, const Location& at = Location::current());
  Descriptor& enumerator(int name, hipdnnBackendAttributeType_t type, int value, const Location& at = Location::current());
  Descriptor& data_type(int name, hipdnnDataType_t value, const Location& at = Location::current());
  Descriptor& flag(int name, bool value, const Location& at = Location::current());
  Descriptor& real(int name, float value, const Location& at = Location::current());
  Descriptor& characters(int name, std::string_view value, const Location& at = Location::current());
  Descriptor& refer(int name, const std::vector<const Descriptor*>& targets, const Location& at = Location::current());
  Descriptor& handle(int name, const Handle& value, const Location& at = Location::current());
  Descriptor& pointers(int name, const std::vector<void*>& values, const Location& at = Location::current());
  Descriptor& finalize(const Location& at = Location::current());

  std::int64_t count(int name, hipdnnBackendAttributeType_t type, const Location& at = Location::current()) const;
  std::vector<std::int64_t> read_integers(int name, const Location& at = Location::current()) const;
  /// Of an attribute that holds one element, and need not tell how many.
  std::int64_t read_integer(int name, const Location& at = Location::current()) const;
  Descriptor read_descriptor(int name, const Location& at = Location::current()) const;
  std::string read_characters(int name, const Location& at = Location::current()) const;
  /// Each element is a handle of its own.
  std::vector<Descriptor> read_descriptors(int name, const Location& at = Location::current()) const;

 private:
  void require(hipdnnStatus_t status, int name, const Location& at) const;
  const Library* library_;
  hipdnnBackendDescriptor_t handle_ = nullptr;
};

/// Memory of the device under test, filled from and read back to host values.
class Buffer {
 public:
  Buffer(const Library& library, std::size_t bytes);
  template <class T>
  Buffer(const Library& library, const std::vector<T>& values) : Buffer(library, values.size() * sizeof(T)) {
    write(values.data());
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* get() const { return pointer_; }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    read_into(values.data());
    return values;
  }

 private:
  void write(const void* from) const;
  void read_into(void* to) const;
  const Library& library_;
  std::size_t bytes_;
  void* pointer_ = nullptr;
};

}  // namespace abi
