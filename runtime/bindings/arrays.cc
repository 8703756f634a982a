#include "arrays.h"

#include <cstdlib>
#include <new>
#include <string>

#include "device/error.h"

namespace nb = nanobind;

namespace hipdnn_rt::bindings {
namespace {

/// Blocks kept per output: enough for a few concurrent runs, little enough not to hoard.
constexpr std::size_t kFreeBlocks = 4;
constexpr std::size_t kBlockAlignment = 64;

nb::dlpack::dtype dlpack_type(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto make = [](Code code, std::uint8_t bits) { return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1}; };
  switch (dtype) {
    case DType::f32: return make(Code::Float, 32);
    case DType::f64: return make(Code::Float, 64);
    case DType::f16: return make(Code::Float, 16);
    case DType::bf16: return make(Code::Bfloat, 16);
    case DType::f8e4m3: return make(Code{10}, 8);  // DLPack 1.1: kDLFloat8_e4m3fn, kDLFloat8_e5m2
    case DType::f8e5m2: return make(Code{12}, 8);
    case DType::i8: return make(Code::Int, 8);
    case DType::u8: return make(Code::UInt, 8);
    case DType::i16: return make(Code::Int, 16);
    case DType::u16: return make(Code::UInt, 16);
    case DType::i32: return make(Code::Int, 32);
    case DType::u32: return make(Code::UInt, 32);
    case DType::i64: return make(Code::Int, 64);
    case DType::u64: return make(Code::UInt, 64);
    case DType::boolean: return make(Code::Bool, 8);
  }
  throw InputError("unknown element type");
}

/// NumPy has no bfloat16 and no floats of 8 bits of its own: such arrays cross as unsigned integers.
nb::dlpack::dtype numpy_type(DType dtype) {
  switch (dtype) {
    case DType::bf16: return dlpack_type(DType::u16);
    case DType::f8e4m3:
    case DType::f8e5m2: return dlpack_type(DType::u8);
    default: return dlpack_type(dtype);
  }
}

std::string type_name(nb::dlpack::dtype type) {
  for (const DTypeInfo& row : kDTypes) {
    if (dlpack_type(row.dtype) == type) return std::string(row.name);
  }
  return "an element type without a name here";
}

template <typename Dim>
std::string shape_text(const Dim* dims, std::size_t rank) {
  std::string text = "[";
  for (std::size_t i = 0; i < rank; ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

template <typename Array>
bool is_dense(const Array& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

template <typename Array>
void check_array(const Array& array, const Argument& argument, const Device& runs_on) {
  const Port& port = runs_on.port();
  const bool is_right_type = array.dtype() == dlpack_type(argument.dtype) || array.dtype() == numpy_type(argument.dtype);
  bool is_right_shape = array.ndim() == argument.dims.size();
  for (std::size_t i = 0; is_right_shape && i < argument.dims.size(); ++i) {
    is_right_shape = static_cast<std::int64_t>(array.shape(i)) == argument.dims[i];
  }
  if (!is_right_type || !is_right_shape) {
    std::vector<std::size_t> dims;
    for (std::size_t i = 0; i < array.ndim(); ++i) dims.push_back(array.shape(i));
    throw InputError("'" + argument.name + "': expected " + std::string(info_of(argument.dtype).name) +
                     shape_text(argument.dims.data(), argument.dims.size()) + ", got " + type_name(array.dtype()) +
                     shape_text(dims.data(), dims.size()));
  }
  if (array.size() != 0 && !is_dense(array)) throw InputError("'" + argument.name + "': the array must be contiguous in C order");
  const int device = array.device_type();
  if (device != nb::device::cpu::value && device != nb::device::rocm::value && device != nb::device::cuda::value) {
    throw InputError("'" + argument.name + "': the array lies on a device of type " + std::to_string(device) +
                     "; expected memory of the host, ROCm or CUDA");
  }
  if (port.device_memory_is_host_memory && device != nb::device::cpu::value) {
    throw InputError("'" + argument.name + "': the array lies on a GPU; port '" + std::string(port.name) + "' reads memory of the host");
  }
  if (device != nb::device::cpu::value && array.device_id() != runs_on.ordinal()) {
    throw InputError("'" + argument.name + "': the array lies on GPU " + std::to_string(array.device_id()) + ", the session runs on GPU " +
                     std::to_string(runs_on.ordinal()));
  }
}

template <typename Array>
Array import(nb::handle object, const Argument& argument, const Device& device, const char* expected) {
  Array array;
  if (!nb::try_cast(object, array)) throw InputError("'" + argument.name + "': expected " + expected);
  check_array(array, argument, device);
  return array;
}

template <typename Array>
Memory memory_of(const Array& array) {
  return array.device_type() == nb::device::cpu::value ? Memory::host : Memory::device;
}

}  // namespace

ReadArray import_input(nb::handle object, const Argument& argument, const Device& device) {
  return import<ReadArray>(object, argument, device, "a NumPy array or an object with __dlpack__");
}

WriteArray import_output(nb::handle object, const Argument& argument, const Device& device) {
  return import<WriteArray>(object, argument, device, "a writable NumPy array or an object with __dlpack__");
}

nb::object wrap_device_memory(const Device& device, std::uintptr_t address, const std::vector<std::size_t>& dims,
                              const std::optional<std::vector<std::int64_t>>& strides, const std::string& dtype, nb::handle owner) {
  const auto found = dtype_from_name(dtype);
  if (!found) throw InputError("unknown element type '" + dtype + "'");
  const int type = device.port().name == std::string_view("cuda") ? nb::device::cuda::value : nb::device::rocm::value;
  const std::int64_t* const steps = strides ? strides->data() : nullptr;
  return nb::cast(WriteArray(reinterpret_cast<void*>(address), dims.size(), dims.data(), owner, steps, dlpack_type(*found), type,
                             device.ordinal()));
}

InputArray as_input(const ReadArray& array) { return {array.data(), memory_of(array)}; }

OutputArray as_output(const WriteArray& array) { return {array.data(), memory_of(array)}; }

OutputPool::OutputPool(const std::vector<Argument>& outputs) : outputs_(outputs), free_(outputs.size()) {}

nb::ndarray<nb::numpy> OutputPool::make_array(std::size_t index) {
  const Argument& output = outputs_[index];
  auto lease = std::make_unique<Lease>(shared_from_this(), index, take(index));
  void* data = lease->block.get();
  const nb::capsule owner(lease.get(), [](void* raw) noexcept {
    const std::unique_ptr<Lease> ended(static_cast<Lease*>(raw));
    ended->pool->give_back(ended->index, std::move(ended->block));
  });
  lease.release();
  const std::vector<std::size_t> dims(output.dims.begin(), output.dims.end());
  return nb::ndarray<nb::numpy>(data, dims.size(), dims.data(), owner, nullptr, numpy_type(output.dtype));
}

OutputPool::Block OutputPool::take(std::size_t index) {
  {
    const std::lock_guard lock(mutex_);
    if (!free_[index].empty()) {
      Block block = std::move(free_[index].back());
      free_[index].pop_back();
      return block;
    }
  }
  const std::size_t bytes = (outputs_[index].bytes / kBlockAlignment + 1) * kBlockAlignment;
  Block block(std::aligned_alloc(kBlockAlignment, bytes));
  if (!block) throw std::bad_alloc();
  return block;
}

void OutputPool::give_back(std::size_t index, Block block) {
  const std::lock_guard lock(mutex_);
  if (free_[index].size() < kFreeBlocks) free_[index].push_back(std::move(block));
}

}  // namespace hipdnn_rt::bindings
