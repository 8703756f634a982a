#include "cases.h"

namespace ort_tests {
namespace {

/// The provider then offers a virtual GPU beside the CPU.
constexpr const char* kRegistration = "tests.virtual";

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kWidth = 16;

}  // namespace

Fixture::Fixture(const std::string& onnxruntime, const std::string& library, std::filesystem::path models_folder, std::string interpreter)
    : models(std::move(models_folder)), python(std::move(interpreter)), runtime(onnxruntime, kRegistration, library, kProvider) {}

SessionSettings Fixture::settings(const std::string& model, std::map<std::string, std::string> options) const {
  SessionSettings settings{(models / (model + ".onnx")).string(), DeviceKind::cpu, std::move(options), {}};
  settings.options.insert({{"python", python}, {"cache_dir", (folder.path() / "cache").string()}, {"placement", "maximal"}});
  return settings;
}

std::vector<std::int64_t> input_dims(const std::string& model, std::int64_t rows) {
  if (model == "convolution") return {1, 3, kWidth, kWidth};
  return {model.starts_with("dynamic") ? rows : kRows, kWidth};
}

std::vector<std::int64_t> output_dims(const std::string& model, std::int64_t rows) {
  if (model == "convolution") return {1, 8, kWidth, kWidth};
  return input_dims(model, rows);
}

Tensor make_input(const Fixture& fixture, const std::string& model, unsigned seed, std::int64_t rows) {
  const std::vector<std::int64_t> dims = input_dims(model, rows);
  return {fixture.runtime, dims, random_values(element_count(dims), seed)};
}

void check_placement(const Session& session, const std::string& model) {
  const std::vector<std::vector<std::string>> parts = session.parts(kProvider);
  check::equal(parts.size(), model == "parts" ? 8U : 1U, "parts of the model '" + model + "' on the provider");
  const std::size_t expected = model.ends_with("pointwise") ? 3 : 2;
  for (const std::vector<std::string>& nodes : parts) check::equal(nodes.size(), expected, "nodes in a part of '" + model + "'");
}

}  // namespace ort_tests
