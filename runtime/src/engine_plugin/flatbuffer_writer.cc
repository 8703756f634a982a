#include "engine_plugin/flatbuffer_writer.h"

#include <algorithm>

namespace hipdnn_plugin {

std::size_t FlatWriter::place(std::size_t size, std::size_t alignment) {
  const std::size_t position = (bytes_.size() + alignment - 1) / alignment * alignment;
  bytes_.resize(position + size);
  return position;
}

std::size_t FlatWriter::place_vector(std::size_t element_bytes, std::size_t count) {
  constexpr std::size_t head = sizeof(std::uint32_t);
  while ((bytes_.size() + head) % std::max(element_bytes, head) != 0) bytes_.emplace_back();
  const std::size_t position = place(head + element_bytes * count, head);
  put(position, static_cast<std::uint32_t>(count));
  return position;
}

FlatWriter::Positions FlatWriter::table(const Table& table, std::size_t reference) {
  constexpr std::size_t head_entries = 2, widest = 8;
  int slots = 0;
  for (const Table::Field& field : table.fields_) slots = std::max(slots, field.slot + 1);
  const std::size_t vtable_bytes = (head_entries + static_cast<std::size_t>(slots)) * sizeof(std::uint16_t);
  const std::size_t vtable = place(vtable_bytes, sizeof(std::uint16_t));
  const std::size_t start = place(sizeof(std::int32_t), widest);
  Positions positions;
  for (const Table::Field& field : table.fields_) {
    const std::size_t position = place(field.bytes.size(), field.bytes.size());
    std::ranges::copy(field.bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(position));
    put(vtable + (head_entries + static_cast<std::size_t>(field.slot)) * sizeof(std::uint16_t), static_cast<std::uint16_t>(position - start));
    positions.push_back(position);
  }
  put(start, static_cast<std::int32_t>(start - vtable));
  put(vtable, static_cast<std::uint16_t>(vtable_bytes));
  put(vtable + sizeof(std::uint16_t), static_cast<std::uint16_t>(bytes_.size() - start));
  lead(reference, start);
  return positions;
}

void FlatWriter::text(std::size_t reference, std::string_view text) {
  numbers(reference, std::span(text));
  bytes_.emplace_back();  // a terminator, which its count does not count
}

FlatWriter::Positions FlatWriter::tables(std::size_t reference, std::size_t count) {
  const std::size_t position = place_vector(sizeof(std::uint32_t), count);
  lead(reference, position);
  Positions positions;
  for (std::size_t i = 0; i < count; ++i) positions.push_back(position + sizeof(std::uint32_t) * (i + 1));
  return positions;
}

}  // namespace hipdnn_plugin
