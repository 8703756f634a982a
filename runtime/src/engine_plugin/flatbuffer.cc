#include "engine_plugin/flatbuffer.h"

namespace hipdnn_plugin {
namespace {

/// Of a vtable, in front of the fields: its own size and the table's.
constexpr std::size_t vtable_head_bytes = 2 * sizeof(std::uint16_t);
/// Vectors may be read this often on average, which a writer that shares them reaches nowhere near.
constexpr std::size_t most_reads = 16;
constexpr std::size_t most_bytes = std::numeric_limits<std::int32_t>::max();

}  // namespace

FlatBuffer::FlatBuffer(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name), budget_(bytes.size() * most_reads) {
  if (bytes.data() == nullptr) throw Failure(HIPDNN_PLUGIN_STATUS_BAD_PARAM, std::string(name) + " has no bytes");
  if (bytes.size() > most_bytes) refuse("has more bytes than a flatbuffer can have");
}

void FlatBuffer::refuse(const std::string& reason) const {
  throw Failure(HIPDNN_PLUGIN_STATUS_INVALID_VALUE, std::string(name_) + " is no flatbuffer that can be read: " + reason);
}

const std::byte* FlatBuffer::at(std::size_t position, std::size_t size) const {
  if (position > bytes_.size() || bytes_.size() - position < size) {
    refuse(std::to_string(size) + " bytes at " + std::to_string(position) + " lie beyond its end at " + std::to_string(bytes_.size()));
  }
  return bytes_.data() + position;
}

std::size_t FlatBuffer::count(std::size_t position, std::size_t element_bytes) {
  const std::size_t count = read<std::uint32_t>(position);
  const std::size_t bytes = count * element_bytes;  // both fit in 32 bits
  at(position + sizeof(std::uint32_t), bytes);
  if (bytes > budget_) refuse("its tables share vectors without end");
  budget_ -= bytes;
  return count;
}

FlatTable::FlatTable(FlatBuffer& buffer, std::size_t position) : buffer_(&buffer), position_(position) {
  // The vtable lies before or behind its table.
  const auto vtable = static_cast<std::int64_t>(position) - buffer.read<std::int32_t>(position);
  if (vtable < 0) buffer.refuse("a table's fields lie before its start");
  vtable_ = static_cast<std::size_t>(vtable);
  vtable_bytes_ = buffer.read<std::uint16_t>(vtable_);
  table_bytes_ = buffer.read<std::uint16_t>(vtable_ + sizeof(std::uint16_t));
  if (vtable_bytes_ < vtable_head_bytes) buffer.refuse("a table's list of fields is too short");
  buffer.at(vtable_, vtable_bytes_);
  buffer.at(position_, table_bytes_);
}

std::optional<std::size_t> FlatTable::find(int slot) const {
  const std::size_t entry = vtable_head_bytes + static_cast<std::size_t>(slot) * sizeof(std::uint16_t);
  if (entry + sizeof(std::uint16_t) > vtable_bytes_) return std::nullopt;  // an older writer
  const std::size_t offset = buffer_->read<std::uint16_t>(vtable_ + entry);
  if (offset == 0) return std::nullopt;
  if (offset >= table_bytes_) buffer_->refuse("a field lies behind its table");
  return position_ + offset;
}

std::string_view FlatTable::text(int slot) const {
  const auto field = find(slot);
  if (!field) return {};
  const std::size_t position = buffer_->follow(*field);
  const std::size_t length = buffer_->count(position, 1);
  return {reinterpret_cast<const char*>(buffer_->at(position + sizeof(std::uint32_t), length)), length};
}

std::vector<FlatTable> FlatTable::tables(int slot) const {
  const auto field = find(slot);
  if (!field) return {};
  const std::size_t position = buffer_->follow(*field);
  const std::size_t count = buffer_->count(position, sizeof(std::uint32_t));
  std::vector<FlatTable> tables;
  for (std::size_t i = 0; i < count; ++i) {
    tables.emplace_back(*buffer_, buffer_->follow(position + sizeof(std::uint32_t) * (i + 1)));
  }
  return tables;
}

std::optional<FlatTable> FlatTable::table(int slot) const {
  const auto field = find(slot);
  return field ? std::optional(FlatTable(*buffer_, buffer_->follow(*field))) : std::nullopt;
}

}  // namespace hipdnn_plugin
