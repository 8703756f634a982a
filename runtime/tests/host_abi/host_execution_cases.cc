// Execution in this library: what is checked per call, constants, threads, and that a steady state allocates nothing.
#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include "allocation_count.h"
#include "cases.h"
#include "models.h"

namespace abi {
namespace {

/// The add-relu plan with buffers of its own.
struct Runnable {
  explicit Runnable(const Library& opened)
      : library(opened),
        handle(opened),
        model(opened, handle),
        built(plan(opened, model.graph)),
        x(opened, std::vector<float>(32, 1.0F)),
        b(opened, std::vector<float>(8, 2.0F)),
        y(opened, std::vector<float>(32, 0.0F)),
        workspace(opened, static_cast<std::size_t>(std::max<std::int64_t>(
                              built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), 64))) {}

  hipdnnStatus_t execute(const Dims& uids, const std::vector<void*>& pointers) const {
    return library.execute(handle.get(), built.get(), pack(library, uids, pointers, workspace.get()).get());
  }

  const Library& library;
  Handle handle;
  AddRelu model;
  Descriptor built;
  Buffer x, b, y, workspace;
};

void test_missing_pointer_names_its_uid(const Library& library) {
  const Runnable runnable(library);
  check::equal(runnable.execute({1, 3}, {runnable.x.get(), runnable.y.get()}), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "uid 2");
}

void test_null_pointer_names_its_uid(const Library& library) {
  const Runnable runnable(library);
  check::equal(runnable.execute({1, 2, 3}, {runnable.x.get(), nullptr, runnable.y.get()}), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::contains(library.last_error(), "uid 2");
}

void test_unaligned_pointer_names_its_uid(const Library& library) {
  const Runnable runnable(library);
  void* unaligned = static_cast<char*>(runnable.b.get()) + 4;
  check::equal(runnable.execute({1, 2, 3}, {runnable.x.get(), unaligned, runnable.y.get()}), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "uid 2");
  check::contains(library.last_error(), "multiple of 16");
}

void test_smaller_alignment_is_kept(const Library& library) {
  const Handle handle(library);
  Descriptor in(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  in.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1})
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, {1, 8})
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, {8, 1})
      .integers(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {4})
      .finalize();
  const Descriptor out = tensor(library, 2, {1, 8});
  const Descriptor negate = std::move(pointwise(library, HIPDNN_POINTWISE_NEG, {&in}, out).finalize());
  const Descriptor built = plan(library, finalized_graph(library, handle, {&negate}));
  const Buffer x(library, std::vector<float>(12, 3.0F));
  const Buffer y(library, std::vector<float>(8, 0.0F));
  const Buffer workspace(library, 4096);
  const Descriptor bound = pack(library, {1, 2}, {static_cast<char*>(x.get()) + 4, y.get()}, workspace.get());
  check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(y.read<float>(), std::vector<float>(8, -3.0F));
}

void test_pack_refuses_a_uid_twice(const Library& library) {
  std::array<float, 4> values{};
  Descriptor made(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {5, 5}).pointers(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, {values.data(), values.data()});
  check::equal(made.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "uid 5");
}

/// The model's plan, with the bias given as a constant.
Descriptor plan_with_constant(const Library& library, const AddRelu& model, std::int64_t uid, void* pointer, bool is_accepted = true) {
  const Descriptor config = first_config(library, heuristic(library, model.graph));
  Descriptor made(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config})
      .integers(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT, {uid})
      .pointers(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_POINTERS_MLIR_EXT, {pointer});
  const hipdnnStatus_t status = made.try_finalize();
  check::equal(status == HIPDNN_STATUS_SUCCESS, is_accepted, library.last_error());
  return made;
}

void test_constant_may_be_left_out_of_the_pack(const Library& library) {
  const Runnable runnable(library);
  const Descriptor built = plan_with_constant(library, runnable.model, 2, runnable.b.get());
  const Descriptor bound = pack(library, {1, 3}, {runnable.x.get(), runnable.y.get()}, runnable.workspace.get());
  check::equal(library.execute(runnable.handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(runnable.y.read<float>(), std::vector<float>(32, 3.0F));
}

void test_odd_constants_are_refused(const Library& library) {
  const Runnable runnable(library);
  const AddRelu& model = runnable.model;
  plan_with_constant(library, model, 3, runnable.y.get(), false);
  check::contains(library.last_error(), "written by the graph");
  plan_with_constant(library, model, 4, runnable.y.get(), false);
  check::contains(library.last_error(), "no operand");
  plan_with_constant(library, model, 99, runnable.y.get(), false);
  check::contains(library.last_error(), "no operand");
  plan_with_constant(library, model, 2, nullptr, false);
  check::contains(library.last_error(), "null");
}

void test_steady_state_allocates_nothing(const Library& library) {
  const Runnable runnable(library);
  const Descriptor bound = pack(library, {1, 2, 3}, {runnable.x.get(), runnable.b.get(), runnable.y.get()}, runnable.workspace.get());
  const auto execute = [&] { return library.execute(runnable.handle.get(), runnable.built.get(), bound.get()); };
  check::equal(execute(), HIPDNN_STATUS_SUCCESS);
  const std::size_t before = allocation_count();
  bool succeeded = true;
  for (int run = 0; run < 10; ++run) succeeded = succeeded && execute() == HIPDNN_STATUS_SUCCESS;
  const std::size_t after = allocation_count();
  check::that(succeeded, "every run succeeds");
  check::equal(after - before, 0U, "allocations");
  const Descriptor made(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  check::that(allocation_count() > after, "the counter sees the library's allocations");
}

void test_one_plan_runs_on_several_threads(const Library& library) {
  const Runnable runnable(library);
  std::array<bool, 4> is_right{};
  const auto work = [&](std::size_t index) {
    const float value = static_cast<float>(index);
    const Buffer x(library, std::vector<float>(32, value));
    const Buffer y(library, std::vector<float>(32, -1.0F));
    const Buffer workspace(library, 4096);
    const Descriptor bound = pack(library, {1, 2, 3}, {x.get(), runnable.b.get(), y.get()}, workspace.get());
    bool right = true;
    for (int run = 0; run < 50; ++run) {
      right = right && library.execute(runnable.handle.get(), runnable.built.get(), bound.get()) == HIPDNN_STATUS_SUCCESS;
    }
    is_right[index] = right && y.read<float>() == std::vector<float>(32, value + 2.0F);
  };
  check::that(runnable.built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) <= 4096, "the workspaces below suffice");
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < is_right.size(); ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (const bool right : is_right) check::that(right, "every thread has its values");
}

void test_workspace_must_be_given_where_needed(const Library& library) {
  const Runnable runnable(library);
  const bool is_needed = runnable.built.read_integer(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) > 0;
  const Descriptor without = pack(library, {1, 2, 3}, {runnable.x.get(), runnable.b.get(), runnable.y.get()});
  const hipdnnStatus_t expected = is_needed ? HIPDNN_STATUS_BAD_PARAM_NULL_POINTER : HIPDNN_STATUS_SUCCESS;
  check::equal(library.execute(runnable.handle.get(), runnable.built.get(), without.get()), expected);
}

}  // namespace

void add_host_execution_cases(check::Suite& suite, const Library& library) {
  suite.add("host execution: missing pointer names its uid", [&] { test_missing_pointer_names_its_uid(library); });
  suite.add("host execution: null pointer names its uid", [&] { test_null_pointer_names_its_uid(library); });
  suite.add("host execution: unaligned pointer names its uid", [&] { test_unaligned_pointer_names_its_uid(library); });
  suite.add("host execution: smaller alignment is kept", [&] { test_smaller_alignment_is_kept(library); });
  suite.add("host execution: pack refuses a uid twice", [&] { test_pack_refuses_a_uid_twice(library); });
  suite.add("host execution: constant may be left out of the pack", [&] { test_constant_may_be_left_out_of_the_pack(library); });
  suite.add("host execution: odd constants are refused", [&] { test_odd_constants_are_refused(library); });
  suite.add("host execution: steady state allocates nothing", [&] { test_steady_state_allocates_nothing(library); });
  suite.add("host execution: one plan runs on several threads", [&] { test_one_plan_runs_on_several_threads(library); });
  suite.add("host execution: workspace must be given where needed", [&] { test_workspace_must_be_given_where_needed(library); });
}

}  // namespace abi
