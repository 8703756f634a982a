#include "runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace memory_tests {
namespace {

constexpr const char* kRegistration = "memory_test.virtual";

template <typename Function>
Function symbol(void* library, const char* name) {
  auto function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  return function;
}

void* open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// Fields of the protobuf encoding: a number, and bytes.
std::string number(unsigned field, std::uint64_t value) {
  std::string out;
  append_varint(out, field << 3);
  append_varint(out, value);
  return out;
}

std::string bytes(unsigned field, const std::string& content) {
  std::string out;
  append_varint(out, field << 3 | 2);
  append_varint(out, content.size());
  return out + content;
}

}  // namespace

Runtime::Runtime(const Libraries& libraries, const std::string& port) : env_(nullptr, nullptr) {
  void* library = open(libraries.onnxruntime);
  ort_.api = symbol<decltype(&OrtGetApiBase)>(library, "OrtGetApiBase")()->GetApi(ORT_API_VERSION);
  ort_.ep = ort_.api->GetEpApi();
  setenv(kPluginPort, port.c_str(), 1);
  setenv(kPluginDirectory, (port == "hip" ? libraries.fake : libraries.host).c_str(), 1);
  OrtEnv* env = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "memory", &env));
  env_ = {env, ort_.api->ReleaseEnv};
  hipdnn_ep::check(ort_, ort_.api->RegisterExecutionProviderLibrary(env, kRegistration, libraries.plugin.c_str()));
  counts_ = symbol<decltype(&pluginCounts)>(open(libraries.plugin), "pluginCounts");
  const OrtEpDevice* const* devices = nullptr;
  std::size_t count = 0;
  hipdnn_ep::check(ort_, ort_.api->GetEpDevices(env, &devices, &count));
  for (std::size_t i = 0; i < count; ++i) {
    if (std::string(ort_.api->EpDevice_EpName(devices[i])) == kPluginEpName) device_ = devices[i];
  }
  if (device_ == nullptr) throw std::runtime_error("the test's provider offers no device");
}

Runtime::~Runtime() {
  if (OrtStatus* status = ort_.api->UnregisterExecutionProviderLibrary(env_.get(), kRegistration)) ort_.api->ReleaseStatus(status);
}

OrtAllocator* Runtime::shared_allocator(OrtDeviceMemoryType type) const {
  using GetSharedAllocator = OrtStatus* (*)(OrtEnv*, const OrtMemoryInfo*, OrtAllocator**);
  OrtAllocator* allocator = nullptr;
  const auto info = hipdnn_ep::make_memory_info(ort_, hipdnn_ep::kAmdVendorId, 0, type);
  hipdnn_ep::check(ort_, slot<GetSharedAllocator>(ort_.api, 376)(env_.get(), info.get(), &allocator));
  if (allocator == nullptr) throw std::runtime_error("ONNX Runtime has no allocator for the provider's memory");
  return allocator;
}

std::vector<std::pair<std::string, std::string>> Runtime::stats(OrtDeviceMemoryType type) const {
  using GetStats = OrtStatus* (*)(const OrtAllocator*, OrtKeyValuePairs**);
  OrtKeyValuePairs* pairs = nullptr;
  hipdnn_ep::check(ort_, slot<GetStats>(ort_.api, 319)(shared_allocator(type), &pairs));
  const OrtOwned<OrtKeyValuePairs> owner(pairs, ort_.api->ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  std::size_t count = 0;
  ort_.api->GetKeyValuePairs(pairs, &keys, &values, &count);
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < count; ++i) result.emplace_back(keys[i], values[i]);
  return result;
}

OrtOwned<OrtSyncStream> Runtime::create_stream(const char* existing) const {
  using CreateSyncStream = OrtStatus* (*)(const OrtEpDevice*, const OrtKeyValuePairs*, OrtSyncStream**);
  using ReleaseSyncStream = void (*)(OrtSyncStream*);
  OrtKeyValuePairs* options = nullptr;
  ort_.api->CreateKeyValuePairs(&options);
  const OrtOwned<OrtKeyValuePairs> owner(options, ort_.api->ReleaseKeyValuePairs);
  if (existing != nullptr) ort_.api->AddKeyValuePair(options, "user_compute_stream", existing);
  OrtSyncStream* stream = nullptr;
  hipdnn_ep::check(ort_, slot<CreateSyncStream>(ort_.api, 383)(device_, options, &stream));
  return {stream, slot<ReleaseSyncStream>(ort_.api, 385)};
}

OrtOwned<OrtValue> Runtime::device_tensor(std::int64_t count, OrtDeviceMemoryType type) const {
  using CreateTensor = OrtStatus* (*)(OrtAllocator*, const std::int64_t*, std::size_t, ONNXTensorElementDataType, OrtValue**);
  OrtValue* value = nullptr;
  hipdnn_ep::check(ort_, slot<CreateTensor>(ort_.api, 48)(shared_allocator(type), &count, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return {value, ort_.api->ReleaseValue};
}

OrtOwned<OrtValue> Runtime::host_tensor(std::vector<float>& data) const {
  OrtMemoryInfo* info = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  const OrtOwned<OrtMemoryInfo> owner(info, ort_.api->ReleaseMemoryInfo);
  const auto count = static_cast<std::int64_t>(data.size());
  OrtValue* value = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateTensorWithDataAsOrtValue(info, data.data(), data.size() * sizeof(float), &count, 1,
                                                       ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return {value, ort_.api->ReleaseValue};
}

void Runtime::copy(const OrtValue* source, OrtValue* destination, OrtSyncStream* stream) const {
  using CopyTensors = OrtStatus* (*)(const OrtEnv*, const OrtValue* const*, OrtValue* const*, OrtSyncStream*, std::size_t);
  hipdnn_ep::check(ort_, slot<CopyTensors>(ort_.api, 386)(env_.get(), &source, &destination, stream, 1));
}

OrtOwned<OrtSession> Runtime::create_session(const std::string& model) const {
  OrtSessionOptions* options = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateSessionOptions(&options));
  const OrtOwned<OrtSessionOptions> owner(options, ort_.api->ReleaseSessionOptions);
  hipdnn_ep::check(ort_, ort_.api->SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  hipdnn_ep::check(ort_, ort_.api->SetIntraOpNumThreads(options, 1));
  hipdnn_ep::check(ort_, ort_.api->SessionOptionsAppendExecutionProvider_V2(options, env_.get(), &device_, 1, nullptr, nullptr, 0));
  OrtSession* session = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateSessionFromArray(env_.get(), model.data(), model.size(), options, &session));
  return {session, ort_.api->ReleaseSession};
}

void Runtime::run(OrtSession& session, const OrtValue* input, OrtValue*& output) const {
  const char* const input_name = "x";
  const char* const output_name = "y";
  hipdnn_ep::check(ort_, ort_.api->Run(&session, nullptr, &input_name, &input, 1, &output_name, 1, &output));
}

void* data_of(const Runtime& runtime, OrtValue* value) {
  void* data = nullptr;
  hipdnn_ep::check(runtime.ort(), runtime.ort().api->GetTensorMutableData(value, &data));
  return data;
}

std::string encode_chain(const std::vector<std::string>& operators, std::int64_t count) {
  const std::string shape = bytes(1, number(1, static_cast<std::uint64_t>(count)));
  const std::string type = bytes(2, bytes(1, number(1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) + bytes(2, shape)));
  std::string graph;
  std::string value = "x";
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const std::string next = i + 1 == operators.size() ? std::string("y") : std::string("v").append(std::to_string(i));
    graph += bytes(1, bytes(1, value) + bytes(2, next) + bytes(3, std::string("node").append(std::to_string(i))) + bytes(4, operators[i]));
    value = next;
  }
  graph += bytes(2, "chain") + bytes(11, bytes(1, "x") + type) + bytes(12, bytes(1, "y") + type);
  return number(1, 8) + bytes(7, graph) + bytes(8, bytes(1, "") + number(2, 13));
}

}  // namespace memory_tests
