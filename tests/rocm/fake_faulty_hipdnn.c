/* AMD's hipDNN with an engine that is broken: the host's library, which this one is linked to, as in fake_hipdnn.c. FAKE_FAULT says how, and of which
 * engine: "garbage:NAME" (it writes nothing), "hang:NAME", "crash:NAME". hipDNN's own header needs a build folder: enumerations are ints across the ABI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PLAN_ENGINE_GLOBAL_INDEX = 309, INT64 = 3 };

int hipdnnHostSetPluginApi_ext(int minor);
int hipdnnBackendGetAttribute(void* descriptor, int name, int type, int64_t requested, int64_t* count, void* data);
int hipdnnGetEngineIdByName_ext(void* handle, const char* name, int64_t* id);

__attribute__((constructor)) static void play_providers(void) { hipdnnHostSetPluginApi_ext(2); }

static int is_broken(void* handle, void* plan, const char* engine) {
  int64_t count = 0, ran = 0, broken = 0;
  hipdnnBackendGetAttribute(plan, PLAN_ENGINE_GLOBAL_INDEX, INT64, 1, &count, &ran);
  return hipdnnGetEngineIdByName_ext(handle, engine, &broken) == 0 && ran == broken;
}

EXPORT int hipdnnBackendExecute(void* handle, void* plan, void* pack) {
  const char* fault = getenv("FAKE_FAULT");
  const char* engine = fault == NULL ? NULL : strchr(fault, ':');
  if (engine != NULL && is_broken(handle, plan, engine + 1)) {
    if (fault[0] == 'g') return 0;
    if (fault[0] == 'c') abort();
    for (;;) pause();
  }
  int (*next)(void*, void*, void*) = (int (*)(void*, void*, void*))dlsym(RTLD_NEXT, "hipdnnBackendExecute");
  return next(handle, plan, pack);
}
