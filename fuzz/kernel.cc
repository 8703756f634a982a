// A kernel, as a member of a program's `kernels`: built by the host port, and launched where it is small.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "device/error.h"
#include "program/checks.h"
#include "program/record_evaluator.h"
#include "program/record_reader.h"
#include "small_runs.h"

namespace {

hipdnn_rt::Kernel parse_kernel(std::string_view text) {
  using namespace hipdnn_rt;
  const Place place("kernel");
  const nlohmann::json json = parse_json(text, place.text());
  const auto stored = RecordReader::read_record<records::Kernel<Stored>>(Field(json, place.text()), {});
  return check_kernel(RecordEvaluator::evaluate(stored, {}, place), place);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const hipdnn_rt::Kernel kernel = parse_kernel(text);
    fuzz::run_alone("kernels", nlohmann::json::parse(text), kernel.operands);
  } catch (const hipdnn_rt::Error&) {
    return 0;
  }
  return 0;
}
