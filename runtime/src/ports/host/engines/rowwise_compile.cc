// Binds a row program to a tiling: slots, scratch layout, kernels.
#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "frontend/status.h"
#include "rowwise_tiles.h"

namespace hipdnn_port {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool is_memory_of(const TileOperand& operand, Reg reg) { return operand.pointer >= 0 && operand.dtype == reg; }

}  // namespace

/// Builds one TileProgram.
class TileCompiler {
 public:
  TileCompiler(TileProgram& target, const RowProgram& program, bool whole_reduction)
      : target_(target), program_(program), whole_reduction_(whole_reduction),
        stores_last_(program.may_overlap && program.outputs.size() > 1), after_fold_(after_fold(program)), slots_(program.values.size()),
        last_use_(program.values.size(), -1), operand_of_(program.values.size(), -1), operand_of_tensor_(program.tensors.size(), -1) {}

  void run(std::int64_t tile_elements);

 private:
  using BufferClass = std::tuple<bool, bool, std::int64_t>;  // varies along rows, along columns, bytes per element

  void add_operands(std::int64_t tile_elements);
  int add_tensor_operand(int tensor);
  void add_index_operand(std::size_t value);
  void find_last_uses();
  void emit(const RowStep& step, int number);
  void emit_compute(const RowStep& step, TileInstruction& instruction);
  void emit_fold(const RowStep& step, TileInstruction& instruction);
  void emit_copies();
  void emit_stores(int value, const RowOutput* written);
  void emit_store(const RowOutput& output);
  void emit_move(std::vector<TileInstruction>& list, TileSlot from, DType from_type, TileSlot to, DType to_type);
  TileSlot source(int value, bool in_place = true);
  TileSlot load(int value, bool in_place);
  TileSlot memory(int operand) const;
  TileSlot allocate(int value);
  void release(int value);
  std::optional<TileSlot> direct_result(int value, bool is_fold, const RowOutput*& written) const;
  bool rows(AxisSet axes) const { return (axes & target_.tiling_.rows.axes()) != 0; }
  bool cols(AxisSet axes) const { return (axes & target_.tiling_.cols.axes()) != 0; }
  const RowValue& value(int index) const { return program_.values[at(index)]; }
  /// Whether a value is the same in all tiles.
  bool is_uniform(int index) const { return value(index).axes == 0 && !after_fold_[at(index)]; }
  std::vector<TileInstruction>& list_of(int index) { return is_uniform(index) ? once_ : each_; }

  TileProgram& target_;
  const RowProgram& program_;
  bool whole_reduction_;
  bool stores_last_;  // an output may overwrite an input that is still needed
  const RowOutput* written_last_ = nullptr;  // then still by the last step, if all outputs are results of steps
  std::vector<bool> after_fold_;
  std::vector<TileInstruction> once_;
  std::vector<TileInstruction> each_;
  std::vector<std::optional<TileSlot>> slots_;
  std::vector<int> last_use_;
  std::vector<int> operand_of_;              // by value
  std::vector<int> operand_of_tensor_;
  std::vector<AxisStrides> operand_strides_;
  std::map<BufferClass, std::vector<std::int64_t>> free_;
};

TileProgram::TileProgram(const RowProgram& program, std::int64_t tile_elements, bool whole_reduction) {
  TileCompiler(*this, program, whole_reduction).run(tile_elements);
}

void TileCompiler::run(std::int64_t tile_elements) {
  find_last_uses();
  add_operands(tile_elements);
  if (!stores_last_) emit_copies();
  for (std::size_t i = 0; i < program_.steps.size(); ++i) emit(program_.steps[i], static_cast<int>(i));
  if (stores_last_) {
    for (const RowOutput& output : program_.outputs) {
      if (value(output.value).source != RowValue::Source::step) source(output.value, false);
    }
    for (const RowOutput& output : program_.outputs) {
      if (&output != written_last_) emit_store(output);
    }
  }
  target_.once_ = once_.size();
  target_.instructions_ = std::move(once_);
  target_.instructions_.insert(target_.instructions_.end(), each_.begin(), each_.end());
}

int TileCompiler::add_tensor_operand(int tensor) {
  int& known = operand_of_tensor_[at(tensor)];
  if (known >= 0) return known;
  const RowTensor& t = program_.tensors[at(tensor)];
  target_.operands_.push_back({t.pointer, t.dtype, info_of(t.dtype).bytes, {}});
  operand_strides_.push_back(t.strides);
  return known = static_cast<int>(target_.operands_.size()) - 1;
}

void TileCompiler::add_index_operand(std::size_t value) {
  AxisStrides strides(program_.extents.size(), 0);
  strides[at(program_.values[value].axis)] = 1;
  operand_strides_.push_back(std::move(strides));
  target_.operands_.emplace_back();
  operand_of_[value] = static_cast<int>(target_.operands_.size()) - 1;
}

void TileCompiler::add_operands(std::int64_t tile_elements) {
  // The largest outputs decide the loop order, then the largest inputs.
  std::vector<int> tensors;
  for (const RowOutput& output : program_.outputs) tensors.push_back(output.tensor);
  const auto by_size = [&](int a, int b) { return program_.tensors[at(a)].elements > program_.tensors[at(b)].elements; };
  std::stable_sort(tensors.begin(), tensors.end(), by_size);
  const auto outputs = static_cast<std::ptrdiff_t>(tensors.size());
  for (std::size_t i = 0; i < program_.values.size(); ++i) {
    if (program_.values[i].source == RowValue::Source::memory && last_use_[i] >= 0) tensors.push_back(program_.values[i].tensor);
  }
  std::stable_sort(tensors.begin() + outputs, tensors.end(), by_size);
  for (int tensor : tensors) add_tensor_operand(tensor);
  for (std::size_t i = 0; i < program_.values.size(); ++i) {
    const RowValue& v = program_.values[i];
    if (last_use_[i] < 0) continue;
    if (v.source == RowValue::Source::memory) operand_of_[i] = add_tensor_operand(v.tensor);
    if (v.source == RowValue::Source::axis_index) add_index_operand(i);
  }
  if (target_.operands_.size() > max_operands) {
    throw Refusal(text(target_.operands_.size(), " operands, more than ", max_operands));
  }
  const TilingRequest request{program_.extents, program_.reduced, program_.fold_count() > 0, whole_reduction_, tile_elements, operand_strides_};
  target_.tiling_ = make_tiling(request);
  target_.tile_count_ = target_.tile_count(0, target_.tiling_.loops.size());
  target_.row_inner_ = target_.tiling_.rows.inner();
  target_.col_inner_ = target_.tiling_.cols.inner();
  for (std::size_t i = 0; i < target_.operands_.size(); ++i) target_.operands_[i].access = access_of(target_.tiling_, i);
}

void TileCompiler::find_last_uses() {
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    for (int arg : program_.steps[i].args) last_use_[at(arg)] = static_cast<int>(i);
  }
  // An output that is no step's result is stored before them all, or stays until after them.
  for (const RowOutput& output : program_.outputs) {
    int& last = last_use_[at(output.value)];
    if (stores_last_) last = static_cast<int>(program_.steps.size());
    if (value(output.value).source != RowValue::Source::step) last = std::max(last, 0);
  }
}

TileSlot TileCompiler::memory(int operand) const {
  const TileOperand& o = target_.operands_[at(operand)];
  return {TileSlot::In::memory, o.access.rows, o.access.cols, 0, o.bytes, o.access.row_stride, operand};
}

TileSlot TileCompiler::allocate(int index) {
  const RowValue& v = value(index);
  const std::int64_t bytes = info_of(v.reg).bytes;
  TileSlot slot{TileSlot::In::scratch, rows(v.axes), cols(v.axes), 0, bytes, 0, -1};
  std::vector<std::int64_t>& free = free_[{slot.rows, slot.cols, bytes}];
  // What is computed once keeps a place of its own.
  if (!free.empty() && !is_uniform(index)) {
    slot.offset = free.back();
    free.pop_back();
    return slot;
  }
  const Tiling& tiling = target_.tiling_;
  const std::int64_t elements = (slot.rows ? tiling.rows.most() : 1) * (slot.cols ? tiling.cols.most() : 1);
  slot.offset = target_.scratch_bytes_;
  target_.scratch_bytes_ += (elements * bytes + 63) / 64 * 64;
  return slot;
}

void TileCompiler::release(int index) {
  if (is_uniform(index)) return;
  const std::optional<TileSlot>& slot = slots_[at(index)];
  if (slot && slot->in == TileSlot::In::scratch) free_[{slot->rows, slot->cols, slot->bytes}].push_back(slot->offset);
  slots_[at(index)].reset();
}

/// Memory is read in place where a kernel can step through it, else loaded into scratch once per tile.
TileSlot TileCompiler::load(int index, bool in_place) {
  const RowValue& v = value(index);
  const int operand = operand_of_[at(index)];
  const TileOperand& o = target_.operands_[at(operand)];
  const bool steps_by_one = o.access.cols ? o.access.col_stride == 1 : !o.access.rows || o.access.row_stride == 1;
  if (in_place && is_memory_of(o, v.reg) && o.access.is_uniform && steps_by_one) return memory(operand);
  const TileSlot slot = allocate(index);
  if (v.source == RowValue::Source::axis_index) {
    TileInstruction instruction;
    instruction.kind = TileInstruction::Kind::index;
    instruction.kernel = tile_kernels().iota;
    instruction.rows = slot.rows;
    instruction.cols = slot.cols;
    instruction.src[0] = memory(operand);
    instruction.dst = slot;
    each_.push_back(instruction);
  } else {
    emit_move(list_of(index), memory(operand), o.dtype, slot, v.reg);
  }
  return slot;
}

/// Where a value can be read; `in_place` false where memory may be overwritten before.
TileSlot TileCompiler::source(int index, bool in_place) {
  std::optional<TileSlot>& slot = slots_[at(index)];
  if (value(index).source == RowValue::Source::constant && !slot) {
    target_.constants_.push_back(value(index).bits);
    slot = {TileSlot::In::constant, false, false, static_cast<std::int64_t>(target_.constants_.size()) - 1, info_of(value(index).reg).bytes, 0, -1};
  }
  if (!slot || (!in_place && slot->in == TileSlot::In::memory)) slot = load(index, in_place);
  return *slot;
}

void TileCompiler::emit_move(std::vector<TileInstruction>& list, TileSlot from, DType from_type, TileSlot to, DType to_type) {
  TileInstruction instruction;
  instruction.kind = TileInstruction::Kind::move;
  instruction.kernel = tile_kernels().convert(from_type, to_type);
  if (instruction.kernel == nullptr) throw std::logic_error("no conversion kernel between two types the lowering admitted");
  instruction.rows = to.rows;
  instruction.cols = to.cols;
  instruction.sources = 1;
  instruction.src[0] = from;
  instruction.dst = to;
  list.push_back(instruction);
}

/// An output that the producing kernel can write itself.
std::optional<TileSlot> TileCompiler::direct_result(int index, bool is_fold, const RowOutput*& written) const {
  const RowValue& v = value(index);
  if (is_fold && !whole_reduction_) return std::nullopt;
  const auto is_step = [&](const RowOutput& output) { return value(output.value).source == RowValue::Source::step; };
  const bool is_last = index == program_.steps.back().result && std::ranges::all_of(program_.outputs, is_step);
  if (stores_last_ && !is_last) return std::nullopt;
  for (const RowOutput& output : program_.outputs) {
    if (output.value != index) continue;
    const int operand = operand_of_tensor_[at(output.tensor)];
    const TileOperand& o = target_.operands_[at(operand)];
    const bool same_extent = o.access.rows == rows(v.axes) && o.access.cols == cols(v.axes);
    const bool steps_by_one = o.access.cols ? o.access.col_stride == 1 : !o.access.rows || o.access.row_stride == 1;
    if (!is_memory_of(o, v.reg) || !o.access.is_uniform || !same_extent || !steps_by_one) continue;
    written = &output;
    return memory(operand);
  }
  return std::nullopt;
}

void TileCompiler::emit(const RowStep& step, int number) {
  TileInstruction instruction;
  instruction.param = step.param;
  instruction.sources = static_cast<int>(step.args.size());
  for (std::size_t i = 0; i < step.args.size(); ++i) instruction.src[i] = source(step.args[i]);
  // A buffer read here for the last time may become the result's: kernels read an element before they write it.
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const bool repeated = std::find(step.args.begin(), step.args.begin() + static_cast<std::ptrdiff_t>(i), step.args[i]) !=
                          step.args.begin() + static_cast<std::ptrdiff_t>(i);
    if (!repeated && last_use_[at(step.args[i])] == number) release(step.args[i]);
  }
  const RowOutput* written = nullptr;
  const std::optional<TileSlot> direct = direct_result(step.result, step.is_fold, written);
  instruction.dst = direct ? *direct : allocate(step.result);
  slots_[at(step.result)] = instruction.dst;
  instruction.rows = rows(value(step.result).axes);
  instruction.cols = cols(value(step.result).axes);
  if (step.is_fold) {
    emit_fold(step, instruction);
  } else {
    emit_compute(step, instruction);
  }
  list_of(step.result).push_back(instruction);
  if (stores_last_) written_last_ = written;
  else emit_stores(step.result, written);
  if (last_use_[at(step.result)] < 0) release(step.result);
}

void TileCompiler::emit_compute(const RowStep& step, TileInstruction& instruction) {
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const TileSlot& src = instruction.src[i];
    instruction.advances[i] = instruction.cols ? src.cols : instruction.rows ? src.rows : true;
  }
  instruction.kernel = find_elementwise(step.op, value(step.args.back()).reg, value(step.result).reg);
  if (instruction.kernel == nullptr) throw std::logic_error("no elementwise kernel for an operation the lowering admitted");
}

void TileCompiler::emit_fold(const RowStep& step, TileInstruction& instruction) {
  instruction.kind = TileInstruction::Kind::fold;
  instruction.kernel = tile_kernels().fold(step.fold, step.prepare, value(step.args[0]).reg, target_.tiling_.folds_rows);
  if (instruction.kernel == nullptr) throw std::logic_error("no reduction kernel for an operator the lowering admitted");
}

/// Outputs that are inputs, constants or indices: conversions, copies between layouts, fills.
void TileCompiler::emit_copies() {
  for (const RowOutput& output : program_.outputs) {
    const RowValue& v = value(output.value);
    if (v.source == RowValue::Source::step) continue;
    const int operand = operand_of_tensor_[at(output.tensor)];
    const DType to = target_.operands_[at(operand)].dtype;
    if (v.source == RowValue::Source::memory) {
      const DType from = program_.tensors[at(v.tensor)].dtype;
      if (tile_kernels().convert(from, to) != nullptr) {
        emit_move(each_, memory(operand_of_[at(output.value)]), from, memory(operand), to);
        continue;
      }
    }
    source(output.value);
    emit_store(output);
  }
}

void TileCompiler::emit_stores(int index, const RowOutput* written) {
  for (const RowOutput& output : program_.outputs) {
    if (output.value == index && &output != written) emit_store(output);
  }
}

void TileCompiler::emit_store(const RowOutput& output) {
  const int operand = operand_of_tensor_[at(output.tensor)];
  emit_move(each_, *slots_[at(output.value)], value(output.value).reg, memory(operand), target_.operands_[at(operand)].dtype);
}

}  // namespace hipdnn_port
