#include "support/interpreter.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace hipdnn_ep {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> find_on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    // An entry that is no absolute path depends on the working directory: not a place to take a program from.
    if (const fs::path candidate = fs::path(rest.substr(0, end)) / name; candidate.is_absolute() && is_program(candidate)) {
      return candidate.string();
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

/// `<prefix>/bin/python3` for `<prefix>/lib/python3.x/site-packages`.
std::optional<std::string> find_in_environment(const fs::path& package_root) {
  const fs::path versioned = package_root.parent_path();
  if (!versioned.filename().string().starts_with("python3")) return std::nullopt;
  const fs::path candidate = versioned.parent_path().parent_path() / "bin" / "python3";
  return is_program(candidate) ? std::optional(candidate.string()) : std::nullopt;
}

Interpreter find_wanted(const std::string& wanted) {
  if (wanted.find('/') == std::string::npos) {
    if (const auto found = find_on_path(wanted)) return {*found, {}};
    return {{}, "option python: no program '" + wanted + "' on PATH; give the path of a Python interpreter that has hipdnn_mlir"};
  }
  if (is_program(wanted)) return {fs::absolute(wanted).string(), {}};
  return {{}, "option python: '" + wanted + "' is not a program; give the path of a Python interpreter that has hipdnn_mlir"};
}

}  // namespace

std::string default_package_root() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&default_package_root), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path module = fs::absolute(info.dli_fname, error);
  if (error) return {};
  const fs::path root = module.parent_path().parent_path().parent_path();
  return fs::exists(root / "hipdnn_mlir" / "service" / "server.py", error) ? root.string() : std::string();
}

Interpreter find_interpreter(const std::string& wanted, const std::string& host, const std::string& package_root) {
  if (!wanted.empty()) return find_wanted(wanted);
  const bool is_host_python = fs::path(host).filename().string().starts_with("python");
  if (is_host_python && is_program(host)) return {host, {}};
  if (const auto found = find_in_environment(package_root)) return {*found, {}};
  if (const auto found = find_on_path("python3")) return {*found, {}};
  return {{}, "no Python found: install python3 with hipdnn-mlir, or set the option python"};
}

}  // namespace hipdnn_ep
