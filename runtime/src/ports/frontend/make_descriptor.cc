// The one place that knows which C++ type stands behind a descriptor type.
#include "descriptor.h"
#include "engine_descriptors.h"
#include "graph_descriptor.h"
#include "names.h"
#include "operation_descriptor.h"
#include "plan_descriptors.h"
#include "profiling_descriptor.h"
#include "status.h"
#include "tensor_descriptor.h"

namespace hipdnn_port {

std::shared_ptr<Descriptor> make_descriptor(hipdnnBackendDescriptorType_t type) {
  const DescriptorSpec* spec = find_spec(type);
  if (spec == nullptr) fail(HIPDNN_STATUS_NOT_SUPPORTED, descriptor_name(type), " cannot be created in this library");
  if (spec->is_operation) return std::make_shared<OperationDescriptor>(*spec);
  switch (type) {
    case HIPDNN_BACKEND_TENSOR_DESCRIPTOR: return std::make_shared<TensorDescriptor>(*spec);
    case HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return std::make_shared<GraphDescriptor>(*spec);
    case HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return std::make_shared<EngineHeuristicDescriptor>(*spec);
    case HIPDNN_BACKEND_ENGINE_DESCRIPTOR: return std::make_shared<EngineDescriptor>(*spec);
    case HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR: return std::make_shared<EngineConfigDescriptor>(*spec);
    case HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return std::make_shared<ExecutionPlanDescriptor>(*spec);
    case HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return std::make_shared<VariantPackDescriptor>(*spec);
    case HIPDNN_BACKEND_PROFILING_CONTROL_EXT: return std::make_shared<ProfilingDescriptor>(*spec);
    default: return std::make_shared<Descriptor>(*spec);  // a knob choice: values and nothing else
  }
}

}  // namespace hipdnn_port
