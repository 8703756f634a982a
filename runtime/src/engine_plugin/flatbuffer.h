// Reads flatbuffers that somebody else wrote: every access is checked against the buffer's end, and nothing is trusted to be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine_plugin/failure.h"

namespace hipdnn_plugin {

/// The bytes of one buffer, with what may still be read of them. One thread at a time.
class FlatBuffer {
 public:
  /// `name` is what messages call it. The bytes outlive it.
  FlatBuffer(std::span<const std::byte> bytes, std::string_view name);

  template <typename T>
  T read(std::size_t position) const {
    T value;
    std::memcpy(&value, at(position, sizeof(T)), sizeof(T));
    return value;
  }
  /// `size` bytes from there on. Throws INVALID_VALUE where the buffer ends before.
  const std::byte* at(std::size_t position, std::size_t size) const;
  /// Where an offset at this position leads.
  std::size_t follow(std::size_t position) const { return position + read<std::uint32_t>(position); }
  /// Elements of the vector at this position, of this size. A buffer whose tables share vectors is not read without end.
  std::size_t count(std::size_t position, std::size_t element_bytes);
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t budget_;
};

/// A table of a buffer, which outlives it. Slots are those of graph_tables.h. All throw INVALID_VALUE for a broken buffer.
class FlatTable {
 public:
  static FlatTable root(FlatBuffer& buffer) { return FlatTable(buffer, buffer.follow(0)); }
  FlatTable(FlatBuffer& buffer, std::size_t position);

  bool has(int slot) const { return find(slot).has_value(); }
  template <typename T>
  T scalar(int slot, T absent) const {
    const auto position = find(slot);
    return position ? buffer_->read<T>(*position) : absent;
  }
  template <typename T>
  std::optional<T> optional(int slot) const {
    const auto position = find(slot);
    return position ? std::optional(buffer_->read<T>(*position)) : std::nullopt;
  }
  bool flag(int slot) const { return scalar<std::uint8_t>(slot, 0) != 0; }
  /// Empty where absent, like vectors.
  std::string_view text(int slot) const;
  template <typename T>
  std::vector<T> vector(int slot) const {
    const auto field = find(slot);
    if (!field) return {};
    const std::size_t position = buffer_->follow(*field);
    const std::size_t count = buffer_->count(position, sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), buffer_->at(position + sizeof(std::uint32_t), count * sizeof(T)), count * sizeof(T));
    return values;
  }
  std::vector<FlatTable> tables(int slot) const;
  std::optional<FlatTable> table(int slot) const;
  /// A struct that a union holds.
  template <typename T>
  std::optional<T> structure(int slot) const {
    const auto field = find(slot);
    return field ? std::optional(buffer_->read<T>(buffer_->follow(*field))) : std::nullopt;
  }
  [[noreturn]] void refuse(const std::string& reason) const { buffer_->refuse(reason); }

 private:
  /// Where the field lies, unless it is absent.
  std::optional<std::size_t> find(int slot) const;

  FlatBuffer* buffer_;
  std::size_t position_;
  std::size_t vtable_ = 0;
  std::size_t vtable_bytes_ = 0;
  std::size_t table_bytes_ = 0;
};

}  // namespace hipdnn_plugin
