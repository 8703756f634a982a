#include "program/computed_constant.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "program/checked.h"
#include "program/narrow_floats.h"

namespace hipdnn_rt {
namespace {

/// Write one number, a whole one or one of the type's own, as an element.
void write_element(const Concrete::Value& value, DType dtype, const Place& place, std::byte* to) {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  const double real = value.fraction.value_or(static_cast<double>(value.whole));
  if (dtype == DType::f64) return put(real);
  if (dtype == DType::f32) return put(static_cast<float>(real));
  if (dtype == DType::f16) return put(to_half(static_cast<float>(real)));
  if (dtype == DType::bf16) return put(to_bfloat16(static_cast<float>(real)));
  if (dtype == DType::f8e4m3 || dtype == DType::f8e5m2) place.fail("a type of at least 16 bits, or of integers", std::string(info_of(dtype).name));
  if (value.fraction) place.fail("whole numbers", std::to_string(real));
  std::memcpy(to, &value.whole, info_of(dtype).bytes);  // the low bytes: the port is little-endian
}

}  // namespace

std::shared_ptr<const void> compute_constant(const records::Constant<Concrete>& constant, std::span<const std::byte>& data, std::uint64_t& left,
                                             const Place& place) {
  const std::uint64_t element = info_of(constant.dtype).bytes;
  std::optional<std::uint64_t> bytes = element;
  for (const std::int64_t dim : constant.dims) bytes = bytes ? checked_multiply(*bytes, static_cast<std::uint64_t>(dim)) : std::nullopt;
  if (!bytes || *bytes > left) Place(place, "dims").fail("computed constants of at most 2^31 bytes in all", "more");
  left -= *bytes;
  const std::vector<Concrete::Value>& values = *constant.values;
  const Place at(place, "values");
  if (values.size() != 1 && values.size() != *bytes / element) at.fail("one element, or as many as the dims have", std::to_string(values.size()));
  const auto memory = std::make_shared<std::vector<std::max_align_t>>((*bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  auto* const to = reinterpret_cast<std::byte*>(memory->data());
  for (std::uint64_t i = 0; i < *bytes / element; ++i) {
    if (values.size() == 1 && i > 0) {
      std::memcpy(to + i * element, to, element);
    } else {
      write_element(values[i], constant.dtype, at, to + i * element);
    }
  }
  data = {to, *bytes};
  return memory;
}

}  // namespace hipdnn_rt
