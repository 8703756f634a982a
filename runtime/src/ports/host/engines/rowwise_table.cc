#include "rowwise_table.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "rowwise_tiles.h"

namespace hipdnn_port {
namespace {

constexpr std::size_t few_steps = 2;  // take no longer than a table

/// The tensor that all values come from which are no constants; -1 where there are several, or none.
int only_operand(const RowProgram& program) {
  std::vector<bool> read(program.values.size(), false);
  for (const RowStep& step : program.steps) {
    for (int arg : step.args) read[static_cast<std::size_t>(arg)] = true;
  }
  int found = -1;
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const RowValue& value = program.values[i];
    if (!read[i] || value.source == RowValue::Source::constant || value.source == RowValue::Source::step) continue;
    if (value.source != RowValue::Source::memory || (found >= 0 && value.tensor != found)) return -1;
    found = value.tensor;
  }
  return found;
}

bool is_dense(const RowProgram& program, const RowTensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < program.extents.size(); ++axis) {
    if (tensor.strides[axis] < 0) return false;
    last += (program.extents[axis] - 1) * tensor.strides[axis];
  }
  return tensor.elements == program.size() && last == tensor.elements - 1;
}

/// The same steps on a row of 256 elements.
RowProgram of_all_bytes(RowProgram program, int from, int to) {
  program.extents = {256};
  for (RowTensor& tensor : program.tensors) {
    tensor.pointer = -1;
    tensor.strides = {0};
  }
  for (const int index : {from, to}) {
    RowTensor& tensor = program.tensors[static_cast<std::size_t>(index)];
    tensor.pointer = index == from ? 0 : 1;
    tensor.elements = 256;
    tensor.strides = {1};
  }
  for (RowValue& value : program.values) value.axes = value.source == RowValue::Source::constant ? 0 : 1;
  program.outputs[0].axes = 1;
  return program;
}

}  // namespace

std::optional<ByteTable> byte_table(const RowProgram& program) {
  if (program.fold_count() > 0 || program.outputs.size() != 1 || program.steps.size() <= few_steps) return std::nullopt;
  const int operand = only_operand(program);
  if (operand < 0 || program.values[static_cast<std::size_t>(program.outputs[0].value)].source != RowValue::Source::step) return std::nullopt;
  const RowTensor& from = program.tensors[static_cast<std::size_t>(operand)];
  const RowTensor& to = program.tensors[static_cast<std::size_t>(program.outputs[0].tensor)];
  if (!is_byte(from.dtype) || !is_byte(to.dtype) || from.strides != to.strides) return std::nullopt;
  if (!is_dense(program, from) || !is_dense(program, to)) return std::nullopt;
  ByteTable table{{}, from.pointer, to.pointer, to.elements};
  std::array<std::uint8_t, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  const TileProgram tiles(of_all_bytes(program, operand, program.outputs[0].tensor), 256, true);
  std::vector<std::byte> scratch(static_cast<std::size_t>(tiles.scratch_bytes()));
  const std::array<void*, 2> pointers{bytes.data(), table.values.data()};
  tiles.run_tiles(0, tiles.tile_count(), pointers.data(), scratch.data());
  return table;
}

}  // namespace hipdnn_port
