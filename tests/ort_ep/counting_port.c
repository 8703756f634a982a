/* A port's library whose calls are counted: libhipdnn_cuda.so itself, or the host's played as it.
 *
 *   cc -shared -fPIC -I third_party/hip -DREAL='"/path/of/the/library"' counting_port.c /path/of/the/library -o libhipdnn_cuda.so
 *
 * Functions that are not here are the library's, which this one is linked to. With -DARCHITECTURE='"sm_90"' the device says that it is one of
 * these, has the limits of one, and FAKE_MEMORY_BYTES of memory. Its kernels do nothing, unless `setLauncher` says who runs them.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "hip_runtime_abi.h"

#define EXPORT __attribute__((visibility("default")))

struct counts {
  /* Copies by direction as the runtime states it, synchronizations by the host, allocations, and work given to the device. */
  unsigned long long to_device, to_host, on_device, synchronizations, allocations, launches, graph_launches;
};

static struct counts counts;

EXPORT struct counts callCounts(void) { return counts; }

static void* real(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

static void add(unsigned long long* count) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }

static void add_copy(hipMemcpyKind kind) {
  add(kind == hipMemcpyHostToDevice ? &counts.to_device : kind == hipMemcpyDeviceToHost ? &counts.to_host : &counts.on_device);
}

EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  static __typeof__(&hipMemcpyAsync) call;
  if (call == NULL) call = real("hipMemcpyAsync");
  add_copy(kind);
  return call(destination, source, bytes, kind, stream);
}

EXPORT hipError_t hipMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch, size_t width, size_t height,
                                   hipMemcpyKind kind, hipStream_t stream) {
  static __typeof__(&hipMemcpy2DAsync) call;
  if (call == NULL) call = real("hipMemcpy2DAsync");
  add_copy(kind);
  return call(destination, destination_pitch, source, source_pitch, width, height, kind, stream);
}

EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  static __typeof__(&hipStreamSynchronize) call;
  if (call == NULL) call = real("hipStreamSynchronize");
  add(&counts.synchronizations);
  return call(stream);
}

EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  static __typeof__(&hipEventSynchronize) call;
  if (call == NULL) call = real("hipEventSynchronize");
  add(&counts.synchronizations);
  return call(event);
}

EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags) {
  static __typeof__(&hipHostMalloc) call;
  if (call == NULL) call = real("hipHostMalloc");
  add(&counts.allocations);
  return call(pointer, bytes, flags);
}

EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) {
  static __typeof__(&hipMalloc) call;
  if (call == NULL) call = real("hipMalloc");
  add(&counts.allocations);
#ifdef ARCHITECTURE
  const char* limit = getenv("FAKE_MEMORY_BYTES");
  if (limit != NULL && bytes > strtoull(limit, NULL, 10)) return hipErrorOutOfMemory;
#endif
  return call(pointer, bytes);
}

typedef __typeof__(&hipModuleLaunchKernel) launch_t;

#ifdef ARCHITECTURE
/* Gets what hipModuleLoadData got, blocks and threads along x, and the addresses of the arguments. */
typedef void (*launcher_t)(const char* image, unsigned int grid_x, unsigned int block_x, void** parameters);
static launcher_t launcher;

EXPORT void setLauncher(launcher_t given) { launcher = given; }
#endif

static hipError_t launch(launch_t call, hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                         unsigned int block_y, unsigned int block_z, unsigned int shared_memory_bytes, hipStream_t stream, void** parameters,
                         void** extra) {
  add(&counts.launches);
#ifdef ARCHITECTURE
  if ((unsigned long long)block_x * block_y * block_z > 1024) return hipErrorInvalidValue;
  if (launcher != NULL) launcher((const char*)function, grid_x, block_x, parameters);
  return hipSuccess; /* code for a GPU cannot be run here */
#endif
  return call(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, stream, parameters, extra);
}

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                                        unsigned int block_y, unsigned int block_z, unsigned int shared_memory_bytes, hipStream_t stream,
                                        void** parameters, void** extra) {
  static launch_t call;
  if (call == NULL) call = real("hipModuleLaunchKernel");
  return launch(call, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, stream, parameters, extra);
}

/* The port cuda's, which the host's library lacks: nothing that runs on that calls it. */
EXPORT hipError_t hipdnnCudaLaunchWaitingKernel_ext(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                                    unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                                    unsigned int shared_memory_bytes, hipStream_t stream, void** parameters, void** extra) {
  static launch_t call;
  if (call == NULL) call = real("hipdnnCudaLaunchWaitingKernel_ext");
  return launch(call, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, stream, parameters, extra);
}

EXPORT hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) {
  static __typeof__(&hipGraphLaunch) call;
  if (call == NULL) call = real("hipGraphLaunch");
  add(&counts.graph_launches);
  return call(graph, stream);
}

#ifdef ARCHITECTURE
EXPORT hipError_t hipdnnPortArchitecture_ext(int device, char* text, size_t capacity) {
  (void)device;
  strncpy(text, ARCHITECTURE, capacity);
  return hipSuccess;
}

EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  *module = (hipModule_t)strdup(image); /* its address is that of its functions, too */
  return hipSuccess;
}

EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  free(module);
  return hipSuccess;
}

EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  (void)name;
  *function = (hipFunction_t)module;
  return hipSuccess;
}
#endif
