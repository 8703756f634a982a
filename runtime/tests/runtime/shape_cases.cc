// Plans that run at smaller shapes than those of their graphs: which graphs share one, and what a library is told.
#include "program/shapes.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "../temporary_folder.h"
#include "cases.h"
#include "choosing_port.h"
#include "plan/plan_cache.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Context;
using hipdnn_rt::Device;
using hipdnn_rt::LoadedProgram;
using hipdnn_rt::Shape;

Shape dense(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return {1, dims, strides};
}

bool fit(const Shape& small, const Shape& large) { return hipdnn_rt::fits(std::vector{small}, std::vector{large}); }

void test_smaller_shapes_fit() {
  const Shape large = dense({4, 8, 6});
  check::that(fit(large, large), "itself");
  check::that(fit(dense({1, 8, 6}), large) && fit(dense({4, 3, 6}), large) && fit(dense({2, 3, 1}), large), "a smaller one");
  check::that(!fit(dense({5, 8, 6}), large) && !fit(dense({4, 8, 7}), large), "a larger one");
  check::that(!fit(dense({4, 8}), large) && !fit(dense({1, 4, 8, 6}), large), "of another rank");
  check::that(!fit({1, {2, 8, 6}, {48, 1, 8}}, large), "in another order");
  check::that(fit({1, {2, 8, 1}, {8, 1, 99}}, large), "where one element has any stride");
  check::that(!fit({1, {2, 8, 6}, {0, 6, 1}}, large), "a stride that broadcasts");
  check::that(!fit({1, {0, 8, 6}, {48, 6, 1}}, large), "no elements");
  check::that(!fit({2, {2, 8, 6}, {48, 6, 1}}, large), "another tensor");
  check::that(!hipdnn_rt::fits({dense({2}), dense({2})}, {dense({4})}), "two in the place of one");
}

void test_overrides_are_what_differs() {
  const Shape large = dense({4, 8}), small = dense({2, 8}), same{2, {8}, {1}};
  check::that(hipdnn_rt::overrides_of({small, same}, {large, same}) == std::vector{small}, "other than the tensor that differs");
}

void test_structure_is_without_sizes() {
  const auto shapes_of = [](const Sample& sample, const std::set<std::int64_t>& fixed = {}) {
    return hipdnn_rt::shapes_of(sample.parse()->executables().front(), fixed);
  };
  const auto small = shapes_of(relu({2, 8})), large = shapes_of(relu({4, 8}));
  check::equal(small.structure == large.structure, true);
  check::equal(small.operands.size(), std::size_t{2});
  check::equal(small.operands.front().dims, Dims({2, 8}));
  check::that(small.structure != shapes_of(relu({2, 8, 1})).structure, "another rank");
  const std::int64_t x = small.operands.front().uid;
  check::that(small.structure != shapes_of(relu({1, 8})).structure, "a dim of one, which may be one that is summed or broadcast");
  const auto fixed = shapes_of(relu({2, 8}), {x});
  check::that(fixed.structure != shapes_of(relu({4, 8}), {x}).structure, "a constant of another shape");
  check::equal(fixed.operands.size(), std::size_t{1});
  check::that(shapes_of(one_convolution(4, 6)).structure != small.structure, "another operation");
}

void test_results_larger_than_their_operands_are_not_shared() {
  const auto expanded = [](std::int64_t rows) {
    hipdnn_rt::Executable executable = relu({4, 8}).parse()->executables().front();
    std::vector<hipdnn_rt::AttributeSpec*> dims;
    for (auto& spec : executable.descriptors) {
      for (auto& attribute : spec.attributes) {
        if (attribute.name == HIPDNN_ATTR_TENSOR_DIMENSIONS) dims.push_back(&attribute);
      }
    }
    const std::int64_t one = 1;
    std::memcpy(dims.at(0)->bytes.data(), &one, sizeof one);
    std::memcpy(dims.at(1)->bytes.data(), &rows, sizeof rows);
    return hipdnn_rt::shapes_of(executable, {});
  };
  check::that(expanded(4).structure != expanded(3).structure, "how many rows, which no operand says");
  check::equal(expanded(4).structure == expanded(4).structure, true);
}

/// What choosing_port.h lets a test do.
struct Choosing {
  Choosing(const Libraries& libraries, bool can_override) {
    void* library = dlopen((libraries.choosing + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    let_override = reinterpret_cast<decltype(&choosing_let_override)>(dlsym(library, "choosing_let_override"));
    take = reinterpret_cast<decltype(&choosing_take_counts)>(dlsym(library, "choosing_take_counts"));
    fail_builds = reinterpret_cast<decltype(&choosing_fail_builds)>(dlsym(library, "choosing_fail_builds"));
    let_override(can_override);
    built();
  }
  ~Choosing() { let_override(false); }
  int built() const {
    ChoosingCounts counts{};
    take(&counts);
    return counts.built;
  }

  decltype(&choosing_let_override) let_override;
  decltype(&choosing_take_counts) take;
  decltype(&choosing_fail_builds) fail_builds;
};

std::shared_ptr<const Device> open_choosing(const Libraries& libraries, Device::Options options) {
  options.threads = 1;
  return std::make_shared<const Device>(hipdnn_rt::Library::open("hip", libraries.choosing), std::move(options));
}

std::shared_ptr<const LoadedProgram> load(const std::shared_ptr<const Device>& device, const Dims& dims) {
  Sample sample = relu(dims);
  sample.program["target"] = "hip";
  return LoadedProgram::load(device, sample.parse());
}

void test_smaller_graphs_share_plans(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const auto device = open_choosing(libraries, {.overrides_shapes = true});
  const auto four = load(device, {4, 8});
  check::that(four->plan(0)->takes_overrides() && four->overrides(0).empty(), "its own plan takes other shapes");
  check::equal(choosing.built(), 1);
  const auto two = load(device, {2, 8});
  check::that(two->plan(0) == four->plan(0), "another plan");
  check::equal(two->overrides(0).size(), std::size_t{2});
  check::equal(two->overrides(0).front().dims, Dims({2, 8}));
  const auto eight = load(device, {8, 8});
  check::that(eight->plan(0) != four->plan(0) && eight->overrides(0).empty(), "a plan that is too small");
  check::that(load(device, {3, 8})->plan(0) == four->plan(0), "not the smallest that it fits in");
  check::that(load(device, {5, 8})->plan(0) == eight->plan(0), "not the only one that it fits in");
  check::that(load(device, {4, 8})->overrides(0).empty(), "the same graph is told its own shapes");
}

void test_plans_that_do_not_run_at_other_shapes_are_not_shared(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const auto device = open_choosing(libraries, {.overrides_shapes = true});
  const auto four = load(device, {4, 8});
  choosing.fail_builds(HIPDNN_STATUS_NOT_SUPPORTED, 1);  // the library makes one for the shapes that it is told
  const auto two = load(device, {2, 8});
  check::that(two->plan(0) != four->plan(0) && two->overrides(0).empty(), "shared all the same");
  check::that(load(device, {3, 8})->plan(0) == four->plan(0), "not shared any more");
}

void test_the_preferred_engine_comes_before_other_shapes(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const auto device = open_choosing(libraries, {.engine = "TEST_LAST", .overrides_shapes = true});
  const auto four = load(device, {4, 8});
  check::equal(four->plan(0)->engine_name(), "TEST_LAST");
  check::that(four->plan(0)->takes_overrides() && load(device, {2, 8})->plan(0) == four->plan(0), "not shared");
  // It builds nothing for the flag, as an engine that does not take flagged graphs.
  const auto other = open_choosing(libraries, {.engine = "TEST_LAST", .overrides_shapes = true});
  choosing.fail_builds(HIPDNN_STATUS_NOT_SUPPORTED, 1);
  const auto own = load(other, {4, 8});
  check::equal(own->plan(0)->engine_name(), "TEST_LAST");
  check::that(!own->plan(0)->takes_overrides(), "another engine's plan");
}

void test_plans_go_with_their_programs(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const auto device = open_choosing(libraries, {.overrides_shapes = true});
  load(device, {4, 8});
  check::equal(choosing.built(), 1);
  const auto small = load(device, {2, 8});
  check::equal(choosing.built(), 1, "the larger one is gone");
  check::that(small->overrides(0).empty(), "shapes of a plan that is gone");
}

void test_nothing_is_shared_unless_asked(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const auto device = open_choosing(libraries, {});
  const auto four = load(device, {4, 8});
  check::that(!four->plan(0)->takes_overrides(), "a plan that nobody asked for");
  check::that(load(device, {2, 8})->plan(0) != four->plan(0), "shared");
}

void test_libraries_without_such_plans(const Libraries& libraries) {
  const Choosing choosing(libraries, false);
  const auto device = open_choosing(libraries, {.overrides_shapes = true});
  const auto four = load(device, {4, 8}), two = load(device, {2, 8});
  check::equal(choosing.built(), 2);
  check::that(!four->plan(0)->takes_overrides() && two->overrides(0).empty(), "shared all the same");
}

void test_kept_plans_take_other_shapes_only_where_asked(const Libraries& libraries) {
  const Choosing choosing(libraries, true);
  const TemporaryFolder folder;
  const auto with = [&](bool overrides) {
    return open_choosing(libraries, {.overrides_shapes = overrides, .plan_folder = folder.path().string()});
  };
  check::that(load(with(true), {4, 8})->plan(0)->takes_overrides(), "it does not");
  check::that(!load(with(false), {4, 8})->plan(0)->takes_overrides(), "a plan that was kept for others");
  const auto device = with(true);
  const auto again = load(device, {4, 8});
  check::that(again->plan(0)->takes_overrides(), "a kept choice");
  check::that(load(device, {2, 8})->plan(0) == again->plan(0), "not shared");
}

std::vector<float> run(const std::shared_ptr<const LoadedProgram>& loaded, std::size_t inputs) {
  Context context(loaded);
  std::vector<std::vector<float>> arrays;
  for (std::size_t i = 0; i < inputs; ++i) {
    arrays.push_back(random_values(loaded->program().inputs().at(i).bytes / sizeof(float), static_cast<std::uint32_t>(7 + i)));
  }
  return run_once(context, loaded->program(), arrays);
}

/// What the small program answers with plans of the large one is what it answers with its own.
void check_values(const std::shared_ptr<const Device>& device, const Sample& large, const Sample& small, std::size_t inputs) {
  const std::vector<float> wanted = run(LoadedProgram::load(device, small.parse()), inputs);
  const auto first = LoadedProgram::load(device, large.parse()), second = LoadedProgram::load(device, small.parse());
  check::that(second->plan(0) == first->plan(0) && !second->overrides(0).empty(), "not shared");
  check::equal(run(second, inputs), wanted);
  check::that(std::ranges::any_of(wanted, [](float value) { return value != 0; }), "nothing was computed");
}

void test_values_at_smaller_shapes(const Libraries& libraries) {
  Device::Options options{0, 1};
  options.overrides_shapes = true;
  check_values(std::make_shared<const Device>(hipdnn_rt::Library::open("host", libraries.host), options), relu_of_sum({6, 3, 5}), relu_of_sum({4, 2, 5}), 2);
  const auto device = std::make_shared<const Device>(hipdnn_rt::Library::open("hip", libraries.disguised), options);
  Sample large = one_convolution(4, 9), small = one_convolution(4, 5);
  large.program["target"] = small.program["target"] = "hip";
  check_values(device, large, small, 1);
}

}  // namespace

void add_shape_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("shapes: smaller ones fit", test_smaller_shapes_fit);
  suite.add("shapes: overrides are what differs", test_overrides_are_what_differs);
  suite.add("shapes: structure is without sizes", test_structure_is_without_sizes);
  suite.add("shapes: results larger than their operands are not shared", test_results_larger_than_their_operands_are_not_shared);
  suite.add("shapes: plans that do not run at other shapes are not shared",
            [&] { test_plans_that_do_not_run_at_other_shapes_are_not_shared(libraries); });
  suite.add("shapes: the preferred engine comes before other shapes", [&] { test_the_preferred_engine_comes_before_other_shapes(libraries); });
  suite.add("shapes: smaller graphs share plans", [&] { test_smaller_graphs_share_plans(libraries); });
  suite.add("shapes: plans go with their programs", [&] { test_plans_go_with_their_programs(libraries); });
  suite.add("shapes: nothing is shared unless asked", [&] { test_nothing_is_shared_unless_asked(libraries); });
  suite.add("shapes: libraries without such plans", [&] { test_libraries_without_such_plans(libraries); });
  suite.add("shapes: kept plans take other shapes only where asked", [&] { test_kept_plans_take_other_shapes_only_where_asked(libraries); });
  suite.add("shapes: values at smaller shapes", [&] { test_values_at_smaller_shapes(libraries); });
}

}  // namespace runtime_tests
