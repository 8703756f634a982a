#include <algorithm>

#include "cases.h"

namespace ort_tests {
namespace {

constexpr const char* kProvider = "HipDNNExecutionProvider";
/// The provider then offers a virtual GPU beside the CPU.
constexpr const char* kRegistration = "tests.virtual";

constexpr std::int64_t kWidth = 16;

}  // namespace

Fixture::Fixture(const std::string& onnxruntime, const std::string& library, std::filesystem::path models_folder, std::string interpreter)
    : models(std::move(models_folder)), python(std::move(interpreter)), runtime(onnxruntime, kRegistration, library, kProvider) {}

SessionSettings Fixture::settings(const std::string& model, std::map<std::string, std::string> options) const {
  SessionSettings settings{(models / (model + ".onnx")).string(), DeviceKind::cpu, std::move(options), {}};
  settings.options.insert({{"python", python}, {"cache_dir", (folder.path() / "cache").string()}, {"placement", "maximal"}});
  return settings;
}

Tensor make_input(const Fixture& fixture, const std::string& model, unsigned seed, std::int64_t rows) {
  std::vector<std::int64_t> dims{4, kWidth};
  if (model == "convolution") dims = {1, 3, kWidth, kWidth};
  if (model == "dynamic") dims = {rows, kWidth};
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  return {fixture.runtime, dims, random_values(count, seed)};
}

void check_placement(const Session& session, const std::string& model) {
  const std::vector<std::vector<std::string>> parts = session.parts();
  check::equal(parts.size(), model == "parts" ? 8U : 1U, "parts of the model '" + model + "' on the provider");
  const std::size_t expected = model == "pointwise" ? 3 : 2;
  for (const std::vector<std::string>& nodes : parts) check::equal(nodes.size(), expected, "nodes in a part of '" + model + "'");
}

}  // namespace ort_tests
