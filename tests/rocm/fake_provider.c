/* What doctor asks an engine plugin of hipDNN. FAKE_PROVIDER_API is the version of the plugin interface; an empty one crashes, and with "none" no
 * version is told. FAKE_PROVIDER_HABIT is a bad one: "prints" at exit, "ends" the process while it is loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char* api(void) {
  const char* told = getenv("FAKE_PROVIDER_API");
  return told == NULL ? "1.2.0" : told;
}

static int has_habit(const char* name) {
  const char* told = getenv("FAKE_PROVIDER_HABIT");
  return told != NULL && strcmp(told, name) == 0;
}

__attribute__((constructor)) static void begin(void) {
  if (api()[0] == 0) abort();
  if (has_habit("ends")) _exit(0);
}

__attribute__((destructor)) static void end(void) {
  if (has_habit("prints")) puts("goodbye\n{}\n0");
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
  if (strcmp(api(), "none") == 0) return 1;
  *version = api();
  return 0;
}
