// Asserts where the members of ONNX Runtime's tables lie. Compiled against the declarations of this folder with every build of the execution
// provider, and against ONNX Runtime's own headers (API 25 or later) where HIPDNN_MLIR_ONNXRUNTIME_HEADERS names their folder.
#include <onnxruntime_c_api.h>

#include <cstddef>

namespace {

constexpr std::size_t slot(std::size_t offset) { return offset / sizeof(void*); }

static_assert(ORT_API_VERSION >= 24);

static_assert(slot(offsetof(OrtApi, CreateStatus)) == 0);
static_assert(slot(offsetof(OrtApi, GetErrorCode)) == 1);
static_assert(slot(offsetof(OrtApi, GetErrorMessage)) == 2);
static_assert(slot(offsetof(OrtApi, CreateEnv)) == 3);
static_assert(slot(offsetof(OrtApi, CreateSession)) == 7);
static_assert(slot(offsetof(OrtApi, CreateSessionFromArray)) == 8);
static_assert(slot(offsetof(OrtApi, Run)) == 9);
static_assert(slot(offsetof(OrtApi, CreateSessionOptions)) == 10);
static_assert(slot(offsetof(OrtApi, SetSessionGraphOptimizationLevel)) == 23);
static_assert(slot(offsetof(OrtApi, SetIntraOpNumThreads)) == 24);
static_assert(slot(offsetof(OrtApi, SessionGetInputCount)) == 30);
static_assert(slot(offsetof(OrtApi, SessionGetOutputCount)) == 31);
static_assert(slot(offsetof(OrtApi, SessionGetInputTypeInfo)) == 33);
static_assert(slot(offsetof(OrtApi, SessionGetInputName)) == 36);
static_assert(slot(offsetof(OrtApi, SessionGetOutputName)) == 37);
static_assert(slot(offsetof(OrtApi, CreateTensorWithDataAsOrtValue)) == 49);
static_assert(slot(offsetof(OrtApi, GetTensorMutableData)) == 51);
static_assert(slot(offsetof(OrtApi, CastTypeInfoToTensorInfo)) == 55);
static_assert(slot(offsetof(OrtApi, GetOnnxTypeFromTypeInfo)) == 56);
static_assert(slot(offsetof(OrtApi, GetTensorElementType)) == 60);
static_assert(slot(offsetof(OrtApi, GetDimensionsCount)) == 61);
static_assert(slot(offsetof(OrtApi, GetDimensions)) == 62);
static_assert(slot(offsetof(OrtApi, GetSymbolicDimensions)) == 63);
static_assert(slot(offsetof(OrtApi, GetTensorTypeAndShape)) == 65);
static_assert(slot(offsetof(OrtApi, CreateCpuMemoryInfo)) == 69);
static_assert(slot(offsetof(OrtApi, AllocatorFree)) == 76);
static_assert(slot(offsetof(OrtApi, GetAllocatorWithDefaultOptions)) == 78);
static_assert(slot(offsetof(OrtApi, KernelContext_GetInputCount)) == 88);
static_assert(slot(offsetof(OrtApi, KernelContext_GetOutputCount)) == 89);
static_assert(slot(offsetof(OrtApi, KernelContext_GetInput)) == 90);
static_assert(slot(offsetof(OrtApi, KernelContext_GetOutput)) == 91);
static_assert(slot(offsetof(OrtApi, ReleaseEnv)) == 92);
static_assert(slot(offsetof(OrtApi, ReleaseStatus)) == 93);
static_assert(slot(offsetof(OrtApi, ReleaseMemoryInfo)) == 94);
static_assert(slot(offsetof(OrtApi, ReleaseSession)) == 95);
static_assert(slot(offsetof(OrtApi, ReleaseValue)) == 96);
static_assert(slot(offsetof(OrtApi, ReleaseTypeInfo)) == 98);
static_assert(slot(offsetof(OrtApi, ReleaseTensorTypeAndShapeInfo)) == 99);
static_assert(slot(offsetof(OrtApi, ReleaseSessionOptions)) == 100);
static_assert(slot(offsetof(OrtApi, AddSessionConfigEntry)) == 130);
static_assert(slot(offsetof(OrtApi, KernelContext_GetGPUComputeStream)) == 193);
static_assert(slot(offsetof(OrtApi, CreateOpAttr)) == 211);
static_assert(slot(offsetof(OrtApi, ReleaseOpAttr)) == 212);
static_assert(slot(offsetof(OrtApi, HasSessionConfigEntry)) == 237);
static_assert(slot(offsetof(OrtApi, GetSessionConfigEntry)) == 238);
static_assert(slot(offsetof(OrtApi, Logger_LogMessage)) == 247);
static_assert(slot(offsetof(OrtApi, Logger_GetLoggingSeverityLevel)) == 248);
static_assert(slot(offsetof(OrtApi, ReadOpAttr)) == 272);
static_assert(slot(offsetof(OrtApi, ReleaseNode)) == 286);
static_assert(slot(offsetof(OrtApi, GetValueInfoName)) == 289);
static_assert(slot(offsetof(OrtApi, GetValueInfoTypeInfo)) == 290);
static_assert(slot(offsetof(OrtApi, GetModelEditorApi)) == 291);
static_assert(slot(offsetof(OrtApi, CreateKeyValuePairs)) == 295);
static_assert(slot(offsetof(OrtApi, AddKeyValuePair)) == 296);
static_assert(slot(offsetof(OrtApi, GetKeyValue)) == 297);
static_assert(slot(offsetof(OrtApi, GetKeyValuePairs)) == 298);
static_assert(slot(offsetof(OrtApi, ReleaseKeyValuePairs)) == 300);
static_assert(slot(offsetof(OrtApi, RegisterExecutionProviderLibrary)) == 301);
static_assert(slot(offsetof(OrtApi, UnregisterExecutionProviderLibrary)) == 302);
static_assert(slot(offsetof(OrtApi, GetEpDevices)) == 303);
static_assert(slot(offsetof(OrtApi, SessionOptionsAppendExecutionProvider_V2)) == 304);
static_assert(slot(offsetof(OrtApi, HardwareDevice_Type)) == 307);
static_assert(slot(offsetof(OrtApi, HardwareDevice_VendorId)) == 308);
static_assert(slot(offsetof(OrtApi, HardwareDevice_DeviceId)) == 310);
static_assert(slot(offsetof(OrtApi, EpDevice_EpName)) == 312);
static_assert(slot(offsetof(OrtApi, EpDevice_Device)) == 316);
static_assert(slot(offsetof(OrtApi, GetEpApi)) == 317);
static_assert(slot(offsetof(OrtApi, GetTensorSizeInBytes)) == 318);
static_assert(slot(offsetof(OrtApi, CreateMemoryInfo_V2)) == 320);
static_assert(slot(offsetof(OrtApi, MemoryInfoGetDeviceMemType)) == 321);
static_assert(slot(offsetof(OrtApi, ValueInfo_GetInitializerValue)) == 326);
static_assert(slot(offsetof(OrtApi, ValueInfo_IsConstantInitializer)) == 331);
static_assert(slot(offsetof(OrtApi, Graph_GetName)) == 333);
static_assert(slot(offsetof(OrtApi, Graph_GetModelPath)) == 334);
static_assert(slot(offsetof(OrtApi, Graph_GetOnnxIRVersion)) == 335);
static_assert(slot(offsetof(OrtApi, Graph_GetNumOperatorSets)) == 336);
static_assert(slot(offsetof(OrtApi, Graph_GetOperatorSets)) == 337);
static_assert(slot(offsetof(OrtApi, Graph_GetNumInputs)) == 338);
static_assert(slot(offsetof(OrtApi, Graph_GetInputs)) == 339);
static_assert(slot(offsetof(OrtApi, Graph_GetNumOutputs)) == 340);
static_assert(slot(offsetof(OrtApi, Graph_GetOutputs)) == 341);
static_assert(slot(offsetof(OrtApi, Graph_GetNumInitializers)) == 342);
static_assert(slot(offsetof(OrtApi, Graph_GetInitializers)) == 343);
static_assert(slot(offsetof(OrtApi, Graph_GetNumNodes)) == 344);
static_assert(slot(offsetof(OrtApi, Graph_GetNodes)) == 345);
static_assert(slot(offsetof(OrtApi, Graph_GetParentNode)) == 346);
static_assert(slot(offsetof(OrtApi, Node_GetId)) == 348);
static_assert(slot(offsetof(OrtApi, Node_GetName)) == 349);
static_assert(slot(offsetof(OrtApi, Node_GetOperatorType)) == 350);
static_assert(slot(offsetof(OrtApi, Node_GetDomain)) == 351);
static_assert(slot(offsetof(OrtApi, Node_GetNumInputs)) == 353);
static_assert(slot(offsetof(OrtApi, Node_GetInputs)) == 354);
static_assert(slot(offsetof(OrtApi, Node_GetNumOutputs)) == 355);
static_assert(slot(offsetof(OrtApi, Node_GetOutputs)) == 356);
static_assert(slot(offsetof(OrtApi, Node_GetNumImplicitInputs)) == 357);
static_assert(slot(offsetof(OrtApi, Node_GetImplicitInputs)) == 358);
static_assert(slot(offsetof(OrtApi, Node_GetNumAttributes)) == 359);
static_assert(slot(offsetof(OrtApi, Node_GetAttributes)) == 360);
static_assert(slot(offsetof(OrtApi, Node_GetAttributeByName)) == 361);
static_assert(slot(offsetof(OrtApi, OpAttr_GetTensorAttributeAsOrtValue)) == 362);
static_assert(slot(offsetof(OrtApi, OpAttr_GetType)) == 363);
static_assert(slot(offsetof(OrtApi, OpAttr_GetName)) == 364);
static_assert(slot(offsetof(OrtApi, Node_GetNumSubgraphs)) == 365);
static_assert(slot(offsetof(OrtApi, Node_GetSubgraphs)) == 366);
static_assert(slot(offsetof(OrtApi, GetTensorData)) == 378);
static_assert(slot(offsetof(OrtApi, GetSessionOptionsConfigEntries)) == 379);
static_assert(slot(offsetof(OrtApi, SyncStream_GetHandle)) == 384);
static_assert(slot(offsetof(OrtApi, TensorTypeAndShape_HasShape)) == 390);

static_assert(slot(offsetof(OrtEpApi, CreateEpDevice)) == 0);
static_assert(slot(offsetof(OrtEpApi, ReleaseEpDevice)) == 1);
static_assert(slot(offsetof(OrtEpApi, EpGraphSupportInfo_AddNodesToFuse)) == 2);
static_assert(slot(offsetof(OrtEpApi, NodeComputeContext_NodeName)) == 4);
static_assert(slot(offsetof(OrtEpApi, EpDevice_AddAllocatorInfo)) == 5);
static_assert(slot(offsetof(OrtEpApi, MemoryInfo_GetMemoryDevice)) == 6);
static_assert(slot(offsetof(OrtEpApi, Value_GetMemoryDevice)) == 7);
static_assert(slot(offsetof(OrtEpApi, MemoryDevice_GetDeviceType)) == 9);
static_assert(slot(offsetof(OrtEpApi, MemoryDevice_GetMemoryType)) == 10);
static_assert(slot(offsetof(OrtEpApi, MemoryDevice_GetVendorId)) == 11);
static_assert(slot(offsetof(OrtEpApi, MemoryDevice_GetDeviceId)) == 12);
static_assert(slot(offsetof(OrtEpApi, SyncStream_GetImpl)) == 13);
static_assert(slot(offsetof(OrtEpApi, CreateHardwareDevice)) == 16);
static_assert(slot(offsetof(OrtEpApi, ReleaseHardwareDevice)) == 17);
static_assert(slot(offsetof(OrtEpApi, CreateProfilingEvent)) == 65);
static_assert(slot(offsetof(OrtEpApi, ReleaseProfilingEvent)) == 66);
static_assert(slot(offsetof(OrtEpApi, ProfilingEventsContainer_AddEvents)) == 72);

static_assert(slot(offsetof(OrtModelEditorApi, CreateNode)) == 6);

static_assert(slot(offsetof(OrtApiBase, GetApi)) == 0);
static_assert(slot(offsetof(OrtApiBase, GetVersionString)) == 1);

static_assert(slot(offsetof(OrtAllocator, Alloc)) == 1);
static_assert(slot(offsetof(OrtAllocator, Free)) == 2);
static_assert(slot(offsetof(OrtAllocator, Info)) == 3);
static_assert(slot(offsetof(OrtAllocator, Reserve)) == 4);
static_assert(slot(offsetof(OrtAllocator, GetStats)) == 5);
static_assert(slot(offsetof(OrtAllocator, AllocOnStream)) == 6);

static_assert(slot(offsetof(OrtNodeComputeInfo, CreateState)) == 1);
static_assert(slot(offsetof(OrtNodeComputeInfo, Compute)) == 2);
static_assert(slot(offsetof(OrtNodeComputeInfo, ReleaseState)) == 3);

static_assert(slot(offsetof(OrtDataTransferImpl, Release)) == 1);
static_assert(slot(offsetof(OrtDataTransferImpl, CanCopy)) == 2);
static_assert(slot(offsetof(OrtDataTransferImpl, CopyTensors)) == 3);

static_assert(slot(offsetof(OrtSyncNotificationImpl, Release)) == 1);
static_assert(slot(offsetof(OrtSyncNotificationImpl, Activate)) == 2);
static_assert(slot(offsetof(OrtSyncNotificationImpl, WaitOnDevice)) == 3);
static_assert(slot(offsetof(OrtSyncNotificationImpl, WaitOnHost)) == 4);

static_assert(slot(offsetof(OrtSyncStreamImpl, Release)) == 1);
static_assert(slot(offsetof(OrtSyncStreamImpl, GetHandle)) == 2);
static_assert(slot(offsetof(OrtSyncStreamImpl, CreateNotification)) == 3);
static_assert(slot(offsetof(OrtSyncStreamImpl, Flush)) == 4);
static_assert(slot(offsetof(OrtSyncStreamImpl, OnSessionRunEnd)) == 5);

static_assert(slot(offsetof(OrtEp, GetName)) == 1);
static_assert(slot(offsetof(OrtEp, GetCapability)) == 2);
static_assert(slot(offsetof(OrtEp, Compile)) == 3);
static_assert(slot(offsetof(OrtEp, ReleaseNodeComputeInfos)) == 4);
static_assert(slot(offsetof(OrtEp, GetPreferredDataLayout)) == 5);
static_assert(slot(offsetof(OrtEp, ShouldConvertDataLayoutForOp)) == 6);
static_assert(slot(offsetof(OrtEp, SetDynamicOptions)) == 7);
static_assert(slot(offsetof(OrtEp, OnRunStart)) == 8);
static_assert(slot(offsetof(OrtEp, OnRunEnd)) == 9);
static_assert(slot(offsetof(OrtEp, CreateAllocator)) == 10);
static_assert(slot(offsetof(OrtEp, CreateSyncStreamForDevice)) == 11);
static_assert(slot(offsetof(OrtEp, GetCompiledModelCompatibilityInfo)) == 12);
static_assert(slot(offsetof(OrtEp, GetKernelRegistry)) == 13);
static_assert(slot(offsetof(OrtEp, IsConcurrentRunSupported)) == 14);
static_assert(slot(offsetof(OrtEp, Sync)) == 15);
static_assert(slot(offsetof(OrtEp, CreateProfiler)) == 16);

static_assert(slot(offsetof(OrtEpProfilerImpl, Release)) == 1);
static_assert(slot(offsetof(OrtEpProfilerImpl, StartProfiling)) == 2);
static_assert(slot(offsetof(OrtEpProfilerImpl, StartEvent)) == 3);
static_assert(slot(offsetof(OrtEpProfilerImpl, StopEvent)) == 4);
static_assert(slot(offsetof(OrtEpProfilerImpl, EndProfiling)) == 5);

static_assert(slot(offsetof(OrtEpFactory, GetName)) == 1);
static_assert(slot(offsetof(OrtEpFactory, GetVendor)) == 2);
static_assert(slot(offsetof(OrtEpFactory, GetSupportedDevices)) == 3);
static_assert(slot(offsetof(OrtEpFactory, CreateEp)) == 4);
static_assert(slot(offsetof(OrtEpFactory, ReleaseEp)) == 5);
static_assert(slot(offsetof(OrtEpFactory, GetVendorId)) == 6);
static_assert(slot(offsetof(OrtEpFactory, GetVersion)) == 7);
static_assert(slot(offsetof(OrtEpFactory, ValidateCompiledModelCompatibilityInfo)) == 8);
static_assert(slot(offsetof(OrtEpFactory, CreateAllocator)) == 9);
static_assert(slot(offsetof(OrtEpFactory, ReleaseAllocator)) == 10);
static_assert(slot(offsetof(OrtEpFactory, CreateDataTransfer)) == 11);
static_assert(slot(offsetof(OrtEpFactory, IsStreamAware)) == 12);
static_assert(slot(offsetof(OrtEpFactory, CreateSyncStreamForDevice)) == 13);
static_assert(slot(offsetof(OrtEpFactory, GetHardwareDeviceIncompatibilityDetails)) == 14);
static_assert(slot(offsetof(OrtEpFactory, CreateExternalResourceImporterForDevice)) == 15);
static_assert(slot(offsetof(OrtEpFactory, GetNumCustomOpDomains)) == 16);
static_assert(slot(offsetof(OrtEpFactory, GetCustomOpDomains)) == 17);

static_assert(offsetof(OrtNodeFusionOptions, drop_constant_initializers) == 4);

static_assert(ORT_FAIL == 1);
static_assert(ORT_INVALID_ARGUMENT == 2);
static_assert(ORT_EP_FAIL == 11);
static_assert(ORT_LOGGING_LEVEL_WARNING == 2);
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL == 9);
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 == 16);
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN == 17);
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 == 19);
static_assert(ONNX_TYPE_TENSOR == 1);
static_assert(ORT_OP_ATTR_TENSOR == 8);
static_assert(ORT_ENABLE_ALL == 99);
static_assert(OrtMemTypeCPUOutput == -1);
static_assert(OrtDeviceMemoryType_HOST_ACCESSIBLE == 5);
static_assert(OrtMemoryInfoDeviceType_GPU == 1);
static_assert(OrtHardwareDeviceType_GPU == 1);
static_assert(OrtCompiledModelCompatibility_EP_UNSUPPORTED == 3);
static_assert(OrtProfilingEventCategory_KERNEL == 2);

}  // namespace
