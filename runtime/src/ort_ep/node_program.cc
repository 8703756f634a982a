#include "node_program.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <numeric>

#include "aligned_array.h"
#include "device/error.h"

namespace hipdnn_ep {
namespace {

/// Copy an array to the beginnings of the dims of a larger one.
void copy_into(const std::byte* from, std::span<const std::int64_t> dims, std::byte* to, std::span<const std::int64_t> room, std::size_t size) {
  const auto stride = [&](std::span<const std::int64_t> of) {
    return std::accumulate(of.begin() + 1, of.end(), size, [](std::size_t bytes, std::int64_t dim) { return bytes * static_cast<std::size_t>(dim); });
  };
  if (std::equal(dims.begin() + 1, dims.end(), room.begin() + 1)) {
    std::memcpy(to, from, static_cast<std::size_t>(dims.front()) * stride(dims));
    return;
  }
  for (std::int64_t i = 0; i < dims.front(); ++i, from += stride(dims), to += stride(room)) copy_into(from, dims.subspan(1), to, room.subspan(1), size);
}

/// An array with zeros behind each of its dims, as large as an argument.
AlignedArray filled(const void* data, std::span<const std::int64_t> dims, const hipdnn_rt::Argument& argument) {
  AlignedArray array = make_aligned(argument.bytes);
  std::memset(array.get(), 0, argument.bytes);
  copy_into(static_cast<const std::byte*>(data), dims, static_cast<std::byte*>(array.get()), argument.dims, hipdnn_rt::info_of(argument.dtype).bytes);
  return array;
}

ONNXTensorElementDataType element_of(hipdnn_rt::DType dtype) {
  using hipdnn_rt::DType;
  switch (dtype) {
    case DType::f32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case DType::f64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    case DType::f16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
    case DType::f8e4m3:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN;
    case DType::f8e5m2:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2;
    case DType::i8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
    case DType::u8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    case DType::i16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
    case DType::u16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
    case DType::i32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case DType::u32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;
    case DType::i64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case DType::u64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
    case DType::boolean:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/// An argument of a program; dynamic dims are -1.
struct KnownArgument {
  const std::string& name;
  hipdnn_rt::DType dtype;
  std::vector<std::int64_t> dims;
};

KnownArgument known(const hipdnn_rt::Argument& argument) { return {argument.name, argument.dtype, argument.dims}; }

KnownArgument known(const hipdnn_rt::DynamicArgument& argument) {
  KnownArgument found{argument.name, argument.dtype, {}};
  for (const hipdnn_rt::Expression& dim : argument.dims) found.dims.push_back(dim.entry ? -1 : dim.number);
  return found;
}

/// Whether the argument has the sizes that the type states; those that one of the two does not know are not compared.
bool has_sizes(const KnownArgument& argument, const TensorType& type) {
  return !type.dims ||
         std::equal(argument.dims.begin(), argument.dims.end(), type.dims->begin(), type.dims->end(),
                    [](std::int64_t dim, std::int64_t declared) { return dim < 0 || declared < 0 || dim == declared; });
}

/// Which sizes of a program's arguments have to be those that the model declares of its node's values.
enum class Sizes { declared, any };

/// The program's arguments must be the node's values: its steps write and read as many bytes as the arguments say.
template <typename Arguments>
void check_values(const Arguments& arguments, const std::vector<NodeValue>& values, const std::string& what, Sizes sizes) {
  if (arguments.size() != values.size()) {
    throw hipdnn_rt::ProgramError("the program has " + std::to_string(arguments.size()) + " " + what + "s, the node " +
                                  std::to_string(values.size()) + "; compile the model again");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KnownArgument argument = known(arguments[i]);
    const TensorType& type = values[i].type;
    if (element_of(argument.dtype) == type.element && (sizes == Sizes::any || has_sizes(argument, type))) continue;
    throw hipdnn_rt::ProgramError("the program's " + what + " '" + arguments[i].name + "' differs in element type or size from the node's '" +
                                  values[i].name + "'; compile the model again");
  }
}

}  // namespace

/// The arrays of one run, on the stack for up to some dozens of arguments.
struct NodeProgram::Call {
  alignas(std::max_align_t) std::array<std::byte, 2048> room;
  std::pmr::monotonic_buffer_resource memory{room.data(), room.size()};
  std::pmr::vector<hipdnn_rt::InputArray> inputs = std::pmr::vector<hipdnn_rt::InputArray>(&memory);
  std::pmr::vector<hipdnn_rt::OutputArray> outputs = std::pmr::vector<hipdnn_rt::OutputArray>(&memory);

  /// An output that the caller's array is too badly aligned for, copied there at the end.
  struct CopyBack {
    void* destination;
    const void* source;
    std::uint64_t bytes;
  };
  std::vector<AlignedArray> stand_ins;
  std::vector<CopyBack> copies;
};

hipdnn_rt::Memory memory_of(const Ort& ort, const SessionDevice& device, const OrtValue* value) {
  if (!device.is_device_memory) return hipdnn_rt::Memory::host;
  const OrtMemoryDevice* place = ort.ep->Value_GetMemoryDevice(value);
  const bool is_device = place != nullptr && ort.ep->MemoryDevice_GetDeviceType(place) == OrtMemoryInfoDeviceType_GPU &&
                         ort.ep->MemoryDevice_GetMemoryType(place) == OrtDeviceMemoryType_DEFAULT;
  return is_device ? hipdnn_rt::Memory::device : hipdnn_rt::Memory::host;
}

hipStream_t stream_of(const Ort& ort, const SessionDevice& device, OrtKernelContext* context) {
  void* stream = nullptr;
  if (device.is_device_memory) check(ort, ort.api->KernelContext_GetGPUComputeStream(context, &stream));
  return static_cast<hipStream_t>(stream);
}

void check_memory(const hipdnn_rt::Argument& argument, const void* data) {
  if (data == nullptr && argument.bytes > 0) {
    throw hipdnn_rt::DeviceError("'" + argument.name + "' has no memory: " + std::to_string(argument.bytes) +
                                 " bytes could not be allocated; use a smaller batch or free memory of the device");
  }
}

NodeSignature signature_on_buffers(const hipdnn_rt::DynamicProgram& program, NodeSignature node) {
  if (!program.growing()) return node;
  const auto length = static_cast<std::size_t>(program.growing()->length);
  const auto place = node.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(length, node.inputs.size()));
  node.inputs.insert(place, {program.inputs()[length].name, {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, std::vector<std::int64_t>{1}, {""}}, 0});
  return node;
}

void check_arguments(const hipdnn_rt::DynamicProgram& program, const NodeSignature& signature) {
  check_values(program.inputs(), signature.inputs, "input", Sizes::declared);
  // ONNX Runtime allocates what the program asks for, and warns where the model declares other sizes.
  check_values(program.outputs(), signature.outputs, "output", Sizes::any);
}

NodeProgram::NodeProgram(const Ort& ort, const SessionDevice& device, std::shared_ptr<const hipdnn_rt::Program> program,
                         NodeSignature signature, ProfileSinks sinks, std::shared_ptr<const hipdnn_rt::ConstantMemory> constants)
    : ort_(ort),
      device_(device),
      pool_(hipdnn_rt::LoadedProgram::load(device.device, std::move(program), std::move(constants))),
      signature_(std::move(signature)),
      sinks_(sinks) {
  // A run's arrays are compared with the program's sizes, not with those that the model declares and the run may contradict.
  check_values(this->program().inputs(), signature_.inputs, "input", Sizes::any);
  check_values(this->program().outputs(), signature_.outputs, "output", Sizes::any);
}

void NodeProgram::bind_inputs(OrtKernelContext* context, Call& call, const InputDims* dims) const {
  const std::vector<hipdnn_rt::Argument>& arguments = program().inputs();
  call.inputs.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const OrtValue* value = nullptr;
    const void* data = nullptr;
    std::size_t bytes = 0;
    check(ort_, ort_.api->KernelContext_GetInput(context, signature_.inputs[i].index, &value));
    if (value == nullptr) throw hipdnn_rt::InputError("input '" + arguments[i].name + "' is missing");
    check(ort_, ort_.api->GetTensorData(value, &data));
    check(ort_, ort_.api->GetTensorSizeInBytes(value, &bytes));
    const bool is_filled = dims != nullptr && !std::ranges::equal((*dims)[i], arguments[i].dims);
    if (!is_filled && bytes != arguments[i].bytes) {
      throw hipdnn_rt::InputError("input '" + arguments[i].name + "' has " + std::to_string(bytes) + " bytes, the program was compiled for " +
                                  std::to_string(arguments[i].bytes));
    }
    const hipdnn_rt::Memory memory = memory_of(ort_, device_, value);
    check_memory(arguments[i], data);
    if (is_filled) {
      call.stand_ins.push_back(filled(data, (*dims)[i], arguments[i]));
      data = call.stand_ins.back().get();
    } else if (memory == hipdnn_rt::Memory::host && !is_aligned(data)) {
      call.stand_ins.push_back(make_aligned(bytes));
      std::memcpy(call.stand_ins.back().get(), data, bytes);
      data = call.stand_ins.back().get();
    }
    call.inputs.push_back({data, memory});
  }
}

void NodeProgram::bind_outputs(OrtKernelContext* context, Call& call) const {
  const std::vector<hipdnn_rt::Argument>& arguments = program().outputs();
  call.outputs.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    OrtValue* value = nullptr;
    void* data = nullptr;
    const std::vector<std::int64_t>& dims = arguments[i].dims;
    check(ort_, ort_.api->KernelContext_GetOutput(context, signature_.outputs[i].index, dims.data(), dims.size(), &value));
    check(ort_, ort_.api->GetTensorMutableData(value, &data));
    const hipdnn_rt::Memory memory = memory_of(ort_, device_, value);
    check_memory(arguments[i], data);
    if (memory == hipdnn_rt::Memory::host && !is_aligned(data)) {
      call.stand_ins.push_back(make_aligned(arguments[i].bytes));
      call.copies.push_back({data, call.stand_ins.back().get(), arguments[i].bytes});
      data = call.stand_ins.back().get();
    }
    call.outputs.push_back({data, memory});
  }
}

void NodeProgram::run_profiled(std::span<const hipdnn_rt::InputArray> inputs, std::span<const hipdnn_rt::OutputArray> outputs) {
  const hipdnn_rt::TimedRun times = pool_.run_timed(inputs, outputs);
  if (sinks_.file != nullptr) sinks_.file->record(signature_.node, pool_.program(), times.elapsed_us);
  for (const auto& recording : sinks_.listeners->here()) recording->add({signature_.node, this_thread_number(), pool_.shared_program(), times});
}

void NodeProgram::run(std::span<const hipdnn_rt::InputArray> inputs, std::span<const hipdnn_rt::OutputArray> outputs, hipStream_t stream) {
  if (!device_.is_device_memory) return is_profiled() ? run_profiled(inputs, outputs) : pool_.run(inputs, outputs);
  const hipdnn_rt::HipApi& hip = device_.device->library().hip();
  const auto wait = [&] { hipdnn_rt::check(hip, hip.stream_synchronize(stream), "hipStreamSynchronize"); };
  if (is_profiled()) {
    wait();  // steps are timed on a stream of their own
    return run_profiled(inputs, outputs);
  }
  pool_.enqueue(inputs, outputs, stream);
  // ONNX Runtime takes host memory back as soon as this returns.
  const auto is_on_host = [](const auto& array) { return array.memory == hipdnn_rt::Memory::host; };
  if (std::ranges::any_of(inputs, is_on_host) || std::ranges::any_of(outputs, is_on_host)) wait();
}

void NodeProgram::run(OrtKernelContext* context, const InputDims* dims) {
  Call call;
  bind_inputs(context, call, dims);
  bind_outputs(context, call);
  run(call.inputs, call.outputs, stream_of(ort_, device_, context));
  for (const Call::CopyBack& copy : call.copies) std::memcpy(copy.destination, copy.source, copy.bytes);
}

}  // namespace hipdnn_ep
