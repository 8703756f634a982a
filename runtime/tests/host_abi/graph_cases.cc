// The rules of operation graphs.
#include "cases.h"
#include "models.h"

namespace abi {
namespace {

void test_graph_reads_its_operations_back(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const auto operations = model.graph.read_descriptors(HIPDNN_ATTR_OPERATIONGRAPH_OPS);
  check::equal(operations.size(), 2U);
  check::that(operations[0].get() != model.add.get(), "a read descriptor is a new handle");
  hipdnnPointwiseMode_t mode{};
  std::int64_t actual = 0;
  check::equal(operations[1].get(HIPDNN_ATTR_POINTWISE_MODE, HIPDNN_TYPE_POINTWISE_MODE, 1, &actual, &mode), HIPDNN_STATUS_SUCCESS);
  check::equal(mode, HIPDNN_POINTWISE_RELU_FWD);
}

void test_repeated_sets_of_operations_append(const Library& library) {
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor middle = tensor(library, 2, {4}, true);
  const Descriptor out = tensor(library, 3, {4});
  const Descriptor first = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, middle).finalize());
  const Descriptor second = std::move(pointwise(library, HIPDNN_POINTWISE_SQRT, {&middle}, out).finalize());
  Descriptor made = graph(library, {&first});
  check::equal(made.count(HIPDNN_ATTR_OPERATIONGRAPH_OPS, HIPDNN_TYPE_BACKEND_DESCRIPTOR), 1, "a graph is readable before finalize");
  made.refer(HIPDNN_ATTR_OPERATIONGRAPH_OPS, {&second});
  check::equal(made.count(HIPDNN_ATTR_OPERATIONGRAPH_OPS, HIPDNN_TYPE_BACKEND_DESCRIPTOR), 2);
}

void test_finalize_needs_a_handle_and_an_operation(const Library& library) {
  const Handle handle(library);
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  const Descriptor operation = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, out).finalize());
  check::that(graph(library, {&operation}).try_finalize() != HIPDNN_STATUS_SUCCESS, "without a handle");
  Descriptor empty(library, HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  check::that(empty.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle).try_finalize() != HIPDNN_STATUS_SUCCESS, "without operations");
}

void test_operation_must_be_finalized_before_it_is_set(const Library& library) {
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  const Descriptor operation = pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, out);
  hipdnnBackendDescriptor_t raw = operation.get();
  const Descriptor made(library, HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  check::equal(made.set(HIPDNN_ATTR_OPERATIONGRAPH_OPS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw), HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

void test_two_descriptors_with_one_uid_are_bad_param(const Library& library) {
  const Handle handle(library);
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor middle = tensor(library, 2, {4}, true);
  const Descriptor middle_again = tensor(library, 2, {4}, true);
  const Descriptor out = tensor(library, 3, {4});
  const Descriptor first = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, middle).finalize());
  const Descriptor second = std::move(pointwise(library, HIPDNN_POINTWISE_SQRT, {&middle_again}, out).finalize());
  Descriptor made = graph(library, {&first, &second});
  made.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  check::equal(made.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
}

}  // namespace

void add_graph_cases(check::Suite& suite, const Library& library) {
  suite.add("graph: reads its operations back", [&] { test_graph_reads_its_operations_back(library); });
  suite.add("graph: repeated sets of operations append", [&] { test_repeated_sets_of_operations_append(library); });
  suite.add("graph: finalize needs a handle and an operation", [&] { test_finalize_needs_a_handle_and_an_operation(library); });
  suite.add("graph: operation must be finalized before it is set", [&] { test_operation_must_be_finalized_before_it_is_set(library); });
  suite.add("graph: two descriptors with one uid are bad param", [&] { test_two_descriptors_with_one_uid_are_bad_param(library); });
}

}  // namespace abi
