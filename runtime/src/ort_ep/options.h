// The provider's options: one table, from which the parser, its messages and the documentation come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/plugins.h"
#include "ort.h"
#include "support/compiler_service.h"

namespace hipdnn_ep {

/// Whether products of f32 may round their operands to TF32.
enum class Rounding { as_compiled, exact, tf32 };

/// Settings of one session. Text options are empty where not given.
struct Options {
  std::string target;
  CompilerOptions compiler;
  std::string placement;
  std::string sized_parts;
  std::string precision;
  std::string cache_dir;
  std::uint64_t cache_limit_bytes = 0;
  int threads = 0;
  /// Programs, or instances of one, per part of the model whose input sizes vary.
  std::size_t max_shapes = 0;
  /// Open size -> rising sizes that programs for GPUs are made for.
  std::map<std::string, std::vector<std::int64_t>> buckets;
  std::string dump_ir_dir;
  std::string profile;
  bool is_strict = false;
  bool uses_graphs = false;
  int timed_plans = 0;
  std::string engine;
  std::vector<std::string> knobs;
  bool compares_plans = true;
  std::vector<std::string> policies;
  hipdnn_rt::PluginPaths plugins;
  Rounding rounding = Rounding::as_compiled;
  /// A folder, "none", or empty for the usual one.
  std::string plan_cache;
  /// A stream of the caller's, on which the session's work on a GPU goes; null where ONNX Runtime shall have its own.
  hipStream_t user_stream = nullptr;
};

/// The options a session was given, by key without prefix.
std::map<std::string, std::string> given_options(const Ort& ort, const OrtSessionOptions* options);

/// Throws hipdnn_rt::InputError for an unknown key or a value outside the table; the message lists what is valid.
Options parse_options(const std::map<std::string, std::string>& given);

/// The table as JSON: an array of {key, type, default, values, help}.
std::string describe_options();

}  // namespace hipdnn_ep
