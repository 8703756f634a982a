// Plans are used only after they have answered as the host library does.
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "../temporary_folder.h"
#include "cases.h"
#include "choosing_port.h"
#include "device/error.h"
#include "execute/loaded_program.h"
#include "plan/excerpt.h"
#include "plan/plan_answers.h"
#include "plan/plan_judge.h"
#include "plan/reference.h"
#include "program/json_field.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Answer;
using hipdnn_rt::Device;
using hipdnn_rt::DeviceEnvironment;
using hipdnn_rt::DeviceOptions;
using hipdnn_rt::LoadedProgram;

constexpr int all_engines = 100;

/// Engines of choosing_port.h that answer wrongly, all alike.
class Wrong {
 public:
  Wrong(const Libraries& libraries, int engines) {
    void* library = dlopen((libraries.choosing + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    set_ = reinterpret_cast<decltype(&choosing_be_wrong)>(dlsym(library, "choosing_be_wrong"));
    take_ = reinterpret_cast<decltype(&choosing_take_counts)>(dlsym(library, "choosing_take_counts"));
    set_(engines);
    executed();
  }
  ~Wrong() { set_(0); }
  Wrong(const Wrong&) = delete;
  Wrong& operator=(const Wrong&) = delete;
  int executed() const {
    ChoosingCounts counts{};
    take_(&counts);
    return counts.executed;
  }

 private:
  decltype(&choosing_be_wrong) set_;
  decltype(&choosing_take_counts) take_;
};

std::string engine_of(const Libraries& libraries, DeviceOptions options, std::string reference_directory = {}, hipdnn_rt::Log log = {}) {
  Sample sample = relu({2, 8});
  sample.program["target"] = "hip";
  if (reference_directory.empty()) reference_directory = libraries.host;
  const auto device = std::make_shared<const Device>(hipdnn_rt::Library::open("hip", libraries.choosing), std::move(options),
                                                     DeviceEnvironment{.reference_directory = std::move(reference_directory), .log = std::move(log)});
  return LoadedProgram::load(device, sample.parse())->plan(0)->engine_name();
}

void test_right_plan_is_found_when_most_are_wrong(const Libraries& libraries) {
  const Wrong wrong(libraries, 4);  // TEST_NOTHING, TEST_SLOW, TEST_TILED, TEST_BROKEN; so TEST_LAST alone is right
  for (const int timed_plans : {0, 10}) {
    check::equal(engine_of(libraries, {.autotune = timed_plans}), "TEST_LAST", std::to_string(timed_plans) + " plans timed");
  }
  check::equal(engine_of(libraries, {.engine = "TEST_SLOW"}), "TEST_LAST", "a preferred engine, too");
}

void test_graph_is_refused_when_no_plan_is_right(const Libraries& libraries) {
  const Wrong wrong(libraries, all_engines);
  for (const int timed_plans : {0, 10}) {
    const std::string message = error_of<hipdnn_rt::PlanRefusedError>([&] { engine_of(libraries, {.autotune = timed_plans}); });
    check::contains(message, "TEST_SLOW answers wrongly: up to ");
  }
}

void test_compared_once_when_plans_are_kept(const Libraries& libraries) {
  const Wrong wrong(libraries, 2);
  const TemporaryFolder folder;
  check::equal(engine_of(libraries, {.plan_cache = folder.path()}), "TEST_TILED");
  check::that(wrong.executed() > 0, "compared");
  check::equal(engine_of(libraries, {.plan_cache = folder.path()}), "TEST_TILED");
  check::equal(wrong.executed(), 0, "what is kept has been compared");
}

void test_plans_kept_apart_when_they_were_not_compared(const Libraries& libraries) {
  const Wrong wrong(libraries, 2);
  const TemporaryFolder folder;
  check::equal(engine_of(libraries, {.plan_cache = folder.path()}, "/nowhere"), "TEST_SLOW", "the library is believed");
  check::equal(engine_of(libraries, {.plan_cache = folder.path()}), "TEST_TILED", "but not its kept plan");
}

void test_warning_when_there_is_no_host_library(const Libraries& libraries) {
  std::string logged;
  const auto log = [&](hipdnnSeverity_t severity, const std::string& line) {
    if (severity >= HIPDNN_SEV_WARN) logged += line + "\n";
  };
  check::equal(engine_of(libraries, {}, "/nowhere", log), "TEST_SLOW");
  check::contains(logged, "plans are used without having been compared: port 'host': cannot open libhipdnn_host.so");
}

Answer of(hipdnnDataType_t dtype, std::initializer_list<float> values) {
  Answer answer{dtype, std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(answer.bytes.data(), values.begin(), answer.bytes.size());
  return answer;
}

Answer halves(std::initializer_list<std::uint16_t> words) {
  Answer answer{HIPDNN_DATA_HALF, std::vector<std::byte>(words.size() * sizeof(std::uint16_t))};
  std::memcpy(answer.bytes.data(), words.begin(), answer.bytes.size());
  return answer;
}

void test_answers_are_right_but_for_rounding(const Libraries&) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto is_right = [&](std::initializer_list<float> answer, std::initializer_list<float> reference) {
    return hipdnn_rt::compare(of(HIPDNN_DATA_FLOAT, answer), of(HIPDNN_DATA_FLOAT, reference), 1e-3).is_right;
  };
  check::that(is_right({1.001F, 2, 3}, {1, 2, 3}), "rounding");
  check::that(!is_right({1, 2, 0}, {1, 2, 3}), "an element that was not written");
  check::that(!is_right({1.02F, 1, 1}, {1, 1, 1}), "one of many");
  check::that(is_right({1e-4F, 1}, {0, 1}), "what is small beside the others");
  check::that(!is_right({1e-3F, 0}, {0, 0}), "nothing but zeros");
  check::that(is_right({nan, infinity, 1}, {nan, infinity, 1.0001F}), "the same specials");
  check::that(!is_right({nan, 1}, {1, 1}) && !is_right({1, 1}, {nan, 1}), "a NaN");
  check::that(!is_right({infinity, 1}, {-infinity, 1}), "another infinity");
  check::that(!is_right({infinity, 1}, {100, 1}), "an infinity");
  check::that(!is_right({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1e9F}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1e9F}),
              "zeros beside a huge element");
  const Answer overflown = halves({0x7c00, 0x3c00});
  check::that(hipdnn_rt::compare(overflown, of(HIPDNN_DATA_FLOAT, {7e4F, 1}), 1e-3).is_right, "an overflow of f16");
  check::that(!hipdnn_rt::compare(overflown, of(HIPDNN_DATA_FLOAT, {-7e4F, 1}), 1e-3).is_right, "an overflow to the other side");
  check::that(!hipdnn_rt::compare(of(HIPDNN_DATA_INT32, {1}), of(HIPDNN_DATA_INT32, {2}), 1).is_right, "integers are equal or wrong");
  check::near(hipdnn_rt::compare(of(HIPDNN_DATA_FLOAT, {3}), of(HIPDNN_DATA_FLOAT, {2}), 1).worst, 0.25, 1e-9);
}

void test_a_step_may_be_missed_in_one_element_of_ten_thousand(const Libraries&) {
  const auto missed = [](std::size_t count) {
    Answer answer{HIPDNN_DATA_FLOAT, {}}, reference{HIPDNN_DATA_FLOAT, {}};
    std::vector<float> ones(20'000, 1.0F);
    reference.bytes.resize(ones.size() * sizeof(float));
    std::memcpy(reference.bytes.data(), ones.data(), reference.bytes.size());
    std::fill_n(ones.begin(), count, 0.0F);
    answer.bytes.resize(reference.bytes.size());
    std::memcpy(answer.bytes.data(), ones.data(), answer.bytes.size());
    return hipdnn_rt::compare(answer, reference, 1e-3).is_right;
  };
  check::that(missed(2) && !missed(3), "two of twenty thousand");
}

void test_an_element_that_is_not_written_is_wrong_among_any_number(const Libraries&) {
  constexpr std::size_t count = 50'000;
  for (const hipdnnDataType_t dtype : {HIPDNN_DATA_HALF, HIPDNN_DATA_BFLOAT16}) {
    Answer answer{dtype, std::vector<std::byte>(2 * count)};
    const Answer reference = hipdnn_rt::widened(answer);
    check::that(hipdnn_rt::compare(answer, reference, 1e-3).is_right, "zeros");
    answer.bytes[2 * count - 2] = answer.bytes[2 * count - 1] = std::byte{0xff};
    check::that(!hipdnn_rt::compare(answer, reference, 1e-3).is_right, "the last element is not written");
  }
}

void test_wide_values_are_those_of_16_bits(const Libraries&) {
  const Answer wide = hipdnn_rt::widened(halves({0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000, 0x7c00, 0xfe00, 0x3555}));
  check::equal(static_cast<int>(wide.dtype), static_cast<int>(HIPDNN_DATA_FLOAT));
  std::array<float, 8> values{};
  std::memcpy(values.data(), wide.bytes.data(), wide.bytes.size());
  const std::array<float, 5> wanted{1.0F, -2.0F, 65504.0F, 0x1p-24F, -0.0F};
  for (std::size_t i = 0; i < wanted.size(); ++i) check::near(static_cast<double>(values[i]), static_cast<double>(wanted[i]), 0);
  check::that(std::isinf(values[5]) && std::isnan(values[6]) && std::signbit(values[4]), "infinity, a NaN, and zero's sign");
  check::near(static_cast<double>(values[7]), 0.333251953125, 0);
}

/// two_convolutions' first executable with f16 tensors, its result through a ReLU into rows that are `gap` elements apart.
hipdnn_rt::Executable half_convolution_with_relu(std::int64_t channels, std::int64_t size, std::int64_t gap,
                                                 hipdnnDataType_t stored = HIPDNN_DATA_HALF) {
  using nlohmann::json;
  json executable = one_convolution(channels, size).program["executables"][0];
  json relu_executable = relu({1, channels, size, size}).program["executables"][0];
  json& descriptors = executable["descriptors"];
  json graph = descriptors.back();
  json operation = relu_executable["descriptors"][2], result = descriptors[2];
  descriptors.erase(descriptors.size() - 1);
  json convolution = descriptors.back();
  descriptors.erase(descriptors.size() - 1);
  const auto set = [](json& descriptor, int name, json value) {
    for (json& attribute : descriptor[1]) {
      if (attribute[0] == name) attribute[2] = value;
    }
  };
  set(descriptors[2], HIPDNN_ATTR_TENSOR_IS_VIRTUAL, {true});
  set(result, HIPDNN_ATTR_TENSOR_UNIQUE_ID, {4});
  const std::int64_t row = size + gap;
  set(result, HIPDNN_ATTR_TENSOR_STRIDES, {channels * size * row, size * row, row, 1});
  descriptors.push_back(result);
  for (json& tensor : descriptors) set(tensor, HIPDNN_ATTR_TENSOR_DATA_TYPE, {HIPDNN_DATA_HALF});
  set(descriptors.back(), HIPDNN_ATTR_TENSOR_DATA_TYPE, {stored});
  set(operation, HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {2});
  set(operation, HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {3});
  descriptors.push_back(convolution);
  descriptors.push_back(operation);
  set(graph, HIPDNN_ATTR_OPERATIONGRAPH_OPS, {4, 5});
  descriptors.push_back(graph);
  executable["operands"] = {{{"uid", 1}, {"role", "in"}}, {{"uid", 2}, {"role", "in"}}, {{"uid", 4}, {"role", "out"}}};
  return hipdnn_rt::parse_executable(executable.dump());
}

void test_there_is_no_reference_when_a_result_is_rounded_to_bytes(const Libraries& libraries) {
  const hipdnn_rt::Executable executable = half_convolution_with_relu(3, 5, 0, HIPDNN_DATA_INT8);
  const std::vector<std::byte> x(3 * 5 * 5 * 2), w(3 * 3 * 9 * 2);
  const hipdnn_rt::Reference reference(open_host(libraries));
  const std::string message = error_of<hipdnn_rt::NoPlanError>([&] { reference.compute(executable, {{1, x}, {2, w}}); });
  check::contains(message, "rounded to bytes");
}

void test_reference_is_exact_when_the_graph_is_of_f16(const Libraries& libraries) {
  constexpr std::int64_t channels = 3, size = 5, gap = 2;
  const hipdnn_rt::Executable executable = half_convolution_with_relu(channels, size, gap);
  std::vector<std::byte> x(channels * size * size * 2), w(channels * channels * 9 * 2);
  hipdnn_rt::fill_operand(x, HIPDNN_DATA_HALF, 1);
  hipdnn_rt::fill_operand(w, HIPDNN_DATA_HALF, 2);
  const hipdnn_rt::Reference reference(open_host(libraries));
  const std::vector<Answer> answers = reference.compute(executable, {{1, x}, {2, w}});
  check::equal(answers.size(), 1U);
  const auto floats = [](const std::vector<std::byte>& bytes) {
    const Answer wide = hipdnn_rt::widened(Answer{HIPDNN_DATA_HALF, bytes});
    std::vector<float> values(wide.bytes.size() / sizeof(float));
    std::memcpy(values.data(), wide.bytes.data(), wide.bytes.size());
    return values;
  };
  const std::vector<float> image = floats(x), filters = floats(w);
  std::vector<float> got(answers[0].bytes.size() / sizeof(float));
  std::memcpy(got.data(), answers[0].bytes.data(), answers[0].bytes.size());
  check::equal(got.size(), static_cast<std::size_t>(channels * size * (size + gap) - gap));
  const auto at = [&](std::int64_t c, std::int64_t h, std::int64_t column) {
    const bool is_inside = h >= 0 && h < size && column >= 0 && column < size;
    return is_inside ? static_cast<double>(image[static_cast<std::size_t>((c * size + h) * size + column)]) : 0.0;
  };
  for (std::int64_t k = 0; k < channels; ++k) {
    for (std::int64_t h = 0; h < size; ++h) {
      for (std::int64_t column = 0; column < size; ++column) {
        double sum = 0;
        for (std::int64_t tap = 0; tap < channels * 9; ++tap) {
          sum += at(tap / 9, h + tap % 9 / 3 - 1, column + tap % 3 - 1) * static_cast<double>(filters[static_cast<std::size_t>(k * channels * 9 + tap)]);
        }
        check::near(static_cast<double>(got[static_cast<std::size_t>((k * size + h) * (size + gap) + column)]), std::max(sum, 0.0), 1e-5);
      }
    }
  }
  check::that(std::isnan(got[size]), "between rows nothing is written");
}

/// one_convolution of f32 with several images; attributes of its result may be others.
nlohmann::json convolution_of(std::int64_t batch, std::int64_t channels, std::int64_t size) {
  nlohmann::json executable = one_convolution(channels, size).program["executables"][0];
  for (const int tensor : {0, 2}) {
    for (nlohmann::json& attribute : executable["descriptors"][tensor][1]) {
      if (attribute[0] == HIPDNN_ATTR_TENSOR_DIMENSIONS) attribute[2][0] = batch;
    }
  }
  return executable;
}

hipdnn_rt::Executable parsed(const nlohmann::json& executable) { return hipdnn_rt::parse_executable(executable.dump()); }

std::vector<std::byte> taken(const std::vector<std::byte>& whole, const std::vector<hipdnn_rt::Piece>& pieces) {
  std::vector<std::byte> bytes;
  for (const auto& [offset, count] : pieces) {
    bytes.insert(bytes.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset), whole.begin() + static_cast<std::ptrdiff_t>(offset + count));
  }
  return bytes;
}

void test_excerpt_is_the_whole_at_its_entries(const Libraries& libraries) {
  constexpr std::int64_t batch = 5, channels = 5, size = 6;  // as many filters as images, which are none
  const hipdnn_rt::Executable whole = parsed(convolution_of(batch, channels, size));
  const hipdnn_rt::Reference reference(open_host(libraries));
  hipdnn_rt::OperandContents contents;
  for (const hipdnn_rt::Operand& operand : whole.operands) {
    if (operand.is_output) continue;
    contents[operand.uid].resize(operand.extent_bytes);
    hipdnn_rt::fill_operand(contents[operand.uid], HIPDNN_DATA_FLOAT, static_cast<std::uint64_t>(operand.uid));
  }
  const std::vector<std::byte> all = reference.compute(whole, contents).at(0).bytes;
  for (const double most_work : {1.0, 3e4}) {
    const hipdnn_rt::Excerpt excerpt = hipdnn_rt::excerpt_of(whole, most_work);
    const std::size_t entries = excerpt.pieces.at(1).size();
    check::that(most_work == 1 ? entries == 2 : entries > 2 && entries < batch, std::to_string(entries) + " entries");
    check::equal(excerpt.pieces.contains(2), false, "filters are read whole");
    const std::size_t image = all.size() / batch;
    check::equal(excerpt.pieces.at(3).front().offset, std::size_t{0});
    check::equal(excerpt.pieces.at(3).back().offset, (batch - 1) * image, "the last image");
    hipdnn_rt::OperandContents some = contents;
    some[1] = taken(contents[1], excerpt.pieces.at(1));
    check::that(reference.compute(excerpt.executable, some).at(0).bytes == taken(all, excerpt.pieces.at(3)), "the same values");
  }
  check::that(hipdnn_rt::excerpt_of(whole, 1e9).pieces.empty(), "a small graph is compared whole");
}

/// c = a b: one matrix each, in f32.
nlohmann::json matmul_of(std::int64_t m, std::int64_t k, std::int64_t n) {
  nlohmann::json executable = convolution_of(1, 1, 4);
  nlohmann::json& descriptors = executable["descriptors"];
  const auto set = [](nlohmann::json& tensor, const Dims& dims) {
    for (nlohmann::json& attribute : tensor[1]) {
      if (attribute[0] == HIPDNN_ATTR_TENSOR_DIMENSIONS) attribute[2] = dims;
      if (attribute[0] == HIPDNN_ATTR_TENSOR_STRIDES) attribute[2] = Dims{dims[1] * dims[2], dims[2], 1};
    }
  };
  set(descriptors[0], {1, m, k});
  set(descriptors[1], {1, k, n});
  set(descriptors[2], {1, m, n});
  const auto reference_to = [](int name, int index) {
    return nlohmann::json::array({name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, nlohmann::json::array({index})});
  };
  descriptors[3] = nlohmann::json::array(
      {HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       nlohmann::json::array({reference_to(HIPDNN_ATTR_OPERATION_MATMUL_ADESC, 0), reference_to(HIPDNN_ATTR_OPERATION_MATMUL_BDESC, 1),
                              reference_to(HIPDNN_ATTR_OPERATION_MATMUL_CDESC, 2),
                              nlohmann::json::array({HIPDNN_ATTR_MATMUL_COMP_TYPE, HIPDNN_TYPE_DATA_TYPE, {HIPDNN_DATA_FLOAT}})})});
  return executable;
}

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void test_rows_are_entries_when_a_matmul_has_one_matrix(const Libraries& libraries) {
  constexpr std::int64_t m = 6, k = 6, n = 4;  // as many rows on the right, which are none
  const hipdnn_rt::Executable whole = parsed(matmul_of(m, k, n));
  const hipdnn_rt::Reference reference(open_host(libraries));
  hipdnn_rt::OperandContents contents{{1, std::vector<std::byte>(m * k * 4)}, {2, std::vector<std::byte>(k * n * 4)}};
  for (auto& [uid, bytes] : contents) hipdnn_rt::fill_operand(bytes, HIPDNN_DATA_FLOAT, static_cast<std::uint64_t>(uid));
  const hipdnn_rt::Excerpt excerpt = hipdnn_rt::excerpt_of(whole, 1);
  check::equal(excerpt.pieces.at(1).size(), 2U);
  check::equal(excerpt.pieces.contains(2), false, "the matrix on the right is read whole");
  check::equal(excerpt.pieces.at(3).back().offset, std::size_t{(m - 1) * n * 4}, "the last row");
  hipdnn_rt::OperandContents some = contents;
  some[1] = taken(contents[1], excerpt.pieces.at(1));
  const std::vector<std::byte> all = reference.compute(whole, contents).at(0).bytes;
  const std::vector<float> got = floats(reference.compute(excerpt.executable, some).at(0).bytes), want = floats(taken(all, excerpt.pieces.at(3)));
  check::equal(got.size(), want.size());
  // With fewer rows the library may sum in another order.
  for (std::size_t i = 0; i < want.size(); ++i) check::near(got[i], want[i], 1e-5, "the same values");
}

void test_matmul_of_a_matrix_with_itself_is_compared_whole(const Libraries&) {
  nlohmann::json executable = matmul_of(64, 64, 64);
  executable["descriptors"][3][1][1][2] = {0};
  executable["descriptors"].erase(1);
  executable["descriptors"][2][1][2][2] = {1};
  executable["descriptors"][3][1][0][2] = {2};
  executable["descriptors"][1][1][0][2] = {2};  // uids are counted
  executable["operands"].erase(1);
  executable["operands"][1]["uid"] = 2;
  check::that(hipdnn_rt::excerpt_of(parsed(executable), 1).pieces.empty(), "its rows are read whole, too");
  check::near(hipdnn_rt::extent_of(parsed(executable)).longest_sum, 64, 1e-9, "it is read twice");
}

void test_graph_is_compared_whole_when_entries_are_not_apart(const Libraries&) {
  check::that(hipdnn_rt::excerpt_of(parsed(convolution_of(1, 5, 6)), 1).pieces.empty(), "one image");
  nlohmann::json executable = convolution_of(5, 5, 6);
  for (nlohmann::json& attribute : executable["descriptors"][2][1]) {
    if (attribute[0] == HIPDNN_ATTR_TENSOR_STRIDES) attribute[2] = {1, 5, 25 * 6, 25};
  }
  check::that(hipdnn_rt::excerpt_of(parsed(executable), 1).pieces.empty(), "images lie across each other");
}

void test_last_image_is_compared_when_the_batch_is_large(const Libraries& libraries) {
  // The host library under AMD's names, whose answers are right, and in the last row of the last image are not.
  Sample sample = one_convolution(8, 6);
  sample.program["executables"][0] = convolution_of(64, 8, 6);
  const hipdnn_rt::Executable executable = parsed(sample.program["executables"][0]);
  const Device device(hipdnn_rt::Library::open("hip", libraries.disguised), {.threads = 1}, {.reference_directory = libraries.host});
  const auto handle = std::make_shared<const hipdnn_rt::Handle>(device.create_handle(nullptr));
  const auto plan = hipdnn_rt::Plan::build(device, handle, executable, {});
  hipdnn_rt::PlanTimer timer(device, handle, executable, {});
  hipdnn_rt::PlanJudge judge(device, executable, timer, "convolution");
  std::vector<Answer> whole = timer.answer(*plan, {std::byte{0xff}, false});
  check::that(!judge.why_wrong(timer.excerpt(whole, judge.pieces())), "right");
  const std::array<float, 6> wrong{100, 100, 100, 100, 100, 100};
  std::memcpy(&whole[0].bytes[whole[0].bytes.size() - sizeof wrong], wrong.data(), sizeof wrong);
  check::contains(judge.why_wrong(timer.excerpt(whole, judge.pieces())).value_or("right"), "answers wrongly: up to ");
}

void test_tolerance_follows_type_and_sums(const Libraries&) {
  const auto executable = [](std::int64_t channels, std::int64_t size) {
    return parsed(one_convolution(channels, size).program["executables"][0]);
  };
  const double f32 = hipdnn_rt::tolerance_of(executable(64, 16), false), tf32 = hipdnn_rt::tolerance_of(executable(64, 16), true);
  const double f16 = hipdnn_rt::tolerance_of(half_convolution_with_relu(64, 16, 0), false);
  check::that(f32 > 1e-6 && f32 < 1e-4, "f32 " + std::to_string(f32));
  check::that(tf32 > 2e-3 && tf32 < 1e-2, "TF32 " + std::to_string(tf32));
  check::that(f16 > tf32 && f16 < 1e-2, "f16, of two operations, " + std::to_string(f16));
  check::that(hipdnn_rt::tolerance_of(executable(1024, 16), false) > 2 * f32, "longer sums");
}

}  // namespace

void add_judge_cases(check::Suite& suite, const Libraries& libraries) {
  const auto add = [&](const char* name, void (*body)(const Libraries&)) { suite.add(std::string("judge: ") + name, [=] { body(libraries); }); };
  add("right plan is found when most are wrong", test_right_plan_is_found_when_most_are_wrong);
  add("graph is refused when no plan is right", test_graph_is_refused_when_no_plan_is_right);
  add("compared once when plans are kept", test_compared_once_when_plans_are_kept);
  add("plans kept apart when they were not compared", test_plans_kept_apart_when_they_were_not_compared);
  add("warning when there is no host library", test_warning_when_there_is_no_host_library);
  add("answers are right but for rounding", test_answers_are_right_but_for_rounding);
  add("a step may be missed in one element of ten thousand", test_a_step_may_be_missed_in_one_element_of_ten_thousand);
  add("an element that is not written is wrong among any number", test_an_element_that_is_not_written_is_wrong_among_any_number);
  add("matmul of a matrix with itself is compared whole", test_matmul_of_a_matrix_with_itself_is_compared_whole);
  add("wide values are those of 16 bits", test_wide_values_are_those_of_16_bits);
  add("there is no reference when a result is rounded to bytes", test_there_is_no_reference_when_a_result_is_rounded_to_bytes);
  add("reference is exact when the graph is of f16", test_reference_is_exact_when_the_graph_is_of_f16);
  add("excerpt is the whole at its entries", test_excerpt_is_the_whole_at_its_entries);
  add("rows are entries when a matmul has one matrix", test_rows_are_entries_when_a_matmul_has_one_matrix);
  add("graph is compared whole when entries are not apart", test_graph_is_compared_whole_when_entries_are_not_apart);
  add("last image is compared when the batch is large", test_last_image_is_compared_when_the_batch_is_large);
  add("tolerance follows type and sums", test_tolerance_follows_type_and_sums);
}

}  // namespace runtime_tests
