// The cases of the execution provider's tests in ONNX Runtime.
#pragma once

#include <filesystem>
#include <string>

#include "../check.h"
#include "process.h"
#include "runtime.h"

namespace ort_tests {

/// That share a session, or make one each.
inline constexpr unsigned kThreads = 8;

inline constexpr const char* kProvider = "HipDNNExecutionProvider";

/// What the cases share; outlives them.
struct Fixture {
  Fixture(const std::string& onnxruntime, const std::string& library, std::filesystem::path models, std::string python);

  /// Settings for one of the models, with a compiler and a cache. `options` overrule.
  SessionSettings settings(const std::string& model, std::map<std::string, std::string> options = {}) const;

  TemporaryFolder folder;
  std::filesystem::path models;
  std::string python;
  Runtime runtime;
};

/// What a model of that name takes. `rows` is the first dimension where the model leaves it open.
std::vector<std::int64_t> input_dims(const std::string& model, std::int64_t rows = 1);
/// Numbers for it, different for each seed.
Tensor make_input(const Fixture& fixture, const std::string& model, unsigned seed, std::int64_t rows = 1);

/// What a model of that name gives for `rows`.
std::vector<std::int64_t> output_dims(const std::string& model, std::int64_t rows = 1);

/// Throws check::Failure where the provider did not take `model` as these tests expect.
void check_placement(const Session& session, const std::string& model);

/// Many runs at once on one session.
void add_run_cases(check::Suite& suite, const Fixture& fixture);
/// Sessions made at once, and one after the other.
void add_session_cases(check::Suite& suite, const Fixture& fixture);

}  // namespace ort_tests
