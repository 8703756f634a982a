// Opening the library, and the plumbing of its C functions.
#include "library.h"

#include <dlfcn.h>

#include <array>

namespace abi {

SharedLibrary::SharedLibrary(const std::string& path) : path_(path), library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) throw std::runtime_error(dlerror());
}

void SharedLibrary::Close::operator()(void* library) const { dlclose(library); }

void* SharedLibrary::find(const char* name) const { return dlsym(library_.get(), name); }

Library::Library(const std::string& backend_path, const std::string& hip_path)
    : backend(backend_path),
      hip(hip_path),
      create(backend.get<decltype(::hipdnnCreate)>("hipdnnCreate")),
      destroy(backend.get<decltype(::hipdnnDestroy)>("hipdnnDestroy")),
      set_stream(backend.get<decltype(::hipdnnSetStream)>("hipdnnSetStream")),
      get_stream(backend.get<decltype(::hipdnnGetStream)>("hipdnnGetStream")),
      create_descriptor(backend.get<decltype(::hipdnnBackendCreateDescriptor)>("hipdnnBackendCreateDescriptor")),
      destroy_descriptor(backend.get<decltype(::hipdnnBackendDestroyDescriptor)>("hipdnnBackendDestroyDescriptor")),
      finalize(backend.get<decltype(::hipdnnBackendFinalize)>("hipdnnBackendFinalize")),
      set_attribute(backend.get<decltype(::hipdnnBackendSetAttribute)>("hipdnnBackendSetAttribute")),
      get_attribute(backend.get<decltype(::hipdnnBackendGetAttribute)>("hipdnnBackendGetAttribute")),
      execute(backend.get<decltype(::hipdnnBackendExecute)>("hipdnnBackendExecute")),
      error_string(backend.get<decltype(::hipdnnGetErrorString)>("hipdnnGetErrorString")),
      last_error_string(backend.get<decltype(::hipdnnGetLastErrorString)>("hipdnnGetLastErrorString")),
      peek_last_error_string(backend.get<decltype(::hipdnnPeekLastErrorString_ext)>("hipdnnPeekLastErrorString_ext")),
      hip_malloc(hip.get<decltype(::hipMalloc)>("hipMalloc")),
      hip_free(hip.get<decltype(::hipFree)>("hipFree")),
      hip_memcpy(hip.get<decltype(::hipMemcpyAsync)>("hipMemcpyAsync")),
      hip_synchronize(hip.get<decltype(::hipStreamSynchronize)>("hipStreamSynchronize")) {}

std::string Library::last_error() const {
  std::array<char, 4096> message{};
  peek_last_error_string(message.data(), message.size());
  return message.data();
}

void Library::allow_refusal(hipdnnStatus_t status, const std::string& what, const std::source_location& at) const {
  if (status == HIPDNN_STATUS_SUCCESS) return;
  const std::string reason = last_error();
  check::that(!reason.empty(), what + ": status " + std::to_string(status) + " without a message", at);
  throw check::Refused(what + ": status " + std::to_string(status) + ", " + reason);
}

void Library::allow_not_supported(hipdnnStatus_t status, const std::string& what, const std::source_location& at) const {
  if (status != HIPDNN_STATUS_SUCCESS) check::equal(status, HIPDNN_STATUS_NOT_SUPPORTED, what + ": " + last_error(), at);
  allow_refusal(status, what, at);
}

Handle::Handle(const Library& library) : library_(library) { check::equal(library.create(&handle_), HIPDNN_STATUS_SUCCESS, "hipdnnCreate"); }

Handle::~Handle() { library_.destroy(handle_); }

Descriptor::Descriptor(const Library& library, hipdnnBackendDescriptorType_t type) : library_(&library) {
  check::equal(library.create_descriptor(type, &handle_), HIPDNN_STATUS_SUCCESS, "create descriptor " + std::to_string(type));
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) library_->destroy_descriptor(handle_);
}

void Descriptor::require(hipdnnStatus_t status, int name, const Location& at) const {
  if (status == HIPDNN_STATUS_SUCCESS) return;
  throw check::Failure("attribute " + std::to_string(name) + ": status " + std::to_string(status) + ", " + library_->last_error(), at);
}

hipdnnStatus_t Descriptor::set(int name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data) const {
  return library_->set_attribute(handle_, static_cast<hipdnnBackendAttributeName_t>(name), type, count, data);
}

hipdnnStatus_t Descriptor::get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const {
  return library_->get_attribute(handle_, static_cast<hipdnnBackendAttributeName_t>(name), type, requested, actual, data);
}

Descriptor& Descriptor::integers(int name, const std::vector<std::int64_t>& values, const Location& at) {
  require(set(name, HIPDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data()), name, at);
  return *this;
}

Descriptor& Descriptor::enumerator(int name, hipdnnBackendAttributeType_t type, int value, const Location& at) {
  require(set(name, type, 1, &value), name, at);
  return *this;
}

Descriptor& Descriptor::data_type(int name, hipdnnDataType_t value, const Location& at) {
  return enumerator(name, HIPDNN_TYPE_DATA_TYPE, value, at);
}

Descriptor& Descriptor::flag(int name, bool value, const Location& at) {
  require(set(name, HIPDNN_TYPE_BOOLEAN, 1, &value), name, at);
  return *this;
}

Descriptor& Descriptor::real(int name, float value, const Location& at) {
  require(set(name, HIPDNN_TYPE_FLOAT, 1, &value), name, at);
  return *this;
}

Descriptor& Descriptor::characters(int name, std::string_view value, const Location& at) {
  require(set(name, HIPDNN_TYPE_CHAR, static_cast<std::int64_t>(value.size()), value.data()), name, at);
  return *this;
}

Descriptor& Descriptor::refer(int name, const std::vector<const Descriptor*>& targets, const Location& at) {
  std::vector<hipdnnBackendDescriptor_t> handles;
  for (const Descriptor* target : targets) handles.push_back(target->get());
  require(set(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()), handles.data()), name, at);
  return *this;
}

Descriptor& Descriptor::handle(int name, const Handle& value, const Location& at) {
  hipdnnHandle_t raw = value.get();
  require(set(name, HIPDNN_TYPE_HANDLE, 1, &raw), name, at);
  return *this;
}

Descriptor& Descriptor::pointers(int name, const std::vector<void*>& values, const Location& at) {
  require(set(name, HIPDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(values.size()), values.data()), name, at);
  return *this;
}

Descriptor& Descriptor::finalize(const Location& at) {
  const hipdnnStatus_t status = try_finalize();
  if (status != HIPDNN_STATUS_SUCCESS) throw check::Failure("finalize: status " + std::to_string(status) + ", " + library_->last_error(), at);
  return *this;
}

std::int64_t Descriptor::count(int name, hipdnnBackendAttributeType_t type, const Location& at) const {
  std::int64_t counted = -1;
  require(get(name, type, 0, &counted, nullptr), name, at);
  return counted;
}

std::vector<std::int64_t> Descriptor::read_integers(int name, const Location& at) const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count(name, HIPDNN_TYPE_INT64, at)));
  if (!values.empty()) {
    std::int64_t actual = 0;
    require(get(name, HIPDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), &actual, values.data()), name, at);
    check::equal(actual, static_cast<std::int64_t>(values.size()), "count", at);
  }
  return values;
}

std::int64_t Descriptor::read_integer(int name, const Location& at) const {
  std::int64_t value = 0;
  std::int64_t actual = 0;
  require(get(name, HIPDNN_TYPE_INT64, 1, &actual, &value), name, at);
  check::equal(actual, 1, "count", at);
  return value;
}

Descriptor Descriptor::read_descriptor(int name, const Location& at) const {
  hipdnnBackendDescriptor_t handle = nullptr;
  std::int64_t actual = 0;
  require(get(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &actual, &handle), name, at);
  check::equal(actual, 1, "count", at);
  return {*library_, handle};
}

std::string Descriptor::read_characters(int name, const Location& at) const {
  std::string text(static_cast<std::size_t>(count(name, HIPDNN_TYPE_CHAR, at)), '?');
  std::int64_t actual = 0;
  require(get(name, HIPDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), &actual, text.data()), name, at);
  return text;
}

std::vector<Descriptor> Descriptor::read_descriptors(int name, const Location& at) const {
  std::vector<hipdnnBackendDescriptor_t> handles(static_cast<std::size_t>(count(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, at)), nullptr);
  std::int64_t actual = 0;
  require(get(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()), &actual, handles.data()), name, at);
  std::vector<Descriptor> adopted;
  for (hipdnnBackendDescriptor_t handle : handles) adopted.emplace_back(*library_, handle);
  return adopted;
}

Buffer::Buffer(const Library& library, std::size_t bytes) : library_(library), bytes_(bytes) {
  check::equal(library.hip_malloc(&pointer_, bytes), hipSuccess, "hipMalloc");
}

Buffer::~Buffer() { library_.hip_free(pointer_); }

void Buffer::write(const void* from) const {
  check::equal(library_.hip_memcpy(pointer_, from, bytes_, hipMemcpyHostToDevice, nullptr), hipSuccess, "copy to the device");
  check::equal(library_.hip_synchronize(nullptr), hipSuccess, "synchronize");
}

void Buffer::read_into(void* to) const {
  check::equal(library_.hip_memcpy(to, pointer_, bytes_, hipMemcpyDeviceToHost, nullptr), hipSuccess, "copy from the device");
  check::equal(library_.hip_synchronize(nullptr), hipSuccess, "synchronize");
}

}  // namespace abi
