// Writes small flatbuffers: tables first, what they refer to behind them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hipdnn_plugin {

class FlatWriter {
 public:
  /// Writes the fields of one table. All of them, before anything else is written.
  class Table {
   public:
    template <typename T>
    Table& scalar(int slot, T value) {
      const auto bits = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
      fields_.push_back({slot, {bits.begin(), bits.end()}});
      return *this;
    }
    /// An offset to what is written later.
    Table& reference(int slot) { return scalar<std::uint32_t>(slot, 0); }

   private:
    friend class FlatWriter;
    struct Field {
      int slot;
      std::vector<std::byte> bytes;
    };
    std::vector<Field> fields_;
  };

  /// Positions of a table's fields, in the order in which they were added.
  using Positions = std::vector<std::size_t>;

  /// The first one is the root. Another one is what the offset at `reference` leads to.
  Positions table(const Table& table, std::size_t reference = 0);
  void text(std::size_t reference, std::string_view text);
  template <typename T>
  void numbers(std::size_t reference, std::span<const T> values) {
    const std::size_t position = place_vector(sizeof(T), values.size());
    std::memcpy(bytes_.data() + position + sizeof(std::uint32_t), values.data(), values.size_bytes());
    lead(reference, position);
  }
  /// A struct, as a union of structs holds it.
  template <typename T>
  void structure(std::size_t reference, T value) {
    const std::size_t position = place(sizeof(T), sizeof(T));
    put(position, value);
    lead(reference, position);
  }
  /// A vector of `count` tables; the positions of its offsets.
  Positions tables(std::size_t reference, std::size_t count);
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <typename T>
  void put(std::size_t position, T value) {
    std::memcpy(bytes_.data() + position, &value, sizeof(T));
  }
  /// Room for `size` bytes at a multiple of `alignment`; its position.
  std::size_t place(std::size_t size, std::size_t alignment);
  /// Room for a vector with its count, whose elements lie at a multiple of their size; the position of the count.
  std::size_t place_vector(std::size_t element_bytes, std::size_t count);
  void lead(std::size_t reference, std::size_t position) { put(reference, static_cast<std::uint32_t>(position - reference)); }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(sizeof(std::uint32_t));
};

}  // namespace hipdnn_plugin
