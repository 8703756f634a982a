// Turns models into placements and programs: asks the caches, then the Python compiler.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache_key.h"
#include "logger.h"
#include "model_encoder.h"
#include "options.h"
#include "program/dynamic_program.h"
#include "storage/disk_cache.h"
#include "support/compiler_service.h"
#include "support/memory_file.h"

namespace hipdnn_ep {

/// Why a node stays on the CPU.
struct Rejection {
  std::string node;
  std::string reason;
};

/// Which nodes of a model run here, by name.
struct PlacedModel {
  struct Part {
    std::vector<std::string> nodes;
  };
  std::vector<Part> parts;
  std::vector<Rejection> rejections;
  /// hipDNN graphs in all parts.
  std::size_t graph_count = 0;
  /// Of the values that the model declares with sizes which they need not have.
  KnownDims known_dims;
};

/// A program and its container's bytes, which the program keeps alive.
struct CompiledModel {
  std::shared_ptr<const hipdnn_rt::DynamicProgram> program;
  std::span<const std::byte> container;
};

/// A model with dynamic dimensions has no program that serves all their sizes; the message is the compiler's reason.
class NoDynamicProgram : public hipdnn_rt::Error {
 public:
  using Error::Error;
};

/// Input name -> dims.
using InputShapes = std::map<std::string, std::vector<std::int64_t>>;

/// A model on its way to the compiler, which can be sent any number of times; it does not need ONNX Runtime's graph any more.
struct ModelImage {
  /// With zeros in the place of the weights that `program` has.
  MemoryFile file;
  std::vector<EncodedModel::Weight> missing;
  std::uint64_t weights_start;
  std::shared_ptr<const hipdnn_rt::DynamicProgram> program;
  /// SHA-256 of the model and its weights.
  std::string content_key;
};

/// The key of a program, and what is its own of what that was made from.
struct ProgramKey {
  /// SHA-256 of the model and its weights.
  std::string model;
  /// The buckets, where there are any.
  std::string sizes;
  std::string key;
};

/// Safe to use from several threads.
class ModelCompiler {
 public:
  /// `library` is the version of the hipDNN library that programs run on: results are kept for it alone.
  ModelCompiler(CompilerService& service, const Options& options, std::string target, const std::string& library, Logger logger);

  /// Throws CompilerError, with the cause `unavailable` where neither a cache nor a compiler knows the model.
  PlacedModel place(const EncodedModel& model) const;

  /// Compile a model whose inputs have static shapes. `name` is for messages and dumps. Throws CompilerError; ProgramError where what came
  /// back is broken.
  CompiledModel compile(const EncodedModel& model, const std::string& name) const;

  /// Compile a model with dynamic dimensions, which become the program's. Throws NoDynamicProgram beside what `compile` throws.
  CompiledModel compile_dynamic(const EncodedModel& model, const std::string& name) const;

  /// The key under which the cache keeps the program of a model.
  ProgramKey program_key(const EncodedModel& model, bool is_dynamic) const;
  /// What keys depend on beside models.
  const KeyParts& key_parts() const { return parts_; }
  bool has_cache() const { return cache_.has_value(); }

  /// Keep a model as an image, and compile it when a run brings its shapes. Of weights that a program for other sizes has, in a file that can
  /// leave memory, there is no copy.
  ModelImage make_image(const EncodedModel& model, std::shared_ptr<const hipdnn_rt::DynamicProgram> program = nullptr) const;
  CompiledModel compile(const ModelImage& image, const std::string& name, const InputShapes& shapes) const;

 private:
  /// What `read` makes of the file of an entry. One that it throws on is deleted.
  template <class Read>
  auto find(const std::string& key, const char* suffix, Read read) const -> std::optional<decltype(read(nullptr))>;
  std::optional<CompiledModel> find_compiled(const std::string& key) const;
  CompiledModel request_program(const std::string& key, const MemoryFile& image, const std::string& name, const InputShapes& shapes) const;
  /// The compiler's answer. Where sessions wait for it, a line in the log says so once.
  nlohmann::json ask(const nlohmann::json& request, std::span<const int> descriptors) const;
  void store(const std::string& key, const char* suffix, std::span<const std::byte> bytes) const;
  /// Store JSON with its key.
  void store_json(const std::string& key, const char* suffix, nlohmann::json entry) const;
  bool reads_cache() const;

  CompilerService& service_;
  Options options_;
  std::string target_;
  Logger logger_;
  std::optional<hipdnn_rt::DiskCache> cache_;
  KeyParts parts_;
  /// What the compiler has taken so far, and whether the log has said that this is long.
  mutable std::atomic<std::chrono::steady_clock::duration> waited_{};
  mutable std::atomic<bool> is_told_ = false;
  /// Whether the log has said that nothing is kept: the reason holds for each program alike.
  mutable std::atomic<bool> is_loss_told_ = false;
};

}  // namespace hipdnn_ep
