// ONNX Runtime's C API, version 24: the part this project calls and the callbacks it implements.
//
// Declared by hand from the published ABI (onnxruntime_c_api.h and onnxruntime_ep_c_api.h of ONNX Runtime 1.24; of 1.25 for profiling, whose
// members say so), because no package of a registry ships ONNX Runtime's headers. The function tables only ever grow at their end, so what is declared here holds for every later
// version; slots that are not called are gaps. Names are those of the original, so code compiles against either. check_abi.cc asserts every
// slot, and does so for the original headers too where a build points at them (HIPDNN_MLIR_ONNXRUNTIME_HEADERS).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 24
// The first version with a provider's own events in ONNX Runtime's profile. What it added is used only where ONNX Runtime has that version.
#define ORT_API_VERSION_OF_PROFILING 25
#define ORT_API_CALL
#define ORT_EXPORT
#define ORTCHAR_T char

// Opaque objects of ONNX Runtime.
typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtLogger OrtLogger;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtNode OrtNode;
typedef struct OrtGraph OrtGraph;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtMemoryDevice OrtMemoryDevice;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtKernelRegistry OrtKernelRegistry;
typedef struct OrtDeviceEpIncompatibilityDetails OrtDeviceEpIncompatibilityDetails;
typedef struct OrtExternalResourceImporterImpl OrtExternalResourceImporterImpl;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtProfilingEvent OrtProfilingEvent;
typedef struct OrtProfilingEventsContainer OrtProfilingEventsContainer;

typedef OrtStatus* OrtStatusPtr;

// Structures declared below.
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtApi OrtApi;
typedef struct OrtEpApi OrtEpApi;
typedef struct OrtModelEditorApi OrtModelEditorApi;
typedef struct OrtApiBase OrtApiBase;
typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
typedef struct OrtNodeFusionOptions OrtNodeFusionOptions;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtSyncStreamImpl OrtSyncStreamImpl;
typedef struct OrtSyncNotificationImpl OrtSyncNotificationImpl;
typedef struct OrtEpProfilerImpl OrtEpProfilerImpl;

typedef enum OrtErrorCode {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11
} OrtErrorCode;

typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;

// As onnx.TensorProto.DataType.
typedef enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19
} ONNXTensorElementDataType;

typedef enum ONNXType {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6
} ONNXType;

typedef enum OrtOpAttrType {
  ORT_OP_ATTR_UNDEFINED = 0,
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_STRINGS = 6,
  ORT_OP_ATTR_GRAPH = 7,
  ORT_OP_ATTR_TENSOR = 8
} OrtOpAttrType;

typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum OrtAllocatorType { OrtInvalidAllocator = -1, OrtDeviceAllocator = 0, OrtArenaAllocator = 1, OrtReadOnlyAllocator = 2 } OrtAllocatorType;
typedef enum OrtMemType { OrtMemTypeCPUInput = -2, OrtMemTypeCPUOutput = -1, OrtMemTypeDefault = 0 } OrtMemType;
typedef enum OrtDeviceMemoryType { OrtDeviceMemoryType_DEFAULT = 0, OrtDeviceMemoryType_HOST_ACCESSIBLE = 5 } OrtDeviceMemoryType;
typedef enum OrtMemoryInfoDeviceType { OrtMemoryInfoDeviceType_CPU = 0, OrtMemoryInfoDeviceType_GPU = 1, OrtMemoryInfoDeviceType_NPU = 3 } OrtMemoryInfoDeviceType;
typedef enum OrtHardwareDeviceType { OrtHardwareDeviceType_CPU = 0, OrtHardwareDeviceType_GPU = 1, OrtHardwareDeviceType_NPU = 2 } OrtHardwareDeviceType;
typedef enum OrtEpDataLayout { OrtEpDataLayout_NCHW = 0, OrtEpDataLayout_NHWC = 1 } OrtEpDataLayout;

// Since 1.25.
typedef enum OrtProfilingEventCategory {
  OrtProfilingEventCategory_SESSION = 0,
  OrtProfilingEventCategory_NODE = 1,
  OrtProfilingEventCategory_KERNEL = 2,
  OrtProfilingEventCategory_API = 3
} OrtProfilingEventCategory;

typedef enum OrtCompiledModelCompatibility {
  OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
  OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
  OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
  OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3
} OrtCompiledModelCompatibility;

#ifdef __cplusplus
extern "C" {
#endif

// Tables that ONNX Runtime provides. The number behind a member is its slot.

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t);  // 0
  const char* (*GetVersionString)(void);  // 1
};

struct OrtApi {
  OrtStatusPtr (*CreateStatus)(OrtErrorCode, const char*);  // 0
  OrtErrorCode (*GetErrorCode)(const OrtStatus*);  // 1
  const char* (*GetErrorMessage)(const OrtStatus*);  // 2
  OrtStatusPtr (*CreateEnv)(OrtLoggingLevel, const char*, OrtEnv**);  // 3
  void* gap_4[3];
  OrtStatusPtr (*CreateSession)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**);  // 7
  OrtStatusPtr (*CreateSessionFromArray)(const OrtEnv*, const void*, size_t, const OrtSessionOptions*, OrtSession**);  // 8
  OrtStatusPtr (*Run)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t, const char* const*,
      size_t, OrtValue**);  // 9
  OrtStatusPtr (*CreateSessionOptions)(OrtSessionOptions**);  // 10
  void* gap_11[12];
  OrtStatusPtr (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, GraphOptimizationLevel);  // 23
  OrtStatusPtr (*SetIntraOpNumThreads)(OrtSessionOptions*, int);  // 24
  void* gap_25[5];
  OrtStatusPtr (*SessionGetInputCount)(const OrtSession*, size_t*);  // 30
  OrtStatusPtr (*SessionGetOutputCount)(const OrtSession*, size_t*);  // 31
  void* gap_32[1];
  OrtStatusPtr (*SessionGetInputTypeInfo)(const OrtSession*, size_t, OrtTypeInfo**);  // 33
  void* gap_34[2];
  OrtStatusPtr (*SessionGetInputName)(const OrtSession*, size_t, OrtAllocator*, char**);  // 36
  OrtStatusPtr (*SessionGetOutputName)(const OrtSession*, size_t, OrtAllocator*, char**);  // 37
  void* gap_38[11];
  OrtStatusPtr (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t,
      ONNXTensorElementDataType, OrtValue**);  // 49
  void* gap_50[1];
  OrtStatusPtr (*GetTensorMutableData)(OrtValue*, void**);  // 51
  void* gap_52[3];
  OrtStatusPtr (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**);  // 55
  OrtStatusPtr (*GetOnnxTypeFromTypeInfo)(const OrtTypeInfo*, ONNXType*);  // 56
  void* gap_57[3];
  OrtStatusPtr (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*, ONNXTensorElementDataType*);  // 60
  OrtStatusPtr (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*);  // 61
  OrtStatusPtr (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t);  // 62
  OrtStatusPtr (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*, const char**, size_t);  // 63
  void* gap_64[1];
  OrtStatusPtr (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**);  // 65
  void* gap_66[3];
  OrtStatusPtr (*CreateCpuMemoryInfo)(OrtAllocatorType, OrtMemType, OrtMemoryInfo**);  // 69
  void* gap_70[6];
  OrtStatusPtr (*AllocatorFree)(OrtAllocator*, void*);  // 76
  void* gap_77[1];
  OrtStatusPtr (*GetAllocatorWithDefaultOptions)(OrtAllocator**);  // 78
  void* gap_79[9];
  OrtStatusPtr (*KernelContext_GetInputCount)(const OrtKernelContext*, size_t*);  // 88
  OrtStatusPtr (*KernelContext_GetOutputCount)(const OrtKernelContext*, size_t*);  // 89
  OrtStatusPtr (*KernelContext_GetInput)(const OrtKernelContext*, size_t, const OrtValue**);  // 90
  OrtStatusPtr (*KernelContext_GetOutput)(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**);  // 91
  void (*ReleaseEnv)(OrtEnv*);  // 92
  void (*ReleaseStatus)(OrtStatus*);  // 93
  void (*ReleaseMemoryInfo)(OrtMemoryInfo*);  // 94
  void (*ReleaseSession)(OrtSession*);  // 95
  void (*ReleaseValue)(OrtValue*);  // 96
  void* gap_97[1];
  void (*ReleaseTypeInfo)(OrtTypeInfo*);  // 98
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*);  // 99
  void (*ReleaseSessionOptions)(OrtSessionOptions*);  // 100
  void* gap_101[29];
  OrtStatusPtr (*AddSessionConfigEntry)(OrtSessionOptions*, const char*, const char*);  // 130
  void* gap_131[62];
  OrtStatusPtr (*KernelContext_GetGPUComputeStream)(const OrtKernelContext*, void**);  // 193
  void* gap_194[17];
  OrtStatusPtr (*CreateOpAttr)(const char*, const void*, int, OrtOpAttrType, OrtOpAttr**);  // 211
  void (*ReleaseOpAttr)(OrtOpAttr*);  // 212
  void* gap_213[24];
  OrtStatusPtr (*HasSessionConfigEntry)(const OrtSessionOptions*, const char*, int*);  // 237
  OrtStatusPtr (*GetSessionConfigEntry)(const OrtSessionOptions*, const char*, char*, size_t*);  // 238
  void* gap_239[8];
  OrtStatusPtr (*Logger_LogMessage)(const OrtLogger*, OrtLoggingLevel, const char*, const char*, int, const char*);  // 247
  OrtStatusPtr (*Logger_GetLoggingSeverityLevel)(const OrtLogger*, OrtLoggingLevel*);  // 248
  void* gap_249[23];
  OrtStatusPtr (*ReadOpAttr)(const OrtOpAttr*, OrtOpAttrType, void*, size_t, size_t*);  // 272
  void* gap_273[13];
  void (*ReleaseNode)(OrtNode*);  // 286
  void* gap_287[2];
  OrtStatusPtr (*GetValueInfoName)(const OrtValueInfo*, const char**);  // 289
  OrtStatusPtr (*GetValueInfoTypeInfo)(const OrtValueInfo*, const OrtTypeInfo**);  // 290
  const OrtModelEditorApi* (*GetModelEditorApi)(void);  // 291
  void* gap_292[3];
  void (*CreateKeyValuePairs)(OrtKeyValuePairs**);  // 295
  void (*AddKeyValuePair)(OrtKeyValuePairs*, const char*, const char*);  // 296
  const char* (*GetKeyValue)(const OrtKeyValuePairs*, const char*);  // 297
  void (*GetKeyValuePairs)(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*);  // 298
  void* gap_299[1];
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs*);  // 300
  OrtStatusPtr (*RegisterExecutionProviderLibrary)(OrtEnv*, const char*, const char*);  // 301
  OrtStatusPtr (*UnregisterExecutionProviderLibrary)(OrtEnv*, const char*);  // 302
  OrtStatusPtr (*GetEpDevices)(const OrtEnv*, const OrtEpDevice* const**, size_t*);  // 303
  OrtStatusPtr (*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t, const
      char* const*, const char* const*, size_t);  // 304
  void* gap_305[2];
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice*);  // 307
  uint32_t (*HardwareDevice_VendorId)(const OrtHardwareDevice*);  // 308
  void* gap_309[1];
  uint32_t (*HardwareDevice_DeviceId)(const OrtHardwareDevice*);  // 310
  void* gap_311[1];
  const char* (*EpDevice_EpName)(const OrtEpDevice*);  // 312
  void* gap_313[3];
  const OrtHardwareDevice* (*EpDevice_Device)(const OrtEpDevice*);  // 316
  const OrtEpApi* (*GetEpApi)(void);  // 317
  OrtStatusPtr (*GetTensorSizeInBytes)(const OrtValue*, size_t*);  // 318
  void* gap_319[1];
  OrtStatusPtr (*CreateMemoryInfo_V2)(const char*, OrtMemoryInfoDeviceType, uint32_t, int32_t, OrtDeviceMemoryType, size_t,
      OrtAllocatorType, OrtMemoryInfo**);  // 320
  OrtDeviceMemoryType (*MemoryInfoGetDeviceMemType)(const OrtMemoryInfo*);  // 321
  void* gap_322[4];
  OrtStatusPtr (*ValueInfo_GetInitializerValue)(const OrtValueInfo*, const OrtValue**);  // 326
  void* gap_327[4];
  OrtStatusPtr (*ValueInfo_IsConstantInitializer)(const OrtValueInfo*, bool*);  // 331
  void* gap_332[1];
  OrtStatusPtr (*Graph_GetName)(const OrtGraph*, const char**);  // 333
  OrtStatusPtr (*Graph_GetModelPath)(const OrtGraph*, const char**);  // 334
  OrtStatusPtr (*Graph_GetOnnxIRVersion)(const OrtGraph*, int64_t*);  // 335
  OrtStatusPtr (*Graph_GetNumOperatorSets)(const OrtGraph*, size_t*);  // 336
  OrtStatusPtr (*Graph_GetOperatorSets)(const OrtGraph*, const char**, int64_t*, size_t);  // 337
  OrtStatusPtr (*Graph_GetNumInputs)(const OrtGraph*, size_t*);  // 338
  OrtStatusPtr (*Graph_GetInputs)(const OrtGraph*, const OrtValueInfo**, size_t);  // 339
  OrtStatusPtr (*Graph_GetNumOutputs)(const OrtGraph*, size_t*);  // 340
  OrtStatusPtr (*Graph_GetOutputs)(const OrtGraph*, const OrtValueInfo**, size_t);  // 341
  OrtStatusPtr (*Graph_GetNumInitializers)(const OrtGraph*, size_t*);  // 342
  OrtStatusPtr (*Graph_GetInitializers)(const OrtGraph*, const OrtValueInfo**, size_t);  // 343
  OrtStatusPtr (*Graph_GetNumNodes)(const OrtGraph*, size_t*);  // 344
  OrtStatusPtr (*Graph_GetNodes)(const OrtGraph*, const OrtNode**, size_t);  // 345
  OrtStatusPtr (*Graph_GetParentNode)(const OrtGraph*, const OrtNode**);  // 346
  void* gap_347[1];
  OrtStatusPtr (*Node_GetId)(const OrtNode*, size_t*);  // 348
  OrtStatusPtr (*Node_GetName)(const OrtNode*, const char**);  // 349
  OrtStatusPtr (*Node_GetOperatorType)(const OrtNode*, const char**);  // 350
  OrtStatusPtr (*Node_GetDomain)(const OrtNode*, const char**);  // 351
  void* gap_352[1];
  OrtStatusPtr (*Node_GetNumInputs)(const OrtNode*, size_t*);  // 353
  OrtStatusPtr (*Node_GetInputs)(const OrtNode*, const OrtValueInfo**, size_t);  // 354
  OrtStatusPtr (*Node_GetNumOutputs)(const OrtNode*, size_t*);  // 355
  OrtStatusPtr (*Node_GetOutputs)(const OrtNode*, const OrtValueInfo**, size_t);  // 356
  OrtStatusPtr (*Node_GetNumImplicitInputs)(const OrtNode*, size_t*);  // 357
  OrtStatusPtr (*Node_GetImplicitInputs)(const OrtNode*, const OrtValueInfo**, size_t);  // 358
  OrtStatusPtr (*Node_GetNumAttributes)(const OrtNode*, size_t*);  // 359
  OrtStatusPtr (*Node_GetAttributes)(const OrtNode*, const OrtOpAttr**, size_t);  // 360
  OrtStatusPtr (*Node_GetAttributeByName)(const OrtNode*, const char*, const OrtOpAttr**);  // 361
  OrtStatusPtr (*OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr*, OrtValue**);  // 362
  OrtStatusPtr (*OpAttr_GetType)(const OrtOpAttr*, OrtOpAttrType*);  // 363
  OrtStatusPtr (*OpAttr_GetName)(const OrtOpAttr*, const char**);  // 364
  OrtStatusPtr (*Node_GetNumSubgraphs)(const OrtNode*, size_t*);  // 365
  OrtStatusPtr (*Node_GetSubgraphs)(const OrtNode*, const OrtGraph**, size_t, const char**);  // 366
  void* gap_367[11];
  OrtStatusPtr (*GetTensorData)(const OrtValue*, const void**);  // 378
  OrtStatusPtr (*GetSessionOptionsConfigEntries)(const OrtSessionOptions*, OrtKeyValuePairs**);  // 379
  void* gap_380[4];
  void* (*SyncStream_GetHandle)(OrtSyncStream*);  // 384
  void* gap_385[5];
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo*);  // 390
};

struct OrtEpApi {
  OrtStatusPtr (*CreateEpDevice)(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*, const OrtKeyValuePairs*,
      OrtEpDevice**);  // 0
  void (*ReleaseEpDevice)(OrtEpDevice*);  // 1
  OrtStatusPtr (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const
      OrtNodeFusionOptions*);  // 2
  void* gap_3[1];
  const char* (*NodeComputeContext_NodeName)(const OrtNodeComputeContext*);  // 4
  OrtStatusPtr (*EpDevice_AddAllocatorInfo)(OrtEpDevice*, const OrtMemoryInfo*);  // 5
  const OrtMemoryDevice* (*MemoryInfo_GetMemoryDevice)(const OrtMemoryInfo*);  // 6
  const OrtMemoryDevice* (*Value_GetMemoryDevice)(const OrtValue*);  // 7
  void* gap_8[1];
  OrtMemoryInfoDeviceType (*MemoryDevice_GetDeviceType)(const OrtMemoryDevice*);  // 9
  OrtDeviceMemoryType (*MemoryDevice_GetMemoryType)(const OrtMemoryDevice*);  // 10
  uint32_t (*MemoryDevice_GetVendorId)(const OrtMemoryDevice*);  // 11
  uint32_t (*MemoryDevice_GetDeviceId)(const OrtMemoryDevice*);  // 12
  const OrtSyncStreamImpl* (*SyncStream_GetImpl)(const OrtSyncStream*);  // 13
  void* gap_14[2];
  OrtStatusPtr (*CreateHardwareDevice)(OrtHardwareDeviceType, uint32_t, uint32_t, const char*, const OrtKeyValuePairs*,
      OrtHardwareDevice**);  // 16
  void (*ReleaseHardwareDevice)(OrtHardwareDevice*);  // 17
  // Since 1.25. Times are microseconds since ONNX Runtime's profile began. Events and their texts are copied by whoever takes them.
  void* gap_18[47];
  OrtStatusPtr (*CreateProfilingEvent)(OrtProfilingEventCategory, int32_t process, int32_t thread, const char* name, int64_t begin_us,
      int64_t duration_us, const char* const* keys, const char* const* values, size_t count, OrtProfilingEvent**);  // 65
  void (*ReleaseProfilingEvent)(OrtProfilingEvent*);  // 66
  void* gap_67[5];
  OrtStatusPtr (*ProfilingEventsContainer_AddEvents)(OrtProfilingEventsContainer*, const OrtProfilingEvent* const*, size_t count);  // 72
};

struct OrtModelEditorApi {
  void* gap_0[6];
  OrtStatusPtr (*CreateNode)(const char*, const char*, const char*, const char* const*, size_t, const char* const*, size_t,
      OrtOpAttr**, size_t, OrtNode**);  // 6
};

// Structures that an execution provider fills. ort_version_supported tells how far; members after that version are not read.

struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator*, size_t);
  void (*Free)(OrtAllocator*, void*);
  const OrtMemoryInfo* (*Info)(const OrtAllocator*);
  void* (*Reserve)(OrtAllocator*, size_t);
  OrtStatusPtr (*GetStats)(const OrtAllocator*, OrtKeyValuePairs**);
  void* (*AllocOnStream)(OrtAllocator*, size_t, OrtSyncStream*);
};

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatusPtr (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatusPtr (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

struct OrtDataTransferImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtDataTransferImpl*);
  bool (*CanCopy)(const OrtDataTransferImpl*, const OrtMemoryDevice* source, const OrtMemoryDevice* destination);
  OrtStatusPtr (*CopyTensors)(OrtDataTransferImpl*, const OrtValue** sources, OrtValue** destinations, OrtSyncStream** streams, size_t count);
};

struct OrtSyncNotificationImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtSyncNotificationImpl*);
  OrtStatusPtr (*Activate)(OrtSyncNotificationImpl*);
  OrtStatusPtr (*WaitOnDevice)(OrtSyncNotificationImpl*, OrtSyncStream* consumer);
  OrtStatusPtr (*WaitOnHost)(OrtSyncNotificationImpl*);
};

struct OrtSyncStreamImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtSyncStreamImpl*);
  void* (*GetHandle)(OrtSyncStreamImpl*);
  OrtStatusPtr (*CreateNotification)(OrtSyncStreamImpl*, OrtSyncNotificationImpl**);
  OrtStatusPtr (*Flush)(OrtSyncStreamImpl*);
  OrtStatusPtr (*OnSessionRunEnd)(OrtSyncStreamImpl*);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatusPtr (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatusPtr (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo** infos,
                          OrtNode** ep_context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  OrtStatusPtr (*GetPreferredDataLayout)(OrtEp*, OrtEpDataLayout*);
  OrtStatusPtr (*ShouldConvertDataLayoutForOp)(OrtEp*, const char* domain, const char* op_type, OrtEpDataLayout, int* should_convert);
  OrtStatusPtr (*SetDynamicOptions)(OrtEp*, const char* const* keys, const char* const* values, size_t count);
  OrtStatusPtr (*OnRunStart)(OrtEp*, const OrtRunOptions*);
  OrtStatusPtr (*OnRunEnd)(OrtEp*, const OrtRunOptions*, bool sync_stream);
  OrtStatusPtr (*CreateAllocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**);
  OrtStatusPtr (*CreateSyncStreamForDevice)(OrtEp*, const OrtMemoryDevice*, OrtSyncStreamImpl**);
  const char* (*GetCompiledModelCompatibilityInfo)(OrtEp*, const OrtGraph*);
  OrtStatusPtr (*GetKernelRegistry)(OrtEp*, const OrtKernelRegistry**);
  OrtStatusPtr (*IsConcurrentRunSupported)(OrtEp*, bool*);
  // Since 1.25.
  OrtStatusPtr (*Sync)(OrtEp*);
  OrtStatusPtr (*CreateProfiler)(OrtEp*, OrtEpProfilerImpl**);
};

// Since 1.25, and ort_version_supported says at least that. StartEvent and StopEvent are called on the thread that ONNX Runtime's own event
// is on: for a node that is profiled, around its Compute.
struct OrtEpProfilerImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtEpProfilerImpl*);
  OrtStatusPtr (*StartProfiling)(OrtEpProfilerImpl*, int64_t offset_ns);
  OrtStatusPtr (*StartEvent)(OrtEpProfilerImpl*, uint64_t correlation);
  OrtStatusPtr (*StopEvent)(OrtEpProfilerImpl*, uint64_t correlation, const OrtProfilingEvent*);
  OrtStatusPtr (*EndProfiling)(OrtEpProfilerImpl*, OrtProfilingEventsContainer*);
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatusPtr (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
                                      size_t max_ep_devices, size_t* ep_device_count);
  OrtStatusPtr (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices, const OrtKeyValuePairs* const* ep_metadata, size_t count,
                           const OrtSessionOptions*, const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatusPtr (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count,
                                                         const char* compatibility_info, OrtCompiledModelCompatibility*);
  OrtStatusPtr (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs* options, OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatusPtr (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatusPtr (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs* options, OrtSyncStreamImpl**);
  OrtStatusPtr (*GetHardwareDeviceIncompatibilityDetails)(OrtEpFactory*, const OrtHardwareDevice*, OrtDeviceEpIncompatibilityDetails*);
  OrtStatusPtr (*CreateExternalResourceImporterForDevice)(OrtEpFactory*, const OrtEpDevice*, OrtExternalResourceImporterImpl**);
  OrtStatusPtr (*GetNumCustomOpDomains)(OrtEpFactory*, size_t*);
  OrtStatusPtr (*GetCustomOpDomains)(OrtEpFactory*, OrtCustomOpDomain**, size_t);
};

/// What a process that links or opens ONNX Runtime starts from.
const OrtApiBase* OrtGetApiBase(void);

#ifdef __cplusplus
}
#endif
