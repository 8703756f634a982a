// Which plan a graph gets: the library's first, the fastest, the one of the preferred engine, the one an earlier process chose.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>

#include "../temporary_folder.h"
#include "cases.h"
#include "choosing_port.h"
#include "device/error.h"
#include "execute/loaded_program.h"
#include "plan/plan_answers.h"
#include "plan/plan_store.h"
#include "plan/plan_timer.h"
#include "plan/proposals.h"
#include "plan/variant_pack.h"
#include "sample_program.h"
#include "session.h"
#include "storage/sealed.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Device;
using hipdnn_rt::DeviceEnvironment;
using hipdnn_rt::DeviceOptions;
using hipdnn_rt::LoadedProgram;

/// A fresh process, as far as plans go: a device of its own, which has built nothing.
struct Loaded {
  std::shared_ptr<const LoadedProgram> program;
  const hipdnn_rt::Plan& plan() const { return *program->plan(0); }
  std::string engine() const { return plan().engine_name(); }
};

Loaded load(const Libraries& libraries, DeviceOptions options, hipdnn_rt::Log log = {}) {
  Sample sample = relu({2, 8});
  sample.program["target"] = "hip";
  options.threads = 1;
  const auto library = hipdnn_rt::Library::open("hip", libraries.choosing);
  DeviceEnvironment environment{.reference_directory = libraries.host, .log = std::move(log)};
  return {LoadedProgram::load(std::make_shared<const Device>(library, std::move(options), std::move(environment)), sample.parse())};
}

/// The functions of choosing_port.h.
struct Control {
  explicit Control(const Libraries& libraries) {
    void* library = dlopen((libraries.choosing + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    take = reinterpret_cast<decltype(&choosing_take_counts)>(dlsym(library, "choosing_take_counts"));
    let_restore = reinterpret_cast<decltype(&choosing_let_restore)>(dlsym(library, "choosing_let_restore"));
    fail_builds = reinterpret_cast<decltype(&choosing_fail_builds)>(dlsym(library, "choosing_fail_builds"));
    fail_builds(0, 0);
    counts();
    let_restore(true);
  }
  ChoosingCounts counts() const {
    ChoosingCounts counts{};
    take(&counts);
    return counts;
  }
  decltype(&choosing_take_counts) take;
  decltype(&choosing_let_restore) let_restore;
  decltype(&choosing_fail_builds) fail_builds;
};

/// What a device logs.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> lines;

  hipdnn_rt::Log log() {
    return [this](hipdnnSeverity_t severity, const std::string& line) {
      const std::lock_guard lock(mutex);
      if (severity >= HIPDNN_SEV_WARN) lines.push_back(line);
    };
  }
};

void test_first_that_builds_when_nothing_is_timed(const Libraries& libraries) {
  const Control control(libraries);
  check::equal(load(libraries, {}).engine(), "TEST_SLOW");
  const ChoosingCounts counts = control.counts();
  check::equal(counts.built, 1);
  check::equal(counts.executed, 1, "to be compared");
}

void test_fastest_when_plans_are_timed(const Libraries& libraries) {
  const Loaded all = load(libraries, {.autotune = 10});
  check::equal(all.engine(), "TEST_LAST");
  check::near(all.plan().timed_us(), 5, 1e-3);
  check::equal(load(libraries, {.engine = "TEST_NEVER"}).engine(), "TEST_NEVER", "faster, and behind three that are not");
  // Those that do not build or do not run are not counted.
  const Loaded three = load(libraries, {.autotune = 3});
  check::equal(three.engine(), "TEST_TILED");
  check::near(three.plan().timed_us(), 20, 1e-3);
}

void test_plans_are_left_out_when_they_answer_otherwise(const Libraries& libraries) {
  Lines logged;
  const Loaded loaded = load(libraries, {.autotune = 10}, logged.log());
  check::equal(loaded.engine(), "TEST_LAST", "TEST_WRONG and those that change are faster");
  const std::lock_guard lock(logged.mutex);
  check::equal(logged.lines.size(), 4U);
  check::contains(logged.lines.at(0), "TEST_WRONG answers wrongly: up to ");
  check::contains(logged.lines.at(1), "TEST_CHANGING answers otherwise each time; it is left out");
  check::contains(logged.lines.at(2), "TEST_STALE answers otherwise each time; it is left out");
  check::contains(logged.lines.at(3), "TEST_CLEAN answers otherwise each time; it is left out");
}

void test_operands_are_numbers_of_either_sign(const Libraries&) {
  std::array<float, 64> memory{};
  hipdnn_rt::fill_operand(std::as_writable_bytes(std::span(memory)), HIPDNN_DATA_FLOAT, 1);
  check::that(std::ranges::all_of(memory, [](float x) { return std::fabs(x) >= 0.5F && std::fabs(x) < 1; }), "sizes");
  check::that(std::ranges::any_of(memory, [](float x) { return x < 0; }) && std::ranges::any_of(memory, [](float x) { return x > 0; }), "signs");
  std::array<std::uint16_t, 64> narrow{};
  hipdnn_rt::fill_operand(std::as_writable_bytes(std::span(narrow)), HIPDNN_DATA_HALF, 2);
  check::that(std::ranges::all_of(narrow, [](std::uint16_t x) { return (x & 0x7c00U) == 0x3800U; }), "f16 from one half to one");
  hipdnn_rt::fill_operand(std::as_writable_bytes(std::span(narrow)), HIPDNN_DATA_BFLOAT16, 3);
  check::that(std::ranges::all_of(narrow, [](std::uint16_t x) { return (x & 0x7f80U) == 0x3f00U; }), "bf16 from one half to one");
  std::array<std::int64_t, 4> indices{};
  hipdnn_rt::fill_operand(std::as_writable_bytes(std::span(indices)), HIPDNN_DATA_INT64, 4);
  check::that(std::ranges::all_of(indices, [](std::int64_t x) { return x == 0; }), "indices");
}

void test_preferred_engine_when_it_builds(const Libraries& libraries) {
  check::equal(load(libraries, {.engine = "TEST_LAST"}).engine(), "TEST_LAST");
  check::equal(load(libraries, {.engine = "TEST_NOTHING"}).engine(), "TEST_SLOW", "an engine that builds nothing");
  const Loaded tiled = load(libraries, {.autotune = 10, .engine = "TEST_TILED"});
  check::equal(tiled.engine(), "TEST_TILED", "a faster one is not asked for");
  check::near(tiled.plan().timed_us(), 20, 1e-3, "but its own proposals are timed");
}

/// Enough for every proposal of the port.
constexpr int all_builds = 100;

void test_refusals_told_from_other_failures_by_the_status(const Libraries& libraries) {
  const Control control(libraries);
  for (const hipdnnStatus_t status : {HIPDNN_STATUS_NOT_SUPPORTED, HIPDNN_STATUS_BAD_PARAM, HIPDNN_STATUS_INTERNAL_ERROR,
                                      HIPDNN_STATUS_PLUGIN_ERROR}) {
    control.fail_builds(status, all_builds);
    check::contains(error_of<hipdnn_rt::PlanRefusedError>([&] { load(libraries, {}); }), "the library refuses 1 graph");
  }
  for (const hipdnnStatus_t status : {HIPDNN_STATUS_ALLOC_FAILED, HIPDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                                      HIPDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, HIPDNN_STATUS_EXECUTION_FAILED,
                                      HIPDNN_STATUS_VERSION_MISMATCH, HIPDNN_STATUS_NOT_INITIALIZED}) {
    for (const int timed_plans : {0, 10}) {
      control.fail_builds(status, all_builds);
      try {
        load(libraries, {.autotune = timed_plans});
        check::that(false, "no error");
      } catch (const hipdnn_rt::PlanRefusedError& error) {
        check::that(false, "taken for a refusal: " + std::string(error.what()));
      } catch (const hipdnn_rt::DeviceError& error) {
        check::contains(error.what(), "no plan could be built for executable");
        check::contains(error.what(), "(" + std::to_string(static_cast<int>(status)) + "): ");
      }
    }
  }
  control.fail_builds(0, 0);
  check::equal(load(libraries, {}).engine(), "TEST_SLOW", "the process goes on");
}

void test_choice_is_not_kept_when_memory_was_short(const Libraries& libraries) {
  const Control control(libraries);
  const TemporaryFolder folder;
  // TEST_NOTHING and TEST_SLOW.
  control.fail_builds(HIPDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 2);
  check::equal(load(libraries, {.plan_cache = folder.path()}).engine(), "TEST_TILED", "the next proposal is taken");
  check::that(std::filesystem::is_empty(folder.path()), "but not kept");
  control.fail_builds(HIPDNN_STATUS_NOT_SUPPORTED, 2);
  check::equal(load(libraries, {.plan_cache = folder.path()}).engine(), "TEST_TILED");
  check::that(!std::filesystem::is_empty(folder.path()), "a refusal is the same the next time");
}

void test_knobs_told_whatever_their_type(const Libraries& libraries) {
  const auto library = hipdnn_rt::Library::open("host", libraries.host);
  const auto described = [&](hipdnnBackendAttributeType_t type, std::int64_t count, const void* value) {
    hipdnn_rt::Descriptor choice(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, HIPDNN_TYPE_CHAR, 6, "solver", "knob");
    choice.set(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, type, count, value, "knob");
    choice.finalize("knob");
    return hipdnn_rt::describe_knob(choice);
  };
  const std::int64_t integer = -3;
  const double number = 0.1;
  check::equal(described(HIPDNN_TYPE_INT64, 1, &integer), "solver=-3");
  check::equal(described(HIPDNN_TYPE_DOUBLE, 1, &number), "solver=0.1");
  check::equal(described(HIPDNN_TYPE_CHAR, 12, "ConvDirect1x"), "solver=ConvDirect1x");
  check::equal(hipdnn_rt::take_last_error(library->hipdnn()), "", "nothing is left to appear in a later message");
}

void test_engines_named_when_the_preferred_one_is_unknown(const Libraries& libraries) {
  const std::string message = error_of<hipdnn_rt::InputError>([&] { load(libraries, {.engine = "TEST_QUICK"}); });
  check::contains(message, "engine 'TEST_QUICK' is unknown: port 'hip' has TEST_BROKEN, TEST_CHANGING, TEST_CLEAN, TEST_LAST, TEST_LATE, TEST_NEVER, TEST_NOTHING, TEST_SLOW, TEST_STALE, TEST_TILED");
}

void test_engines_and_policies_told_when_the_library_lists_them(const Libraries& libraries) {
  const Loaded loaded = load(libraries, {});
  const Device& device = loaded.program->device();
  check::equal(device.policies(), std::vector<std::string>{"TEST_RULES", "TEST_ORDER"});
  check::equal(device.engines().size(), 11U);
  check::equal(device.engines().front().name, "TEST_BROKEN");
  check::equal(device.engines().front().plugin, "choosing");
  check::equal(device.engines().front().version, "1.2.3.4");
  check::that(open_host(libraries)->policies().empty(), "the host library has none");
}

void test_plan_read_when_an_earlier_process_kept_it(const Libraries& libraries) {
  const Control control(libraries);
  const TemporaryFolder folder;
  const DeviceOptions tuning{.autotune = 3, .plan_cache = folder.path()};
  load(libraries, tuning);
  check::that(control.counts().executed > 0, "plans are timed first");
  for (const int timed_plans : {3, 0}) {
    const Loaded again = load(libraries, {.autotune = timed_plans, .plan_cache = folder.path()});
    check::equal(again.engine(), "TEST_TILED");
    check::that(again.plan().is_restored(), "the plan is the kept one");
    check::near(again.plan().timed_us(), 20, 1e-3);
    check::equal(again.plan().description(), "20 us");
    check::equal(again.plan().workspace_bytes(), std::uint64_t{64});
    const ChoosingCounts counts = control.counts();
    check::equal(counts.built, 0);
    check::equal(counts.restored, 1);
    check::equal(counts.executed, 0);
  }
  check::equal(load(libraries, {.autotune = 10, .plan_cache = folder.path()}).engine(), "TEST_LAST", "asked to look further");
  check::equal(load(libraries, tuning).engine(), "TEST_LAST", "what was found then");
}

void test_choice_repeated_when_the_library_takes_no_plan_back(const Libraries& libraries) {
  const Control control(libraries);
  const TemporaryFolder folder;
  const DeviceOptions options{.autotune = 3, .plan_cache = folder.path()};
  load(libraries, options);
  control.let_restore(false);
  control.counts();
  for (int round = 0; round < 2; ++round) {
    const Loaded again = load(libraries, options);
    check::equal(again.engine(), "TEST_TILED");
    check::near(again.plan().timed_us(), 20, 1e-3, "the knobs are those that were chosen");
    const ChoosingCounts counts = control.counts();
    check::equal(counts.built, 1);
    check::equal(counts.executed, 0, "nothing is timed again");
  }
}

/// Change the only record of a folder, which keeps its name and gets a checksum.
void rewrite_record(const TemporaryFolder& folder, const std::function<void(hipdnn_rt::PlanRecord&)>& change) {
  const auto entry = std::filesystem::directory_iterator(folder.path())->path();
  auto record = hipdnn_rt::PlanRecord::decode(hipdnn_rt::read_file(entry).value());
  check::that(record.has_value(), "it is a record");
  change(*record);
  const std::vector<std::byte> bytes = record->encode();
  std::ofstream(entry, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void test_choice_made_again_when_what_was_kept_is_not_proposed(const Libraries& libraries) {
  const Control control(libraries);
  const TemporaryFolder folder;
  const DeviceOptions options{.autotune = 3, .plan_cache = folder.path()};
  load(libraries, options);
  control.let_restore(false);
  rewrite_record(folder, [](hipdnn_rt::PlanRecord& record) { record.knobs = "TILE=9"; });
  control.counts();
  check::near(load(libraries, options).plan().timed_us(), 20, 1e-3, "the fastest is chosen");
  check::that(control.counts().executed > 0, "plans are timed again");
  load(libraries, options);
  check::equal(control.counts().executed, 0, "and the choice is kept");
}

void test_plans_apart_when_the_engine_or_the_arithmetic_differs(const Libraries& libraries) {
  const TemporaryFolder folder;
  load(libraries, {.autotune = 10, .plan_cache = folder.path()});
  check::equal(load(libraries, {.engine = "TEST_SLOW", .plan_cache = folder.path()}).engine(), "TEST_SLOW");
  check::equal(load(libraries, {.tf32 = true, .plan_cache = folder.path()}).engine(), "TEST_SLOW");
  check::equal(load(libraries, {.plan_cache = folder.path()}).engine(), "TEST_LAST");
}

void test_made_again_when_the_kept_plan_is_damaged(const Libraries& libraries) {
  const Control control(libraries);
  const auto entry_of = [](const TemporaryFolder& folder) { return std::filesystem::directory_iterator(folder.path())->path(); };
  const std::array<std::function<void(const TemporaryFolder&)>, 3> damages{
      [&](const TemporaryFolder& folder) { std::filesystem::resize_file(entry_of(folder), std::filesystem::file_size(entry_of(folder)) - 1); },
      [&](const TemporaryFolder& folder) { std::ofstream(entry_of(folder), std::ios::binary) << "no plan"; },
      [](const TemporaryFolder& folder) { rewrite_record(folder, [](hipdnn_rt::PlanRecord& record) { record.key = std::string(64, '0'); }); }};
  for (const auto& damage : damages) {
    const TemporaryFolder folder;
    load(libraries, {.autotune = 10, .plan_cache = folder.path()});
    damage(folder);
    Lines lines;
    check::equal(load(libraries, {.plan_cache = folder.path()}, lines.log()).engine(), "TEST_SLOW");
    check::equal(lines.lines.size(), 1U);
    check::contains(lines.lines.at(0), "made again");
    check::that(load(libraries, {.plan_cache = folder.path()}).plan().is_restored(), "the entry is replaced");
  }
}

void test_loads_when_the_folder_cannot_be_used(const Libraries& libraries) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "file";
  std::ofstream(file) << "in the way";
  Lines lines;
  check::equal(load(libraries, {.plan_cache = file / "plans"}, lines.log()).engine(), "TEST_SLOW");
  check::equal(lines.lines.size(), 1U);
  check::contains(lines.lines.at(0), "the plan is not kept");
}

void test_same_plans_when_devices_share_a_folder_at_once(const Libraries& libraries) {
  const TemporaryFolder folder;
  run_on_threads(8, [&](int) {
    for (int round = 0; round < 5; ++round) {
      check::equal(load(libraries, {.autotune = 10, .plan_cache = folder.path()}).plan().engine_id(), hipdnn_rt::engine_id_of("TEST_LAST"));
    }
  });
}

void test_plans_run_on_scratch_memory_when_streams_are_ahead_of_the_host(const Libraries& libraries) {
  // Memory is the device's own; what streams that work on their own time still use is not freed.
  for (const auto& device : {open_disguised(libraries), open_deferred(libraries)}) {
    Sample sample = one_convolution(8, 6);
    sample.program["target"] = "hip";
    const auto program = sample.parse();
    const auto loaded = LoadedProgram::load(device, program);
    const auto handle = std::make_shared<const hipdnn_rt::Handle>(device->create_handle(nullptr));
    hipdnn_rt::PlanTimer timer(*device, handle, program->executables().at(0), {});
    check::that(timer.time_us(*loaded->plan(0)) > 0, "a time");
    check::that(timer.time_us(*loaded->plan(0)) > 0, "a time");
  }
}

void test_error_when_a_plan_fails_while_it_is_timed(const Libraries& libraries) {
  const auto device = open_deferred(libraries);
  void* library = dlopen((libraries.deferred + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto fail_after = reinterpret_cast<void (*)(int)>(dlsym(library, "deferred_fail_after"));
  Sample sample = one_convolution(8, 6);
  sample.program["target"] = "hip";
  const auto program = sample.parse();
  const auto loaded = LoadedProgram::load(device, program);
  const auto handle = std::make_shared<const hipdnn_rt::Handle>(device->create_handle(nullptr));
  hipdnn_rt::PlanTimer timer(*device, handle, program->executables().at(0), {});
  fail_after(4);
  const std::string message = error_of<hipdnn_rt::DeviceError>([&] { timer.time_us(*loaded->plan(0)); });
  fail_after(std::numeric_limits<int>::max());
  check::contains(message, "hipdnnBackendExecute(plan of HOST_ONEDNN_ENGINE)");
}

void test_values_when_the_host_times_its_plans(const Libraries& libraries) {
  // An engine of the host library has one proposal, so the graph is taken as it is; constants are the program's own.
  const Sample sample = two_convolutions(8, 6, false);
  const auto program = sample.parse();
  const TemporaryFolder folder;
  for (int round = 0; round < 2; ++round) {
    const auto device = std::make_shared<const Device>(
        hipdnn_rt::Library::open("host", libraries.host), DeviceOptions{.threads = 1, .autotune = 4, .plan_cache = folder.path()});
    hipdnn_rt::Context context(LoadedProgram::load(device, program));
    const auto x = random_values(8 * 6 * 6, 5);
    const auto got = run_once(context, *program, {x});
    const auto expected = two_convolutions_reference(sample, 8, 6, x);
    for (std::size_t i = 0; i < got.size(); ++i) check::near(static_cast<double>(got[i]), static_cast<double>(expected[i]), 1e-4);
  }
}

void test_time_is_the_streams_when_a_profile_is_taken(const Libraries& libraries) {
  const Loaded loaded = load(libraries, {});
  const Device& device = loaded.program->device();
  const hipdnn_rt::HipdnnApi& api = device.library().hipdnn();
  const hipdnn_rt::Handle handle = device.create_handle(nullptr);
  const hipdnn_rt::DeviceBuffer memory = device.allocate(256);
  const std::vector<std::int64_t> uids{1, 2};
  const std::vector<void*> pointers(2, memory.get());
  const auto pack = hipdnn_rt::make_variant_pack(device.shared_library(), uids, pointers, memory.get(), "pack");
  hipdnn_rt::Descriptor timer(device.shared_library(), HIPDNN_BACKEND_PROFILING_CONTROL_EXT);
  const bool yes = true;
  check::that(timer.try_set(HIPDNN_ATTR_PROFILING_START_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes) != HIPDNN_STATUS_SUCCESS, "without a handle");
  const hipdnnHandle_t raw = handle.get();
  timer.set(HIPDNN_ATTR_PROFILING_HANDLE_EXT, HIPDNN_TYPE_HANDLE, 1, &raw, "timer");
  timer.set(HIPDNN_ATTR_PROFILING_START_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes, "timer");
  for (int i = 0; i < 3; ++i) hipdnn_rt::check(api, api.execute(raw, loaded.plan().descriptor().get(), pack.get()), "hipdnnBackendExecute");
  timer.set(HIPDNN_ATTR_PROFILING_STOP_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes, "timer");
  timer.finalize("timer");
  float elapsed_ms = 0;
  std::int64_t count = 0;
  hipdnn_rt::check(api, api.get_attribute(timer.get(), HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT, 1, &count, &elapsed_ms),
                   "hipdnnBackendGetAttribute");
  check::near(static_cast<double>(elapsed_ms), 0.3, 1e-6, "three executions of 100 us");
}

void test_events_take_the_time_when_the_library_has_no_profiling(const Libraries& libraries) {
  for (const auto& [folder, is_by_events] : {std::pair(libraries.choosing, false), std::pair(libraries.disguised, true)}) {
    int by_events = 0;
    const auto count = [&](hipdnnSeverity_t, const std::string& line) { by_events += line.find("plans are timed by events") != std::string::npos; };
    Sample sample = relu({2, 8});
    sample.program["target"] = "hip";
    const auto program = sample.parse();
    const auto device = std::make_shared<const Device>(hipdnn_rt::Library::open("hip", folder), DeviceOptions{.threads = 1, .compare_plans = false},
                                                       DeviceEnvironment{.log = count});
    const auto loaded = LoadedProgram::load(device, program);
    const auto handle = std::make_shared<const hipdnn_rt::Handle>(device->create_handle(nullptr));
    hipdnn_rt::PlanTimer timer(*device, handle, program->executables()[0], {});
    const double us = timer.time_us(*loaded->plan(0));
    check::that(is_by_events ? us > 0 : std::abs(us - 100) < 1e-3, std::to_string(us) + " us");
    check::equal(by_events, is_by_events ? 1 : 0, "times by events");
  }
}

void test_record_survives_when_encoded(const Libraries&) {
  hipdnn_rt::PlanRecord record{-5, "ENGINE \"x\"", "A=1 B=-2", 8, 1.5, {}, "its key"};
  for (int i = 0; i < 300; ++i) record.plan.push_back(static_cast<std::byte>(i));
  const std::vector<std::byte> bytes = record.encode();
  const auto decoded = hipdnn_rt::PlanRecord::decode(bytes);
  check::that(decoded.has_value(), "it is a record");
  check::equal(decoded->engine_id, record.engine_id);
  check::equal(decoded->engine_name, record.engine_name);
  check::equal(decoded->knobs, record.knobs);
  check::equal(decoded->timed_plans, record.timed_plans);
  check::near(decoded->time_us, record.time_us, 0);
  check::that(decoded->plan == record.plan, "the plan's bytes");
  check::equal(decoded->key, record.key);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> broken = bytes;
    broken[i] ^= std::byte{1};
    check::that(!hipdnn_rt::PlanRecord::decode(broken), "byte " + std::to_string(i) + " is part of the checksum");
    check::that(!hipdnn_rt::PlanRecord::decode(std::span(bytes).first(i)), "cut after " + std::to_string(i) + " bytes");
  }
}

}  // namespace

void add_choice_cases(check::Suite& suite, const Libraries& libraries) {
  const auto add = [&](const char* name, void (*body)(const Libraries&)) { suite.add(std::string("choice: ") + name, [=] { body(libraries); }); };
  add("plans are left out when they answer otherwise", test_plans_are_left_out_when_they_answer_otherwise);
  add("operands are numbers of either sign", test_operands_are_numbers_of_either_sign);
  add("first that builds when nothing is timed", test_first_that_builds_when_nothing_is_timed);
  add("fastest when plans are timed", test_fastest_when_plans_are_timed);
  add("preferred engine when it builds", test_preferred_engine_when_it_builds);
  add("refusals told from other failures by the status", test_refusals_told_from_other_failures_by_the_status);
  add("choice is not kept when memory was short", test_choice_is_not_kept_when_memory_was_short);
  add("choice made again when what was kept is not proposed", test_choice_made_again_when_what_was_kept_is_not_proposed);
  add("knobs told whatever their type", test_knobs_told_whatever_their_type);
  add("engines named when the preferred one is unknown", test_engines_named_when_the_preferred_one_is_unknown);
  add("engines and policies told when the library lists them", test_engines_and_policies_told_when_the_library_lists_them);
  add("plan read when an earlier process kept it", test_plan_read_when_an_earlier_process_kept_it);
  add("choice repeated when the library takes no plan back", test_choice_repeated_when_the_library_takes_no_plan_back);
  add("plans apart when the engine or the arithmetic differs", test_plans_apart_when_the_engine_or_the_arithmetic_differs);
  add("made again when the kept plan is damaged", test_made_again_when_the_kept_plan_is_damaged);
  add("loads when the folder cannot be used", test_loads_when_the_folder_cannot_be_used);
  add("same plans when devices share a folder at once", test_same_plans_when_devices_share_a_folder_at_once);
  add("plans run on scratch memory when streams are ahead of the host", test_plans_run_on_scratch_memory_when_streams_are_ahead_of_the_host);
  add("error when a plan fails while it is timed", test_error_when_a_plan_fails_while_it_is_timed);
  add("values when the host times its plans", test_values_when_the_host_times_its_plans);
  add("time is the stream's when a profile is taken", test_time_is_the_streams_when_a_profile_is_taken);
  add("events take the time when the library has no profiling", test_events_take_the_time_when_the_library_has_no_profiling);
  add("record survives when encoded", test_record_survives_when_encoded);
}

}  // namespace runtime_tests
