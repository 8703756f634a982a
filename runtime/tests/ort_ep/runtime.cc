#include "runtime.h"

#include <dlfcn.h>

#include <random>
#include <stdexcept>

namespace ort_tests {
namespace {

/// Functions of ONNX Runtime's table that this project calls in tests alone, so that its header has a gap there.
struct AssignedPart;
struct AssignedNode;
constexpr std::size_t kCreateTensor = 48;
constexpr std::size_t kGetSharedAllocator = 376;
constexpr std::size_t kGetParts = 407;
constexpr std::size_t kGetPartProvider = 408;
constexpr std::size_t kGetPartNodes = 409;
constexpr std::size_t kGetNodeName = 410;

template <typename... Parameters>
void call(const hipdnn_ep::Ort& ort, std::size_t slot, Parameters... parameters) {
  const auto function = reinterpret_cast<OrtStatus* (*)(Parameters...)>(reinterpret_cast<void* const*>(ort.api)[slot]);
  hipdnn_ep::check(ort, function(parameters...));
}

const OrtApiBase* open_base(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto get_base = reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) throw std::runtime_error(path + " is not ONNX Runtime");
  return get_base();
}

std::vector<const char*> texts(const std::map<std::string, std::string>& pairs, bool is_key) {
  std::vector<const char*> result;
  for (const auto& [key, value] : pairs) result.push_back((is_key ? key : value).c_str());
  return result;
}

}  // namespace

Runtime::Runtime(const std::string& onnxruntime, const std::string& registration, const std::string& library, std::string provider)
    : registration_(registration), provider_(std::move(provider)), env_(nullptr, nullptr) {
  ort_.api = open_base(onnxruntime)->GetApi(ORT_API_VERSION);
  if (ort_.api == nullptr) throw std::runtime_error(onnxruntime + " is too old");
  ort_.ep = ort_.api->GetEpApi();
  OrtEnv* env = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "tests", &env));
  env_ = {env, ort_.api->ReleaseEnv};
  hipdnn_ep::check(ort_, ort_.api->RegisterExecutionProviderLibrary(env, registration_.c_str(), library.c_str()));
}

Runtime::~Runtime() {
  if (OrtStatus* status = ort_.api->UnregisterExecutionProviderLibrary(env_.get(), registration_.c_str())) ort_.api->ReleaseStatus(status);
}

const OrtEpDevice* Runtime::device(DeviceKind kind) const {
  const OrtHardwareDeviceType wanted = kind == DeviceKind::cpu ? OrtHardwareDeviceType_CPU : OrtHardwareDeviceType_GPU;
  const OrtEpDevice* const* devices = nullptr;
  std::size_t count = 0;
  hipdnn_ep::check(ort_, ort_.api->GetEpDevices(env_.get(), &devices, &count));
  for (const OrtEpDevice* candidate : std::span(devices, count)) {
    const bool is_wanted = ort_.api->HardwareDevice_Type(ort_.api->EpDevice_Device(candidate)) == wanted;
    if (is_wanted && provider_ == ort_.api->EpDevice_EpName(candidate)) return candidate;
  }
  throw std::runtime_error(provider_ + " offers no such device");
}

OrtOwned<OrtSession> Runtime::create_session(const SessionSettings& settings) const {
  OrtSessionOptions* options = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateSessionOptions(&options));
  const OrtOwned<OrtSessionOptions> owner(options, ort_.api->ReleaseSessionOptions);
  hipdnn_ep::check(ort_, ort_.api->SetIntraOpNumThreads(options, 1));
  hipdnn_ep::check(ort_, ort_.api->AddSessionConfigEntry(options, "session.record_ep_graph_assignment_info", "1"));
  for (const auto& [key, value] : settings.entries) {
    hipdnn_ep::check(ort_, ort_.api->AddSessionConfigEntry(options, key.c_str(), value.c_str()));
  }
  if (settings.device != DeviceKind::none) {
    const OrtEpDevice* device = this->device(settings.device);
    const std::vector<const char*> keys = texts(settings.options, true);
    const std::vector<const char*> values = texts(settings.options, false);
    hipdnn_ep::check(ort_, ort_.api->SessionOptionsAppendExecutionProvider_V2(options, env_.get(), &device, 1, keys.data(), values.data(),
                                                                              keys.size()));
  }
  OrtSession* session = nullptr;
  hipdnn_ep::check(ort_, ort_.api->CreateSession(env_.get(), settings.model.c_str(), options, &session));
  return {session, ort_.api->ReleaseSession};
}

std::size_t element_count(const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  return count;
}

Tensor::Tensor(const Runtime& runtime, std::vector<std::int64_t> dims, std::vector<float> data)
    : dims_(std::move(dims)), data_(std::move(data)), value_(nullptr, nullptr) {
  const OrtApi* api = runtime.ort().api;
  OrtMemoryInfo* memory = nullptr;
  hipdnn_ep::check(runtime.ort(), api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  const OrtOwned<OrtMemoryInfo> owner(memory, api->ReleaseMemoryInfo);
  OrtValue* value = nullptr;
  hipdnn_ep::check(runtime.ort(), api->CreateTensorWithDataAsOrtValue(memory, data_.data(), data_.size() * sizeof(float), dims_.data(),
                                                                      dims_.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  value_ = {value, api->ReleaseValue};
}

OrtOwned<OrtValue> make_device_tensor(const Runtime& runtime, const std::vector<std::int64_t>& dims) {
  constexpr std::uint32_t amd = 0x1002;
  const hipdnn_ep::Ort& ort = runtime.ort();
  OrtMemoryInfo* memory = nullptr;
  hipdnn_ep::check(ort, ort.api->CreateMemoryInfo_V2("device", OrtMemoryInfoDeviceType_GPU, amd, 0, OrtDeviceMemoryType_DEFAULT, 0,
                                                     OrtDeviceAllocator, &memory));
  const OrtOwned<OrtMemoryInfo> owner(memory, ort.api->ReleaseMemoryInfo);
  OrtAllocator* allocator = nullptr;
  call(ort, kGetSharedAllocator, runtime.env(), static_cast<const OrtMemoryInfo*>(memory), &allocator);
  OrtValue* value = nullptr;
  call(ort, kCreateTensor, allocator, dims.data(), dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value);
  return {value, ort.api->ReleaseValue};
}

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1.0F, 1.0F);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

Session::Session(const Runtime& runtime, const SessionSettings& settings) : runtime_(runtime), session_(runtime.create_session(settings)) {}

void Session::run(const OrtValue* input, OrtValue*& output) const {
  const char* const input_name = "x";
  const char* const output_name = "y";
  hipdnn_ep::check(runtime_.ort(), runtime_.ort().api->Run(session_.get(), nullptr, &input_name, &input, 1, &output_name, 1, &output));
}

std::vector<float> Session::run(const Tensor& input) const {
  OrtValue* output = nullptr;
  run(input.value(), output);
  const OrtOwned<OrtValue> owner(output, runtime_.ort().api->ReleaseValue);
  const std::span<const float> numbers = this->numbers(output);
  return {numbers.begin(), numbers.end()};
}

std::span<const float> Session::numbers(OrtValue* value) const {
  void* data = nullptr;
  std::size_t bytes = 0;
  hipdnn_ep::check(runtime_.ort(), runtime_.ort().api->GetTensorMutableData(value, &data));
  hipdnn_ep::check(runtime_.ort(), runtime_.ort().api->GetTensorSizeInBytes(value, &bytes));
  return {static_cast<const float*>(data), bytes / sizeof(float)};
}

std::vector<std::vector<std::string>> Session::parts(std::string_view provider) const {
  const hipdnn_ep::Ort& ort = runtime_.ort();
  const AssignedPart* const* parts = nullptr;
  std::size_t part_count = 0;
  call(ort, kGetParts, static_cast<const OrtSession*>(session_.get()), &parts, &part_count);
  std::vector<std::vector<std::string>> result;
  for (const AssignedPart* part : std::span(parts, part_count)) {
    const char* owner = nullptr;
    const AssignedNode* const* nodes = nullptr;
    std::size_t node_count = 0;
    call(ort, kGetPartProvider, part, &owner);
    if (owner != provider) continue;
    call(ort, kGetPartNodes, part, &nodes, &node_count);
    std::vector<std::string>& names = result.emplace_back();
    for (const AssignedNode* node : std::span(nodes, node_count)) {
      const char* name = nullptr;
      call(ort, kGetNodeName, node, &name);
      names.emplace_back(name);
    }
  }
  return result;
}

}  // namespace ort_tests
