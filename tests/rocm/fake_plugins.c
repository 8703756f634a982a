/* The part of AMD's hipDNN that loads engine plugins; the rest is the host's library, which this one is linked to. The paths that it was given are
 * the plugins that it has loaded. hipDNN's own header needs a build folder: enumerations are ints across the ABI.
 */
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char loaded[8][4096];
static size_t loaded_count;

EXPORT int hipdnnSetEnginePluginPaths_ext(size_t count, const char* const* paths, int mode) {
  loaded_count = 0;
  if (mode == 0) strcpy(loaded[loaded_count++], "/opt/rocm/lib/hipdnn_plugins/engines/libmiopen_plugin.so");
  for (size_t i = 0; i < count; ++i) strcpy(loaded[loaded_count++], paths[i]);
  return 0;
}

EXPORT int hipdnnGetLoadedEnginePluginPaths_ext(void* handle, size_t* count, char** paths, size_t* most_length) {
  (void)handle;
  for (size_t i = 0; paths != NULL && i < loaded_count; ++i) strcpy(paths[i], loaded[i]);
  *count = loaded_count;
  *most_length = sizeof loaded[0];
  return 0;
}
