#include "device/plugins.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

constexpr std::string_view kAbsolute = "absolute";

/// What a library was told last: it does not tell, and refuses to be told the same again while it is in use.
class Told {
 public:
  using SetPaths = decltype(HipdnnApi::set_plugin_paths);

  static Told& instance() {
    static Told told;
    return told;
  }

  void tell(const Library& library, const PluginPaths& plugins) {
    const HipdnnApi& api = library.hipdnn();
    const std::lock_guard lock(mutex_);
    PluginPaths& last = last_[api.set_plugin_paths];
    if (last == plugins) return;
    std::vector<const char*> raw;
    for (const std::string& path : plugins.paths) raw.push_back(path.c_str());
    const hipdnnStatus_t status = api.set_plugin_paths(raw.size(), raw.data(), plugins.mode);
    if (status != HIPDNN_STATUS_SUCCESS) {
      throw InputError("plugin_dirs: port '" + std::string(library.port().name) + "' does not take them: hipdnnSetEnginePluginPaths_ext: " +
                       describe_failure(api, status) +
                       "; AMD's library (port 'hip') takes them before the first session of a process, the same for all its sessions");
    }
    last = plugins;
  }

 private:
  std::mutex mutex_;
  /// By the library's function: a process may have opened several.
  std::map<SetPaths, PluginPaths> last_;
};

std::filesystem::path canonical(const std::string& path) {
  std::error_code failure;
  std::filesystem::path found = std::filesystem::weakly_canonical(path, failure);
  return failure ? std::filesystem::path(path) : found;
}

bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

}  // namespace

PluginPaths located(const std::vector<std::string>& paths, std::string_view mode) {
  PluginPaths plugins{paths, mode == kAbsolute ? HIPDNN_PLUGIN_LOADING_ABSOLUTE : HIPDNN_PLUGIN_LOADING_ADDITIVE};
  if (paths.empty() && mode == kAbsolute) {
    throw InputError("plugin_mode = '" + std::string(kAbsolute) +
                     "': expected folders or files of engine plugins in the place of the library's own; name them with plugin_dirs");
  }
  for (std::string& path : plugins.paths) {
    std::error_code failure;
    if (path.empty() || !std::filesystem::exists(path, failure)) {
      throw InputError("plugin_dirs: '" + path + "' does not exist: expected a folder or a file of engine plugins");
    }
    path = std::filesystem::absolute(path).lexically_normal().string();
  }
  return plugins;
}

void use_plugins(const Library& library, const PluginPaths& plugins) {
  if (plugins.paths.empty()) return;
  if (library.hipdnn().set_plugin_paths == nullptr) {
    throw InputError("plugin_dirs: the hipDNN library of port '" + std::string(library.port().name) + "' (" + library.version() +
                     ") has no hipdnnSetEnginePluginPaths_ext; set HIPDNN_PLUGIN_DIR, or install a newer one");
  }
  Told::instance().tell(library, plugins);
}

std::vector<std::string> loaded_plugins(const HipdnnApi& api, hipdnnHandle_t handle) {
  if (api.get_loaded_plugin_paths == nullptr) return {};
  std::size_t count = 0;
  std::size_t length = 0;
  if (api.get_loaded_plugin_paths(handle, &count, nullptr, &length) != HIPDNN_STATUS_SUCCESS) {
    take_last_error(api);  // for people alone, so no error; and not to appear in a later message
    return {};
  }
  std::vector<std::string> texts(count, std::string(length + 1, '\0'));
  std::vector<char*> raw;
  for (std::string& text : texts) raw.push_back(text.data());
  if (count == 0) return {};
  if (api.get_loaded_plugin_paths(handle, &count, raw.data(), &length) != HIPDNN_STATUS_SUCCESS) {
    take_last_error(api);
    return {};
  }
  texts.resize(std::min(texts.size(), count));
  for (std::string& text : texts) text.resize(text.find('\0'));
  return texts;
}

std::vector<std::string> paths_without_effect(const PluginPaths& plugins, const std::vector<std::string>& loaded) {
  std::vector<std::string> idle;
  for (const std::string& path : plugins.paths) {
    const auto folder = canonical(path);
    if (std::ranges::none_of(loaded, [&](const std::string& file) { return lies_in(canonical(file), folder); })) idle.push_back(path);
  }
  return idle;
}

}  // namespace hipdnn_rt
