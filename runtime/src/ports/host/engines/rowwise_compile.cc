// Binds a row program to a tiling: slots, scratch layout, kernels.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "frontend/status.h"
#include "rowwise_tiles.h"

namespace hipdnn_port {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

AxisStrides strides_of(const Tensor& t, std::size_t rank) {
  AxisStrides strides(rank, 0);
  if (t.element_count() == 1) return strides;
  for (std::size_t i = 0; i < t.dims.size(); ++i) strides[rank - t.dims.size() + i] = t.dims[i] > 1 ? t.strides[i] : 0;
  return strides;
}

bool is_memory_of(const TileOperand& operand, Reg reg) { return operand.pointer >= 0 && operand.dtype == reg_type(reg); }

}  // namespace

/// Builds one TileProgram.
class TileCompiler {
 public:
  TileCompiler(TileProgram& target, const Graph& graph, const RowProgram& program, const std::vector<std::int64_t>& uids,
               bool whole_reduction)
      : target_(target), graph_(graph), program_(program), uids_(uids), whole_reduction_(whole_reduction),
        slots_(program.values.size()), last_use_(program.values.size(), -1), operand_of_(program.values.size(), -1) {}

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
  void emit_move(TileSlot from, hipdnnDataType_t from_type, TileSlot to, hipdnnDataType_t to_type);
  TileSlot source(int value);
  TileSlot load(int value);
  TileSlot constant(const RowValue& value);
  TileSlot memory(int operand) const;
  TileSlot allocate(const RowValue& value);
  void release(int value);
  std::optional<TileSlot> direct_result(int value, bool is_fold, const RowOutput*& written) const;
  bool rows(AxisSet axes) const { return (axes & target_.tiling_.rows.axes()) != 0; }
  bool cols(AxisSet axes) const { return (axes & target_.tiling_.cols.axes()) != 0; }
  const RowValue& value(int index) const { return program_.values[at(index)]; }

  TileProgram& target_;
  const Graph& graph_;
  const RowProgram& program_;
  const std::vector<std::int64_t>& uids_;
  bool whole_reduction_;
  std::vector<std::optional<TileSlot>> slots_;
  std::vector<int> last_use_;
  std::vector<int> operand_of_;              // by value
  std::map<int, int> operand_of_tensor_;
  std::vector<AxisStrides> operand_strides_;
  std::map<BufferClass, std::vector<std::int64_t>> free_;
};

TileProgram::TileProgram(const Graph& graph, const RowProgram& program, const std::vector<std::int64_t>& uids, std::int64_t tile_elements,
                         bool whole_reduction) {
  TileCompiler(*this, graph, program, uids, whole_reduction).run(tile_elements);
}

void TileCompiler::run(std::int64_t tile_elements) {
  add_operands(tile_elements);
  find_last_uses();
  emit_copies();
  for (std::size_t i = 0; i < program_.steps.size(); ++i) emit(program_.steps[i], static_cast<int>(i));
}

int TileCompiler::add_tensor_operand(int tensor) {
  const auto known = operand_of_tensor_.find(tensor);
  if (known != operand_of_tensor_.end()) return known->second;
  const Tensor& t = graph_.tensors[at(tensor)];
  TileOperand operand;
  operand.tensor = tensor;
  operand.pointer = static_cast<int>(std::find(uids_.begin(), uids_.end(), t.uid) - uids_.begin());
  operand.dtype = t.dtype;
  operand.bytes = static_cast<std::int64_t>(element_bytes(t.dtype));
  target_.operands_.push_back(std::move(operand));
  operand_strides_.push_back(strides_of(t, program_.extents.size()));
  return operand_of_tensor_[tensor] = static_cast<int>(target_.operands_.size()) - 1;
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
  const auto by_size = [&](int a, int b) { return graph_.tensors[at(a)].element_count() > graph_.tensors[at(b)].element_count(); };
  std::stable_sort(tensors.begin(), tensors.end(), by_size);
  const auto outputs = static_cast<std::ptrdiff_t>(tensors.size());
  for (const RowValue& v : program_.values) {
    if (v.source == RowValue::Source::memory) tensors.push_back(v.tensor);
  }
  std::stable_sort(tensors.begin() + outputs, tensors.end(), by_size);
  for (int tensor : tensors) add_tensor_operand(tensor);
  for (std::size_t i = 0; i < program_.values.size(); ++i) {
    const RowValue& v = program_.values[i];
    if (v.source == RowValue::Source::memory) operand_of_[i] = add_tensor_operand(v.tensor);
    if (v.source == RowValue::Source::axis_index) add_index_operand(i);
  }
  if (target_.operands_.size() > max_operands) {
    throw Refusal(text("the graph has ", target_.operands_.size(), " operands, more than ", max_operands));
  }
  const TilingRequest request{program_.extents, program_.reduced, program_.fold_count() > 0, whole_reduction_, tile_elements, operand_strides_};
  target_.tiling_ = make_tiling(request);
  target_.row_inner_ = target_.tiling_.rows.inner();
  target_.col_inner_ = target_.tiling_.cols.inner();
  for (std::size_t i = 0; i < target_.operands_.size(); ++i) target_.operands_[i].access = access_of(target_.tiling_, i);
}

void TileCompiler::find_last_uses() {
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    for (int arg : program_.steps[i].args) last_use_[at(arg)] = static_cast<int>(i);
  }
}

TileSlot TileCompiler::memory(int operand) const {
  const TileOperand& o = target_.operands_[at(operand)];
  return {TileSlot::In::memory, o.access.rows, o.access.cols, 0, o.bytes, o.access.row_stride, operand};
}

TileSlot TileCompiler::allocate(const RowValue& v) {
  const std::int64_t bytes = reg_bytes(v.reg);
  TileSlot slot{TileSlot::In::scratch, rows(v.axes), cols(v.axes), 0, bytes, 0, -1};
  std::vector<std::int64_t>& free = free_[{slot.rows, slot.cols, bytes}];
  if (!free.empty()) {
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
  const std::optional<TileSlot>& slot = slots_[at(index)];
  if (slot && slot->in == TileSlot::In::scratch) free_[{slot->rows, slot->cols, slot->bytes}].push_back(slot->offset);
  slots_[at(index)].reset();
}

TileSlot TileCompiler::constant(const RowValue& v) {
  std::array<std::byte, 8> bytes{};
  const auto narrow = static_cast<float>(v.constant);
  if (v.reg == Reg::f32) std::memcpy(bytes.data(), &narrow, sizeof narrow);
  if (v.reg == Reg::f64) std::memcpy(bytes.data(), &v.constant, sizeof v.constant);
  if (v.reg == Reg::i64) std::memcpy(bytes.data(), &v.whole, sizeof v.whole);
  target_.constants_.push_back(bytes);
  return {TileSlot::In::constant, false, false, static_cast<std::int64_t>(target_.constants_.size()) - 1, reg_bytes(v.reg), 0, -1};
}

/// Memory is read in place where a kernel can step through it, else loaded into scratch once per tile.
TileSlot TileCompiler::load(int index) {
  const RowValue& v = value(index);
  const int operand = operand_of_[at(index)];
  const TileOperand& o = target_.operands_[at(operand)];
  const bool steps_by_one = o.access.cols ? o.access.col_stride == 1 : !o.access.rows || o.access.row_stride == 1;
  if (is_memory_of(o, v.reg) && o.access.is_uniform && steps_by_one) return memory(operand);
  const TileSlot slot = allocate(v);
  if (v.source == RowValue::Source::axis_index) {
    TileInstruction instruction;
    instruction.kind = TileInstruction::Kind::index;
    instruction.kernel = tile_kernels().iota;
    instruction.rows = slot.rows;
    instruction.cols = slot.cols;
    instruction.src[0] = memory(operand);
    instruction.dst = slot;
    target_.instructions_.push_back(instruction);
  } else {
    emit_move(memory(operand), o.dtype, slot, reg_type(v.reg));
  }
  return slot;
}

TileSlot TileCompiler::source(int index) {
  std::optional<TileSlot>& slot = slots_[at(index)];
  if (!slot) slot = value(index).source == RowValue::Source::constant ? constant(value(index)) : load(index);
  return *slot;
}

void TileCompiler::emit_move(TileSlot from, hipdnnDataType_t from_type, TileSlot to, hipdnnDataType_t to_type) {
  TileInstruction instruction;
  instruction.kind = TileInstruction::Kind::move;
  instruction.kernel = tile_kernels().convert(from_type, to_type);
  if (instruction.kernel == nullptr) throw std::logic_error("no conversion kernel between two types the lowering admitted");
  instruction.rows = to.rows;
  instruction.cols = to.cols;
  instruction.sources = 1;
  instruction.src[0] = from;
  instruction.dst = to;
  target_.instructions_.push_back(instruction);
}

/// An output that the producing kernel can write itself.
std::optional<TileSlot> TileCompiler::direct_result(int index, bool is_fold, const RowOutput*& written) const {
  const RowValue& v = value(index);
  if (is_fold && !whole_reduction_) return std::nullopt;
  for (const RowOutput& output : program_.outputs) {
    if (output.value != index) continue;
    const int operand = operand_of_tensor_.at(output.tensor);
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
  instruction.dst = direct ? *direct : allocate(value(step.result));
  slots_[at(step.result)] = instruction.dst;
  instruction.rows = rows(value(step.result).axes);
  instruction.cols = cols(value(step.result).axes);
  if (step.is_fold) {
    emit_fold(step, instruction);
  } else {
    emit_compute(step, instruction);
  }
  target_.instructions_.push_back(instruction);
  emit_stores(step.result, written);
  if (last_use_[at(step.result)] < 0) release(step.result);
}

void TileCompiler::emit_compute(const RowStep& step, TileInstruction& instruction) {
  unsigned columns = 0;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const TileSlot& src = instruction.src[i];
    const bool advances = instruction.cols ? src.cols : instruction.rows ? src.rows : true;
    columns |= advances ? 1U << i : 0U;
  }
  instruction.kernel = tile_kernels().elementwise(step.op, value(step.args[0]).reg, columns);
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
    const int operand = operand_of_tensor_.at(output.tensor);
    const hipdnnDataType_t to = target_.operands_[at(operand)].dtype;
    if (v.source == RowValue::Source::memory) {
      const hipdnnDataType_t from = graph_.tensors[at(v.tensor)].dtype;
      if (tile_kernels().convert(from, to) != nullptr) {
        emit_move(memory(operand_of_[at(output.value)]), from, memory(operand), to);
        continue;
      }
    }
    emit_move(source(output.value), reg_type(v.reg), memory(operand), to);
  }
}

void TileCompiler::emit_stores(int index, const RowOutput* written) {
  for (const RowOutput& output : program_.outputs) {
    if (output.value != index || &output == written) continue;
    const int operand = operand_of_tensor_.at(output.tensor);
    emit_move(*slots_[at(index)], reg_type(value(index).reg), memory(operand), target_.operands_[at(operand)].dtype);
  }
}

}  // namespace hipdnn_port
