// The loader against reproducible damage. What it still accepts must also load and run without touching memory that is not its own:
// this is what the sanitizer builds watch. Few of each kind: fuzz/program.cc has as many as there is time for.
#include <array>
#include <cstdio>
#include <random>

#include "cases.h"
#include "device/error.h"
#include "program/dynamic_program.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Program;
using nlohmann::json;

constexpr std::uint64_t kRunLimitBytes = 1 << 20;

struct Tally {
  int accepted = 0;
  int refused = 0;
  int ran = 0;
};

void run_accepted(const std::shared_ptr<const hipdnn_rt::Device>& device, const std::shared_ptr<const Program>& program, Tally& tally) {
  const auto loaded = hipdnn_rt::LoadedProgram::load(device, program);
  std::uint64_t total = loaded->arena_bytes();
  for (const auto& buffer : program->buffers()) total = buffer.bytes > kRunLimitBytes ? kRunLimitBytes + 1 : total + buffer.bytes;
  if (total > kRunLimitBytes) return;
  std::vector<Array> arrays;
  std::vector<hipdnn_rt::InputArray> inputs;
  std::vector<hipdnn_rt::OutputArray> outputs;
  for (const auto& input : program->inputs()) {
    inputs.push_back({arrays.emplace_back(std::vector<float>((input.bytes + 3) / 4, 0.5F)).data()});
  }
  for (const auto& output : program->outputs()) outputs.push_back({arrays.emplace_back(output.bytes).data()});
  hipdnn_rt::Context(loaded).run(inputs, outputs);
  ++tally.ran;
}

/// Parse damaged bytes; any exception but the runtime's own ends the test.
void try_bytes(const std::shared_ptr<const hipdnn_rt::Device>& device, const std::vector<std::byte>& bytes, Tally& tally) {
  std::shared_ptr<const Program> program;
  try {
    const auto open = hipdnn_rt::DynamicProgram::parse_container(bytes, nullptr);
    program = open->at(hipdnn_rt::Sizes(open->symbols().size(), 3));
  } catch (const hipdnn_rt::ProgramError&) {
    ++tally.refused;
    return;
  } catch (const hipdnn_rt::InputError&) {
    ++tally.refused;
    return;
  }
  ++tally.accepted;
  try {
    run_accepted(device, program, tally);
  } catch (const hipdnn_rt::Error&) {
    // Refused later: another target, or a graph that no engine takes.
  }
}

void test_no_crash_when_bits_flip(const Libraries& libraries) {
  const auto device = open_host(libraries);
  Tally tally;
  for (const Sample& sample : {relu_of_sum({3, 5}), two_convolutions(2, 4, true), doubled_rows(3, 5, {2, 0}),
                               sum_with_computed({reference(0)}), specialized_relu()}) {
    const std::vector<std::byte> good = sample.container();
    for (std::size_t i = 0; i < good.size(); i += 17) {  // each bit of a byte by turns
      std::vector<std::byte> bytes = good;
      bytes[i] ^= std::byte{1} << (i % 8);
      try_bytes(device, bytes, tally);
    }
  }
  std::printf("bit flips: %d refused, %d accepted, %d ran\n", tally.refused, tally.accepted, tally.ran);
  check::that(tally.refused > tally.accepted, "most single-bit damage of the header must be noticed");
}

json hostile_value(std::mt19937& generator) {
  const std::vector<json> values{-1,   0,    1,    2,     3,    4,       7,          16,         18,        64,      1 << 20, 1LL << 31,
                                 1LL << 62, 9'223'372'036'854'775'807, 18'446'744'073'709'551'615U, 1e300, 0.5,  "",  "in", "out", "temp",
                                 "constant", nullptr, true, json::array(), json::object(), json::array({1, 1, 1, 1}), json::array({0}),
                                 reference(0), reference(1), reference(2)};
  return values[generator() % values.size()];
}

void test_no_crash_when_values_are_hostile(const Libraries& libraries) {
  const auto device = open_host(libraries);
  const std::array samples{relu_of_sum({3, 5}), two_convolutions(2, 4, false), two_convolutions(2, 4, true), doubled_rows(3, 5, {2, 0, -1}),
                           dynamic_convolution(), sum_with_computed({reference(0)}), specialized_relu()};
  std::vector<json> places;
  for (const Sample& sample : samples) places.push_back(sample.program.flatten());
  std::mt19937 generator(3);
  Tally tally;
  for (std::size_t trial = 0; trial < 500; ++trial) {
    Sample sample = samples[trial % samples.size()];
    const json& flat = places[trial % samples.size()];
    const int edits = static_cast<int>(generator() % 3) + 1;
    for (int edit = 0; edit < edits; ++edit) {
      auto entry = flat.begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(generator() % flat.size()));
      json::json_pointer path(entry.key());
      for (std::uint32_t up = generator() % 4; up >= 3 && !path.empty(); --up) path = path.parent_pointer();
      try {
        sample.program[path] = hostile_value(generator);
      } catch (const json::exception&) {
        // An earlier edit removed the place.
      }
    }
    try_bytes(device, sample.container(), tally);
  }
  std::printf("hostile values: %d refused, %d accepted, %d ran\n", tally.refused, tally.accepted, tally.ran);
  check::that(tally.refused > 0 && tally.accepted > 0, "both outcomes must occur");
}

}  // namespace

void add_fuzz_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("fuzz: no crash when bits flip", [=] { test_no_crash_when_bits_flip(libraries); });
  suite.add("fuzz: no crash when values are hostile", [=] { test_no_crash_when_values_are_hostile(libraries); });
}

}  // namespace runtime_tests
