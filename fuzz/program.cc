// A program file: loaded, and run on the host port where it is small. Errors of the runtime are what a broken file is to end in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/error.h"
#include "program/dynamic_program.h"
#include "small_runs.h"

namespace {

constexpr std::int64_t kSize = 3;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // As a mapped file, the bytes begin where a page does.
  std::vector<std::max_align_t> memory(size / sizeof(std::max_align_t) + 1);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(memory.data()), size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), bytes.begin());
  try {
    const auto open = hipdnn_rt::DynamicProgram::parse_container(bytes, nullptr);
    fuzz::run(open->at(hipdnn_rt::Sizes(open->symbols().size(), kSize)));
  } catch (const hipdnn_rt::Error&) {
    return 0;
  }
  return 0;
}
