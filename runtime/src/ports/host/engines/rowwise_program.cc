// Queries and fusions on row programs.
#include "rowwise_program.h"

#include <algorithm>
#include <optional>

namespace hipdnn_port {
namespace {

/// Rewrites pairs of steps; keeps a use count so that only values read once are absorbed.
class StepFuser {
 public:
  explicit StepFuser(RowProgram& program) : program_(program), uses_(program.values.size(), 0), maker_(program.values.size(), -1) {
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      maker_[index(program.steps[i].result)] = static_cast<int>(i);
      for (int arg : program.steps[i].args) ++uses_[index(arg)];
    }
    for (const RowOutput& output : program.outputs) uses_[index(output.value)] += 2;
  }

  void run() {
    const std::vector<bool> after = after_fold(program_);
    const bool may_round = std::ranges::none_of(program_.steps, is_step_function);
    for (RowStep& step : program_.steps) {
      if (step.is_fold || program_.values[index(step.result)].reg == Reg::i64) continue;
      if (step.op == TileOp::exp) absorb_difference(step);
      if (step.op == TileOp::add) absorb_product(step);
      if (step.op == TileOp::div && may_round) divide_by_reciprocal(step, after);
    }
    std::erase_if(program_.steps, [](const RowStep& step) { return step.result < 0; });
    place_reciprocals();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  /// Whether a last place of the operand may decide about the whole result.
  static bool is_step_function(const RowStep& step) { return step.op == TileOp::floor || step.op == TileOp::ceil || step.op == TileOp::round; }

  /// The step that makes `value`, where this is the value's only use and the step has that operation.
  RowStep* sole_maker(int value, TileOp op) {
    if (uses_[index(value)] != 1 || maker_[index(value)] < 0) return nullptr;
    RowStep& step = program_.steps[index(maker_[index(value)])];
    return !step.is_fold && step.op == op && step.result == value ? &step : nullptr;
  }

  void absorb_difference(RowStep& step) {
    RowStep* difference = sole_maker(step.args[0], TileOp::sub);
    if (difference == nullptr) return;
    step.op = TileOp::exp_sub;
    step.args = difference->args;
    difference->result = -1;
  }

  void absorb_product(RowStep& step) {
    for (std::size_t side = 0; side < 2; ++side) {
      RowStep* product = sole_maker(step.args[side], TileOp::mul);
      if (product == nullptr) continue;
      step.op = TileOp::mul_add;
      step.args = {product->args[0], product->args[1], step.args[1 - side]};
      product->result = -1;
      return;
    }
  }

  /// One division per row instead of one per element; the quotient differs by at most one unit in the last place.
  void divide_by_reciprocal(RowStep& step, const std::vector<bool>& after) {
    const RowValue divisor = program_.values[index(step.args[1])];
    const RowValue dividend = program_.values[index(step.args[0])];
    const bool per_row = (divisor.axes & program_.reduced) == 0 && (dividend.axes & program_.reduced) != 0;
    if (!per_row || !after[index(step.args[1])]) return;
    RowValue inverse = divisor;
    inverse.source = RowValue::Source::step;
    RowStep reciprocal;
    reciprocal.op = TileOp::reciprocal;
    reciprocal.args = {step.args[1]};
    reciprocal.result = program_.add(inverse);
    step.op = TileOp::mul;
    step.args[1] = reciprocal.result;
    reciprocals_.push_back(std::move(reciprocal));
  }

  /// Each reciprocal goes right before its user.
  void place_reciprocals() {
    for (RowStep& reciprocal : reciprocals_) {
      const int made = reciprocal.result;
      const auto user = std::find_if(program_.steps.begin(), program_.steps.end(), [made](const RowStep& step) {
        return std::find(step.args.begin(), step.args.end(), made) != step.args.end();
      });
      program_.steps.insert(user, std::move(reciprocal));
    }
  }

  RowProgram& program_;
  std::vector<int> uses_;
  std::vector<int> maker_;
  std::vector<RowStep> reciprocals_;
};

}  // namespace

int RowProgram::add(RowValue value) {
  values.push_back(value);
  return static_cast<int>(values.size()) - 1;
}

int RowProgram::add(TileOp op, Reg result, std::vector<int> args, std::array<double, 3> param) {
  RowValue value{RowValue::Source::step, result};
  for (int arg : args) value.axes |= values[static_cast<std::size_t>(arg)].axes;
  RowStep step;
  step.op = op;
  step.param = param;
  step.result = add(value);
  step.args = std::move(args);
  steps.push_back(std::move(step));
  return steps.back().result;
}

int RowProgram::fold_count() const {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(), [](const RowStep& step) { return step.is_fold; }));
}

bool RowProgram::broadcasts_back() const {
  const std::vector<bool> after = after_fold(*this);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (after[i] && (values[i].axes & reduced) != 0) return true;
  }
  const bool stores_back = std::any_of(outputs.begin(), outputs.end(), [&](const RowOutput& output) {
    return after[static_cast<std::size_t>(output.value)] && (output.axes & reduced) != 0;
  });
  return stores_back || std::any_of(steps.begin(), steps.end(), [&](const RowStep& step) {
           return step.is_fold && after[static_cast<std::size_t>(step.args[0])];
         });
}

std::vector<bool> after_fold(const RowProgram& program) {
  std::vector<bool> after(program.values.size(), false);
  for (const RowStep& step : program.steps) {
    const bool depends = std::any_of(step.args.begin(), step.args.end(), [&](int arg) { return after[static_cast<std::size_t>(arg)]; });
    after[static_cast<std::size_t>(step.result)] = step.is_fold || depends;
  }
  return after;
}

void remove_unused(RowProgram& program) {
  std::vector<bool> used(program.values.size(), false);
  for (const RowOutput& output : program.outputs) used[static_cast<std::size_t>(output.value)] = true;
  for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step) {
    if (!used[static_cast<std::size_t>(step->result)]) continue;
    for (int arg : step->args) used[static_cast<std::size_t>(arg)] = true;
  }
  std::erase_if(program.steps, [&](const RowStep& step) { return !used[static_cast<std::size_t>(step.result)]; });
}

void order_before_folds(RowProgram& program) {
  const std::vector<bool> after = after_fold(program);
  std::stable_partition(program.steps.begin(), program.steps.end(),
                        [&](const RowStep& step) { return !after[static_cast<std::size_t>(step.result)]; });
}

std::int64_t RowProgram::size() const {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

void fuse_steps(RowProgram& program) { StepFuser(program).run(); }

}  // namespace hipdnn_port
