// Memory for callers: the device's, pinned memory of the host, and what is left.
#include <cstdint>
#include <cstring>

#include "cases.h"
#include "device/error.h"
#include "session.h"

namespace runtime_tests {
namespace {

void test_copied_back_when_memory_is_pinned(const Libraries& libraries) {
  for (const auto& device : {open_host(libraries), open_disguised(libraries)}) {
    constexpr std::size_t bytes = 1000;
    check::that(device->has_pinned_memory(), "both ports have pinned memory");
    const hipdnn_rt::PinnedBuffer from = device->allocate_pinned(bytes), to = device->allocate_pinned(bytes);
    const hipdnn_rt::DeviceBuffer middle = device->allocate(bytes);
    check::equal(reinterpret_cast<std::uintptr_t>(from.get()) % 64, std::uintptr_t{0}, "alignment of pinned memory");
    std::memset(from.get(), 0x5A, bytes);
    std::memset(to.get(), 0, bytes);
    const hipdnn_rt::HipApi& hip = device->library().hip();
    const hipdnn_rt::Stream stream = device->create_stream();
    hipdnn_rt::check(hip, hip.memcpy_async(middle.get(), from.get(), bytes, hipMemcpyHostToDevice, stream.get()), "hipMemcpyAsync");
    hipdnn_rt::check(hip, hip.memcpy_async(to.get(), middle.get(), bytes, hipMemcpyDeviceToHost, stream.get()), "hipMemcpyAsync");
    hipdnn_rt::check(hip, hip.stream_synchronize(stream.get()), "hipStreamSynchronize");
    check::equal(std::memcmp(from.get(), to.get(), bytes), 0, "bytes that came back");
  }
}

void test_refused_when_memory_does_not_suffice(const Libraries& libraries) {
  const auto device = open_host(libraries);
  const auto allocate = [&] { static_cast<void>(device->allocate_pinned(SIZE_MAX - 8)); };
  check::contains(error_of<hipdnn_rt::DeviceError>(allocate), "hipHostMalloc(18446744073709551607 bytes)");
}

void test_told_when_the_port_knows_its_memory(const Libraries& libraries) {
  const auto info = open_host(libraries)->memory_info();
  check::that(info.has_value(), "the host port tells");
  check::that(info->total_bytes > 0 && info->free_bytes <= info->total_bytes, "free memory within the total");
}

}  // namespace

void add_memory_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("memory: copied back when memory is pinned", [=] { test_copied_back_when_memory_is_pinned(libraries); });
  suite.add("memory: refused when memory does not suffice", [=] { test_refused_when_memory_does_not_suffice(libraries); });
  suite.add("memory: told when the port knows its memory", [=] { test_told_when_the_port_knows_its_memory(libraries); });
}

}  // namespace runtime_tests
