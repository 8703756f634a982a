#include "options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <vector>

#include "names.h"

namespace hipdnn_ep {
namespace {

using hipdnn_rt::InputError;
using hipdnn_rt::OptionRow;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string quoted_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "'" : ", '") + item + "'";
  return text;
}

/// Reads the text of one option into its member, by the member's type.
class Reader {
 public:
  Reader(const OptionRow& row, const std::string& text) : row_(row), text_(text) {}

  void read(bool& value) const {
    if (text_ != "0" && text_ != "1") refuse("'0' or '1'");
    value = text_ == "1";
  }

  void read(std::optional<bool>& value) const {
    if (text_ != "0" && text_ != "1" && text_ != "auto") refuse("one of 'auto', '0', '1'");
    if (text_ != "auto") value = text_ == "1";
  }

  void read(int& value) const {
    const std::optional<std::int64_t> number = number_in(text_);
    if (!number || *number < row_.least || *number > row_.greatest) {
      refuse("a whole number from " + std::to_string(row_.least) + " to " + std::to_string(row_.greatest));
    }
    value = static_cast<int>(*number);
  }

  void read(std::string& value) const {
    const std::vector<std::string> choices = split(row_.choices, '|');
    if (!choices.empty() && std::ranges::find(choices, text_) == choices.end()) refuse("one of " + quoted_list(choices));
    value = text_;
  }

  void read(std::vector<std::string>& values) const { values = split(text_, row_.type == "paths" ? ':' : ','); }

  /// "TILE=64,SPLIT=2".
  void read(std::vector<std::pair<std::string, std::string>>& values) const {
    for (const std::string& part : split(text_, ',')) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos || equals == 0) refuse("NAME=VALUE with commas between");
      values.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    }
  }

  /// "batch=1,8;sequence=128".
  void read(std::map<std::string, std::vector<std::int64_t>>& values) const {
    constexpr const char* expected = "sizes with rising numbers from 1 on, batch=1,8,32;sequence=128";
    for (const std::string& part : split(text_, ';')) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos || equals == 0) refuse(expected);
      std::vector<std::int64_t>& sizes = values[part.substr(0, equals)];
      if (!sizes.empty()) refuse(expected);
      for (const std::string& text : split(std::string_view(part).substr(equals + 1), ',')) {
        const std::optional<std::int64_t> size = number_in(text);
        if (!size || *size <= (sizes.empty() ? 0 : sizes.back())) refuse(expected);
        sizes.push_back(*size);
      }
      if (sizes.empty()) refuse(expected);
    }
  }

 private:
  static std::optional<std::int64_t> number_in(const std::string& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw InputError(std::string(kEpName) + ": option '" + std::string(row_.name) + "' = '" + text_ + "': expected " + expected);
  }

  const OptionRow& row_;
  const std::string& text_;
};

/// Throw for an option other than by default that needs what is not there: `missing` says why, or nothing, by the name of a need.
void check_needs(const Options& options, const std::function<std::string(std::string_view need)>& missing) {
  const Options defaults;
  hipdnn_rt::visit_provider_options([&](const OptionRow& row, const auto& value, const auto& fallback) {
    if (value == fallback) return;
    for (const std::string& need : split(row.needs, ' ')) {
      const std::string reason = missing(need);
      if (!reason.empty()) throw InputError(std::string(kEpName) + ": option '" + std::string(row.name) + "' has no effect: " + reason);
    }
  }, options, defaults);
}

CompilerMode mode_of(const std::string& name) {
  if (name == "inprocess") return CompilerMode::inprocess;
  if (name == "subprocess") return CompilerMode::subprocess;
  return name == "none" ? CompilerMode::none : CompilerMode::automatic;
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
  Options options;
  std::map<std::string, std::string> unknown = given;
  std::vector<std::string> names;
  hipdnn_rt::visit_provider_options([&](const OptionRow& row, auto& value) {
    const auto found = given.find(names.emplace_back(row.name));
    if (found == given.end()) return;
    Reader(row, found->second).read(value);
    unknown.erase(found->first);
  }, options);
  if (!unknown.empty()) {
    throw InputError(std::string(kEpName) + ": unknown option '" + unknown.begin()->first + "': expected one of " + quoted_list(names));
  }
  check_needs(options, [&](std::string_view need) -> std::string {
    const bool has_child = options.compiler != "none" && options.compiler != "inprocess";
    return need != "child" || has_child ? "" : "with 'compiler' = '" + options.compiler + "' there is no child process that compiles";
  });
  return options;
}

void check_effects(const Options& options, bool is_gpu, std::string_view target) {
  check_needs(options, [&](std::string_view need) -> std::string {
    if (need == "gpu" && !is_gpu) return "the session's device is the CPU";
    if (need == "gpu_target" && target == "host") return "programs for the target 'host' take sizes as they are; buckets are for targets of GPUs";
    return "";
  });
}

CompilerOptions compiler_options(const Options& options) {
  return {mode_of(options.compiler), options.python, std::chrono::seconds(options.compile_timeout_s)};
}

std::uint64_t cache_limit_bytes(const Options& options) { return static_cast<std::uint64_t>(options.cache_limit_mb) << 20U; }

}  // namespace hipdnn_ep
