#include "model_compiler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "program/shared_tensors.h"
#include "storage/mapped_file.h"
#include "storage/sha256.h"
#include "support/memory_file.h"
#include "support/slow_notice.h"

namespace hipdnn_ep {
namespace {

using EntryFile = std::shared_ptr<const hipdnn_rt::MappedFile>;

constexpr std::uint64_t kLengthBytes = 8;
/// What a session may take to compile, all in all, before a line says that it does.
constexpr std::chrono::seconds kQuietTime(5);
/// Cache entries: a placement, a program, and why there is no program for all sizes.
constexpr const char* kPlaced = "json";
constexpr const char* kCompiled = "hipdnn";
constexpr const char* kRefused = "refused";

/// What the machine has not just now; another session may find it.
constexpr const char* kMachineError = "MachineError";

/// Whether the compiler understood a model and says that this one cannot be.
bool is_about_the_model(const CompilerError& error) {
  constexpr std::array kKinds{"DynamicDimensionError", "StaticDimensionsError", "ModelError", "UnsupportedError"};
  return std::find(kKinds.begin(), kKinds.end(), error.kind()) != kKinds.end();
}

std::uint64_t weights_start(const EncodedModel& model) {
  return (kLengthBytes + model.proto.size() + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

void write_weights(const MemoryFile& file, std::uint64_t start, std::span<const EncodedModel::Weight> weights) {
  const Mapping mapping = file.map(MemoryFile::Access::read_write);
  std::byte* out = mapping.bytes().data() + start;
  for (const EncodedModel::Weight& weight : weights) std::memcpy(out + weight.offset, weight.data.data(), weight.data.size());
}

/// Length, model, and, where there are any, weights.
MemoryFile write_image(const EncodedModel& model, bool has_weights, std::span<const EncodedModel::Weight> weights) {
  MemoryFile file("hipdnn_mlir model");
  const std::uint64_t start = weights_start(model);
  file.set_size(has_weights ? start + model.weight_bytes : kLengthBytes + model.proto.size());
  const Mapping mapping = file.map(MemoryFile::Access::read_write);
  std::byte* out = mapping.bytes().data();
  const std::uint64_t length = model.proto.size();
  std::memcpy(out, &length, kLengthBytes);
  std::memcpy(out + kLengthBytes, model.proto.data(), model.proto.size());
  if (!weights.empty()) write_weights(file, start, weights);
  return file;
}

/// Throws CompilerError where the compiler could not be given a model later, when its nodes can no longer be left to others.
void check_room(const EncodedModel& model) {
  const std::uint64_t bytes = weights_start(model) + model.weight_bytes, most = MemoryFile::largest();
  if (bytes <= most) return;
  throw CompilerError(CompilerError::Cause::crashed, "the model takes " + std::to_string(bytes) + " bytes, and files may have " + std::to_string(most) +
                                                         " (ulimit -f): raise that limit");
}

MemoryFile write_image(const EncodedModel& model) { return write_image(model, true, model.weights); }

/// SHA-256 of a model with its weights, where they lie.
std::string content_key_of(const EncodedModel& model) {
  hipdnn_rt::Sha256 digest;
  digest.update(model.proto);  // states the place and size of each weight
  for (const EncodedModel::Weight& weight : model.weights) digest.update(weight.data);
  return digest.hex_digest();
}

std::string checksum_of(const nlohmann::json& entry) {
  hipdnn_rt::Sha256 digest;
  digest.update(entry.dump());
  return digest.hex_digest();
}

/// An entry of JSON. Throws Error for one that is not as it was written, or of another key, whose file lies in the place of this one.
nlohmann::json read_entry(const hipdnn_rt::MappedFile& file, const std::string& key) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  nlohmann::json entry = nlohmann::json::parse(text);
  if (entry.at("key").get<std::string>() != key) throw hipdnn_rt::Error("an entry of another key");
  const auto checksum = entry.at("checksum").get<std::string>();
  entry.erase("checksum");
  if (checksum != checksum_of(entry)) throw hipdnn_rt::Error("its content is not what its checksum says");
  return entry;
}

PlacedModel read_placement(const nlohmann::json& result) {
  PlacedModel placed;
  for (const nlohmann::json& part : result.at("partitions")) placed.parts.push_back({part.at("nodes").get<std::vector<std::string>>()});
  for (const nlohmann::json& row : result.at("rejects")) {
    placed.rejections.push_back({row.at("node"), row.at("reason")});
  }
  for (const nlohmann::json& row : result.at("dropped")) {
    for (const nlohmann::json& node : row.at("nodes")) placed.rejections.push_back({node, row.at("reason")});
  }
  placed.graph_count = result.at("graphs");
  for (const auto& [value, dims] : result.at("contradicted").items()) {
    Dims& known = placed.known_dims[value];
    for (const nlohmann::json& dim : dims) {
      known.dims.push_back(dim.is_number() ? dim.get<std::int64_t>() : -1);
      known.symbols.push_back(dim.is_string() ? dim.get<std::string>() : "");
    }
  }
  return placed;
}

/// Whether the compiler loads extensions: what it makes then depends on files that no key of the cache covers.
bool has_extensions() {
  const char* names = std::getenv("HIPDNN_MLIR_EXTENSIONS");
  return names != nullptr && *names != '\0';
}

std::optional<hipdnn_rt::DiskCache> open_cache(const Options& options) {
  if (options.cache_limit_mb == 0 || has_extensions()) return std::nullopt;
  const std::string directory = options.cache_dir.empty() ? hipdnn_rt::default_cache_directory() : options.cache_dir;
  if (directory.empty()) return std::nullopt;
  return std::make_optional<hipdnn_rt::DiskCache>(directory, cache_limit_bytes(options));
}

}  // namespace

ModelCompiler::ModelCompiler(CompilerService& service, const Options& options, std::string target, const std::string& library, Logger logger)
    : service_(service),
      options_(options),
      target_(std::move(target)),
      logger_(logger),
      cache_(open_cache(options)),
      parts_(make_key_parts(target_, options_.precision, library)) {}

bool ModelCompiler::reads_cache() const {
  return cache_.has_value() && options_.dump_ir.empty() && options_.compiler != "none";
}

nlohmann::json ModelCompiler::ask(const nlohmann::json& request, std::span<const int> descriptors) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto tell = [this] {
    if (is_told_.exchange(true)) return;
    const std::string later = cache_ ? "later sessions find the result in " + cache_->directory().string() : "no cache is used, so each session takes as long";
    logger_.warning("compiling for target '" + target_ + "' takes longer than " + std::to_string(kQuietTime.count()) + " s; " + later);
  };
  const SlowNotice notice(std::max(kQuietTime - waited_.load(), Clock::duration::zero()), tell);
  nlohmann::json result = service_.request(compiler_options(options_), request, descriptors);
  waited_ = waited_.load() + (Clock::now() - start);
  return result;
}

void ModelCompiler::store(const std::string& key, const char* suffix, std::span<const std::byte> bytes) const {
  if (!cache_) return;
  const std::string problem = cache_->store(key, suffix, bytes);
  if (!problem.empty() && !is_loss_told_.exchange(true)) logger_.warning("compiled programs are not kept: " + problem);
}

void ModelCompiler::store_json(const std::string& key, const char* suffix, nlohmann::json entry) const {
  entry["key"] = key;
  entry["checksum"] = checksum_of(entry);
  const std::string text = entry.dump();
  store(key, suffix, std::as_bytes(std::span(text)));
}

template <class Read>
auto ModelCompiler::find(const std::string& key, const char* suffix, Read read) const -> std::optional<decltype(read(nullptr))> {
  if (!reads_cache()) return std::nullopt;
  const auto path = cache_->find(key, suffix);
  if (!path) return std::nullopt;
  try {
    return read(std::make_shared<const hipdnn_rt::MappedFile>(*path));
  } catch (const std::exception& error) {
    logger_.info(*path + ": a cache entry is broken and made again: " + error.what());
    cache_->remove(key, suffix);
    return std::nullopt;
  }
}

PlacedModel ModelCompiler::place(const EncodedModel& model) const {
  hipdnn_rt::Sha256 digest;
  digest.update(model.proto);
  nlohmann::json request{{"action", "place"},
                         {"target", target_},
                         {"precision", options_.precision},
                         {"placement", options_.placement},
                         {"dynamic_fallback", options_.dynamic_fallback}};
  if (!options_.buckets.empty()) request["buckets"] = options_.buckets;
  const std::string key = make_key("place", parts_, digest.hex_digest(), request.dump());
  if (options_.explain_file.empty()) {
    const auto read = [&key](const EntryFile& file) { return read_placement(read_entry(*file, key)); };
    if (std::optional<PlacedModel> found = find(key, kPlaced, read)) return *std::move(found);
  } else {  // behind the key: the placement is the same
    request["explain_file"] = std::filesystem::absolute(options_.explain_file).string();
  }
  check_room(model);
  const MemoryFile file = write_image(model, false, {});
  nlohmann::json result = ask(request, std::array{file.fd()});
  PlacedModel placed = read_placement(result);
  store_json(key, kPlaced, std::move(result));
  return placed;
}

ModelImage ModelCompiler::make_image(const EncodedModel& model, std::shared_ptr<const hipdnn_rt::DynamicProgram> program) const {
  hipdnn_rt::KnownTensors known;
  if (program) {
    for (const std::span<const std::byte> tensor : program->stored_constants()) known.add(tensor);
  }
  std::vector<EncodedModel::Weight> own, missing;
  for (const EncodedModel::Weight& weight : model.weights) {
    const std::span<const std::byte> found = known.find(weight.data);
    if (found.empty()) {
      own.push_back(weight);
    } else {
      missing.push_back({weight.offset, found});
    }
  }
  return {write_image(model, true, own), std::move(missing), weights_start(model), std::move(program), content_key_of(model)};
}

std::optional<CompiledModel> ModelCompiler::find_compiled(const std::string& key) const {
  return find(key, kCompiled, [&key](const EntryFile& file) {
    return CompiledModel{hipdnn_rt::DynamicProgram::parse_file(file, key), file->bytes()};
  });
}

ProgramKey ModelCompiler::program_key(const EncodedModel& model, bool is_dynamic) const {
  const bool has_buckets = is_dynamic && !options_.buckets.empty();
  const std::string content = content_key_of(model), sizes = has_buckets ? "buckets " + nlohmann::json(options_.buckets).dump() : "";
  return {content, sizes, make_key("compile", parts_, content, sizes)};
}

CompiledModel ModelCompiler::compile(const EncodedModel& model, const std::string& name) const {
  const std::string key = program_key(model, false).key;
  if (std::optional<CompiledModel> found = find_compiled(key)) return *std::move(found);
  return request_program(key, write_image(model), name, {});
}

CompiledModel ModelCompiler::compile_dynamic(const EncodedModel& model, const std::string& name) const {
  const std::string key = program_key(model, true).key;
  if (std::optional<CompiledModel> found = find_compiled(key)) return *std::move(found);
  const auto read = [&key](const EntryFile& file) { return read_entry(*file, key).at("reason").get<std::string>(); };
  if (const std::optional<std::string> reason = find(key, kRefused, read)) throw NoDynamicProgram(*reason);
  try {
    return request_program(key, write_image(model), name, {});
  } catch (const CompilerError& error) {
    if (!is_about_the_model(error) && error.kind() != kMachineError) throw;
    const NoDynamicProgram refused(error.what());
    if (error.kind() != kMachineError) store_json(key, kRefused, {{"reason", refused.what()}});
    throw refused;
  }
}

CompiledModel ModelCompiler::compile(const ModelImage& image, const std::string& name, const InputShapes& shapes) const {
  const std::string key = make_key("compile", parts_, image.content_key, nlohmann::json(shapes).dump());
  if (std::optional<CompiledModel> found = find_compiled(key)) return *std::move(found);
  if (!image.missing.empty()) write_weights(image.file, image.weights_start, image.missing);
  return request_program(key, image.file, name, shapes);
}

CompiledModel ModelCompiler::request_program(const std::string& key, const MemoryFile& image, const std::string& name,
                                             const InputShapes& shapes) const {
  MemoryFile output("hipdnn_mlir program");
  nlohmann::json request{{"action", "compile"}, {"target", target_}, {"precision", options_.precision}, {"name", name}, {"cache_key", key}};
  if (!shapes.empty()) request["shapes"] = shapes;
  if (shapes.empty() && !options_.buckets.empty()) request["buckets"] = options_.buckets;
  if (!options_.dump_ir.empty()) request["dump_ir"] = options_.dump_ir + "/" + name;
  ask(request, std::array{image.fd(), output.fd()});
  output.seal_size();
  store(key, kCompiled, output.map(MemoryFile::Access::read_only).bytes());
  // The file's pages can leave memory under pressure, those of a memory file cannot.
  if (std::optional<CompiledModel> kept = find_compiled(key)) return *std::move(kept);
  const auto mapping = std::make_shared<const Mapping>(output.map(MemoryFile::Access::read_only));
  return {hipdnn_rt::DynamicProgram::parse_container(mapping->bytes(), mapping), mapping->bytes()};
}

}  // namespace hipdnn_ep
