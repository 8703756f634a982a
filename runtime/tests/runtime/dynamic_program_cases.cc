// Programs with dynamic dimensions: programs for sizes, and tables, sizes and constants that are refused.
#include "program/dynamic_program.h"

#include <algorithm>
#include <limits>

#include "cases.h"
#include "device/error.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::ConstantMemory;
using hipdnn_rt::InputError;
using hipdnn_rt::LoadedProgram;
using hipdnn_rt::DynamicProgram;
using hipdnn_rt::ProgramError;
using nlohmann::json;

void test_specializations_run_for_their_sizes(const Libraries& libraries) {
  const auto device = open_host(libraries);
  const auto program = parse(dynamic_relu());
  check::equal(program->symbols(), std::vector<std::string>{"batch"});
  for (const std::int64_t batch : {1, 3, 64}) {
    hipdnn_rt::ContextPool pool(LoadedProgram::load(device, program->at({batch})));
    const std::vector<float> x = random_values(static_cast<std::size_t>(batch * kDynamicColumns), 7);
    check::equal(run_once(pool, pool.program().program(), {x}), relu_of(x));
  }
}

void test_nothing_is_done_when_there_are_no_elements(const Libraries& libraries) {
  const auto program = parse(dynamic_relu())->at({0});
  check::equal(program->steps().size(), std::size_t{0}, "steps");
  hipdnn_rt::ContextPool pool(LoadedProgram::load(open_host(libraries), program));
  check::that(run_once(pool, *program, {{}}).empty(), "no results");
}

void test_constants_are_computed_from_sizes(const Libraries& libraries) {
  const auto device = open_host(libraries);
  const auto one = parse(sum_with_computed({reference(0)}));
  for (const std::int64_t batch : {1, 2, 3}) {
    hipdnn_rt::ContextPool pool(LoadedProgram::load(device, one->at({batch})));
    const std::vector<float> x = random_values(static_cast<std::size_t>(batch * kDynamicColumns), 3);
    check::equal(run_once(pool, pool.program().program(), {x}), relu_of(x, static_cast<float>(batch)));
  }
  const auto each = parse(sum_with_computed({0.5, 0.5, 0.5, 0.5}));
  hipdnn_rt::ContextPool pool(LoadedProgram::load(device, each->at({1})));
  const std::vector<float> x = random_values(kDynamicColumns, 3);
  check::equal(run_once(pool, pool.program().program(), {x}), relu_of(x, 0.5F));
  check::contains(error_of<InputError>([&] { each->at({2}); }), "values: expected one element, or as many as the dims have");
}

void test_refused_when_computed_constants_are_wrong() {
  const auto refuse = [](const char* pointer, json value, const char* expected) {
    Sample sample = sum_with_computed({reference(0)});
    sample.program[json::json_pointer(pointer)] = std::move(value);
    check::contains(error_of<hipdnn_rt::Error>([&] { parse(sample)->at({3}); }), expected);
  };
  refuse("/constants/0/dtype", "f33", "constants[0].dtype");
  refuse("/constants/0/dtype", "f16", "buffer 1 has 48 bytes, its contents 24");
  refuse("/constants/0/dtype", "f64", "buffer 1 has 48 bytes, its contents 96");
  refuse("/constants/0/dims/0", -1, "constants[0].dims[0]");
  refuse("/constants/0/dims/0", std::numeric_limits<std::int64_t>::max(), "constants[0].dims");
  refuse("/constants/0/values", {"1"}, "constants[0].values[0]: expected a number");
  refuse("/constants/0/values", json::array(), "expected one element");
  Sample fraction = sum_with_computed({0.5});
  fraction.program["constants"][0]["dtype"] = "i32";
  check::contains(error_of<hipdnn_rt::Error>([&] { parse(fraction)->at({3}); }), "expected whole numbers");
}

void test_refused_when_the_table_is_wrong() {
  struct Edit {
    const char* pointer;
    json value;
    const char* expected;
  };
  const std::vector<Edit> edits{
      {"/format", 99, "program.format: expected 1, the one that this version reads, got 99"},
      {"/symbols", 3, "program.symbols: expected an array"},
      {"/symbols", {"batch", "batch"}, "program.symbols[1]: expected a name used once"},
      {"/symbols", {"batch", "free"}, "program.symbols[1]: expected the size of a dimension of an input"},
      {"/expressions/0", {"symbol", 1}, "program.expressions[0][1]: expected an integer from 0 to 0, got 1"},
      {"/expressions/0", {"symbol", 0, 0}, "program.expressions[0]: expected an operator and its operands"},
      {"/expressions/1", {"*", reference(0)}, "program.expressions[1]: expected an operator and its operands"},
      {"/expressions/1", {"^", reference(0), 2}, "program.expressions[1][0]: expected one of \"symbol\""},
      {"/expressions/1", {"*", reference(1), 16}, "program.expressions[1][1].expr: expected an integer from 0 to 0, got 1"},
      {"/expressions/1", {"*", reference(-1), 16}, "program.expressions[1][1].expr"},
      {"/expressions/1", {"*", 0.5, 16}, "program.expressions[1][1]"},
      {"/expressions", json::array(), "program.inputs[0].dims[0].expr"},
      {"/inputs/0/dims/0", reference(2), "program.inputs[0].dims[0].expr: expected an integer from 0 to 1, got 2"},
      {"/inputs/0/dims/0", -1, "program.inputs[0].dims[0]"},
      {"/steps/0/operands/0/offset", 0.5, "program.steps[0].operands[0].offset: expected an integer"},
      {"/executables/0/descriptors/0/1/2/2/0", reference(7), "program.executables[0].descriptors[0][1][2][2][0].expr"},
      {"/inputs/0/dims/0", 1, "program.symbols[0]: expected the size of a dimension of an input"},
      {"/conditions", json::array({{{"relation", "<"}, {"a", reference(0)}, {"b", 4}}}), "program.conditions[0].node: missing"},
      {"/conditions", condition(">", reference(0), 4, "n"), "program.conditions[0].relation: expected one of \"<\""},
      {"/conditions", condition("<", reference(9), 4, "n"), "program.conditions[0].a.expr"},
  };
  for (const Edit& edit : edits) {
    Sample sample = dynamic_relu();
    sample.program[json::json_pointer(edit.pointer)] = edit.value;
    const std::string message = error_of<ProgramError>([&] { parse(sample); });
    check::that(message.find(edit.expected) != std::string::npos,
                std::string(edit.pointer) + ": message '" + message + "' lacks '" + edit.expected + "'");
  }
}

void test_specialization_refused_when_the_program_does_not_hold() {
  const auto refuse = [](const char* pointer, json value, std::int64_t batch, const char* expected) {
    Sample sample = dynamic_relu();
    sample.program[json::json_pointer(pointer)] = std::move(value);
    check::contains(error_of<hipdnn_rt::Error>([&] { parse(sample)->at({batch}); }), expected);
  };
  refuse("/expressions/1", {"*", reference(0), 12}, 3, "the program does not hold for batch=3: program.inputs[0].buffer");
  refuse("/expressions/1", {"*", reference(0), std::numeric_limits<std::int64_t>::max()}, 3, "leaves the range of 64 bits where batch is 3");
  refuse("/expressions/1", {"floordiv", 48, reference(0)}, 0, "the size 48 floordiv batch leaves");
  refuse("/expressions/1", {"+", reference(0), -9}, 3, "program.buffers[0].bytes: expected an integer of at least 0");
  refuse("/buffers/0/bytes", reference(2), 3, "program.buffers[0].bytes.expr: expected an integer from 0 to 1, got 2");
  refuse("/steps/0/executable", reference(0), 3, "program.steps[0].executable: expected an integer from 0 to 0");
  refuse("/executables/0/descriptors/1/1/2/2/0", 4, 3, "pass the end of buffer 1");
  refuse("/conditions", condition("<", reference(0), 3, "Concat_7"), 3, "node 'Concat_7' needs batch < 3");
}

void test_deep_tables_are_shown_in_short() {
  Sample sample = dynamic_relu();
  json& table = sample.program["expressions"];
  for (int i = 2; i < 60'000; ++i) table.push_back({"+", reference(i - 1), reference(i - 1)});
  sample.program["conditions"] = condition("<", reference(59'999), 0, "n");
  const std::string message = error_of<InputError>([&] { parse(sample)->at({1}); });
  check::that(message.size() < 10'000, "a message of " + std::to_string(message.size()) + " characters");
  sample.program["expressions"][2] = {"*", 0, 0};
  check::that(error_of<InputError>([&] { parse(sample)->at({1}); }).size() < 10'000, "a short message");
}

void test_sizes_read_from_inputs() {
  Sample sample = with_dynamic_batch(relu_of_sum({1, kDynamicColumns}), 4 * kDynamicColumns, {"0", "1"});
  sample.program["expressions"].push_back({"+", reference(0), 1});
  sample.program["inputs"][1]["dims"][0] = reference(2);
  const auto program = parse(sample);
  const auto sizes = [&](std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
    const std::vector<std::span<const std::int64_t>> dims{a, b};
    return program->sizes_of(dims);
  };
  check::equal(sizes({3, 4}, {4, 4}), hipdnn_rt::Sizes{3});
  const auto refuse = [&](std::vector<std::int64_t> a, std::vector<std::int64_t> b, const char* expected) {
    check::contains(error_of<InputError>([&] { sizes(a, b); }), expected);
  };
  refuse({3, 4}, {3, 4}, "'b', dimension 0 (batch + 1): expected 4, got 3");
  refuse({3, 5}, {4, 4}, "'a', dimension 1: expected 4, got 5");
  refuse({3}, {4, 4}, "'a': expected rank 2, got 1");
  sample.program["inputs"][1]["dims"][0] = reference(0);
  const auto same = parse(sample);
  const std::vector<std::int64_t> a{3, 4}, b{2, 4};
  const std::vector<std::span<const std::int64_t>> dims{a, b};
  check::contains(error_of<InputError>([&] { same->sizes_of(dims); }),
                  "'b', dimension 0 ('batch'): expected 3 as in 'a', dimension 0, got 2");
}

void test_sizes_are_rounded_up_to_buckets() {
  using hipdnn_rt::Sizes;
  Sample sample = dynamic_relu();
  sample.program["buckets"] = {{2, 5}};
  const auto program = parse(sample);
  check::that(program->has_buckets(), "has buckets");
  check::equal(program->rounded({1}), Sizes{2});
  check::equal(program->rounded({2}), Sizes{2});
  check::equal(program->rounded({3}), Sizes{5});
  check::equal(program->rounded({0}), Sizes{0}, "an empty input stays");
  check::contains(error_of<InputError>([&] { program->rounded({6}); }), "dimension 0 ('batch'): 6 is above the buckets 2, 5");
  check::equal(program->output_dims({3}), std::vector<std::vector<std::int64_t>>{{3, kDynamicColumns}});
  sample.program["conditions"] = condition("<=", 3, reference(0), "Relu_0");
  check::contains(error_of<InputError>([&] { parse(sample)->rounded({2}); }), "node 'Relu_0' needs 3 <= batch");
  check::that(!parse(dynamic_relu())->has_buckets(), "has none");
  check::equal(parse(dynamic_relu())->rounded({6}), Sizes{6});
}

void test_sizes_are_filled_up_to_an_expression() {
  using hipdnn_rt::Sizes;
  Sample sample = dynamic_relu();  // entry 0 is the batch
  sample.program["expressions"].push_back({"max", reference(0), 10'000});
  sample.program["filled"] = {reference(static_cast<int>(sample.program["expressions"].size()) - 1)};
  const auto program = parse(sample);
  check::equal(program->filled({1}), Sizes{4096}, "not much further than needed");
  check::equal(program->filled({4096}), Sizes{4096});
  check::equal(program->filled({4097}), Sizes{8192});
  check::equal(program->filled({9000}), Sizes{10'000});
  check::equal(program->filled({10'000}), Sizes{10'000});
  check::equal(program->filled({10'001}), Sizes{10'001}, "a size beyond stays");
  check::equal(program->input_dims({3}).front().front(), std::int64_t{3});
  sample.program["conditions"] = condition("<=", 3, reference(0), "Relu_0");
  check::contains(error_of<InputError>([&] { parse(sample)->filled({2}); }), "node 'Relu_0' needs 3 <= batch");
  sample.program["filled"].push_back(reference(0));
  check::contains(error_of<ProgramError>([&] { parse(sample); }), "program.filled: expected a size for each symbol, got 2");
  check::equal(parse(dynamic_relu())->filled({6}), Sizes{6}, "without the field");
}

void test_a_step_of_one_token_follows_several() {
  using hipdnn_rt::Sizes;
  Sample sample = dynamic_relu();  // entry 0 is the batch
  sample.program["filled"] = {reference(0)};
  check::that(!parse(sample)->step_behind({6}), "the symbol is of an input of floats");
  sample.program["inputs"][0]["dtype"] = "i64";
  check::that(parse(sample)->step_behind({6}) == Sizes{1}, "of several tokens");
  check::that(!parse(sample)->step_behind({1}), "of one token");
  sample.program.erase("filled");
  check::that(!parse(sample)->step_behind({6}), "no input may be filled");
}

void test_refused_when_buckets_are_wrong() {
  const auto refuse = [](json buckets, const char* expected) {
    Sample sample = dynamic_relu();
    sample.program["buckets"] = std::move(buckets);
    check::contains(error_of<ProgramError>([&] { parse(sample); }), expected);
  };
  refuse(json::array({json::array(), json::array()}), "program.buckets: expected a list for each symbol");
  refuse(json::array({json::array({5, 2})}), "program.buckets[0]: expected sizes that rise");
  refuse(json::array({json::array({2, 2})}), "program.buckets[0]: expected sizes that rise");
  refuse(json::array({json::array({0})}), "program.buckets[0]");
  refuse(json::array({json::array({reference(0)})}), "program.buckets[0]");
}

void test_operators_round_as_they_say() {
  const json root = {{"symbols", {"n"}},
                     {"expressions",
                      {{"symbol", 0}, {"floordiv", reference(0), 3}, {"ceildiv", reference(0), 3}, {"mod", reference(0), 3},
                       {"mod", reference(0), std::numeric_limits<std::int64_t>::max()}, {"max", reference(0), 5}}}};
  const auto table = hipdnn_rt::Expressions::read(hipdnn_rt::Field(root, "program"));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto at = [&](std::int64_t n) { return table.evaluate(std::array{n}); };
  check::equal(at(7), std::vector<std::int64_t>{7, 2, 3, 1, 7, 7});
  check::equal(at(6), std::vector<std::int64_t>{6, 2, 2, 0, 6, 6});
  check::equal(at(-7), std::vector<std::int64_t>{-7, -3, -2, 2, most - 7, 5});
  check::equal(at(most - 1)[4], most - 1);
}

/// Two instances on a device with memory of its own: weights are there once, computed constants each time.
void test_specializations_share_uploaded_constants(const Libraries& libraries) {
  const auto device = open_disguised(libraries);
  Sample sample = dynamic_convolution();
  sample.program["target"] = "hip";
  const auto program = parse(sample);
  const auto shared = std::make_shared<const ConstantMemory>(*device, program->stored_constants());
  const auto small = LoadedProgram::load(device, program->at({1}), shared);
  const auto large = LoadedProgram::load(device, program->at({2}), shared);
  const auto alone = LoadedProgram::load(device, program->at({2}));
  check::equal(small->constant(2), large->constant(2), "address of the weights");
  check::that(alone->constant(2) != large->constant(2), "weights of their own");
  check::that(small->constant(2) != program->stored_constants().at(0).data(), "weights were uploaded");
  hipdnn_rt::ContextPool with(large), without(alone);
  const std::vector<float> x = random_values(2 * 2 * 5 * 5, 5);
  check::equal(run_once(with, large->program(), {x}), run_once(without, alone->program(), {x}));

  Sample computed = sum_with_computed({reference(0)});
  computed.program["target"] = "hip";
  const auto second = parse(computed);
  check::that(second->stored_constants().empty(), "nothing stored");
  const auto none = std::make_shared<const ConstantMemory>(*device, second->stored_constants());
  hipdnn_rt::ContextPool pool(LoadedProgram::load(device, second->at({2}), none));
  const std::vector<float> a = random_values(2 * kDynamicColumns, 3);
  check::equal(run_once(pool, pool.program().program(), {a}), relu_of(a, 2.0F));
}

/// Programs of one session: weights of the same bytes are there once, in the host's memory and on a device.
void test_programs_share_equal_weights(const Libraries& libraries) {
  const auto device = open_disguised(libraries);
  Sample sample = with_dynamic_batch(one_convolution(64, 5), 64 * 5 * 5 * 4, {"0", "2"});
  sample.program["target"] = "hip";
  Sample changed = sample;
  changed.constants.at("w0").back() += 1.0F;
  const auto weights = [](const DynamicProgram& program) { return program.stored_constants().at(0); };

  auto first = parse(sample);
  const auto second = DynamicProgram::sharing(parse(sample), first), other = DynamicProgram::sharing(parse(changed), first);
  check::equal(weights(*second).data(), weights(*first).data(), "address of the weights");
  check::that(weights(*other).data() != weights(*first).data(), "other weights stay");
  const auto uploaded = std::make_shared<const ConstantMemory>(*device, first->stored_constants());
  const std::vector<std::shared_ptr<const ConstantMemory>> known{uploaded};
  const auto again = std::make_shared<const ConstantMemory>(*device, second->stored_constants(), known);
  check::equal(again->find(weights(*second)), uploaded->find(weights(*first)), "address on the device");
  const ConstantMemory apart(*device, other->stored_constants(), known);
  check::that(apart.find(weights(*other)) != nullptr && apart.find(weights(*other)) != uploaded->find(weights(*first)), "a copy of its own");

  first.reset();
  const std::vector<float> x = random_values(64 * 5 * 5, 5);
  const auto run = [&](const DynamicProgram& program, std::shared_ptr<const ConstantMemory> constants) {
    hipdnn_rt::ContextPool pool(LoadedProgram::load(device, program.at({1}), std::move(constants)));
    return run_once(pool, pool.program().program(), {x});
  };
  check::equal(run(*second, again), run(*parse(sample), nullptr), "results");
}

}  // namespace

void add_dynamic_program_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("dynamic program: specializations run for their sizes", [=] { test_specializations_run_for_their_sizes(libraries); });
  suite.add("dynamic program: nothing is done when there are no elements", [=] { test_nothing_is_done_when_there_are_no_elements(libraries); });
  suite.add("dynamic program: constants are computed from sizes", [=] { test_constants_are_computed_from_sizes(libraries); });
  suite.add("dynamic program: refused when computed constants are wrong", test_refused_when_computed_constants_are_wrong);
  suite.add("dynamic program: refused when the table is wrong", test_refused_when_the_table_is_wrong);
  suite.add("dynamic program: specialization refused when the program does not hold", test_specialization_refused_when_the_program_does_not_hold);
  suite.add("dynamic program: deep tables are shown in short", test_deep_tables_are_shown_in_short);
  suite.add("dynamic program: sizes read from inputs", test_sizes_read_from_inputs);
  suite.add("dynamic program: sizes are rounded up to buckets", test_sizes_are_rounded_up_to_buckets);
  suite.add("dynamic program: sizes are filled up to an expression", test_sizes_are_filled_up_to_an_expression);
  suite.add("dynamic program: a step of one token follows several", test_a_step_of_one_token_follows_several);
  suite.add("dynamic program: refused when buckets are wrong", test_refused_when_buckets_are_wrong);
  suite.add("dynamic program: operators round as they say", test_operators_round_as_they_say);
  suite.add("dynamic program: specializations share uploaded constants", [=] { test_specializations_share_uploaded_constants(libraries); });
  suite.add("dynamic program: programs share equal weights", [=] { test_programs_share_equal_weights(libraries); });
}

}  // namespace runtime_tests
