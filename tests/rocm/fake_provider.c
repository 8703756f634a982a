/* What doctor asks an engine plugin of hipDNN. FAKE_PROVIDER_API is the version of the plugin interface; an empty one crashes. */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static const char* api(void) {
  const char* told = getenv("FAKE_PROVIDER_API");
  return told == NULL ? "1.2.0" : told;
}

__attribute__((constructor)) static void crash(void) {
  if (api()[0] == 0) abort();
}

EXPORT int hipdnnPluginGetName(const char** name) {
  *name = "a provider";
  return 0;
}

EXPORT int hipdnnPluginGetVersion(const char** version) {
  *version = "0.7.0";
  return 0;
}

EXPORT int hipdnnPluginGetApiVersion(const char** version) {
  *version = api();
  return 0;
}
