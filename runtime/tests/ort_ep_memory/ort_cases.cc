// ONNX Runtime itself calling the allocators, copies and streams, on the fake library and on the host port.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "device/error.h"
#include "memory/sync_stream.h"
#include "runtime.h"

namespace memory_tests {
namespace {

constexpr OrtDeviceMemoryType kPinned = OrtDeviceMemoryType_HOST_ACCESSIBLE;

std::vector<float> zeros() { return std::vector<float>(static_cast<std::size_t>(kCount)); }

hipStream_t handle_of(const Runtime& runtime, OrtSyncStream* stream) {
  return static_cast<hipStream_t>(runtime.ort().api->SyncStream_GetHandle(stream));
}

void test_tensors_go_to_the_device_and_back(const Libraries& libraries, const std::string& port) {
  const Runtime runtime(libraries, port);
  std::vector<float> input = ramp(1), output = zeros();
  const auto source = runtime.host_tensor(input), result = runtime.host_tensor(output);
  const auto pinned = runtime.device_tensor(kCount, kPinned);
  const auto a = runtime.device_tensor(kCount), b = runtime.device_tensor(kCount);
  runtime.copy(source.get(), pinned.get());
  runtime.copy(pinned.get(), a.get());
  runtime.copy(a.get(), b.get());
  runtime.copy(b.get(), result.get());
  check::equal(output, input);
}

void test_copies_on_a_stream_are_queued(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  const auto source = runtime.device_tensor(kCount, kPinned), result = runtime.device_tensor(kCount, kPinned);
  const auto device = runtime.device_tensor(kCount), other = runtime.device_tensor(kCount);
  const std::vector<float> input = ramp(1);
  std::ranges::copy(input, static_cast<float*>(data_of(runtime, source.get())));
  std::fill_n(static_cast<float*>(data_of(runtime, result.get())), kCount, 0.0f);
  const auto stream = runtime.create_stream();
  runtime.copy(source.get(), device.get(), stream.get());
  runtime.copy(device.get(), other.get(), stream.get());
  runtime.copy(other.get(), result.get(), stream.get());
  check::equal(fake.pending(handle_of(runtime, stream.get())), 3u, "copies queued on the stream,");
  check::equal(*static_cast<float*>(data_of(runtime, result.get())), 0.0f, "nothing has run yet,");
  std::vector<float> seen = zeros();
  const auto second = runtime.host_tensor(seen);
  runtime.copy(other.get(), second.get());
  check::equal(seen, input, "a copy without stream comes after what streams were given,");
}

void test_equal_pointers_and_no_elements_are_no_work(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  std::vector<float> nothing;
  const auto empty = runtime.host_tensor(nothing);
  const auto device_empty = runtime.device_tensor(0);
  const auto device = runtime.device_tensor(kCount);
  const auto stream = runtime.create_stream();
  const std::size_t waits = fake.counts().host_waits;
  runtime.copy(empty.get(), device_empty.get(), stream.get());
  runtime.copy(empty.get(), device_empty.get());
  runtime.copy(device.get(), device.get(), stream.get());
  runtime.copy(device.get(), device.get());
  check::equal(fake.pending(handle_of(runtime, stream.get())), 0u);
  check::equal(fake.counts().host_waits, waits);
}

void test_failed_copy_is_an_error_and_the_next_works(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  std::vector<float> input = ramp(1), output = zeros();
  const auto source = runtime.host_tensor(input), result = runtime.host_tensor(output);
  const auto device = runtime.device_tensor(kCount);
  for (const char* function : {"hipMemcpyAsync", "hipStreamSynchronize"}) {
    fake.fail_next(function);
    check::contains(message_of<hipdnn_ep::OrtFailure>([&] { runtime.copy(source.get(), device.get()); }), function);
  }
  runtime.copy(source.get(), device.get());
  runtime.copy(device.get(), result.get());
  check::equal(output, input);
}

void test_allocator_lends_to_streams(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  OrtAllocator* allocator = runtime.shared_allocator(OrtDeviceMemoryType_DEFAULT);
  const auto a = runtime.create_stream(), b = runtime.create_stream();
  void* block = allocator->AllocOnStream(allocator, 4096, a.get());
  allocator->Free(allocator, block);
  check::that(allocator->AllocOnStream(allocator, 4096, b.get()) != block, "not known to be done on the first stream");
  check::equal(allocator->AllocOnStream(allocator, 4096, a.get()), block, "the stream's own,");
  check::equal(runtime.shared_allocator(kPinned)->Info(runtime.shared_allocator(kPinned)) != nullptr, true);
}

void test_failed_allocation_is_an_error(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  OrtAllocator* allocator = runtime.shared_allocator(OrtDeviceMemoryType_DEFAULT);
  fake.set_capacity(fake.counts().live_bytes + 1000);
  check::equal(allocator->Alloc(allocator, 4096), nullptr);
  check::equal(allocator->Reserve(allocator, 4096), nullptr);
  check::equal(allocator->Alloc(allocator, 0), nullptr);
  // ONNX Runtime makes a tensor of it all the same.
  std::vector<float> input = ramp(1);
  const auto source = runtime.host_tensor(input);
  const auto without_memory = runtime.device_tensor(kCount);
  check::contains(message_of<hipdnn_ep::OrtFailure>([&] { runtime.copy(source.get(), without_memory.get()); }), "its allocation failed");
  fake.set_capacity(fake.counts().live_bytes + 8192);
  check::that(allocator->Alloc(allocator, 4096) != nullptr, "the allocator works after a failure");
}

void test_stats_have_the_keys_that_onnxruntime_reads(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  OrtAllocator* allocator = runtime.shared_allocator(OrtDeviceMemoryType_DEFAULT);
  void* first = allocator->Alloc(allocator, 1000);
  allocator->Alloc(allocator, 5000);
  allocator->Reserve(allocator, 300);
  allocator->Free(allocator, first);
  const auto stats = runtime.stats(OrtDeviceMemoryType_DEFAULT);
  const auto value = [&](const char* key) {
    const auto found = std::ranges::find(stats, key, &std::pair<std::string, std::string>::first);
    return found == stats.end() ? std::string("missing") : found->second;
  };
  check::equal(value("Limit"), "-1");
  check::equal(value("NumAllocs"), "2");
  check::equal(value("NumReserves"), "1");
  check::equal(value("NumArenaExtensions"), "3");
  check::equal(value("NumArenaShrinkages"), "0");
  check::equal(value("InUse"), std::to_string(5120 + 300));
  check::equal(value("MaxInUse"), std::to_string(1024 + 5120 + 300));
  check::equal(value("TotalAllocated"), std::to_string(1024 + 5120 + 300));
  check::equal(value("MaxAllocSize"), "5000");
}

void test_callers_stream_is_used_and_left_alive(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const auto memory = open_memory(libraries);
  const hipdnn_rt::Stream own = memory->device().create_stream();
  const Runtime runtime(libraries, "hip");
  const auto source = runtime.device_tensor(kCount), device = runtime.device_tensor(kCount);
  const std::size_t streams = fake.counts().live_streams;
  {
    const auto stream = runtime.create_stream(std::to_string(reinterpret_cast<std::uintptr_t>(own.get())).c_str());
    check::equal(handle_of(runtime, stream.get()), own.get());
    runtime.copy(source.get(), device.get(), stream.get());
    check::equal(fake.pending(own.get()), 1u);
  }
  check::equal(fake.counts().live_streams, streams, "streams");
  check::equal(fake.pending(own.get()), 0u, "work left when ONNX Runtime let the stream go,");
}

void test_user_stream_option_is_checked() {
  using hipdnn_ep::parse_user_stream;
  check::equal(reinterpret_cast<std::uintptr_t>(parse_user_stream("4096")), 4096u);
  check::equal(reinterpret_cast<std::uintptr_t>(parse_user_stream("0xfF10")), 0xff10u);
  check::equal(parse_user_stream("0"), nullptr);
  for (const char* wrong : {"", "0x", "-1", "12 ", "stream", "99999999999999999999999"}) {
    check::contains(message_of<hipdnn_rt::InputError>([&] { parse_user_stream(wrong); }), "user_compute_stream: expected");
  }
  check::contains(message_of<hipdnn_rt::InputError>([&] { parse_user_stream("2"); }), "hipStreamPerThread");
}

/// A stream and its notification, called as ONNX Runtime does.
void test_notification_orders_streams_and_host(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  const auto memory = open_memory(libraries);
  OrtApi api = *runtime.ort().api;
  api.SyncStream_GetHandle = [](OrtSyncStream* stream) -> void* {
    return reinterpret_cast<hipdnn_ep::SyncStream*>(stream)->handle();
  };
  const hipdnn_ep::Ort ort{&api, runtime.ort().ep, nullptr};
  OrtSyncStreamImpl* producer = new hipdnn_ep::SyncStream(ort, memory);
  auto* consumer = new hipdnn_ep::SyncStream(ort, memory);
  const auto producer_handle = static_cast<hipStream_t>(producer->GetHandle(producer));
  OrtSyncNotificationImpl* notification = nullptr;
  hipdnn_ep::check(ort, producer->CreateNotification(producer, &notification));
  hipdnn_ep::check(ort, notification->WaitOnHost(notification));

  std::vector<float> input = ramp(1), middle = zeros(), output = zeros();
  const std::size_t bytes = input.size() * sizeof(float);
  const auto queue = [&](hipStream_t stream, void* destination, const void* source) {
    fake.launch(destination, source, bytes, stream);
  };
  queue(producer_handle, middle.data(), input.data());
  hipdnn_ep::check(ort, notification->Activate(notification));
  hipdnn_ep::check(ort, notification->WaitOnDevice(notification, reinterpret_cast<OrtSyncStream*>(consumer)));
  queue(consumer->handle(), output.data(), middle.data());
  hipdnn_ep::check(ort, consumer->Flush(consumer));
  check::equal(output, input, "the consumer ran after the producer,");

  input = ramp(5);
  queue(producer_handle, middle.data(), input.data());
  hipdnn_ep::check(ort, notification->Activate(notification));
  hipdnn_ep::check(ort, notification->WaitOnDevice(notification, nullptr));
  check::equal(middle, input, "without a consumer's stream the host waits,");

  input = ramp(9);
  queue(producer_handle, middle.data(), input.data());
  hipdnn_ep::check(ort, notification->Activate(notification));
  hipdnn_ep::check(ort, notification->WaitOnHost(notification));
  check::equal(middle, input);
  hipdnn_ep::check(ort, producer->OnSessionRunEnd(producer));
  notification->Release(notification);
  producer->Release(producer);
  consumer->Release(consumer);
  check::equal(fake.counts().violations, 0u);
}

void test_nothing_is_left_when_the_library_is_unregistered(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const FakeHipCounts before = fake.counts();
  test_copies_on_a_stream_are_queued(libraries);
  const FakeHipCounts after = fake.counts();
  check::equal(after.live_bytes, before.live_bytes, "memory");
  check::equal(after.live_events, before.live_events, "events");
  check::equal(after.live_streams, before.live_streams, "streams");
  check::equal(after.violations, 0u);
}

}  // namespace

void add_ort_cases(check::Suite& suite, const Libraries& libraries) {
  for (const char* port : {"hip", "host"}) {
    suite.add(std::string("onnxruntime: tensors go to the device and back, port ") + port,
              [&libraries, port] { test_tensors_go_to_the_device_and_back(libraries, port); });
  }
  const auto add = [&](const char* name, void (*body)(const Libraries&)) {
    suite.add(std::string("onnxruntime: ") + name, [&libraries, body] { body(libraries); });
  };
  add("copies on a stream are queued", test_copies_on_a_stream_are_queued);
  add("equal pointers and no elements are no work", test_equal_pointers_and_no_elements_are_no_work);
  add("failed copy is an error and the next works", test_failed_copy_is_an_error_and_the_next_works);
  add("allocator lends to streams", test_allocator_lends_to_streams);
  add("failed allocation is an error", test_failed_allocation_is_an_error);
  add("stats have the keys that ONNX Runtime reads", test_stats_have_the_keys_that_onnxruntime_reads);
  add("caller's stream is used and left alive", test_callers_stream_is_used_and_left_alive);
  add("notification orders streams and host", test_notification_orders_streams_and_host);
  add("nothing is left when the library is unregistered", test_nothing_is_left_when_the_library_is_unregistered);
  suite.add("onnxruntime: user stream option is checked", test_user_stream_option_is_checked);
}

}  // namespace memory_tests
