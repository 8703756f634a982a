// The HIP functions on host memory.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "cases.h"

namespace abi {
namespace {

void test_memory_is_aligned_and_copied(const Library& library) {
  const auto memset = library.hip.get<decltype(::hipMemsetAsync)>("hipMemsetAsync");
  void* pointer = nullptr;
  check::equal(library.hip_malloc(&pointer, 100), hipSuccess);
  check::equal(reinterpret_cast<std::uintptr_t>(pointer) % 64, 0U);
  check::equal(memset(pointer, 0x5A, 100, nullptr), hipSuccess);
  std::array<unsigned char, 100> read{};
  check::equal(library.hip_memcpy(read.data(), pointer, read.size(), hipMemcpyDefault, nullptr), hipSuccess);
  for (const unsigned char byte : read) check::equal(int{byte}, 0x5A);
  check::equal(library.hip_memcpy(nullptr, pointer, 4, hipMemcpyDefault, nullptr), hipErrorInvalidValue);
  check::equal(library.hip_memcpy(read.data(), pointer, 4, static_cast<hipMemcpyKind>(6), nullptr), hipErrorInvalidValue);
  check::equal(library.hip_free(pointer), hipSuccess);
}

void test_rows_are_copied_between_pitches(const Library& library) {
  const auto copy = library.hip.get<decltype(::hipMemcpy2DAsync)>("hipMemcpy2DAsync");
  const std::array<char, 9> from{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'};
  std::string to(8, '.');
  check::equal(copy(to.data(), 4, from.data(), 3, 2, 2, hipMemcpyDefault, nullptr), hipSuccess);
  check::equal(to, std::string("ab..de.."));
  check::equal(copy(to.data(), 4, from.data(), 3, 0, 2, hipMemcpyDefault, nullptr), hipSuccess);
  check::equal(copy(to.data(), 4, from.data(), 3, 4, 2, hipMemcpyDefault, nullptr), hipErrorInvalidValue, "rows that are longer than their pitch");
  check::equal(to, std::string("ab..de.."));
}

void test_odd_sizes_are_handled(const Library& library) {
  void* pointer = &pointer;
  check::equal(library.hip_malloc(&pointer, 0), hipSuccess);
  check::that(pointer == nullptr, "no bytes, no memory");
  check::equal(library.hip_free(nullptr), hipSuccess);
  check::equal(library.hip_malloc(&pointer, std::numeric_limits<std::size_t>::max() - 8), hipErrorOutOfMemory);
  check::equal(library.hip_malloc(nullptr, 8), hipErrorInvalidValue);
  check::equal(library.hip_memcpy(nullptr, nullptr, 0, hipMemcpyDefault, nullptr), hipSuccess);
}

void test_events_tell_elapsed_time(const Library& library) {
  const auto create = library.hip.get<decltype(::hipEventCreateWithFlags)>("hipEventCreateWithFlags");
  const auto record = library.hip.get<decltype(::hipEventRecord)>("hipEventRecord");
  const auto elapsed = library.hip.get<decltype(::hipEventElapsedTime)>("hipEventElapsedTime");
  const auto wait = library.hip.get<decltype(::hipStreamWaitEvent)>("hipStreamWaitEvent");
  const auto synchronize = library.hip.get<decltype(::hipEventSynchronize)>("hipEventSynchronize");
  const auto destroy = library.hip.get<decltype(::hipEventDestroy)>("hipEventDestroy");
  hipEvent_t start = nullptr;
  hipEvent_t stop = nullptr;
  check::equal(create(&start, hipEventDefault), hipSuccess);
  check::equal(create(&stop, hipEventDefault), hipSuccess);
  float ms = -1;
  check::equal(record(start, nullptr), hipSuccess);
  check::equal(elapsed(&ms, start, stop), hipErrorInvalidHandle, "stop is not recorded");
  check::equal(record(stop, nullptr), hipSuccess);
  check::equal(wait(nullptr, stop, 0), hipSuccess);
  check::equal(synchronize(stop), hipSuccess);
  check::equal(elapsed(&ms, start, stop), hipSuccess);
  check::that(ms >= 0, "time does not run backwards");
  hipEvent_t untimed = nullptr;
  check::equal(create(&untimed, hipEventDisableTiming), hipSuccess);
  check::equal(record(untimed, nullptr), hipSuccess);
  check::equal(elapsed(&ms, start, untimed), hipErrorInvalidHandle);
  for (hipEvent_t event : {start, stop, untimed}) check::equal(destroy(event), hipSuccess);
  check::equal(destroy(nullptr), hipErrorInvalidHandle);
}

void test_there_is_one_device(const Library& library) {
  const auto init = library.hip.get<decltype(::hipInit)>("hipInit");
  const auto count = library.hip.get<decltype(::hipGetDeviceCount)>("hipGetDeviceCount");
  const auto set = library.hip.get<decltype(::hipSetDevice)>("hipSetDevice");
  const auto get = library.hip.get<decltype(::hipGetDevice)>("hipGetDevice");
  const auto version = library.hip.get<decltype(::hipRuntimeGetVersion)>("hipRuntimeGetVersion");
  int value = -1;
  check::equal(init(0), hipSuccess);
  check::equal(count(&value), hipSuccess);
  check::equal(value, 1);
  check::equal(set(0), hipSuccess);
  check::equal(set(1), hipErrorInvalidDevice);
  check::equal(get(&value), hipSuccess);
  check::equal(value, 0);
  check::equal(version(&value), hipSuccess);
  check::that(value > 0, "a version");
}

void test_errors_have_names(const Library& library) {
  const auto name = library.hip.get<decltype(::hipGetErrorName)>("hipGetErrorName");
  const auto text = library.hip.get<decltype(::hipGetErrorString)>("hipGetErrorString");
  check::equal(std::string(name(hipErrorOutOfMemory)), "hipErrorOutOfMemory");
  check::equal(std::string(text(hipSuccess)), "no error");
  check::equal(std::string(name(-5)), "hipErrorUnknown");
}

void test_host_memory_is_allocated(const Library& library) {
  const auto allocate = library.hip.get<decltype(::hipHostMalloc)>("hipHostMalloc");
  const auto release = library.hip.get<decltype(::hipHostFree)>("hipHostFree");
  void* pointer = nullptr;
  check::equal(allocate(&pointer, 10, 0), hipSuccess);
  check::that(pointer != nullptr, "memory");
  check::equal(release(pointer), hipSuccess);
}

void test_memory_left_is_told(const Library& library) {
  const auto tell = library.hip.get<decltype(::hipMemGetInfo)>("hipMemGetInfo");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check::equal(tell(&free_bytes, &total_bytes), hipSuccess);
  check::that(free_bytes > 0 && free_bytes <= total_bytes, "free memory within the total");
  check::equal(tell(nullptr, &total_bytes), hipErrorInvalidValue);
  check::equal(tell(&free_bytes, nullptr), hipErrorInvalidValue);
}

/// AMD's backend does not open without any of these.
void test_backends_calls_are_there(const Library& library) {
  int device = -1;
  check::equal(library.hip.get<decltype(::hipGetDevice)>("hipGetDevice")(&device), hipSuccess);
  check::equal(device, 0);
  device = -1;
  check::equal(library.hip.get<decltype(::hipStreamGetDevice)>("hipStreamGetDevice")(nullptr, &device), hipSuccess);
  check::equal(device, 0);
  int value = -1;
  const auto attribute = library.hip.get<decltype(::hipDeviceGetAttribute)>("hipDeviceGetAttribute");
  check::equal(attribute(&value, 1, 0), hipSuccess);
  check::equal(value, 0);
  check::equal(attribute(&value, 1, 1), hipErrorInvalidDevice);
  check::equal(library.hip.get<decltype(::hipDeviceSynchronize)>("hipDeviceSynchronize")(), hipSuccess);
  hipEvent_t event = nullptr;
  check::equal(library.hip.get<decltype(::hipEventCreate)>("hipEventCreate")(&event), hipSuccess);
  check::equal(library.hip.get<decltype(::hipEventDestroy)>("hipEventDestroy")(event), hipSuccess);
  void* pointer = nullptr;
  const auto extended = library.hip.get<decltype(::hipExtMallocWithFlags)>("hipExtMallocWithFlags");
  check::equal(extended(&pointer, 8, hipMallocSignalMemory), hipErrorNotSupported, "no stream can wait");
  check::equal(extended(&pointer, 8, 0), hipSuccess);
  check::equal(library.hip.get<decltype(::hipStreamWaitValue32)>("hipStreamWaitValue32")(nullptr, pointer, 1, 0, 1), hipErrorNotSupported);
  check::equal(library.hip_free(pointer), hipSuccess);
  const auto text = library.hip.get<decltype(::hipGetErrorString)>("hipGetErrorString");
  check::equal(std::string(text(hipErrorNotSupported)), "operation not supported");
}

void test_properties_stay_in_their_struct(const Library& library) {
  const auto read = library.hip.get<decltype(::hipGetDevicePropertiesR0600)>("hipGetDevicePropertiesR0600");
  std::array<char, hipDevicePropR0600Bytes + 16> properties;
  properties.fill('#');
  check::equal(read(properties.data(), 0), hipSuccess);
  for (std::size_t i = hipDevicePropR0600Bytes; i < properties.size(); ++i) check::equal(properties[i], '#', "bytes past the struct");
  check::that(properties[0] != '\0' && properties[hipDevicePropR0600NameBytes - 1] == '\0', "a name");
  check::equal(properties[hipDevicePropR0600ArchName], '\0', "no architecture of a GPU's");
  std::int32_t processors = 0;
  std::memcpy(&processors, &properties[hipDevicePropR0600MultiProcessorCount], sizeof processors);
  check::that(processors > 0, "processors");
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, &properties[hipDevicePropR0600TotalGlobalMem], sizeof bytes);
  check::that(bytes > 0, "memory");
  check::equal(read(properties.data(), 1), hipErrorInvalidDevice);
  check::equal(read(nullptr, 0), hipErrorInvalidValue);
}

}  // namespace

void add_host_hip_cases(check::Suite& suite, const Library& library) {
  suite.add("host hip: the backend's calls are there", [&] { test_backends_calls_are_there(library); });
  suite.add("host hip: properties stay in their struct", [&] { test_properties_stay_in_their_struct(library); });
  suite.add("host hip: memory is aligned and copied", [&] { test_memory_is_aligned_and_copied(library); });
  suite.add("host hip: rows are copied between pitches", [&] { test_rows_are_copied_between_pitches(library); });
  suite.add("host hip: odd sizes are handled", [&] { test_odd_sizes_are_handled(library); });
  suite.add("host hip: events tell elapsed time", [&] { test_events_tell_elapsed_time(library); });
  suite.add("host hip: there is one device", [&] { test_there_is_one_device(library); });
  suite.add("host hip: errors have names", [&] { test_errors_have_names(library); });
  suite.add("host hip: host memory is allocated", [&] { test_host_memory_is_allocated(library); });
  suite.add("host hip: memory left is told", [&] { test_memory_left_is_told(library); });
}

}  // namespace abi
