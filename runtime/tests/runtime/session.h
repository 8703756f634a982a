// A loaded program with arrays of its own, for tests.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cases.h"
#include "execute/context_pool.h"
#include "program/dynamic_program.h"
#include "sample_program.h"

namespace runtime_tests {

/// The host library under its own name.
inline std::shared_ptr<const hipdnn_rt::Device> open_host(const Libraries& libraries, int threads = 1) {
  return std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("host", libraries.host), hipdnn_rt::DeviceOptions{.threads = threads});
}

/// The same library as the runtime would meet AMD's: memory of its own, no constants extension. Programs need the target "hip".
inline std::shared_ptr<const hipdnn_rt::Device> open_disguised(const Libraries& libraries) {
  return std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("hip", libraries.disguised),
                                                   hipdnn_rt::DeviceOptions{.threads = 1, .compare_plans = false});
}

/// The same library behind streams that work on their own time. Programs need the target "hip".
inline std::shared_ptr<const hipdnn_rt::Device> open_deferred(const Libraries& libraries, bool uses_graphs = false) {
  return std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("hip", libraries.deferred),
                                                   hipdnn_rt::DeviceOptions{.threads = 1, .graph_capture = uses_graphs, .compare_plans = false});
}

/// Run `body(thread)` on `count` threads and rethrow what one of them threw.
template <typename Body>
void run_on_threads(int count, const Body& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < count; ++t) {
      threads.emplace_back([&, t] {
        try {
          body(t);
        } catch (...) {
          failures[static_cast<std::size_t>(t)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// The message of the `Error` that `action` throws.
template <typename Error, typename Action>
std::string error_of(const Action& action, const check::Location& at = check::Location::current()) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  throw check::Failure("no error", at);
}

inline std::shared_ptr<const hipdnn_rt::DynamicProgram> parse(const Sample& sample) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(sample.container());
  return hipdnn_rt::DynamicProgram::parse_container(*bytes, bytes);
}

inline std::vector<float> relu_of(std::vector<float> values, float added = 0) {
  for (float& value : values) value = std::max(value + added, 0.0F);
  return values;
}

/// Floats aligned to 64 bytes.
class Array {
 public:
  explicit Array(std::size_t bytes) : bytes_(bytes), data_(static_cast<float*>(std::aligned_alloc(64, bytes / 64 * 64 + 64)), &std::free) {}
  explicit Array(const std::vector<float>& values) : Array(values.size() * sizeof(float)) { std::copy(values.begin(), values.end(), data()); }

  float* data() const { return data_.get(); }
  std::vector<float> values() const { return {data(), data() + bytes_ / sizeof(float)}; }

 private:
  std::size_t bytes_;
  std::unique_ptr<float, decltype(&std::free)> data_;
};

/// Run once on fresh arrays and answer the first output.
template <typename Runner>
std::vector<float> run_once(Runner& runner, const hipdnn_rt::Program& program, const std::vector<std::vector<float>>& inputs) {
  std::vector<Array> arrays;
  std::vector<hipdnn_rt::InputArray> in;
  for (const auto& values : inputs) in.push_back({arrays.emplace_back(values).data()});
  const Array out(program.outputs().at(0).bytes);
  const hipdnn_rt::OutputArray output{out.data()};
  runner.run(in, {&output, 1});
  return out.values();
}

}  // namespace runtime_tests
