// Handles, streams, error strings, descriptor life.
#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

void fail_once(const Library& library) {
  Descriptor tensor(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  check::that(tensor.try_finalize() != HIPDNN_STATUS_SUCCESS, "an empty tensor must not finalize");
}

void test_last_error_is_kept_by_peek_and_cleared_by_get(const Library& library) {
  fail_once(library);
  std::array<char, 4096> first{};
  std::array<char, 4096> second{};
  library.peek_last_error_string(first.data(), first.size());
  library.last_error_string(second.data(), second.size());
  check::that(first[0] != '\0', "a failure must leave a message");
  check::equal(std::string(first.data()), std::string(second.data()));
  library.last_error_string(second.data(), second.size());
  check::equal(std::string(second.data()), std::string());
}

void test_last_error_is_cut_when_the_buffer_is_small(const Library& library) {
  fail_once(library);
  std::array<char, 8> small;
  small.fill('#');
  library.peek_last_error_string(small.data(), 5);
  check::equal(std::strlen(small.data()), 4U);
  check::equal(small[5], '#', "bytes past the capacity");
}

void test_last_error_belongs_to_a_thread(const Library& library) {
  fail_once(library);
  std::string other = "unset";
  std::thread([&] { other = library.last_error(); }).join();
  check::equal(other, std::string());
  check::that(!library.last_error().empty(), "the failing thread keeps its message");
}

void test_stream_is_returned_as_set(const Library& library) {
  const Handle handle(library);
  hipStream_t stream = nullptr;
  check::equal(library.get_stream(handle.get(), &stream), HIPDNN_STATUS_SUCCESS);
  check::that(stream == nullptr, "the default stream is null");
  const auto create = library.hip.get<decltype(::hipStreamCreateWithFlags)>("hipStreamCreateWithFlags");
  const auto destroy = library.hip.get<decltype(::hipStreamDestroy)>("hipStreamDestroy");
  hipStream_t made = nullptr;
  check::equal(create(&made, hipStreamNonBlocking), hipSuccess);
  check::equal(library.set_stream(handle.get(), made), HIPDNN_STATUS_SUCCESS);
  check::equal(library.get_stream(handle.get(), &stream), HIPDNN_STATUS_SUCCESS);
  check::that(stream == made, "the stream that was set");
  check::equal(library.set_stream(handle.get(), nullptr), HIPDNN_STATUS_SUCCESS);
  check::equal(destroy(made), hipSuccess);
}

void test_null_arguments_are_refused(const Library& library) {
  check::equal(library.create(nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::equal(library.create_descriptor(HIPDNN_BACKEND_TENSOR_DESCRIPTOR, nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::equal(library.finalize(nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::equal(library.execute(nullptr, nullptr, nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

void test_every_status_has_a_text(const Library& library) {
  for (int status = HIPDNN_STATUS_SUCCESS; status <= HIPDNN_STATUS_VERSION_MISMATCH; ++status) {
    const char* text = library.error_string(static_cast<hipdnnStatus_t>(status));
    check::that(text != nullptr && text[0] != '\0', "text of status " + std::to_string(status));
  }
  check::that(std::string(library.error_string(HIPDNN_STATUS_SUCCESS)) != library.error_string(HIPDNN_STATUS_BAD_PARAM), "texts differ");
}

void test_invalid_descriptor_type_is_refused(const Library& library) {
  hipdnnBackendDescriptor_t made = nullptr;
  check::that(library.create_descriptor(HIPDNN_INVALID_TYPE_EXT, &made) != HIPDNN_STATUS_SUCCESS, "type 0");
  check::that(made == nullptr, "nothing was made");
}

}  // namespace

void add_handle_cases(check::Suite& suite, const Library& library) {
  suite.add("handle: last error is kept by peek and cleared by get", [&] { test_last_error_is_kept_by_peek_and_cleared_by_get(library); });
  suite.add("handle: last error is cut when the buffer is small", [&] { test_last_error_is_cut_when_the_buffer_is_small(library); });
  suite.add("handle: last error belongs to a thread", [&] { test_last_error_belongs_to_a_thread(library); });
  suite.add("handle: stream is returned as set", [&] { test_stream_is_returned_as_set(library); });
  suite.add("handle: null arguments are refused", [&] { test_null_arguments_are_refused(library); });
  suite.add("handle: every status has a text", [&] { test_every_status_has_a_text(library); });
  suite.add("handle: invalid descriptor type is refused", [&] { test_invalid_descriptor_type_is_refused(library); });
}

}  // namespace abi
