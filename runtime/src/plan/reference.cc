#include "plan/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "device/error.h"
#include "plan/excerpt.h"
#include "plan/graph_reading.h"
#include "plan/plan.h"
#include "plan/variant_pack.h"

namespace hipdnn_rt {
namespace {

/// From the first element to the last.
std::size_t extent_of_tensor(const DescriptorSpec& tensor) {
  const auto dims = values_of<std::int64_t>(tensor, HIPDNN_ATTR_TENSOR_DIMENSIONS), strides = values_of<std::int64_t>(tensor, HIPDNN_ATTR_TENSOR_STRIDES);
  std::int64_t last = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * strides[d];
  }
  return static_cast<std::size_t>(last) + 1;
}

/// The spec with f32 in the place of 16-bit types, whatever the attribute, and a tensor's memory its own.
DescriptorSpec in_f32(DescriptorSpec spec) {
  const hipdnnDataType_t own = is_tensor(spec) ? dtype_of(spec) : HIPDNN_DATA_FLOAT;
  for (AttributeSpec& attribute : spec.attributes) {
    if (attribute.type == HIPDNN_TYPE_DATA_TYPE) {
      std::int32_t dtype = 0;
      std::memcpy(&dtype, attribute.bytes.data(), sizeof dtype);
      dtype = widened(static_cast<hipdnnDataType_t>(dtype));
      std::memcpy(attribute.bytes.data(), &dtype, sizeof dtype);
    } else if (attribute.name == HIPDNN_ATTR_TENSOR_VALUE_EXT) {
      attribute.bytes = widened(Answer{own, std::move(attribute.bytes)}).bytes;
      attribute.count = static_cast<std::int64_t>(attribute.bytes.size());
    } else if (attribute.name == HIPDNN_ATTR_TENSOR_IS_VIRTUAL) {
      attribute.bytes.assign(attribute.bytes.size(), std::byte{0});
    }
  }
  return spec;
}

/// One operation of a graph as a graph of its own, in f32. Tensors that are not in `known` are what it writes.
Executable alone(const Executable& whole, std::uint32_t operation, const std::set<std::int64_t>& known) {
  Executable one;
  one.name = whole.name + ", operation " + std::to_string(operation) + " on the host";
  std::map<std::uint32_t, std::uint32_t> moved;
  for (const std::uint32_t at : with_references(whole, operation)) {
    moved[at] = static_cast<std::uint32_t>(one.descriptors.size());
    DescriptorSpec& spec = one.descriptors.emplace_back(in_f32(whole.descriptors[at]));
    for (AttributeSpec& attribute : spec.attributes) {
      for (std::uint32_t& reference : attribute.references) reference = moved.at(reference);
    }
    if (!is_tensor(spec) || !has_pointer(spec)) continue;
    const std::int64_t uid = uid_of(spec);
    Operand operand{};
    operand.uid = uid;
    operand.is_output = !known.contains(uid);
    operand.extent_bytes = (extent_of_tensor(spec) * element_bits(dtype_of(spec)).value_or(8) + 7) / 8;
    one.operands.push_back(operand);
  }
  DescriptorSpec graph = whole.descriptors.back();
  for (AttributeSpec& attribute : graph.attributes) {
    if (attribute.name != HIPDNN_ATTR_OPERATIONGRAPH_OPS) continue;
    attribute.references = {moved.at(operation)};
    attribute.count = 1;
  }
  one.descriptors.push_back(std::move(graph));
  return one;
}

/// Whether something is stored as bytes behind a convolution or matmul: the host library's pointwise operations cut what others round.
bool rounds_to_bytes(const Executable& executable) {
  const auto operations = operations_of(executable);
  const bool has_product = std::ranges::any_of(operations, [&](std::uint32_t at) {
    const auto type = executable.descriptors[at].type;
    return type == HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR || type == HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  });
  return has_product && std::ranges::any_of(operations, [&](std::uint32_t at) {
           const AttributeSpec* out = find_attribute(executable.descriptors[at], HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
           if (out == nullptr || out->references.empty()) return false;
           const hipdnnDataType_t dtype = dtype_of(executable.descriptors[out->references.front()]);
           return dtype == HIPDNN_DATA_INT8 || dtype == HIPDNN_DATA_UINT8;
         });
}

}  // namespace

std::vector<Answer> Reference::compute(const Executable& executable, const OperandContents& contents) const {
  if (rounds_to_bytes(executable)) throw NoPlanError("a result is rounded to bytes");
  const std::scoped_lock alone_at_once(mutex_);
  const auto handle = std::make_shared<const Handle>(host_->create_handle(nullptr));
  const std::map<std::int64_t, hipdnnDataType_t> dtypes = dtypes_of(executable);
  std::map<std::int64_t, DeviceBuffer> memory;
  for (const auto& [uid, bytes] : contents) {
    const DeviceBuffer& buffer = memory[uid] = host_->allocate(std::max<std::size_t>(widened_bytes(dtypes.at(uid), bytes.size()), 1));
    widen(dtypes.at(uid), bytes, static_cast<std::byte*>(buffer.get()));
  }
  std::set<std::int64_t> known = inputs_of(executable);
  for (const std::uint32_t operation : operations_of(executable)) {
    const Executable one = alone(executable, operation, known);
    std::vector<std::int64_t> uids;
    std::vector<void*> pointers;
    for (const Operand& operand : one.operands) {
      if (operand.is_output) {
        DeviceBuffer& written = memory[operand.uid] = host_->allocate(std::max<std::size_t>(operand.extent_bytes, 1));
        std::memset(written.get(), 0xff, operand.extent_bytes);
        known.insert(operand.uid);
      }
      uids.push_back(operand.uid);
      pointers.push_back(memory.at(operand.uid).get());
    }
    const auto plan = Plan::build(*host_, handle, one, {});
    const DeviceBuffer workspace = host_->allocate(std::max<std::size_t>(plan->workspace_bytes(), 1));
    const Descriptor pack = make_variant_pack(host_->shared_library(), uids, pointers, workspace.get(), one.name);
    const HipdnnApi& api = host_->library().hipdnn();
    check(api, api.execute(handle->get(), plan->descriptor().get(), pack.get()), "hipdnnBackendExecute(" + one.name + ")");
    check(host_->library().hip(), host_->library().hip().stream_synchronize(nullptr), "hipStreamSynchronize");
  }
  std::vector<Answer> answers;
  for (const Operand& operand : executable.operands) {
    if (!operand.is_output) continue;
    const hipdnnDataType_t dtype = dtypes.at(operand.uid);
    const auto* first = static_cast<const std::byte*>(memory.at(operand.uid).get());
    answers.push_back({widened(dtype), {first, first + widened_bytes(dtype, operand.extent_bytes)}});
  }
  return answers;
}

double tolerance_of(const Executable& executable, bool allows_tf32) {
  // A result of several sigma among millions, of roundings that do not cancel.
  constexpr double of_rounding = 4, of_sums = 8;
  double roundoff = 0;
  for (const auto& [uid, dtype] : dtypes_of(executable)) roundoff = std::max(roundoff, unit_roundoff(dtype, allows_tf32));
  const double rounded = of_rounding * static_cast<double>(operations_of(executable).size() + 1) * roundoff;
  return rounded + of_sums * std::sqrt(extent_of(executable).longest_sum) * unit_roundoff(HIPDNN_DATA_FLOAT, false);
}

}  // namespace hipdnn_rt
