// run_model LIBRARY MODEL [OPTION=VALUE ...]: runs an ONNX model on the hipDNN execution provider, through ONNX Runtime's C API.
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr const char* kProvider = "HipDNNExecutionProvider";
constexpr const char* kRegistration = "hipdnn";

/// Wrong use of this program, which exits with 2; what ONNX Runtime or the provider refuses exits with 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

const OrtApi& api() {
  static const OrtApi* const table = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (table == nullptr) {
    throw std::runtime_error("ONNX Runtime 1." + std::to_string(ORT_API_VERSION) + " or later is needed, this is " +
                             OrtGetApiBase()->GetVersionString() + "; build with a newer library");
  }
  return *table;
}

void check(OrtStatus* status) {
  if (status == nullptr) return;
  std::string message = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  message.erase(message.find_last_not_of('\n') + 1);
  throw std::runtime_error(message);
}

struct Release {
  void operator()(OrtEnv* object) const { api().ReleaseEnv(object); }
  void operator()(OrtSessionOptions* object) const { api().ReleaseSessionOptions(object); }
  void operator()(OrtSession* object) const { api().ReleaseSession(object); }
  void operator()(OrtMemoryInfo* object) const { api().ReleaseMemoryInfo(object); }
  void operator()(OrtTypeInfo* object) const { api().ReleaseTypeInfo(object); }
  void operator()(OrtTensorTypeAndShapeInfo* object) const { api().ReleaseTensorTypeAndShapeInfo(object); }
  void operator()(OrtValue* object) const { api().ReleaseValue(object); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;

/// The provider's library in an environment. Sessions that use it go first.
class Registration {
 public:
  Registration(OrtEnv& env, const std::string& library) : env_(env) {
    check(api().RegisterExecutionProviderLibrary(&env, kRegistration, library.c_str()));
  }
  ~Registration() {
    if (OrtStatus* status = api().UnregisterExecutionProviderLibrary(&env_, kRegistration)) api().ReleaseStatus(status);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  OrtEnv& env_;
};

/// The provider's GPU where there is one, else its CPU.
const OrtEpDevice* choose_device(const OrtEnv& env) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  check(api().GetEpDevices(&env, &devices, &count));
  const OrtEpDevice* chosen = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (std::string(api().EpDevice_EpName(devices[i])) != kProvider) continue;
    const bool is_gpu = api().HardwareDevice_Type(api().EpDevice_Device(devices[i])) == OrtHardwareDeviceType_GPU;
    if (chosen == nullptr || is_gpu) chosen = devices[i];
  }
  if (chosen == nullptr) {
    throw std::runtime_error(std::string("the library offers no device of ") + kProvider + ": reinstall hipdnn-mlir");
  }
  return chosen;
}

/// `options` are "OPTION=VALUE", for the provider.
Owned<OrtSession> create_session(OrtEnv& env, const OrtEpDevice* device, const std::string& model,
                                 const std::vector<std::string>& options) {
  std::vector<std::string> keys, values;
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) throw UsageError("'" + option + "' is no provider option: write OPTION=VALUE");
    keys.push_back(option.substr(0, equals));
    values.push_back(option.substr(equals + 1));
  }
  std::vector<const char*> key_texts, value_texts;
  for (const std::string& key : keys) key_texts.push_back(key.c_str());
  for (const std::string& value : values) value_texts.push_back(value.c_str());

  OrtSessionOptions* session_options = nullptr;
  check(api().CreateSessionOptions(&session_options));
  const Owned<OrtSessionOptions> owner(session_options);
  check(api().SessionOptionsAppendExecutionProvider_V2(session_options, &env, &device, 1, key_texts.data(), value_texts.data(),
                                                       keys.size()));
  OrtSession* session = nullptr;
  check(api().CreateSession(&env, model.c_str(), session_options, &session));
  return Owned<OrtSession>(session);
}

/// Element types that this program makes and prints.
struct ElementType {
  ONNXTensorElementDataType type;
  const char* name;
  size_t bytes;
  double (*read)(const void* data, size_t index);
};

template <typename T>
double read_as(const void* data, size_t index) {
  return static_cast<double>(static_cast<const T*>(data)[index]);
}

const ElementType& element_type(ONNXTensorElementDataType type) {
  static constexpr ElementType kTypes[] = {
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "float32", 4, read_as<float>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "float64", 8, read_as<double>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "int64", 8, read_as<int64_t>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "int32", 4, read_as<int32_t>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "uint8", 1, read_as<uint8_t>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", 1, read_as<int8_t>},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", 1, read_as<bool>},
  };
  for (const ElementType& known : kTypes) {
    if (known.type == type) return known;
  }
  throw std::runtime_error("the model has a tensor of ONNX element type " + std::to_string(type) +
                           ", this program knows float32, float64, int64, int32, uint8, int8 and bool: extend its table of types");
}

/// What ONNX Runtime knows of a tensor.
struct TensorType {
  const ElementType* element;
  std::vector<int64_t> dims;

  size_t count() const {
    size_t elements = 1;
    for (const int64_t dim : dims) elements *= static_cast<size_t>(dim);
    return elements;
  }
  std::string text() const {
    std::string text = std::string(element->name) + "[";
    for (size_t i = 0; i < dims.size(); ++i) text.append(i == 0 ? "" : ",").append(std::to_string(dims[i]));
    return text + "]";
  }
};

TensorType read_type(const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  check(api().GetTensorElementType(info, &element));
  check(api().GetDimensionsCount(info, &rank));
  TensorType type{&element_type(element), std::vector<int64_t>(rank)};
  check(api().GetDimensions(info, type.dims.data(), rank));
  return type;
}

TensorType input_type(const OrtSession& session, size_t index) {
  OrtTypeInfo* type = nullptr;
  check(api().SessionGetInputTypeInfo(&session, index, &type));
  const Owned<OrtTypeInfo> owner(type);
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().CastTypeInfoToTensorInfo(type, &info));
  if (info == nullptr) {
    throw std::runtime_error("input " + std::to_string(index) + " of the model is no tensor: this program runs tensors only");
  }
  TensorType declared = read_type(info);
  // A dynamic dimension is -1; this program takes 1.
  for (int64_t& dim : declared.dims) dim = dim < 0 ? 1 : dim;
  return declared;
}

TensorType value_type(const OrtValue& value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  check(api().GetTensorTypeAndShape(&value, &info));
  const Owned<OrtTensorTypeAndShapeInfo> owner(info);
  return read_type(info);
}

/// Names of the session's inputs or outputs, from a pair of functions of the API.
template <typename Count, typename Name>
std::vector<std::string> read_names(const OrtSession& session, Count get_count, Name get_name) {
  OrtAllocator* allocator = nullptr;
  check(api().GetAllocatorWithDefaultOptions(&allocator));
  size_t count = 0;
  check(get_count(&session, &count));
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    check(get_name(&session, i, allocator, &name));
    names.emplace_back(name);
    check(api().AllocatorFree(allocator, name));
  }
  return names;
}

/// An input in this program's own memory.
struct Input {
  TensorType type;
  std::vector<std::byte> data;
  Owned<OrtValue> value;
};

/// A sine wave where the elements are float32, zeros elsewhere.
Input make_input(const TensorType& type) {
  Input input{type, std::vector<std::byte>(type.count() * type.element->bytes), nullptr};
  if (type.element->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    auto* numbers = reinterpret_cast<float*>(input.data.data());
    for (size_t i = 0; i < type.count(); ++i) numbers[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  }
  OrtMemoryInfo* memory = nullptr;
  check(api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  const Owned<OrtMemoryInfo> owner(memory);
  OrtValue* value = nullptr;
  check(api().CreateTensorWithDataAsOrtValue(memory, input.data.data(), input.data.size(), type.dims.data(), type.dims.size(),
                                             type.element->type, &value));
  input.value.reset(value);
  return input;
}

void print_tensor(const std::string& name, OrtValue& value) {
  constexpr size_t shown = 5;
  const TensorType type = value_type(value);
  void* data = nullptr;
  check(api().GetTensorMutableData(&value, &data));
  std::printf("%s: %s", name.c_str(), type.text().c_str());
  for (size_t i = 0; i < std::min(type.count(), shown); ++i) std::printf(" %.7g", type.element->read(data, i));
  std::printf(type.count() > shown ? " ...\n" : "\n");
}

/// Run the model several times, print its outputs and the times.
void run_and_print(OrtSession& session, const std::vector<Input>& inputs) {
  constexpr int runs = 10;
  const std::vector<std::string> input_names = read_names(session, api().SessionGetInputCount, api().SessionGetInputName);
  const std::vector<std::string> output_names = read_names(session, api().SessionGetOutputCount, api().SessionGetOutputName);
  std::vector<const char*> in_names, out_names;
  std::vector<const OrtValue*> in_values;
  for (const std::string& name : input_names) in_names.push_back(name.c_str());
  for (const std::string& name : output_names) out_names.push_back(name.c_str());
  for (const Input& input : inputs) in_values.push_back(input.value.get());

  std::vector<Owned<OrtValue>> outputs;
  double best_ms = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    std::vector<OrtValue*> made(out_names.size(), nullptr);
    const auto start = std::chrono::steady_clock::now();
    check(api().Run(&session, nullptr, in_names.data(), in_values.data(), in_values.size(), out_names.data(), out_names.size(),
                    made.data()));
    best_ms = std::min(best_ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    outputs.clear();
    for (OrtValue* value : made) outputs.emplace_back(value);
  }
  for (size_t i = 0; i < outputs.size(); ++i) print_tensor(output_names[i], *outputs[i]);
  std::printf("%.3f ms, the best of %d runs\n", best_ms, runs);
}

void require_file(const std::string& path, const char* what) {
  if (!std::filesystem::is_regular_file(path)) throw UsageError("'" + path + "' is no file: give the path of " + what);
}

void run(const std::string& library, const std::string& model, const std::vector<std::string>& options) {
  require_file(library, "libhipdnn_ep.so, as hipdnn_mlir_runtime.ort_ep.get_library_path() names it");
  require_file(model, "an ONNX model");
  OrtEnv* env = nullptr;
  check(api().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "run_model", &env));
  const Owned<OrtEnv> owner(env);
  const Registration registration(*env, std::filesystem::absolute(library).string());
  const Owned<OrtSession> session = create_session(*env, choose_device(*env), model, options);

  std::vector<Input> inputs;
  for (const std::string& name : read_names(*session, api().SessionGetInputCount, api().SessionGetInputName)) {
    inputs.push_back(make_input(input_type(*session, inputs.size())));
    print_tensor(name, *inputs.back().value);
  }
  run_and_print(*session, inputs);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw UsageError(std::string("usage: ") + argv[0] + " LIBRARY MODEL [OPTION=VALUE ...]");
    run(argv[1], argv[2], {argv + 3, argv + argc});
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
