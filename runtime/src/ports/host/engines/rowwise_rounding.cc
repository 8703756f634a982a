// Rounding half to even, which hipDNN has no mode for, found again in the steps that it is written in.
#include <bit>
#include <optional>

#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

/// Reads steps backwards from values.
class Steps {
 public:
  explicit Steps(const RowProgram& program) : program_(program), maker_(program.values.size(), nullptr) {
    for (const RowStep& step : program.steps) maker_[static_cast<std::size_t>(step.result)] = &step;
  }

  /// The step that makes a value, where it has that operation.
  const RowStep* made(int value, TileOp op) const {
    const RowStep* step = maker_[static_cast<std::size_t>(value)];
    return step != nullptr && !step->is_fold && step->op == op ? step : nullptr;
  }

  bool is_number(int value, double number) const {
    const RowValue& v = program_.values[static_cast<std::size_t>(value)];
    if (v.source != RowValue::Source::constant) return false;
    if (v.reg == Reg::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits)) == static_cast<float>(number);
    return v.reg == Reg::f64 && std::bit_cast<double>(v.bits) == number;
  }

  /// The value that `select` rounds: low = floor(x), and low + 1 where x - low is above a half, or a half and low odd.
  std::optional<int> rounded(const RowStep& select) const {
    const int low = select.args[2];
    const RowStep* floor = made(low, TileOp::floor);
    const RowStep* high = made(select.args[1], TileOp::add);
    const RowStep* up = made(select.args[0], TileOp::logical_or);
    if (floor == nullptr || high == nullptr || up == nullptr) return std::nullopt;
    const int x = floor->args[0];
    const RowStep* above = made(up->args[0], TileOp::gt);
    const RowStep* tie = made(up->args[1], TileOp::logical_and);
    if (above == nullptr || tie == nullptr || high->args[0] != low || !is_number(high->args[1], 1)) return std::nullopt;
    const RowStep* equal = made(tie->args[0], TileOp::eq);
    const bool halves = equal != nullptr && is_number(equal->args[1], 0.5) && is_number(above->args[1], 0.5);
    if (!halves || !is_rest(equal->args[0], x, low) || !is_rest(above->args[0], x, low) || !is_odd(tie->args[1], low)) return std::nullopt;
    return x;
  }

 private:
  bool is_rest(int value, int x, int low) const {
    const RowStep* rest = made(value, TileOp::sub);
    return rest != nullptr && rest->args[0] == x && rest->args[1] == low;
  }

  /// Is floor(low / 2) not low / 2?
  bool is_odd(int value, int low) const {
    const RowStep* differs = made(value, TileOp::ne);
    if (differs == nullptr) return false;
    const RowStep* whole = made(differs->args[0], TileOp::floor);
    const RowStep* half = made(differs->args[1], TileOp::mul);
    return whole != nullptr && half != nullptr && whole->args[0] == differs->args[1] && half->args[0] == low && is_number(half->args[1], 0.5);
  }

  const RowProgram& program_;
  std::vector<const RowStep*> maker_;
};

}  // namespace

void find_rounding(RowProgram& program) {
  const Steps steps(program);
  bool found = false;
  for (RowStep& step : program.steps) {
    if (step.is_fold || step.op != TileOp::select) continue;
    if (const std::optional<int> x = steps.rounded(step)) {
      step.op = TileOp::round;
      step.args = {*x};
      found = true;
    }
  }
  if (found) remove_unused(program);
}

}  // namespace hipdnn_port
