/* ROCm's code object manager as far as linking one object goes: what it links is the object with "linked:" before it, and what was asked for in the
 * log. Objects that nobody has given back are counted.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 3
#endif

#define EXPORT __attribute__((visibility("default")))

typedef struct {
  uint64_t handle;
} Handle;

enum { OK = 0, FAILED = 1, INVALID = 2, LOG = 5, RELOCATABLE = 7, EXECUTABLE = 8, LINK = MAJOR == 2 ? 9 : 7 };

typedef struct Object {
  int kind; /* of data */
  size_t size;
  char bytes[1 << 20];
  char isa[64];
  struct Object* members[4];
} Object;

static int alive;

static Handle make(void) {
  ++alive;
  return (Handle){(uint64_t)(uintptr_t)calloc(1, sizeof(Object))};
}

static Object* object(Handle handle) { return (Object*)(uintptr_t)handle.handle; }

EXPORT int fake_comgr_alive(void) { return alive; }

EXPORT void amd_comgr_get_version(size_t* major, size_t* minor) {
  *major = MAJOR;
  *minor = 1;
}

EXPORT int amd_comgr_status_string(int status, const char** text) {
  *text = status == FAILED ? "ERROR" : status == INVALID ? "INVALID_ARGUMENT" : "SUCCESS";
  return OK;
}

EXPORT int amd_comgr_create_data(int kind, Handle* data) {
  *data = make();
  object(*data)->kind = kind;
  return OK;
}

EXPORT int amd_comgr_release_data(Handle data) {
  --alive;
  (void)data; /* sets refer to it; leaked here, counted in the library */
  return OK;
}

EXPORT int amd_comgr_set_data(Handle data, size_t size, const char* bytes) {
  if (size > sizeof object(data)->bytes) return INVALID;
  memcpy(object(data)->bytes, bytes, object(data)->size = size);
  return OK;
}

EXPORT int amd_comgr_set_data_name(Handle data, const char* name) { return object(data)->kind == RELOCATABLE && *name ? OK : INVALID; }

EXPORT int amd_comgr_get_data(Handle data, size_t* size, char* bytes) {
  if (bytes != NULL) memcpy(bytes, object(data)->bytes, *size);
  *size = object(data)->size;
  return OK;
}

EXPORT int amd_comgr_create_data_set(Handle* set) {
  *set = make();
  return OK;
}

EXPORT int amd_comgr_destroy_data_set(Handle set) {
  --alive;
  free(object(set));
  return OK;
}

EXPORT int amd_comgr_data_set_add(Handle set, Handle data) {
  Object** place = object(set)->members;
  while (*place != NULL) ++place;
  *place = object(data);
  return OK;
}

EXPORT int amd_comgr_create_action_info(Handle* info) {
  *info = make();
  return OK;
}

EXPORT int amd_comgr_destroy_action_info(Handle info) { return amd_comgr_destroy_data_set(info); }

EXPORT int amd_comgr_action_info_set_isa_name(Handle info, const char* name) {
  snprintf(object(info)->isa, sizeof object(info)->isa, "%s", name);
  return strncmp(name, "amdgcn-amd-amdhsa--gfx", 22) == 0 ? OK : INVALID;
}

EXPORT int amd_comgr_action_info_set_logging(Handle info, bool on) {
  (void)info;
  return on ? OK : INVALID;
}

static void put(Handle set, int kind, const char* head, const Object* rest) {
  Handle data = make();
  Object* made = object(data);
  made->kind = kind;
  made->size = strlen(head) + (rest ? rest->size : 0);
  memcpy(made->bytes, head, strlen(head));
  if (rest) memcpy(made->bytes + strlen(head), rest->bytes, rest->size);
  amd_comgr_data_set_add(set, data);
  --alive; /* the set's alone */
}

EXPORT int amd_comgr_do_action(int kind, Handle info, Handle given, Handle result) {
  const Object* source = object(given)->members[0];
  if (kind != LINK || source == NULL || source->kind != RELOCATABLE) return INVALID;
  char log[128];
  snprintf(log, sizeof log, "linking for %s\n", object(info)->isa);
  put(result, LOG, log, NULL);
  if (source->size >= 6 && memcmp(source->bytes, "broken", 6) == 0) return FAILED;
  if (source->size != 0) put(result, EXECUTABLE, "linked:", source);
  return OK;
}

EXPORT int amd_comgr_action_data_count(Handle set, int kind, size_t* count) {
  *count = 0;
  for (Object** member = object(set)->members; *member != NULL; ++member) *count += (*member)->kind == kind;
  return OK;
}

EXPORT int amd_comgr_action_data_get_data(Handle set, int kind, size_t index, Handle* data) {
  for (Object** member = object(set)->members; *member != NULL; ++member) {
    if ((*member)->kind != kind || index-- != 0) continue;
    *data = (Handle){(uint64_t)(uintptr_t)*member};
    ++alive;
    return OK;
  }
  return INVALID;
}
