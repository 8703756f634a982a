/* AMD's libamdhip64 on a machine without one: memory and streams are those of the host's library, which this one is linked to, the device
 * has the properties that FAKE_GCN_ARCH names, and modules are written down in the folder FAKE_HIP_RECORD rather than run. With FAKE_HIP_FULL there
 * is no memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip_runtime_abi.h"

#define EXPORT __attribute__((visibility("default")))

struct ihipModule_t {
  int number;
};

struct ihipModuleSymbol_t {
  int module;
  char name[256];
};

static int modules_loaded;

/* Appends a line to the record. */
static void put(const char* line) {
  char path[4096];
  snprintf(path, sizeof path, "%s/calls", getenv("FAKE_HIP_RECORD"));
  FILE* file = fopen(path, "a");
  fprintf(file, "%s\n", line);
  fclose(file);
}

EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) {
  if (getenv("FAKE_HIP_FULL") != NULL) return hipErrorOutOfMemory;
  hipError_t (*next)(void**, size_t) = (hipError_t(*)(void**, size_t))dlsym(RTLD_NEXT, "hipMalloc");
  return next(pointer, bytes);
}

/* As ROCm 6 and 7 fill it; all other bytes are set too, so that a wrong offset shows. */
EXPORT hipError_t hipGetDevicePropertiesR0600(void* properties, int device) {
  (void)device;
  memset(properties, 'x', 1472);
  const char* name = getenv("FAKE_GCN_ARCH");
  memset((char*)properties + 1160, 0, 256);
  strncpy((char*)properties + 1160, name == NULL ? "" : name, 255);
  return hipSuccess;
}

EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  const Elf64_Ehdr* header = image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return hipErrorInvalidImage;
  *module = malloc(sizeof **module);
  (*module)->number = modules_loaded++;
  char path[4096];
  snprintf(path, sizeof path, "%s/module%d", getenv("FAKE_HIP_RECORD"), (*module)->number);
  FILE* file = fopen(path, "wb");
  fwrite(image, 1, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize, file); /* the sections' headers come last */
  fclose(file);
  return hipSuccess;
}

EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  free(module);
  return hipSuccess;
}

EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  *function = calloc(1, sizeof **function); /* lives as long as the process: tests are short */
  (*function)->module = module->number;
  strncpy((*function)->name, name, sizeof(*function)->name - 1);
  return hipSuccess;
}

/* Arguments are pointers; FAKE_HIP_ARGUMENTS says how many are written down, module by module: "2,3,1". */
static int argument_count(int module) {
  const char* text = getenv("FAKE_HIP_ARGUMENTS");
  for (int i = 0; i < module && text != NULL; ++i) {
    text = strchr(text, ',');
    if (text != NULL) ++text;
  }
  return text == NULL ? 0 : atoi(text);
}

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_memory_bytes,
                                        hipStream_t stream, void** kernel_params, void** extra) {
  (void)stream;
  char line[1024];
  int end = snprintf(line, sizeof line, "launch %d %s %u,%u,%u %u,%u,%u %u %d", function->module, function->name, grid_x, grid_y, grid_z, block_x,
                     block_y, block_z, shared_memory_bytes, extra == NULL);
  const int count = argument_count(function->module);
  for (int i = 0; i < count; ++i) {
    uint64_t value;
    memcpy(&value, kernel_params[i], sizeof value);
    end += snprintf(line + end, sizeof line - (size_t)end, " %llx", (unsigned long long)value);
  }
  put(line);
  return hipSuccess;
}

/* An extension of the host's library, for its own modules. */
EXPORT hipError_t hipdnnHostSetModuleThreads_ext(hipModule_t module, int threads) {
  (void)module;
  (void)threads;
  return hipSuccess;
}
