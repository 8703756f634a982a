// Quantized bytes and the floats that they stand for, found in the steps that they are written in.
#include <bit>
#include <optional>

#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

class ByteSteps {
 public:
  explicit ByteSteps(RowProgram& program) : program_(program), maker_(program.values.size(), -1) {
    for (std::size_t i = 0; i < program.steps.size(); ++i) maker_[at(program.steps[i].result)] = static_cast<int>(i);
  }

  void quantize(RowStep& step) const {
    int inside = step.args[0];
    while (const std::optional<int> within = without_clip(inside, value(step.result).reg)) inside = *within;
    double zero = 0;
    if (const RowStep* shifted = made(inside, TileOp::add)) {
      const std::optional<double> number = constant(shifted->args[1]);
      if (!number) return;
      zero = *number;
      inside = shifted->args[0];
    }
    const RowStep* rounded = made(inside, TileOp::round);
    if (rounded == nullptr) return;
    const RowStep* scaled = made(rounded->args[0], TileOp::div);
    const std::optional<double> scale = scaled == nullptr ? std::nullopt : constant(scaled->args[1]);
    step.op = TileOp::quantize;
    step.args = {scale ? scaled->args[0] : rounded->args[0]};
    step.param = {scale.value_or(1), zero};
  }

  void dequantize(RowStep& step) {
    const std::optional<double> scale = constant(step.args[1]);
    if (!scale) return;
    int inside = step.args[0];
    double zero = 0;
    if (const RowStep* centred = made(inside, TileOp::sub)) {
      const std::optional<double> number = constant(centred->args[1]);
      if (!number) return;
      zero = *number;
      inside = centred->args[0];
    }
    const std::optional<int> bytes = widened(inside);
    if (!bytes) return;
    step.op = TileOp::dequantize;
    step.args = {*bytes};
    step.param = {zero, *scale};
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const RowValue& value(int index) const { return program_.values[at(index)]; }

  const RowStep* made(int index, TileOp op) const {
    if (maker_[at(index)] < 0) return nullptr;
    const RowStep& step = program_.steps[at(maker_[at(index)])];
    return !step.is_fold && step.op == op && value(index).reg == Reg::f32 ? &step : nullptr;
  }

  std::optional<double> constant(int index) const {
    const RowValue& v = value(index);
    if (v.source != RowValue::Source::constant || v.reg != Reg::f32) return std::nullopt;
    return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits));
  }

  /// What is clipped, where a byte is clipped to no less.
  std::optional<int> without_clip(int index, Reg byte) const {
    const double least = byte == Reg::u8 ? 0 : -128;
    const double greatest = byte == Reg::u8 ? 255 : 127;
    if (const RowStep* low = made(index, TileOp::max)) {
      const std::optional<double> bound = constant(low->args[1]);
      return bound && *bound <= least ? std::optional<int>(low->args[0]) : std::nullopt;
    }
    if (const RowStep* high = made(index, TileOp::min)) {
      const std::optional<double> bound = constant(high->args[1]);
      return bound && *bound >= greatest ? std::optional<int>(high->args[0]) : std::nullopt;
    }
    const RowStep* both = made(index, TileOp::relu);
    const bool is_wide = both != nullptr && both->param[0] <= least && both->param[1] >= greatest && both->param[2] == 0;
    return is_wide ? std::optional<int>(both->args[0]) : std::nullopt;
  }

  /// The bytes that a float was converted from.
  std::optional<int> widened(int index) {
    if (const RowStep* cast = made(index, TileOp::cast)) return is_byte(value(cast->args[0]).reg) ? std::optional<int>(cast->args[0]) : std::nullopt;
    RowValue loaded = value(index);
    if (loaded.source != RowValue::Source::memory || loaded.reg != Reg::f32) return std::nullopt;
    loaded.reg = program_.tensors[at(loaded.tensor)].dtype;
    if (!is_byte(loaded.reg)) return std::nullopt;
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const RowValue& known = program_.values[i];
      if (known.source == RowValue::Source::memory && known.tensor == loaded.tensor && known.reg == loaded.reg) return static_cast<int>(i);
    }
    maker_.push_back(-1);
    return program_.add(loaded);
  }

  RowProgram& program_;
  std::vector<int> maker_;  // by value
};

}  // namespace

void find_bytes(RowProgram& program) {
  ByteSteps steps(program);
  for (RowStep& step : program.steps) {
    if (step.is_fold) continue;
    if (step.op == TileOp::narrow) steps.quantize(step);
    if (step.op == TileOp::mul && program.values[static_cast<std::size_t>(step.result)].reg == Reg::f32) steps.dequantize(step);
  }
  remove_unused(program);
}

}  // namespace hipdnn_port
