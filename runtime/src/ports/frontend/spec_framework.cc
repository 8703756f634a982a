// Rows of the descriptors around operations: tensor, graph, heuristic, engine, configuration, plan, variant pack, profiling.
#include <algorithm>
#include <iterator>
#include <vector>

#include "engine.h"
#include "spec.h"

namespace hipdnn_port {
namespace {

using namespace rows;

constexpr AttributeSpec tensor[] = {
    one(HIPDNN_ATTR_TENSOR_UNIQUE_ID, HIPDNN_TYPE_INT64),
    optional(many(HIPDNN_ATTR_TENSOR_NAME_EXT, HIPDNN_TYPE_CHAR)),
    one(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE),
    many(HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64),
    many(HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64),
    optional(one(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, HIPDNN_TYPE_BOOLEAN)),
    optional(one(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64)),
    whole(binary(optional(many(HIPDNN_ATTR_TENSOR_VALUE_EXT, HIPDNN_TYPE_CHAR)))),
    read_only(one(HIPDNN_ATTR_TENSOR_IS_BY_VALUE, HIPDNN_TYPE_BOOLEAN)),
    optional(one(HIPDNN_ATTR_TENSOR_IS_RUNTIME_PASS_BY_VALUE_EXT, HIPDNN_TYPE_BOOLEAN)),
};

constexpr AttributeSpec operation_graph[] = {
    one(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, HIPDNN_TYPE_HANDLE),
    whole(appending(many(descriptor(HIPDNN_ATTR_OPERATIONGRAPH_OPS, Refers::operation)))),
    optional(one(HIPDNN_ATTR_OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT, HIPDNN_TYPE_DATA_TYPE)),
    optional(one(HIPDNN_ATTR_OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT, HIPDNN_TYPE_DATA_TYPE)),
    optional(one(HIPDNN_ATTR_OPERATIONGRAPH_IO_DATA_TYPE_EXT, HIPDNN_TYPE_DATA_TYPE)),
    optional(one(HIPDNN_ATTR_OPERATIONGRAPH_PREFERRED_ENGINE_ID_EXT, HIPDNN_TYPE_INT64)),
    optional(many(HIPDNN_ATTR_OPERATIONGRAPH_NAME_EXT, HIPDNN_TYPE_CHAR)),
    read_only(many(HIPDNN_ATTR_OPERATIONGRAPH_RESULT_UIDS_MLIR_EXT, HIPDNN_TYPE_INT64)),
};

constexpr AttributeSpec engine_heuristic[] = {
    lone(descriptor(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, Refers::graph)),
    lone(one(HIPDNN_ATTR_ENGINEHEUR_MODE, HIPDNN_TYPE_HEUR_MODE)),
    read_only(many(descriptor(HIPDNN_ATTR_ENGINEHEUR_RESULTS, Refers::engine_config))),
};

constexpr AttributeSpec engine[] = {
    lone(descriptor(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, Refers::graph)),
    lone(one(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, HIPDNN_TYPE_INT64)),
    read_only(many(HIPDNN_ATTR_ENGINE_NAME_EXT, HIPDNN_TYPE_CHAR)),
    whole(read_only(many(HIPDNN_ATTR_ENGINE_KNOB_INFO, HIPDNN_TYPE_BACKEND_DESCRIPTOR))),  // always empty: no engine here has knobs
};

constexpr AttributeSpec engine_config[] = {
    lone(descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, Refers::engine)),
    optional(many(descriptor(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES, Refers::knob_choice))),
    lone(read_only(one(HIPDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, HIPDNN_TYPE_INT64))),
};

constexpr AttributeSpec knob_choice[] = {
    many(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, HIPDNN_TYPE_CHAR),
    lone(one(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, HIPDNN_TYPE_INT64)),
    lone(one(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, HIPDNN_TYPE_DOUBLE)),
    many(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, HIPDNN_TYPE_CHAR),
};

constexpr AttributeSpec execution_plan[] = {
    lone(descriptor(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Refers::engine_config)),
    optional(one(HIPDNN_ATTR_EXECUTION_PLAN_HANDLE, HIPDNN_TYPE_HANDLE)),  // taken and not used: the graph has the handle
    lone(read_only(one(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_TYPE_INT64))),
    whole(read_only(many(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT, HIPDNN_TYPE_INT64))),
    read_only(one(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_GLOBAL_INDEX_EXT, HIPDNN_TYPE_INT64)),
    optional(many(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT, HIPDNN_TYPE_INT64)),
    optional(many(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_POINTERS_MLIR_EXT, HIPDNN_TYPE_VOID_PTR)),
};
constexpr std::size_t attributes_of_constants = 2;  // the last ones

constexpr AttributeSpec variant_pack[] = {
    many(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64),
    many(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR),
    lone(optional(one(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, HIPDNN_TYPE_VOID_PTR))),
};

constexpr AttributeSpec profiling[] = {
    one(HIPDNN_ATTR_PROFILING_HANDLE_EXT, HIPDNN_TYPE_HANDLE),
    one(HIPDNN_ATTR_PROFILING_START_EXT, HIPDNN_TYPE_BOOLEAN),
    one(HIPDNN_ATTR_PROFILING_STOP_EXT, HIPDNN_TYPE_BOOLEAN),
    optional(one(HIPDNN_ATTR_PROFILING_DEVICE_SYNC_EXT, HIPDNN_TYPE_BOOLEAN)),
    read_only(one(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT)),
};

constexpr DescriptorSpec framework_rows[] = {
    {.type = HIPDNN_BACKEND_TENSOR_DESCRIPTOR, .attributes = tensor},
    {.type = HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, .attributes = operation_graph},
    {.type = HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, .attributes = engine_heuristic},
    {.type = HIPDNN_BACKEND_ENGINE_DESCRIPTOR, .attributes = engine},
    {.type = HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR, .attributes = engine_config},
    {.type = HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, .attributes = knob_choice},
    {.type = HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, .attributes = execution_plan},
    {.type = HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, .attributes = variant_pack},
    {.type = HIPDNN_BACKEND_PROFILING_CONTROL_EXT, .attributes = profiling},
};

}  // namespace

std::span<const DescriptorSpec> framework_specs() {
  static const std::vector<DescriptorSpec> all = [] {
    std::vector<DescriptorSpec> made(std::begin(framework_rows), std::end(framework_rows));
    const auto plan = std::ranges::find(made, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &DescriptorSpec::type);
    if (!uses_constants()) plan->attributes = plan->attributes.first(plan->attributes.size() - attributes_of_constants);
    return made;
  }();
  return all;
}

}  // namespace hipdnn_port
