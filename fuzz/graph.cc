// A graph, as a member of a program's `executables`: descriptors, a plan, and a run of it where it is small.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "device/error.h"
#include "small_runs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const hipdnn_rt::Executable executable = hipdnn_rt::parse_executable(text);
    fuzz::run_alone("executables", nlohmann::json::parse(text), executable.operands);
  } catch (const hipdnn_rt::Error&) {
    return 0;
  }
  return 0;
}
