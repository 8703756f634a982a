/* The part of AMD's hipDNN that loads engine plugins and writes a log; the rest is the host's library, which this one is linked to. The paths that
 * it was given are the plugins that it has loaded. Its log callback gets what the level lets through. hipDNN's own header needs a build folder:
 * enumerations are ints across the ABI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char loaded[8][4096];
static size_t loaded_count;

enum { INFO = 0, OFF = 4 };
static int level = OFF, callback_level = OFF;
static void (*callback)(void* user, int severity, const char* message);
static void* callback_user;

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

EXPORT int hipdnnSetUserLogCallback_ext(void (*called)(void*, int, const char*), int minimum, int mode, void* user) {
  (void)mode;
  callback = called;
  callback_level = minimum;
  callback_user = user;
  return user == NULL;
}

EXPORT int hipdnnBackendSetGlobalLogLevel_ext(int wanted) {
  level = wanted;
  return 0;
}

EXPORT int hipdnnBackendGetGlobalLogLevel_ext(int* found) {
  *found = level;
  return 0;
}

EXPORT int hipdnnCreate(void** handle) {
  if (INFO >= level && INFO >= callback_level) callback(callback_user, INFO, "a handle is made");
  int (*next)(void**) = (int (*)(void**))dlsym(RTLD_NEXT, "hipdnnCreate");
  return next(handle);
}
