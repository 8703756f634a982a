#include "cudnn.h"

#include <dlfcn.h>

#include <array>
#include <stdexcept>

#include "frontend/status.h"
#include "symbols.h"

namespace hipdnn_cuda {
namespace {

Opened<Cudnn> open_cudnn() {
  Opened<Cudnn> opened;
  void* library = dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    opened.failure = std::string("cannot open libcudnn_graph.so.9 (") + (reason != nullptr ? reason : "not found") +
                     "); install cuDNN 9 and put its folder on LD_LIBRARY_PATH";
    return opened;
  }
  std::string missing;
  Cudnn& api = opened.functions;
  load(library, "cudnnCreate", api.create, missing);
  load(library, "cudnnDestroy", api.destroy, missing);
  load(library, "cudnnSetStream", api.set_stream, missing);
  load(library, "cudnnGetVersion", api.get_version, missing);
  load(library, "cudnnGetErrorString", api.get_error_string, missing);
  load(library, "cudnnGetLastErrorString", api.get_last_error_string, missing);
  load(library, "cudnnBackendCreateDescriptor", api.create_descriptor, missing);
  load(library, "cudnnBackendDestroyDescriptor", api.destroy_descriptor, missing);
  load(library, "cudnnBackendFinalize", api.finalize, missing);
  load(library, "cudnnBackendSetAttribute", api.set_attribute, missing);
  load(library, "cudnnBackendGetAttribute", api.get_attribute, missing);
  load(library, "cudnnBackendExecute", api.execute, missing);
  if (!missing.empty()) {
    opened.failure = "libcudnn_graph.so.9: symbol " + missing + " is missing; install a newer cuDNN 9";
    return opened;
  }
  const std::size_t number = api.get_version();
  opened.version = std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
  return opened;
}

const Opened<Cudnn>& opened_cudnn() {
  static const Opened<Cudnn> library = open_cudnn();
  return library;
}

}  // namespace

const Cudnn& cudnn() {
  if (!opened_cudnn().failure.empty()) hipdnn_port::fail(HIPDNN_STATUS_NOT_INITIALIZED, opened_cudnn().failure);
  return opened_cudnn().functions;
}

const char* cudnn_version() { return opened_cudnn().version.c_str(); }

std::string describe_cudnn(cudnnStatus_t status) {
  std::array<char, 2048> text{};
  cudnn().get_last_error_string(text.data(), text.size() - 1);
  std::string words = cudnn().get_error_string(status);
  if (text.front() != '\0') words += std::string(": ") + text.data();
  return words;
}

void check_cudnn(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string message = std::string(what) + ": " + describe_cudnn(status);
  // What is wrong with the machine rather than with the graph has a status of its own.
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) hipdnn_port::fail(HIPDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, message);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) hipdnn_port::fail(HIPDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, message);
  if (status >= CUDNN_STATUS_EXECUTION_FAILED) hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, message);
  throw std::runtime_error(message);
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnn().create_descriptor(type, &raw_), "cudnnBackendCreateDescriptor(" + std::to_string(type) + ")");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (raw_ != nullptr) cudnn().destroy_descriptor(raw_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* data) {
  const cudnnStatus_t status = cudnn().set_attribute(raw_, name, type, count, data);
  if (status != CUDNN_STATUS_SUCCESS) check_cudnn(status, "attribute " + std::to_string(name));
}

void CudnnDescriptor::set_integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set_flag(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, 1, &value); }

void CudnnDescriptor::set_number(cudnnBackendAttributeName_t name, double value) { set(name, CUDNN_TYPE_DOUBLE, 1, &value); }

void CudnnDescriptor::set_descriptors(cudnnBackendAttributeName_t name, std::span<const cudnnBackendDescriptor_t> values) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(values.size()), values.data());
}

cudnnStatus_t CudnnDescriptor::try_finalize() { return cudnn().finalize(raw_); }

void CudnnDescriptor::finalize(std::string_view what) { check_cudnn(try_finalize(), what); }

std::int64_t CudnnDescriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  check_cudnn(cudnn().get_attribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value), "attribute " + std::to_string(name));
  return value;
}

}  // namespace hipdnn_cuda
