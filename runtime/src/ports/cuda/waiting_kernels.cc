#include "waiting_kernels.h"

#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace hipdnn_cuda {
namespace {

struct Module {
  std::unordered_set<std::string> names;
  std::unordered_set<CUfunction> functions;
};

struct State {
  std::shared_mutex guard;
  std::unordered_map<CUmodule, Module> modules;
  /// Of all modules.
  std::unordered_set<CUfunction> functions;
};

State& state() {
  static State all;
  return all;
}

/// PTX begins with a directive or a comment. Binaries begin with the magic numbers of ELF or of NVIDIA's container.
bool is_text(std::string_view begin) { return begin.starts_with('.') || begin.starts_with('/') || begin.starts_with('\n'); }

}  // namespace

std::unordered_set<std::string> names_of_waiting_kernels(const void* image) {
  const auto* begin = static_cast<const char*>(image);
  if (!is_text({begin, 1})) return {};
  constexpr std::string_view entry = ".entry ", wait = "griddepcontrol.wait";
  const std::string_view code(begin);
  std::unordered_set<std::string> names;
  for (std::size_t at = code.find(entry); at != std::string_view::npos;) {
    const std::size_t next = code.find(entry, at + entry.size());
    const std::string_view kernel = code.substr(at + entry.size(), next == std::string_view::npos ? next : next - at - entry.size());
    if (kernel.find(wait) != std::string_view::npos) names.emplace(kernel.substr(0, kernel.find_first_of("( \t\r\n")));
    at = next;
  }
  return names;
}

void remember_waiting_kernels(CUmodule module, const void* image) {
  forget_waiting_kernels(module);  // handles of unloaded ones are given again
  auto names = names_of_waiting_kernels(image);
  if (names.empty()) return;
  const std::unique_lock lock(state().guard);
  state().modules[module] = {std::move(names), {}};
}

void forget_waiting_kernels(CUmodule module) {
  const std::unique_lock lock(state().guard);
  const auto found = state().modules.find(module);
  if (found == state().modules.end()) return;
  for (const CUfunction function : found->second.functions) state().functions.erase(function);
  state().modules.erase(found);
}

void remember_function(CUmodule module, CUfunction function, const char* name) {
  const std::unique_lock lock(state().guard);
  const auto found = state().modules.find(module);
  if (found == state().modules.end() || !found->second.names.contains(name)) return;
  found->second.functions.insert(function);
  state().functions.insert(function);
}

bool waits(CUfunction function) {
  const std::shared_lock lock(state().guard);
  return state().functions.contains(function);
}

}  // namespace hipdnn_cuda
