// The loader against broken files: every one is a ProgramError that names the field.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cases.h"
#include "device/error.h"
#include "program/checksum.h"
#include "program/dynamic_program.h"
#include "sample_program.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::DynamicProgram;
using hipdnn_rt::ProgramError;
using nlohmann::json;

/// Parse bytes placed at the end of a heap block, so that reading past them is an error for the sanitizer.
void parse_bytes(std::span<const std::byte> bytes) {
  const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  copy->shrink_to_fit();
  DynamicProgram::parse_container(*copy, copy);
}

/// The message of the ProgramError that `action` must throw.
template <typename Action>
std::string program_error_of(const Action& action, const check::Location& at = check::Location::current()) {
  try {
    action();
  } catch (const ProgramError& error) {
    const std::string message = error.what();
    check::that(message.find('\n') == std::string::npos, "the message has several lines: " + message, at);
    return message;
  }
  throw check::Failure("no ProgramError", at);
}

void test_accepted_when_well_formed() {
  const Sample sample = two_convolutions(4, 5, false);
  const auto bytes = sample.container();
  const auto program = DynamicProgram::parse_container(bytes, nullptr)->at({});
  check::equal(program->steps().size(), std::size_t{2});
  check::equal(program->constants().size(), std::size_t{2});
  check::equal(program->executables()[0].operands[1].extent_bytes, std::uint64_t{4 * 4 * 9 * 4});
  check::equal(program->buffers()[1].last_step, std::uint32_t{1});
  const float* w1 = reinterpret_cast<const float*>(program->constants()[1].data.data());
  check::equal(w1[7], sample.constants.at("w1")[7]);
}

void test_refused_when_truncated() {
  const auto bytes = two_convolutions(4, 5, false).container();
  for (std::size_t length = 0; length < bytes.size(); length += 97) {
    program_error_of([&] { parse_bytes(std::span(bytes).first(length)); });
  }
  program_error_of([&] { parse_bytes(std::span(bytes).first(bytes.size() - 1)); });
}

void test_refused_when_longer_than_described() {
  auto bytes = relu_of_sum({2, 3}).container();
  bytes.push_back(std::byte{0});
  check::contains(program_error_of([&] { parse_bytes(bytes); }), "the header describes");
}

/// One edit of a good program's JSON, and a part of the message it must get.
struct Edit {
  const char* pointer;
  json value;
  const char* expected;
};

void test_refused_when_a_field_is_wrong() {
  const json huge = 9'223'372'036'854'775'807;
  const std::vector<Edit> edits{
      {"/format", 5, "program.format: expected 1, the one that this version reads, got 5; compile the model again"},
      {"/format", 0, "program.format: expected an integer of at least 1, got 0"},
      {"/format", "1", "program.format: expected an integer"},
      {"/target", 3, "program.target: expected a string, got 3"},
      {"/inputs", json::object(), "program.inputs: expected an array, got an object"},
      {"/inputs/0/dtype", "f33", "program.inputs[0].dtype"},
      {"/inputs/0/dtype", "f64", "program.inputs[0].buffer: buffer 0 has 400 bytes, its contents 800"},
      {"/inputs/0/dims", {1, 4, 5}, "program.inputs[0].buffer"},
      {"/inputs/0/dims", {1, 4, 5, -5}, "program.inputs[0].dims[3]: expected an integer of at least 0, got -5"},
      {"/inputs/0/dims", {huge, huge, huge, 4}, "program.inputs[0].dims: expected dims whose size fits 64 bits"},
      {"/inputs/0/buffer", 99, "program.inputs[0].buffer: expected an integer from 0 to 4, got 99"},
      {"/inputs/0/buffer", -1, "program.inputs[0].buffer"},
      {"/inputs/0/buffer", 1, "program.inputs[0].buffer: expected a buffer of kind \"input\""},
      {"/inputs/0/buffer", 0.5, "program.inputs[0].buffer"},
      {"/inputs/0/buffer", 18'446'744'073'709'551'615U, "program.inputs[0].buffer"},
      {"/outputs/0/buffer", 0, "program.outputs[0].buffer: expected a buffer of kind \"output\""},
      {"/constants/1/tensor", "w9", "program.constants[1].tensor: expected the name of a stored tensor, got \"w9\""},
      {"/constants/1/buffer", 3, "program.constants[1].buffer: expected a buffer that nothing else is bound to"},
      {"/buffers/4/bytes", 572, "program.constants[1].buffer: buffer 4 has 572 bytes, its contents 576"},
      {"/buffers/0/kind", "inputs", "program.buffers[0].kind: expected one of"},
      {"/buffers/1/bytes", -400, "program.buffers[1].bytes: expected an integer of at least 0, got -400"},
      {"/buffers/1/bytes", 396, "program.steps[0].operands[2]: 400 bytes from offset 0 pass the end of buffer 1 (396 bytes)"},
      {"/buffers/1/bytes", 1e30, "program.buffers[1].bytes"},
      {"/buffers/1/kind", "constant", "program.buffers[1]: no constant is bound to it"},
      {"/executables/0/name", nullptr, "program.executables[0].name"},
      {"/executables/0/descriptors", json::array(), "program.executables[0].descriptors: expected at least one descriptor"},
      {"/executables/0/descriptors/0/0", 9000, "program.executables[0].descriptors[0][0]"},
      {"/executables/0/descriptors/0/0", 10, "descriptors[0]: the operation graph must be the last"},
      {"/executables/0/descriptors/4/0", 18, "descriptors[4]: the operation graph must be the last"},
      {"/executables/0/descriptors/0/1/3/0", HIPDNN_ATTR_TENSOR_DIMENSIONS, "descriptors[0][1][3][0]: expected an attribute that the descriptor does not have yet"},
      {"/executables/0/descriptors/0/1/0/2/0", 2, "descriptors[0]: expected tensor uid 1, got 2"},
      {"/executables/0/descriptors/0/1/1/2/0", 99, "descriptors[0]: unknown data type 99"},
      {"/executables/0/descriptors/0/1/2/2/0", 0, "descriptors[0]: tensor dims must be positive"},
      {"/executables/0/descriptors/0/1/2/2/0", huge, "descriptors[0]: tensor size overflows"},
      {"/executables/0/descriptors/0/1/3/2/0", -1, "descriptors[0]: tensor dims must be positive and strides not negative"},
      {"/executables/0/descriptors/0/1/3/2", {1, 1}, "descriptors[0]: tensor has 4 dims but 2 strides"},
      {"/executables/0/descriptors/0/1/3/2", json::array(), "descriptors[0][1][3][2]: expected at least one element"},
      {"/executables/0/descriptors/2/1/3/2/2", 6, "pass the end of buffer"},
      {"/executables/0/descriptors/3/1/0/2/0", 3, "descriptors[3][1][0][2][0]: expected an integer from 0 to 2, got 3"},
      {"/executables/0/descriptors/3/1/0/2/0", -1, "descriptors[3][1][0][2][0]"},
      {"/executables/0/descriptors/3/1/0/1", 6, "descriptors[3][1][0][1]: expected an attribute type that a program may use, got 6"},
      {"/executables/0/descriptors/3/1/0/1", 10000, "descriptors[3][1][0][1]"},
      {"/executables/0/descriptors/3/1/0/0", 9'000'001, "descriptors[3][1][0][0]"},
      {"/executables/0/descriptors/3/1/0", {1, 2}, "descriptors[3][1][0]: expected [attribute, attribute type, value]"},
      {"/executables/0/operands/0/role", "inout", "program.executables[0].operands[0].role: expected one of \"in\", \"out\", got \"inout\""},
      {"/executables/0/operands/0/role", "out", "program.steps[0].operands[0]: writes buffer 0 of kind input"},
      {"/executables/0/operands/2/role", "in", "program.executables[0].operands: no operand has the role \"out\""},
      {"/executables/0/operands/0/uid", 2, "operands[1].uid: expected each tensor once, got 2"},
      {"/executables/0/operands/0/uid", 4, "operands[0].uid"},
      {"/steps/0/kind", "run", "program.steps[0].kind: expected one of \"execute\", \"launch\", \"copy\""},
      {"/steps/0/kind", "launch", "program.steps[0].kernel: missing"},
      {"/steps/0/kind", "copy", "program.steps[0].bytes: missing"},
      {"/steps/0/executable", 1, "program.steps[0].executable: expected an integer from 0 to 0, got 1"},
      {"/steps/0/operands", json::array(), "program.steps[0].operands: expected 3 operands"},
      {"/steps/0/operands/0/offset", 16, "pass the end of buffer 0"},
      {"/steps/0/operands/0/offset", huge, "pass the end of buffer 0"},
      {"/steps/0/operands/0/offset", -16, "program.steps[0].operands[0].offset"},
      {"/steps/0/operands/2/buffer", 3, "program.steps[0].operands[2]: writes buffer 3 of kind constant"},
      {"/steps/0/operands/2/buffer", 0, "program.steps[0].operands[2]: writes buffer 0 of kind input"},
      {"/steps/0/operands/0/buffer", 1, "program.steps[0].operands[0]: reads buffer 1, which no earlier step has written"},
      {"/steps/1/operands/2/buffer", 1, "program.outputs[0]: no step writes it"},
  };
  for (const Edit& edit : edits) {
    Sample sample = two_convolutions(4, 5, false);
    sample.program[json::json_pointer(edit.pointer)] = edit.value;
    const std::string message = program_error_of([&] { parse_bytes(sample.container()); });
    check::that(message.find(edit.expected) != std::string::npos,
                std::string(edit.pointer) + ": message '" + message + "' lacks '" + edit.expected + "'");
  }
}

void test_refused_when_a_member_is_missing() {
  const Sample good = two_convolutions(4, 5, false);
  const json flat = good.program.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    const auto path = json::json_pointer(pointer);
    if (!good.program[path.parent_pointer()].is_object()) continue;
    const std::string key = path.back();
    if (key == "summary" || key == "name") continue;
    Sample sample = good;
    sample.program[path.parent_pointer()].erase(key);
    check::contains(program_error_of([&] { parse_bytes(sample.container()); }), key + ": missing");
  }
}

void test_refused_when_offset_is_not_aligned() {
  Sample sample = relu_of_sum({4});
  for (auto& buffer : sample.program["buffers"]) buffer["bytes"] = 16;
  sample.program["buffers"][2]["bytes"] = 32;
  sample.program["steps"][0]["operands"][2]["offset"] = 4;
  check::contains(program_error_of([&] { parse_bytes(sample.container()); }), "operands[2].offset: expected a multiple of 16");
  json& tensor = sample.program["executables"][0]["descriptors"][2][1];
  tensor.push_back({HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, {1}});
  sample.program["steps"][0]["operands"][2]["offset"] = 2;
  check::contains(program_error_of([&] { parse_bytes(sample.container()); }), "operands[2].offset: expected a multiple of 4");
  sample.program["steps"][0]["operands"][2]["offset"] = 4;
  parse_bytes(sample.container());
}

void test_refused_when_a_tensor_has_too_many_elements() {
  Sample sample = relu_of_sum({4, 1});
  json& tensor = sample.program["executables"][0]["descriptors"][0][1];
  tensor[2][2][1] = 1LL << 41;
  tensor[3][2][1] = 0;
  check::contains(program_error_of([&] { parse_bytes(sample.container()); }), "descriptors[0]: tensor has more than 2^40 elements");
}

void test_refused_when_a_copy_overlaps() {
  Sample sample = relu_of_sum({4});
  sample.program["buffers"][2]["bytes"] = 32;
  const auto place = [](int offset) { return json{{"buffer", 2}, {"offset", offset}}; };
  sample.program["steps"].push_back({{"kind", "copy"}, {"name", "c"}, {"bytes", 16}, {"src", place(0)}, {"dst", place(8)}});
  check::contains(program_error_of([&] { parse_bytes(sample.container()); }), "program.steps[2].dst: expected a destination apart from the source");
  sample.program["steps"][2]["dst"] = place(16);
  parse_bytes(sample.container());
}

/// A header around a good program with one bad tensor entry.
void test_refused_when_the_container_is_wrong() {
  const std::string text = relu_of_sum({4}).program.dump();
  const std::vector<std::byte> data(128);
  const auto refuse = [&](const json& tensors, const char* expected) {
    json header = tensors;
    header["__metadata__"] = {{"hipdnn_program", text}};
    check::contains(program_error_of([&] { parse_bytes(make_container(header.dump(), data)); }), expected);
  };
  const auto tensor = [](json shape, json offsets, const char* dtype = "F32") {
    return json{{"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", std::move(offsets)}};
  };
  refuse({{"a", tensor({16}, {0, 64})}}, "the header describes 64 bytes, the file has 128");
  refuse({{"a", tensor({16}, {0, 64})}, {"b", tensor({16}, {32, 96})}}, "tensors.b.data_offsets: overlaps the tensor before it");
  refuse({{"a", tensor({16}, {0, 64})}, {"b", tensor({8}, {96, 128})}}, "tensors.b.data_offsets: leaves a gap");
  refuse({{"a", tensor({16}, {0, 64})}, {"b", tensor({16}, {0, 64})}}, "overlaps");
  refuse({{"a", tensor({32}, {0, 132})}}, "ends at byte 132 of 128");
  refuse({{"a", tensor({33}, {0, 128})}}, "128 bytes, but dtype and shape need 132");
  refuse({{"a", tensor({32}, {128, 0})}}, "expected [begin, end]");
  refuse({{"a", tensor({32}, {0})}}, "expected [begin, end]");
  refuse({{"a", tensor({32}, {-128, 0})}}, "tensors.a.data_offsets[0]");
  refuse({{"a", tensor({1LL << 62, 8}, {0, 128})}}, "tensors.a.shape: expected a shape whose size fits 64 bits");
  refuse({{"a", tensor({-32}, {0, 128})}}, "tensors.a.shape[0]");
  refuse({{"a", tensor({32}, {0, 128}, "F3")}}, "tensors.a.dtype");
  refuse({{"a", 5}}, "tensors.a: expected an object");
  refuse({{"line\nbreak", 5}}, "tensors.line break: expected an object");
}

void test_refused_when_it_is_no_program() {
  const auto refuse = [](const std::string& header, const char* expected) {
    check::contains(program_error_of([&] { parse_bytes(make_container(header, {})); }), expected);
  };
  refuse("{}", "__metadata__.hipdnn_program: missing");
  refuse("[]", "header: expected an object");
  refuse("{", "header: not valid JSON");
  refuse("{\"__metadata__\": {\"hipdnn_program\": 5}}", "__metadata__.hipdnn_program: expected a string");
  refuse("{\"__metadata__\": {\"hipdnn_program\": \"{\"}}", "program: not valid JSON");
  refuse("{\"__metadata__\": {\"hipdnn_program\": \"\xff\"}}", "header: not valid JSON");
  refuse("{\"__metadata__\": {\"hipdnn_program\": \"[]\"}}", "program: expected an object");
  refuse(std::string(100'000, '['), "header: JSON nested deeper than");
  refuse("{\"__metadata__\": {\"hipdnn_program\": \"" + std::string(100'000, '[') + "\"}}", "program: JSON nested deeper than");
  std::vector<std::byte> wild(16, std::byte{0xff});
  check::contains(program_error_of([&] { parse_bytes(wild); }), "header length");
}

/// The definition, word by word.
std::uint64_t checksum_by_definition(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += (static_cast<std::uint64_t>(bytes[i]) << (8 * (i % 8))) * (2 * (i / 8) + 1);
  }
  return sum;
}

void test_checksum_follows_its_definition_when_sizes_vary() {
  // The last sizes are summed on several threads.
  for (const std::size_t size : {0UL, 1UL, 7UL, 8UL, 9UL, 1000UL, (16UL << 20) + 5, (40UL << 20) + 3}) {
    std::vector<std::byte> bytes(size);
    std::uint64_t state = size + 1;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 56);
    check::equal(hipdnn_rt::checksum(bytes), checksum_by_definition(bytes), "checksum of " + std::to_string(size) + " bytes");
  }
}

void test_refused_when_the_checksum_differs() {
  const std::string text = relu_of_sum({4}).program.dump();
  const std::vector<std::byte> data(64, std::byte{1});
  const auto load = [&](const std::string& sums, const std::vector<std::byte>& stored) {
    const json header = {{"__metadata__", {{"hipdnn_program", text}, {"hipdnn_checksum", sums}}},
                         {"w", {{"dtype", "U8"}, {"shape", {64}}, {"data_offsets", {0, 64}}}}};
    parse_bytes(make_container(header.dump(), stored));
  };
  std::array<char, 33> sums{};
  std::snprintf(sums.data(), sums.size(), "%016llx%016llx",
                static_cast<unsigned long long>(checksum_by_definition(std::as_bytes(std::span(text)))),
                static_cast<unsigned long long>(checksum_by_definition(data)));
  load(sums.data(), data);
  std::vector<std::byte> altered = data;
  altered[63] ^= std::byte{0x80};
  check::contains(program_error_of([&] { load(sums.data(), altered); }), "hipdnn_checksum: does not match the tensor data");
  check::contains(program_error_of([&] { load("", data); }), "hipdnn_checksum: does not match the program text");
}

void test_file_named_when_it_cannot_be_read() {
  const auto folder = std::filesystem::temp_directory_path() / ("hipdnn_rt_loader_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  check::contains(program_error_of([&] { DynamicProgram::load((folder / "none.hipdnn").string()); }), "none.hipdnn: cannot open: No such file");
  check::contains(program_error_of([&] { DynamicProgram::load(folder.string()); }), "not a regular file");
  std::ofstream(folder / "empty.hipdnn").close();
  check::contains(program_error_of([&] { DynamicProgram::load((folder / "empty.hipdnn").string()); }), "empty.hipdnn: the file is empty");
  std::ofstream(folder / "onnx.hipdnn") << "\x08\x07 not this format, but long enough to have a header length";
  check::contains(program_error_of([&] { DynamicProgram::load((folder / "onnx.hipdnn").string()); }), "not a .hipdnn file");
  const auto bytes = relu_of_sum({4}).container();
  std::ofstream(folder / "good.hipdnn").write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  check::equal(DynamicProgram::load((folder / "good.hipdnn").string())->inputs().size(), std::size_t{2});
  std::filesystem::remove_all(folder);
}

}  // namespace

void add_loader_cases(check::Suite& suite) {
  suite.add("loader: accepted when well formed", test_accepted_when_well_formed);
  suite.add("loader: refused when truncated", test_refused_when_truncated);
  suite.add("loader: refused when longer than described", test_refused_when_longer_than_described);
  suite.add("loader: refused when a field is wrong", test_refused_when_a_field_is_wrong);
  suite.add("loader: refused when a member is missing", test_refused_when_a_member_is_missing);
  suite.add("loader: refused when an offset is not aligned", test_refused_when_offset_is_not_aligned);
  suite.add("loader: refused when a tensor has too many elements", test_refused_when_a_tensor_has_too_many_elements);
  suite.add("loader: refused when a copy overlaps", test_refused_when_a_copy_overlaps);
  suite.add("loader: refused when the container is wrong", test_refused_when_the_container_is_wrong);
  suite.add("loader: refused when it is no program", test_refused_when_it_is_no_program);
  suite.add("loader: checksum follows its definition when sizes vary", test_checksum_follows_its_definition_when_sizes_vary);
  suite.add("loader: refused when the checksum differs", test_refused_when_the_checksum_differs);
  suite.add("loader: file named when it cannot be read", test_file_named_when_it_cannot_be_read);
}

}  // namespace runtime_tests
