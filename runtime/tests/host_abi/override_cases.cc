// Shapes in variant packs, in the place of those of the graph.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

struct Shape {
  std::int64_t uid;
  Dims dims, strides;
};

Shape dense(std::int64_t uid, const Dims& dims) { return {uid, dims, packed(dims)}; }

/// An unfinalized pack of these pointers and shapes.
Descriptor pack_with(const Library& library, const Dims& uids, const std::vector<void*>& pointers, void* workspace, const std::vector<Shape>& shapes) {
  Dims ids, lengths, dims, strides;
  for (const Shape& shape : shapes) {
    ids.push_back(shape.uid);
    lengths.push_back(static_cast<std::int64_t>(shape.dims.size()));
    dims.insert(dims.end(), shape.dims.begin(), shape.dims.end());
    strides.insert(strides.end(), shape.strides.begin(), shape.strides.end());
  }
  Descriptor made(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
      .pointers(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
      .pointers(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, {workspace})
      .integers(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS_EXT, ids)
      .integers(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_LENGTHS_EXT, lengths)
      .integers(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES_EXT, dims)
      .integers(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES_EXT, strides);
  return made;
}

/// The plan of a graph that may run at smaller shapes; nothing where the library has none.
std::optional<Descriptor> flexible_plan(const Library& library, const Handle& handle, const std::vector<const Descriptor*>& operations) {
  Descriptor made = graph(library, operations);
  made.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  const bool yes = true;
  if (made.set(HIPDNN_ATTR_OPERATIONGRAPH_IS_OVERRIDE_SHAPE_ENABLED_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes) != HIPDNN_STATUS_SUCCESS) return std::nullopt;
  if (made.try_finalize() != HIPDNN_STATUS_SUCCESS || results(library, heuristic(library, made)).empty()) return std::nullopt;
  return plan(library, made);
}

bool takes_overrides(const Descriptor& built) {
  bool flag = false;
  std::int64_t count = 0;
  const auto status = built.get(HIPDNN_ATTR_EXECUTION_PLAN_IS_OVERRIDE_SHAPE_ENABLED_EXT, HIPDNN_TYPE_BOOLEAN, 1, &count, &flag);
  return status == HIPDNN_STATUS_SUCCESS && flag;
}

std::size_t workspace_of(const Descriptor& built) {
  return static_cast<std::size_t>(std::max<std::int64_t>(built.read_integers(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE).at(0), 64));
}

/// The model with its plan, and operands at the shapes of its graph: 32 ones, 8 twos.
struct Flexible {
  explicit Flexible(const Library& opened)
      : library(opened),
        handle(opened),
        model(opened, handle),
        built(flexible_plan(opened, handle, {&model.add, &model.relu})),
        x(opened, std::vector<float>(32, 1.0F)),
        b(opened, std::vector<float>(8, 2.0F)),
        y(opened, std::vector<float>(32, 0.0F)),
        workspace(opened, built ? workspace_of(*built) : 64) {}

  hipdnnStatus_t execute(const std::vector<Shape>& shapes) const {
    Descriptor made = pack_with(library, {1, 2, 3}, {x.get(), b.get(), y.get()}, workspace.get(), shapes);
    made.finalize();
    return library.execute(handle.get(), built.value().get(), made.get());
  }

  const Library& library;
  Handle handle;
  AddRelu model;
  std::optional<Descriptor> built;
  Buffer x, b, y, workspace;
};

std::vector<float> rows_of_threes(std::size_t rows) {
  std::vector<float> expected(32, 0.0F);
  std::fill_n(expected.begin(), rows * 8, 3.0F);
  return expected;
}

void test_smaller_shapes_run_or_are_refused(const Library& library) {
  const Flexible flexible(library);
  if (!flexible.built) throw check::Refused("the library, or its engines, have no such plans: " + library.last_error());
  check::that(takes_overrides(*flexible.built), "the plan does not show what its graph asked for");
  check::equal(flexible.execute({dense(1, {2, 8}), dense(3, {2, 8})}), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(library.hip_synchronize(nullptr), hipSuccess);
  check::equal(flexible.y.read<float>(), rows_of_threes(2));
}

void test_plans_of_one_shape_refuse_others(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor built = plan(library, model.graph);
  check::that(!takes_overrides(built), "the plan shows what nobody asked for");
  const Buffer x(library, std::vector<float>(32, 1.0F)), b(library, std::vector<float>(8, 2.0F)), y(library, std::vector<float>(32, 0.0F));
  const Buffer workspace(library, workspace_of(built));
  Descriptor made = pack_with(library, {1, 2, 3}, {x.get(), b.get(), y.get()}, workspace.get(), {dense(1, {2, 8}), dense(3, {2, 8})});
  made.finalize();
  check::equal(library.execute(handle.get(), built.get(), made.get()), HIPDNN_STATUS_NOT_SUPPORTED);
}

void test_the_host_takes_overrides(const Library& library) {
  const Flexible flexible(library);
  check::that(flexible.built.has_value(), library.last_error());
  // Without shapes, its own.
  check::equal(library.execute(flexible.handle.get(), flexible.built->get(),
                               pack(library, {1, 2, 3}, {flexible.x.get(), flexible.b.get(), flexible.y.get()}, flexible.workspace.get()).get()),
               HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(flexible.y.read<float>(), rows_of_threes(4));
}

void test_rows_may_be_apart(const Library& library) {
  const Flexible flexible(library);
  // Two rows of four elements, as far apart as whole rows.
  check::equal(flexible.execute({{1, {2, 4}, {8, 1}}, {2, {1, 4}, {8, 1}}, {3, {2, 4}, {8, 1}}}), HIPDNN_STATUS_SUCCESS, library.last_error());
  std::vector<float> expected(32, 0.0F);
  for (const std::size_t first : {0U, 8U}) std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first), 4, 3.0F);
  check::equal(flexible.y.read<float>(), expected);
}

void test_shapes_that_do_not_fit(const Library& library) {
  const Flexible flexible(library);
  const auto is_refused = [&](const std::vector<Shape>& shapes, const std::string& why) {
    check::equal(flexible.execute(shapes), HIPDNN_STATUS_BAD_PARAM, why);
    check::contains(library.last_error(), why);
  };
  is_refused({dense(1, {5, 8}), dense(3, {5, 8})}, "up to the tensor's");
  is_refused({dense(1, {0, 8}), dense(3, {0, 8})}, "from 1");
  is_refused({{1, {2, 8}, {0, 1}}}, "positive strides");
  is_refused({{1, {2, 8}, {-8, 1}}}, "positive strides");
  is_refused({dense(1, {16})}, "rank 2");
  is_refused({{1, {2, 8}, {1, 2}}, dense(3, {2, 8})}, "another order");
  is_refused({dense(1, {2, 8})}, "broadcast");
  is_refused({dense(1, {2, 8}), dense(2, {1, 4}), dense(3, {2, 8})}, "broadcast");
  Descriptor made = pack_with(library, {1, 2, 3, 9}, {flexible.x.get(), flexible.b.get(), flexible.y.get(), flexible.y.get()},
                              flexible.workspace.get(), {dense(9, {2, 8})});
  made.finalize();
  check::equal(library.execute(flexible.handle.get(), flexible.built->get(), made.get()), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "uid 9 is no operand");
  check::equal(flexible.y.read<float>(), std::vector<float>(32, 0.0F), "a refused pack wrote");
}

/// relu(convolution(x, w)) with the convolution's result virtual.
struct ConvRelu {
  ConvRelu(const Library& library, const Dims& image, const Dims& result)
      : x(tensor(library, 1, image)), w(tensor(library, 2, {4, 3, 3, 3})), y(tensor(library, 3, result)), between(tensor(library, 4, result, true)),
        conv(library, HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR),
        relu(std::move(pointwise(library, HIPDNN_POINTWISE_RELU_FWD, {&between}, y).finalize())) {
    conv.refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, {&x})
        .refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, {&w})
        .refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, {&between})
        .integers(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {1, 1})
        .integers(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, {1, 1})
        .integers(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {2, 1})
        .integers(HIPDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
        .data_type(HIPDNN_ATTR_CONVOLUTION_COMP_TYPE, HIPDNN_DATA_FLOAT)
        .enumerator(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_TYPE_CONVOLUTION_MODE, HIPDNN_CROSS_CORRELATION)
        .finalize();
  }
  std::vector<const Descriptor*> operations() const { return {&conv, &relu}; }

  Descriptor x, w, y, between, conv, relu;
};

std::vector<float> waves(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 37 % 19) - 9.0F;
  return values;
}

void test_virtual_tensors_follow(const Library& library) {
  const Handle handle(library);
  const ConvRelu large(library, {4, 3, 12, 10}, {4, 4, 6, 10});
  const ConvRelu small(library, {2, 3, 7, 5}, {2, 4, 4, 5});
  const Descriptor flexible = flexible_plan(library, handle, large.operations()).value();
  const Descriptor exact = plan(library, finalized_graph(library, handle, small.operations()));
  const Buffer x(library, waves(2 * 3 * 7 * 5)), w(library, waves(4 * 3 * 3 * 3));
  const std::vector<float> empty(2 * 4 * 4 * 5, -1.0F);
  const Buffer wanted(library, empty), got(library, empty);
  const Buffer workspace(library, std::max(workspace_of(flexible), workspace_of(exact)));
  check::equal(library.execute(handle.get(), exact.get(), pack(library, {1, 2, 3}, {x.get(), w.get(), wanted.get()}, workspace.get()).get()),
               HIPDNN_STATUS_SUCCESS, library.last_error());
  Descriptor made = pack_with(library, {1, 2, 3}, {x.get(), w.get(), got.get()}, workspace.get(), {dense(1, {2, 3, 7, 5}), dense(3, {2, 4, 4, 5})});
  made.finalize();
  for (int run = 0; run < 2; ++run) {
    check::equal(library.execute(handle.get(), flexible.get(), made.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
    check::equal(got.read<float>(), wanted.read<float>());
  }
  check::that(wanted.read<float>() != empty, "nothing was written");
}

void test_many_shapes_on_several_threads(const Library& library) {
  const Handle handle(library);
  const Descriptor in = tensor(library, 1, {64, 8}), out = tensor(library, 2, {64, 8});
  const Descriptor operation = std::move(pointwise(library, HIPDNN_POINTWISE_NEG, {&in}, out).finalize());
  const Descriptor built = flexible_plan(library, handle, {&operation}).value();
  const auto run_all = [&] {
    const Handle own(library);
    const Buffer x(library, std::vector<float>(64 * 8, 3.0F)), y(library, std::vector<float>(64 * 8, 0.0F)), workspace(library, workspace_of(built));
    for (std::int64_t rows = 1; rows <= 64; ++rows) {  // more than a plan keeps
      Descriptor made = pack_with(library, {1, 2}, {x.get(), y.get()}, workspace.get(), {dense(1, {rows, 8}), dense(2, {rows, 8})});
      made.finalize();
      check::equal(library.execute(own.get(), built.get(), made.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
      std::vector<float> expected(64 * 8, 0.0F);
      std::fill_n(expected.begin(), rows * 8, -3.0F);
      check::equal(y.read<float>(), expected);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(run_all);
}

void test_the_graphs_handle_may_be_gone(const Library& library) {
  const Descriptor in = tensor(library, 1, {6, 8}), out = tensor(library, 2, {6, 8});
  const Descriptor operation = std::move(pointwise(library, HIPDNN_POINTWISE_NEG, {&in}, out).finalize());
  auto first = std::make_unique<Handle>(library);
  const Descriptor built = flexible_plan(library, *first, {&operation}).value();
  first.reset();
  const Handle second(library);
  const Buffer x(library, std::vector<float>(48, 3.0F)), y(library, std::vector<float>(48, 0.0F)), workspace(library, workspace_of(built));
  Descriptor made = pack_with(library, {1, 2}, {x.get(), y.get()}, workspace.get(), {dense(1, {2, 8}), dense(2, {2, 8})});
  made.finalize();
  check::equal(library.execute(second.get(), built.get(), made.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(y.read<float>().at(15), -3.0F);
}

void test_such_plans_are_not_serialized(const Library& library) {
  const Flexible flexible(library);
  const auto serialize = library.backend.get<hipdnnStatus_t(hipdnnBackendDescriptor_t, std::size_t, std::size_t*, std::uint8_t*)>(
      "hipdnnBackendGetSerializedExecutionPlan_ext");
  std::size_t size = 0;
  check::equal(serialize(flexible.built->get(), 0, &size, nullptr), HIPDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace

void add_override_cases(check::Suite& suite, const Library& library) {
  suite.add("override shapes: smaller ones run or are refused", [&] { test_smaller_shapes_run_or_are_refused(library); });
  suite.add("override shapes: plans of one shape refuse others", [&] { test_plans_of_one_shape_refuse_others(library); });
}

void add_host_override_cases(check::Suite& suite, const Library& library) {
  suite.add("host override shapes: the host takes them", [&] { test_the_host_takes_overrides(library); });
  suite.add("host override shapes: rows may be apart", [&] { test_rows_may_be_apart(library); });
  suite.add("host override shapes: what does not fit", [&] { test_shapes_that_do_not_fit(library); });
  suite.add("host override shapes: virtual tensors follow", [&] { test_virtual_tensors_follow(library); });
  suite.add("host override shapes: many on several threads", [&] { test_many_shapes_on_several_threads(library); });
  suite.add("host override shapes: the graph's handle may be gone", [&] { test_the_graphs_handle_may_be_gone(library); });
  suite.add("host override shapes: such plans are not serialized", [&] { test_such_plans_are_not_serialized(library); });
}

}  // namespace abi
