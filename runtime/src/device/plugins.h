// The engine plugins that a hipDNN library loads: of the process, and settled before the library's first handle.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/library.h"

namespace hipdnn_rt {

/// Folders or files of plugins, beside the library's own or in their place.
struct PluginPaths {
  /// Empty for whatever the library loads by itself.
  std::vector<std::string> paths = {};
  hipdnnPluginLoadingMode_ext_t mode = HIPDNN_PLUGIN_LOADING_ADDITIVE;

  friend bool operator==(const PluginPaths&, const PluginPaths&) = default;
};

/// The options `plugin_dirs` and `plugin_mode` ("additive" or "absolute"), with absolute paths: the library reads relative ones from its own
/// folder. Throws InputError for a path that does not exist, and for none where they are to take the place of the library's own.
PluginPaths located(const std::vector<std::string>& paths, std::string_view mode);

/// Have the library load these with its next handle; nothing where it has them already, or there are none. A library takes paths only while none of
/// its handles is alive, and has one set for the whole process. Any thread. Throws InputError where it refuses.
void use_plugins(const Library& library, const PluginPaths& plugins);

/// Files of the plugins that a handle has; none where the library does not tell.
std::vector<std::string> loaded_plugins(const HipdnnApi& api, hipdnnHandle_t handle);

/// Those of `plugins` from which nothing is loaded.
std::vector<std::string> paths_without_effect(const PluginPaths& plugins, const std::vector<std::string>& loaded);

}  // namespace hipdnn_rt
