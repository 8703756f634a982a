/* The part of the HIP runtime C ABI that this project calls, declared by hand for a library opened at run time; last, what AMD's backend library
 * calls beyond that, which the host's library has for it.
 *
 * Source: AMD's public HIP runtime API reference, ROCm 6 and 7 (the functions below kept their signatures), module management included.
 * hipError_t is a 32-bit int; 0 is success.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int hipError_t;
typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef struct ihipGraph* hipGraph_t;
typedef struct hipGraphExec* hipGraphExec_t;

enum { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorNotInitialized = 3, hipErrorInvalidDevice = 101,
       hipErrorInvalidImage = 200, hipErrorInvalidHandle = 400, hipErrorNotFound = 500, hipErrorNotReady = 600,
       hipErrorLaunchFailure = 719, hipErrorNotSupported = 801 };
typedef enum { hipMemcpyHostToHost = 0, hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipMemcpyDeviceToDevice = 3,
               hipMemcpyDefault = 4 } hipMemcpyKind;
enum { hipStreamDefault = 0, hipStreamNonBlocking = 1 };
enum { hipEventDefault = 0, hipEventDisableTiming = 2 };
enum { hipHostMallocDefault = 0 };
typedef enum { hipStreamCaptureModeGlobal = 0, hipStreamCaptureModeThreadLocal = 1, hipStreamCaptureModeRelaxed = 2 } hipStreamCaptureMode;

/* Not a stream but a name: the default stream of whichever thread passes it. Its value is part of the ABI. */
#define hipStreamPerThread ((hipStream_t)2)

hipError_t hipInit(unsigned int flags);
hipError_t hipGetDeviceCount(int* count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int* device);
hipError_t hipRuntimeGetVersion(int* version);
/* A hipDevice_t is the device's ordinal, an int. */
hipError_t hipDeviceGetName(char* name, int capacity, int device);
/* The properties are a struct of about a hundred fields, of which this project reads one and the host's library fills
 * three more: name (first), memory in bytes (64 bits), processors (32 bits). Its second layout is that of this versioned symbol,
 * which HIP's header puts in the place of hipGetDeviceProperties since ROCm 6.0; the unversioned symbol fills the first one. Sizes and offsets
 * of hipDeviceProp_tR0600 are those of hip/hip_runtime_api.h of ROCm 6.0 to 7.2 on 64-bit Linux (repository ROCm/rocm-systems, projects/hip). */
enum { hipDevicePropR0600Bytes = 1472, hipDevicePropR0600NameBytes = 256, hipDevicePropR0600TotalGlobalMem = 288,
       hipDevicePropR0600MultiProcessorCount = 388, hipDevicePropR0600ArchName = 1160, hipDevicePropR0600ArchNameBytes = 256 };
hipError_t hipGetDevicePropertiesR0600(void* properties, int device);
const char* hipGetErrorName(hipError_t error);
const char* hipGetErrorString(hipError_t error);

hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipFree(void* pointer);
hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes);
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags);
hipError_t hipHostFree(void* pointer);
hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
/* `height` rows of `width` bytes; a pitch is the distance of two rows. */
hipError_t hipMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemsetAsync(void* destination, int value, size_t bytes, hipStream_t stream);

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
/* The device a stream was created on; of the default streams the calling thread's. */
hipError_t hipStreamGetDevice(hipStream_t stream, int* device);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags);
/* What is put on a stream between these two calls is kept as a graph and not run. */
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph, unsigned long long flags);
hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream);
hipError_t hipGraphExecDestroy(hipGraphExec_t executable);
hipError_t hipGraphDestroy(hipGraph_t graph);

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t start, hipEvent_t stop);
hipError_t hipEventDestroy(hipEvent_t event);

/* An image is a code object that tells its own size; here also a text that ends in NUL (docs/host-library.md). A function lives as long as
 * its module. In a launch kernel_params[i] is the address of argument i, and extra is null. */
hipError_t hipModuleLoadData(hipModule_t* module, const void* image);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_memory_bytes,
                                 hipStream_t stream, void** kernel_params, void** extra);

/* Of AMD's backend library. An attribute is a number of hipDeviceAttribute_t. */
enum { hipMallocSignalMemory = 2 };
hipError_t hipDeviceGetAttribute(int* value, int attribute, int device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned int flags);
hipError_t hipStreamWaitValue32(hipStream_t stream, void* pointer, uint32_t value, unsigned int flags, uint32_t mask);

#ifdef __cplusplus
}
#endif
