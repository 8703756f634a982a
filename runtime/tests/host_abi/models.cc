// Builds the graphs of the cases.
#include "models.h"

#include <algorithm>
#include <array>
#include <utility>

namespace abi {

Dims packed(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Descriptor tensor(const Library& library, std::int64_t uid, const Dims& dims, bool is_virtual) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {uid})
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, packed(dims))
      .flag(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .finalize();
  return made;
}

Descriptor baked(const Library& library, std::int64_t uid, float value) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {uid})
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, {1})
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, {1})
      .flag(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, false)
      .characters(HIPDNN_ATTR_TENSOR_VALUE_EXT, {reinterpret_cast<const char*>(&value), sizeof value})
      .finalize();
  return made;
}

Descriptor pointwise(const Library& library, hipdnnPointwiseMode_t mode, const std::vector<const Descriptor*>& inputs, const Descriptor& out) {
  constexpr std::array names{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT,
                             HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT};
  Descriptor made(library, HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  for (std::size_t i = 0; i < inputs.size(); ++i) made.refer(names.at(i), {inputs[i]});
  made.refer(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {&out})
      .enumerator(HIPDNN_ATTR_POINTWISE_MODE, HIPDNN_TYPE_POINTWISE_MODE, mode)
      .data_type(HIPDNN_ATTR_POINTWISE_MATH_PREC, HIPDNN_DATA_FLOAT);
  return made;
}

Descriptor graph(const Library& library, const std::vector<const Descriptor*>& operations) {
  Descriptor made(library, HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made.refer(HIPDNN_ATTR_OPERATIONGRAPH_OPS, operations)
      .data_type(HIPDNN_ATTR_OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT, HIPDNN_DATA_FLOAT)
      .data_type(HIPDNN_ATTR_OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT, HIPDNN_DATA_FLOAT)
      .data_type(HIPDNN_ATTR_OPERATIONGRAPH_IO_DATA_TYPE_EXT, HIPDNN_DATA_FLOAT)
      .characters(HIPDNN_ATTR_OPERATIONGRAPH_NAME_EXT, "test");
  return made;
}

Descriptor finalized_graph(const Library& library, const Handle& handle, const std::vector<const Descriptor*>& operations) {
  Descriptor made = graph(library, operations);
  made.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle).finalize();
  return made;
}

Descriptor heuristic(const Library& library, const Descriptor& graph) {
  Descriptor made(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  made.refer(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {&graph})
      .enumerator(HIPDNN_ATTR_ENGINEHEUR_MODE, HIPDNN_TYPE_HEUR_MODE, HIPDNN_HEUR_MODE_FALLBACK)
      .finalize();
  return made;
}

std::vector<Descriptor> results(const Library& library, const Descriptor& heuristic) {
  const std::int64_t engines = heuristic.count(HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR);
  std::vector<Descriptor> configs;
  std::vector<hipdnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < engines; ++i) handles.push_back(configs.emplace_back(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  if (engines == 0) return configs;
  std::int64_t actual = 0;
  const hipdnnStatus_t status = heuristic.get(HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, engines, &actual, handles.data());
  check::equal(status, HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(actual, engines, "engines");
  return configs;
}

Descriptor first_config(const Library& library, const Descriptor& heuristic) {
  std::vector<Descriptor> configs = results(library, heuristic);
  check::that(!configs.empty(), "no engine takes the graph: " + library.last_error());
  configs.front().finalize();
  return std::move(configs.front());
}

Descriptor plan(const Library& library, const Descriptor& graph) {
  const Descriptor config = first_config(library, heuristic(library, graph));
  Descriptor made(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config}).finalize();
  return made;
}

Descriptor pack(const Library& library, const Dims& uids, const std::vector<void*>& pointers, void* workspace) {
  Descriptor made(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids).pointers(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
  if (workspace != nullptr) made.pointers(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, {workspace});
  made.finalize();
  return made;
}

AddRelu::AddRelu(const Library& library, const Handle& handle)
    : in(tensor(library, 1, {4, 8})),
      bias(tensor(library, 2, {1, 8})),
      out(tensor(library, 3, {4, 8})),
      sum(tensor(library, 4, {4, 8}, true)),
      add(std::move(pointwise(library, HIPDNN_POINTWISE_ADD, {&in, &bias}, sum).finalize())),
      relu(std::move(pointwise(library, HIPDNN_POINTWISE_RELU_FWD, {&sum}, out).finalize())),
      graph(finalized_graph(library, handle, {&add, &relu})) {}

void check_add_relu(const Library& library, const Handle& handle, const Descriptor& built) {
  std::vector<float> in(32);
  std::vector<float> bias(8);
  std::vector<float> expected(32);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) - 16.0F;
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.5F * static_cast<float>(i);
  for (std::size_t i = 0; i < in.size(); ++i) expected[i] = std::max(0.0F, in[i] + bias[i % 8]);
  const Buffer x(library, in);
  const Buffer b(library, bias);
  const Buffer y(library, std::vector<float>(32, -1.0F));
  const std::int64_t workspace_bytes = built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  const Buffer workspace(library, static_cast<std::size_t>(std::max<std::int64_t>(workspace_bytes, 64)));
  const Descriptor bound = pack(library, {3, 1, 2}, {y.get(), x.get(), b.get()}, workspace.get());
  for (int run = 0; run < 2; ++run) {  // a pack is reusable
    check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
    check::equal(library.hip_synchronize(nullptr), hipSuccess);
    check::equal(y.read<float>(), expected);
  }
}

std::int64_t id_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return static_cast<std::int64_t>(hash);
}

}  // namespace abi
