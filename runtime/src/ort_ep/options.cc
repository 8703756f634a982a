#include "options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "memory/sync_stream.h"
#include "names.h"

namespace hipdnn_ep {
namespace {

enum class OptionKind { choice, text, integer, flag };

/// One row of the table.
struct OptionRow {
  std::string_view key;
  OptionKind kind;
  std::string_view fallback;
  /// Valid values of a choice, separated by '|'.
  std::string_view choices;
  std::string_view help;
  /// Least and greatest value of an integer.
  std::int64_t least = 0;
  std::int64_t greatest = 0;
};

constexpr std::int64_t kMegabyte = 1 << 20;

constexpr std::array kRows{
    OptionRow{"target", OptionKind::text, "", "", "Compile for this target's engines; empty for that of the session's device (`host` for the CPU)."},
    OptionRow{"compiler", OptionKind::choice, "auto", "auto|inprocess|subprocess|none",
              "Where the Python compiler runs. `subprocess`: a child process that is kept for the life of the library. `inprocess`: this "
              "process's own interpreter; a crash of the compiler is then a crash of this process. `none`: only EPContext nodes run here. "
              "`auto`: `subprocess` where a Python with hipdnn_mlir is found, else `none`."},
    OptionRow{"python", OptionKind::text, "", "", "Interpreter for `subprocess`; empty to look for one beside the library."},
    OptionRow{"compile_timeout_s", OptionKind::integer, "600", "", "Seconds after which a compiler that does not answer is stopped.", 1, 86400},
    OptionRow{"cache_dir", OptionKind::text, "", "",
              "Folder for compiled programs; empty for `$XDG_CACHE_HOME/hipdnn-mlir` or `~/.cache/hipdnn-mlir`."},
    OptionRow{"cache_limit_mb", OptionKind::integer, "4096", "",
              "Size the folder is kept within, least recently used programs going first; 0 keeps nothing on disk.", 0, 1 << 30},
    OptionRow{"placement", OptionKind::choice, "profitable", "profitable|maximal",
              "`profitable`: parts of the model that cost more in hops to and from the CPU than they gain stay on the CPU. `maximal`: every "
              "part that compiles runs here."},
    OptionRow{"sized_parts", OptionKind::choice, "compile", "compile|cpu",
              "Parts that have no one program for all sizes of their inputs. `compile`: a program is compiled for each combination of sizes that they "
              "run with, and compiling the model ahead is an error. `cpu`: they stay on the CPU."},
    OptionRow{"precision", OptionKind::choice, "model", "model|tf32|f16|bf16",
              "What f32 models run in: `model` computes in the model's own types, `tf32` too, but products may round their operands to TF32 where "
              "the device has that, the others in a 16-bit type where that costs little accuracy."},
    OptionRow{"threads", OptionKind::integer, "0", "",
              "Threads of one run where the device is the CPU; 0 for all CPUs the process may use, since ONNX Runtime does not tell a provider the "
              "session's own setting.", 0, 4096},
    OptionRow{"max_shapes", OptionKind::integer, "16", "",
              "Combinations of input sizes kept ready to run, per part of the model whose input sizes vary; the one used least recently goes.", 1,
              65536},
    OptionRow{"buckets", OptionKind::text, "", "",
              "For GPUs: open sizes and the sizes that programs are made for, `batch=1,8,32;sequence=128`. Others up to the largest are padded on the "
              "device where that changes nothing. Empty, or where an open size of a part has none: a program is compiled for each "
              "combination of sizes that it runs with."},
    OptionRow{"dump_ir_dir", OptionKind::text, "", "", "Folder for the IR after each compiler step; caches are not read then."},
    OptionRow{"profile", OptionKind::text, "", "", "File for the time of each step, written when the session ends; runs become slower."},
    OptionRow{kUserComputeStream, OptionKind::text, "0", "",
              "Handle of a HIP stream, as a number: a session on a GPU queues its work there; the stream outlives the session. 0 for a "
              "stream of ONNX Runtime's."},
    OptionRow{"graph", OptionKind::flag, "0", "",
              "1: on a GPU, runs are recorded as graphs of the device and replayed while arrays keep their addresses."},
    OptionRow{"tune", OptionKind::integer, "0", "",
              "Plans to time for each graph, of which the fastest is kept; 0 takes the first that the library proposes and builds.", 0, 1000},
    OptionRow{"engine", OptionKind::text, "", "",
              "Engine that graphs go to where it takes them, by name (`hipdnn-mlir devices`); empty for the library's order."},
    OptionRow{"knobs", OptionKind::text, "", "", "Knobs to set for that engine, `NAME=VALUE` with commas between."},
    OptionRow{"tf32", OptionKind::choice, "auto", "auto|0|1",
              "Whether products of f32 may round their operands to TF32, where the device has that; `auto`: as the program was compiled "
              "(`precision=tf32`)."},
    OptionRow{"plan_cache", OptionKind::text, "", "",
              "Folder where choices and plans are kept between processes; empty for `plans` in `cache_dir` on a GPU and for none on the CPU, `none` "
              "for none."},
    OptionRow{"compare_plans", OptionKind::flag, "1", "",
              "1: on a GPU, a plan is used only after it has answered as the library for the CPU does on random operands; once for each graph where plans are "
              "kept. 0: the library is believed."},
    OptionRow{"policies", OptionKind::text, "", "",
              "Heuristic policies that rank engines, by name (`hipdnn-mlir devices`), with commas between; empty for the library's own."},
    OptionRow{"plugin_dirs", OptionKind::text, "", "",
              "Folders or files of hipDNN engine plugins to load, with colons between; the same for all sessions of a process."},
    OptionRow{"plugin_mode", OptionKind::choice, "additive", "additive|absolute",
              "`additive`: plugins are loaded beside the library's own. `absolute`: in their place."},
    OptionRow{"strict", OptionKind::flag, "0", "", "1: a node that stays on the CPU, for whatever reason, is an error at the creation of the session."},
};

std::string quoted_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "'" : ", '") + item + "'";
  return text;
}

std::vector<std::string> split(std::string_view text, char separator = '|') {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

[[noreturn]] void refuse(const OptionRow& row, const std::string& value, const std::string& expected) {
  throw hipdnn_rt::InputError(std::string(kEpName) + ": option '" + std::string(row.key) + "' = '" + value + "': expected " + expected);
}

/// The table's values as given or by default; all checked.
class Values {
 public:
  explicit Values(const std::map<std::string, std::string>& given) {
    std::vector<std::string> keys;
    for (const OptionRow& row : kRows) {
      keys.emplace_back(row.key);
      const auto found = given.find(std::string(row.key));
      values_[row.key] = found == given.end() ? std::string(row.fallback) : found->second;
      check_value(row);
    }
    for (const auto& [key, value] : given) {
      if (!values_.contains(key)) {
        throw hipdnn_rt::InputError(std::string(kEpName) + ": unknown option '" + key + "': expected one of " + quoted_list(keys));
      }
    }
  }

  const std::string& text(std::string_view key) const { return values_.at(key); }
  std::int64_t integer(std::string_view key) const { return std::stoll(text(key)); }

 private:
  void check_value(const OptionRow& row) const {
    const std::string& value = text(row.key);
    if (row.kind == OptionKind::choice) {
      const std::vector<std::string> choices = split(row.choices);
      if (std::find(choices.begin(), choices.end(), value) == choices.end()) refuse(row, value, "one of " + quoted_list(choices));
    } else if (row.kind == OptionKind::flag) {
      if (value != "0" && value != "1") refuse(row, value, "'0' or '1'");
    } else if (row.kind == OptionKind::integer) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < row.least || number > row.greatest) {
        refuse(row, value, "a whole number from " + std::to_string(row.least) + " to " + std::to_string(row.greatest));
      }
    }
  }

  std::map<std::string_view, std::string> values_;
};

CompilerMode mode_of(const std::string& name) {
  if (name == "inprocess") return CompilerMode::inprocess;
  if (name == "subprocess") return CompilerMode::subprocess;
  return name == "none" ? CompilerMode::none : CompilerMode::automatic;
}

Rounding rounding_of(const std::string& tf32, const std::string& precision) {
  if (tf32 == "auto") return precision == "tf32" ? Rounding::tf32 : Rounding::as_compiled;
  return tf32 == "1" ? Rounding::tf32 : Rounding::exact;
}

/// "batch=1,8;sequence=128" by name.
std::map<std::string, std::vector<std::int64_t>> parse_buckets(const std::string& text) {
  std::map<std::string, std::vector<std::int64_t>> buckets;
  const auto refuse = [&] {
    throw hipdnn_rt::InputError(std::string(kEpName) + ": option 'buckets' = '" + text +
                                "': expected sizes with rising numbers from 1 on, batch=1,8,32;sequence=128");
  };
  for (const std::string& part : split(text, ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) refuse();
    std::vector<std::int64_t>& sizes = buckets[part.substr(0, equals)];
    if (!sizes.empty()) refuse();
    for (const std::string& number : split(std::string_view(part).substr(equals + 1), ',')) {
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size);
      if (error != std::errc() || end != number.data() + number.size() || size <= (sizes.empty() ? 0 : sizes.back())) refuse();
      sizes.push_back(size);
    }
    if (sizes.empty()) refuse();
  }
  return buckets;
}

std::string type_of(const OptionRow& row) {
  switch (row.kind) {
    case OptionKind::integer:
      return "integer";
    case OptionKind::flag:
      return "0 or 1";
    case OptionKind::choice:
      return "choice";
    case OptionKind::text:
      break;
  }
  return "text";
}

}  // namespace

std::map<std::string, std::string> given_options(const Ort& ort, const OrtSessionOptions* options) {
  OrtKeyValuePairs* raw = nullptr;
  check(ort, ort.api->GetSessionOptionsConfigEntries(options, &raw));
  const OrtOwned<OrtKeyValuePairs> pairs(raw, ort.api->ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  std::size_t count = 0;
  ort.api->GetKeyValuePairs(raw, &keys, &values, &count);
  const std::string prefix = option_prefix();
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view key = keys[i];
    if (key.starts_with(prefix)) given[std::string(key.substr(prefix.size()))] = values[i];
  }
  return given;
}

Options parse_options(const std::map<std::string, std::string>& given) {
  const Values values(given);
  Options options;
  options.target = values.text("target");
  options.compiler.mode = mode_of(values.text("compiler"));
  options.compiler.python = values.text("python");
  options.compiler.timeout = std::chrono::seconds(values.integer("compile_timeout_s"));
  options.placement = values.text("placement");
  options.sized_parts = values.text("sized_parts");
  options.precision = values.text("precision");
  options.cache_dir = values.text("cache_dir");
  options.cache_limit_bytes = static_cast<std::uint64_t>(values.integer("cache_limit_mb") * kMegabyte);
  options.threads = static_cast<int>(values.integer("threads"));
  options.max_shapes = static_cast<std::size_t>(values.integer("max_shapes"));
  options.buckets = parse_buckets(values.text("buckets"));
  options.dump_ir_dir = values.text("dump_ir_dir");
  options.profile = values.text("profile");
  options.is_strict = values.text("strict") == "1";
  options.uses_graphs = values.text("graph") == "1";
  options.timed_plans = static_cast<int>(values.integer("tune"));
  options.engine = values.text("engine");
  options.knobs = split(values.text("knobs"), ',');
  options.rounding = rounding_of(values.text("tf32"), options.precision);
  options.plan_cache = values.text("plan_cache");
  options.compares_plans = values.text("compare_plans") == "1";
  options.policies = split(values.text("policies"), ',');
  options.plugins = {split(values.text("plugin_dirs"), ':'), hipdnn_rt::plugin_mode_of(values.text("plugin_mode"))};
  try {
    options.user_stream = parse_user_stream(values.text(kUserComputeStream));
  } catch (const hipdnn_rt::InputError& error) {
    throw hipdnn_rt::InputError(std::string(kEpName) + ": " + error.what());
  }
  return options;
}

std::string describe_options() {
  nlohmann::json rows = nlohmann::json::array();
  for (const OptionRow& row : kRows) {
    rows.push_back({{"key", row.key}, {"type", type_of(row)}, {"default", row.fallback}, {"values", split(row.choices)}, {"help", row.help}});
  }
  return rows.dump();
}

}  // namespace hipdnn_ep
