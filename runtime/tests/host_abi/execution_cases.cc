// The rules of plans, variant packs and execution, and one graph's values.
#include <algorithm>
#include <array>
#include <string>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

void test_add_relu_computes(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  check_add_relu(library, handle, plan(library, model.graph));
}

void test_plan_outlives_what_it_was_made_of(const Library& library) {
  const Handle handle(library);
  const Descriptor built = [&] {
    const AddRelu model(library, handle);
    return plan(library, model.graph);
  }();
  const Buffer x(library, std::vector<float>(32, 1.0F));
  const Buffer b(library, std::vector<float>(8, 2.0F));
  const Buffer y(library, std::vector<float>(32, 0.0F));
  const std::int64_t workspace_bytes = built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  const Buffer workspace(library, static_cast<std::size_t>(std::max<std::int64_t>(workspace_bytes, 64)));
  const Descriptor bound = pack(library, {1, 2, 3}, {x.get(), b.get(), y.get()}, workspace.get());
  check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(y.read<float>(), std::vector<float>(32, 3.0F));
}

void test_plan_lists_all_tensors(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  Dims uids = plan(library, model.graph).read_integers(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT);
  std::ranges::sort(uids);
  check::equal(uids, Dims{1, 2, 3, 4}, "virtual tensors too");
}

void test_plan_is_asked_by_the_rules(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor built = plan(library, model.graph);
  const std::int64_t bytes = built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  check::that(bytes >= 0, "the workspace's size is " + std::to_string(bytes));
  check::equal(built.count(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT, HIPDNN_TYPE_INT64), 4);
  std::int64_t actual = 0;
  std::array<std::int64_t, 4> uids{-1, -1, -1, -1};
  built.get(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT, HIPDNN_TYPE_INT64, 2, &actual, uids.data());
  check::that(uids[2] == -1 && uids[3] == -1, "more uids were written than asked for");
  check::equal(built.get(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_TYPE_FLOAT, 1, &actual, uids.data()), HIPDNN_STATUS_BAD_PARAM,
               "wrong type");
  check::equal(built.get(HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, 1, &actual, uids.data()), HIPDNN_STATUS_NOT_SUPPORTED, "a tensor's");
  const Descriptor unfinished(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  for (const int name : {HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT}) {
    check::equal(unfinished.get(name, HIPDNN_TYPE_INT64, 1, &actual, uids.data()), HIPDNN_STATUS_NOT_INITIALIZED, "before finalize");
  }
}

void test_plan_takes_a_handle(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor config = first_config(library, heuristic(library, model.graph));
  Descriptor made(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.handle(HIPDNN_ATTR_EXECUTION_PLAN_HANDLE, handle).refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config}).finalize();
}

void test_plan_must_be_finalized_to_execute(const Library& library) {
  const Handle handle(library);
  const Buffer x(library, std::vector<float>(4, 1.0F));
  const Descriptor bound = pack(library, {1}, {x.get()});
  const Descriptor unfinished(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  check::equal(library.execute(handle.get(), unfinished.get(), bound.get()), HIPDNN_STATUS_BAD_PARAM);
}

void test_pack_needs_as_many_pointers_as_uids(const Library& library) {
  std::array<float, 4> values{};
  Descriptor made(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {1, 2}).pointers(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, {values.data()});
  check::that(made.try_finalize() != HIPDNN_STATUS_SUCCESS, "two uids, one pointer");
  check::that(Descriptor(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR).try_finalize() != HIPDNN_STATUS_SUCCESS, "an empty pack");
}

void test_finalized_pack_cannot_be_changed(const Library& library) {
  std::array<float, 4> values{};
  const Descriptor made = pack(library, {1}, {values.data()});
  const std::int64_t uid = 2;
  check::equal(made.set(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64, 1, &uid), HIPDNN_STATUS_NOT_INITIALIZED);
  check::equal(made.read_integer(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), 1);
  std::int64_t count = -1;  // some versions tell it, others want an array
  const auto counted = made.get(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64, 0, &count, nullptr);
  check::that(counted == HIPDNN_STATUS_SUCCESS ? count == 1 : counted == HIPDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "uids without an array: status " + std::to_string(counted) + ", " + std::to_string(count) + " elements");
  void* pointer = nullptr;
  std::int64_t actual = 0;
  check::equal(made.get(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR, 1, &actual, &pointer), HIPDNN_STATUS_SUCCESS);
  check::that(pointer == values.data(), "the pointer that was set");
}

}  // namespace

void add_execution_cases(check::Suite& suite, const Library& library) {
  suite.add("execution: add and relu compute", [&] { test_add_relu_computes(library); });
  suite.add("execution: plan outlives what it was made of", [&] { test_plan_outlives_what_it_was_made_of(library); });
  suite.add("execution: plan lists all tensors", [&] { test_plan_lists_all_tensors(library); });
  suite.add("execution: plan is asked by the rules", [&] { test_plan_is_asked_by_the_rules(library); });
  suite.add("execution: plan takes a handle", [&] { test_plan_takes_a_handle(library); });
  suite.add("execution: plan must be finalized to execute", [&] { test_plan_must_be_finalized_to_execute(library); });
  suite.add("execution: pack needs as many pointers as uids", [&] { test_pack_needs_as_many_pointers_as_uids(library); });
  suite.add("execution: finalized pack cannot be changed", [&] { test_finalized_pack_cannot_be_changed(library); });
}

}  // namespace abi
