// Functions of one byte, which are tables of 256.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "rowwise_program.h"

namespace hipdnn_port {

/// A program that is one function of single bytes, by its values.
struct ByteTable {
  std::array<std::uint8_t, 256> values;
  int from, to;          ///< positions among the pointers of a run
  std::int64_t elements;  ///< next to each other in both
};

/// The table of a program whose result of bytes depends on one operand of bytes that lies as the result does; nothing for others.
std::optional<ByteTable> byte_table(const RowProgram& program);

}  // namespace hipdnn_port
