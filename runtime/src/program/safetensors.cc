#include "program/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "device/error.h"
#include "program/checked.h"
#include "program/checksum.h"
#include "program/dtype.h"
#include "program/json_field.h"

namespace hipdnn_rt {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
/// The limit of the reference implementation.
constexpr std::uint64_t kHeaderLimit = 100'000'000;
constexpr std::size_t kTensorLimit = 1'000'000;
constexpr std::size_t kRankLimit = 64;

struct TensorExtent {
  std::uint64_t begin;
  std::uint64_t end;
  std::string name;
};

std::uint64_t header_length(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) throw ProgramError("not a .hipdnn file: shorter than the 8 bytes of its header length");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > kHeaderLimit || length > bytes.size() - kLengthBytes) {
    throw ProgramError("header length: " + std::to_string(length) + " bytes do not fit a file of " + std::to_string(bytes.size()) +
                       " bytes; not a .hipdnn file, or a truncated one");
  }
  return length;
}

/// Where a tensor's bytes lie; checked against its dtype and shape, not yet against the other tensors.
TensorExtent read_extent(const Field& tensor, const std::string& name, std::uint64_t data_bytes) {
  const std::optional<DType> dtype = dtype_from_safetensors(tensor["dtype"].text());
  if (!dtype) tensor["dtype"].fail("an element type of the format");
  std::optional<std::uint64_t> bytes = info_of(*dtype).bytes;
  for (const std::int64_t dim : tensor["shape"].integers(kRankLimit, 0, kInt64Max)) {
    bytes = checked_multiply(*bytes, static_cast<std::uint64_t>(dim));
    if (!bytes) tensor["shape"].fail("a shape whose size fits 64 bits");
  }
  const Field offsets = tensor["data_offsets"];
  const std::vector<std::int64_t> range = offsets.integers(2, 0, kInt64Max);
  if (range.size() != 2 || range[0] > range[1]) offsets.fail("[begin, end] with begin <= end");
  const TensorExtent extent{static_cast<std::uint64_t>(range[0]), static_cast<std::uint64_t>(range[1]), name};
  if (extent.end > data_bytes) {
    throw ProgramError(offsets.path() + ": ends at byte " + std::to_string(extent.end) + " of " + std::to_string(data_bytes) +
                       " in the file; the file is truncated or altered");
  }
  if (extent.end - extent.begin != *bytes) {
    throw ProgramError(offsets.path() + ": " + std::to_string(extent.end - extent.begin) + " bytes, but dtype and shape need " +
                       std::to_string(*bytes));
  }
  return extent;
}

void check_cover(std::vector<TensorExtent>& extents, std::uint64_t data_bytes) {
  std::sort(extents.begin(), extents.end(), [](const TensorExtent& a, const TensorExtent& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t position = 0;
  for (const TensorExtent& extent : extents) {
    if (extent.begin != position) {
      throw ProgramError("tensors." + extent.name + ".data_offsets: " + (extent.begin < position ? "overlaps" : "leaves a gap after") +
                         " the tensor before it");
    }
    position = extent.end;
  }
  if (position != data_bytes) {
    throw ProgramError("tensor data: the header describes " + std::to_string(position) + " bytes, the file has " +
                       std::to_string(data_bytes) + "; the file is truncated or altered");
  }
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> bytes) {
  const std::uint64_t length = header_length(bytes);
  const auto header = bytes.subspan(kLengthBytes, length);
  const auto data = bytes.subspan(kLengthBytes + length);
  const nlohmann::json json = parse_json({reinterpret_cast<const char*>(header.data()), header.size()}, "header");
  if (!json.is_object()) Field(json, "header").fail("an object");
  if (json.size() > kTensorLimit) Field(json, "header").fail("at most " + std::to_string(kTensorLimit) + " tensors");

  Safetensors container;
  std::vector<TensorExtent> extents;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      const Field metadata(value, "__metadata__");
      if (!value.is_object()) metadata.fail("an object");
      for (const auto& [key, text] : value.items()) container.metadata[key] = Field(text, "__metadata__." + key).text();
      continue;
    }
    extents.push_back(read_extent(Field(value, "tensors." + name), name, data.size()));
    container.tensors[name] = data.subspan(extents.back().begin, extents.back().end - extents.back().begin);
  }
  check_cover(extents, data.size());
  container.data = data;
  return container;
}

void check_checksum(const Safetensors& container, const std::string& text) {
  const auto entry = container.metadata.find("hipdnn_checksum");
  if (entry == container.metadata.end()) return;
  const std::string of_text = hex(checksum(std::as_bytes(std::span(text))));
  const std::string of_data = hex(checksum(container.data));
  if (entry->second == of_text + of_data) return;
  const char* part = entry->second.starts_with(of_text) ? "tensor data" : "program text";
  throw ProgramError(std::string("__metadata__.hipdnn_checksum: does not match the ") + part +
                     "; the file is damaged or was edited, compile the model again");
}

}  // namespace hipdnn_rt
