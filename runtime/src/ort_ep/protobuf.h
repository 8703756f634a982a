// The wire format of protocol buffers, as far as writing an ONNX model needs it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hipdnn_ep {

/// Appends fields to a message, in the order of the calls.
class MessageWriter {
 public:
  void integer(int field, std::int64_t value) {
    varint(tag(field, 0));
    varint(static_cast<std::uint64_t>(value));
  }
  void number(int field, float value) {
    varint(tag(field, 5));
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    bytes_.append(bytes, sizeof(bytes));
  }
  void text(int field, std::string_view value) {
    varint(tag(field, 2));
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const MessageWriter& value) { text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  static std::uint64_t tag(int field, unsigned wire_type) { return static_cast<std::uint64_t>(field) << 3 | wire_type; }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace hipdnn_ep
