// Files with a specialization for each combination of buckets: which one runs, copies that pad and cut, and files that are refused.
#include <algorithm>

#include "cases.h"
#include "device/error.h"
#include "program/dynamic_program.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::InputError;
using hipdnn_rt::LoadedProgram;
using hipdnn_rt::DynamicProgram;
using hipdnn_rt::ProgramError;
using hipdnn_rt::Sizes;
using nlohmann::json;

void check_all_sizes(const std::shared_ptr<const hipdnn_rt::Device>& device, const DynamicProgram& program) {
  for (const std::int64_t a : {1, 2, 3, 4}) {
    for (const std::int64_t b : {1, 3, 4, 5}) {
      hipdnn_rt::ContextPool pool(LoadedProgram::load(device, program.at({a, b})));
      const std::vector<float> x = random_values(static_cast<std::size_t>(a * 2 * b), 7);
      for (int repeat = 0; repeat < 2; ++repeat) check::equal(run_once(pool, pool.program().program(), {x}), relu_of(x));
    }
  }
}

void test_sizes_between_buckets_are_padded_and_cut_by_steps(const Libraries& libraries) {
  check_all_sizes(open_host(libraries), *parse(specialized_relu()));
  check_all_sizes(open_disguised(libraries), *parse(specialized_relu("hip")));
  check_all_sizes(open_deferred(libraries, true), *parse(specialized_relu("hip")));
}

void test_a_bucket_has_no_copies_and_a_batch_few() {
  const auto program = parse(specialized_relu());
  check::equal(program->at({4, 5})->steps().size(), std::size_t{1}, "steps at a bucket");
  check::equal(program->at({3, 5})->steps().size(), std::size_t{4}, "steps with a padded first dim");
  check::equal(program->at({4, 4})->steps().size(), std::size_t{1 + 8 * 2 + 8}, "steps with a padded last dim");
}

/// What reaches the program where three of one dim and two of another are asked for.
void test_the_last_elements_are_repeated(const Libraries& libraries) {
  Sample sample = specialized_relu();
  sample.program["buckets"] = {{4}, {5}};
  sample.program["specializations"].erase(sample.program["specializations"].begin(), sample.program["specializations"].begin() + 3);
  sample.program["outputs"][0]["dims"] = {4, 2, 5};
  hipdnn_rt::ContextPool pool(LoadedProgram::load(open_host(libraries), parse(sample)->at({3, 2})));
  std::vector<float> x;
  for (int i = 1; i <= 12; ++i) x.push_back(static_cast<float>(i));
  std::vector<float> wanted;
  for (const int a : {0, 1, 2, 2}) {
    for (const int row : {0, 1}) {
      for (const int b : {0, 1, 1, 1, 1}) wanted.push_back(static_cast<float>((a * 2 + row) * 2 + b + 1));
    }
  }
  check::equal(run_once(pool, pool.program().program(), {x}), wanted);
}

void test_sizes_that_no_specialization_serves_are_named() {
  const auto program = parse(specialized_relu());
  check::that(program->has_specializations(), "stored");
  check::equal(program->rounded({1, 4}), Sizes{2, 5});
  check::contains(error_of<InputError>([&] { program->at({0, 3}); }), "'x', dimension 0 ('a'): 0 is below the buckets 2, 4");
  check::contains(error_of<InputError>([&] { program->at({2, 6}); }), "'x', dimension 2 ('b'): 6 is above the buckets 3, 5");
  Sample exact = specialized_relu();
  exact.program["exact"] = {"", "node 'Softmax_2' mixes"};
  exact.program["conditions"] = condition("<", reference(0), 3, "Less_1");
  const auto partial = parse(exact);
  check::that(partial->is_partial(), "partial");
  check::equal(partial->at({4, 5})->steps().size(), std::size_t{1}, "a bucket runs whatever the conditions say");
  check::contains(error_of<InputError>([&] { partial->at({1, 4}); }), "4 is none of the buckets 3, 5, and is not rounded up to one: node 'Softmax_2' mixes");
  check::equal(partial->rounded({1, 5}), Sizes{2, 5});
  check::contains(error_of<InputError>([&] { partial->at({3, 5}); }), "node 'Less_1' needs a < 3");
}

void test_padding_by_too_many_copies_is_refused() {
  Sample sample = specialized_relu();
  json& whole = sample.program;
  json one = relu({2, 600, 5}).program;
  whole["executables"] = {one["executables"][0]};
  one["executables"] = {0};
  one["sizes"] = {2, 5};
  whole["specializations"] = json::array({one});
  whole["buckets"] = {{2}, {5}};
  for (const char* kind : {"inputs", "outputs"}) whole[kind][0]["dims"][1] = 600;
  const auto program = parse(sample);
  check::equal(program->at({1, 5})->steps().size(), std::size_t{4}, "steps");
  check::contains(error_of<InputError>([&] { program->at({2, 4}); }), "'x', dimension 2: padding takes 1200 copies on the device, more than 1024");
}

void test_specializations_of_other_arguments_are_refused() {
  const auto refuse = [](const char* pointer, json value, const Sizes& sizes, const char* expected) {
    Sample sample = specialized_relu();
    sample.program[json::json_pointer(pointer)] = std::move(value);
    const auto program = parse(sample);
    check::contains(error_of<ProgramError>([&] { program->at(sizes); }), expected);
  };
  refuse("/specializations/0/inputs/0/name", "z", {2, 3}, "specialization for a=2, b=3: inputs: expected those of the program as a whole");
  refuse("/inputs/0/dtype", "i32", {2, 3}, "inputs: expected those of the program as a whole");
  refuse("/outputs", json::array(), {2, 3}, "outputs: expected those of the program as a whole");
  refuse("/outputs/0/dims/1", 3, {1, 3}, "dims of 'y' are not those that the sizes say");
  refuse("/outputs/0/dims", {reference(0), 2}, {2, 3}, "outputs: expected");
  refuse("/specializations/0/executables", {4}, {2, 3}, "executables[0]");
}

}  // namespace

void add_specialization_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("specializations: sizes between buckets are padded and cut by steps",
            [=] { test_sizes_between_buckets_are_padded_and_cut_by_steps(libraries); });
  suite.add("specializations: a bucket has no copies and a batch few", test_a_bucket_has_no_copies_and_a_batch_few);
  suite.add("specializations: the last elements are repeated", [=] { test_the_last_elements_are_repeated(libraries); });
  suite.add("specializations: sizes that no specialization serves are named", test_sizes_that_no_specialization_serves_are_named);
  suite.add("specializations: padding by too many copies is refused", test_padding_by_too_many_copies_is_refused);
  suite.add("specializations: refused when arguments are others", test_specializations_of_other_arguments_are_refused);
}

}  // namespace runtime_tests
