#include "map_program.h"

#include <algorithm>
#include <numeric>

namespace hipdnn_port::kernels {
namespace {

constexpr std::int64_t preferred_tile = 512;
constexpr std::int64_t least_tile = 16;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// Whether a 16-bit result is exact where the operands are 16-bit values.
bool is_exact(MapOp op) {
  constexpr MapOp exact[] = {MapOp::load, MapOp::neg,   MapOp::abs, MapOp::sign, MapOp::floor, MapOp::ceil,
                             MapOp::round, MapOp::trunc, MapOp::min, MapOp::max,  MapOp::where};
  return std::ranges::find(exact, op) != std::end(exact);
}

class Compiler {
 public:
  explicit Compiler(const Image& image)
      : image_(image), code_(parse_map_code(image)), is_used_(code_.size(), false), is_uniform_(code_.size(), false), order_(image.tensors.back().rank()) {
    // Innermost is the dim along which the first output is densest.
    const Dims& strides = image.tensors[image.inputs].strides;
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
  }

  MapProgram compile() {
    program_.elements = image_.tensors.back().elements();
    mark_used();
    for (std::uint32_t i = 0; i < code_.size(); ++i) {
      if (code_[i].op == MapOp::store) {
        add_store(code_[i]);
      } else if (is_used_[i]) {
        add_step(i);
      }
    }
    allow_aliases();
    assign_slots();
    return std::move(program_);
  }

 private:
  void mark_used() {
    for (std::size_t i = code_.size(); i-- > 0;) {
      if (code_[i].op != MapOp::store && !is_used_[i]) continue;
      for (std::size_t o = 0; o < code_[i].arity; ++o) is_used_[code_[i].operands[o]] = true;
    }
  }

  Walk walk_of(const Dims& strides) const {
    Dims dims, steps;
    for (const std::size_t d : order_) {
      dims.push_back(image_.tensors.back().dims[d]);
      steps.push_back(strides[d]);
    }
    return {std::move(dims), std::move(steps)};
  }

  void add_store(const MapInstruction& store) {
    program_.stores.push_back(
        {store.operands[0], store.tensor, store.dtype, find_map_store(store.dtype), walk_of(image_.tensors[store.tensor].strides)});
  }

  void add_step(std::uint32_t index) {
    const MapInstruction& instruction = code_[index];
    MapStep step{.instruction = instruction, .result = index};
    bool is_uniform = true;
    if (instruction.op == MapOp::load) {
      step.walk = walk_of(image_.tensors[instruction.tensor].strides);
      step.move = find_map_load(instruction.dtype);
      is_uniform = step.walk.is_uniform();
    } else if (instruction.op == MapOp::index) {
      Dims unit(order_.size(), 0);
      unit[instruction.axis] = 1;
      step.walk = walk_of(unit);
    } else if (instruction.op == MapOp::constant) {
      step.move = find_map_load(register_type(instruction.dtype));
    } else {
      choose_loop(step);
    }
    if (instruction.op == MapOp::index) is_uniform = false;
    for (std::size_t o = 0; o < instruction.arity; ++o) is_uniform = is_uniform && is_uniform_[instruction.operands[o]];
    if (is_half(instruction.dtype) && !is_exact(instruction.op) && step.rounding == nullptr && !is_rounded_) {
      step.rounding = find_map_loop(MapOp::round_to, DType::f32, instruction.dtype);
    }
    is_rounded_ = false;
    is_uniform_[index] = is_uniform;
    (is_uniform ? program_.once : program_.each).push_back(std::move(step));
  }

  void choose_loop(MapStep& step) {
    const MapInstruction& instruction = step.instruction;
    const DType operand = code_[instruction.operands[instruction.op == MapOp::where ? 1 : 0]].dtype;
    if (instruction.op == MapOp::cast && is_half(instruction.dtype) && operand == DType::f64) {
      // In one step: rounding to f32 first would round twice.
      step.loop = find_map_loop(MapOp::round_to, operand, instruction.dtype);
      is_rounded_ = true;
      return;
    }
    step.loop = find_map_loop(instruction.op, register_type(operand), register_type(instruction.dtype));
  }

  void allow_aliases() {
    for (auto* steps : {&program_.once, &program_.each}) {
      for (MapStep& step : *steps) {
        if (step.instruction.op != MapOp::load) continue;
        const bool is_stored = std::ranges::any_of(program_.stores, [&](const MapStore& store) { return store.source == step.result; });
        // An output may be an input's memory: what is stored must not have been overwritten by an earlier store.
        step.may_alias = !is_half(step.instruction.dtype) && step.walk.inner_stride() == 1 && !(is_stored && program_.stores.size() > 1);
      }
    }
    program_.writes_output = program_.stores.size() == 1 && !program_.each.empty() &&
                             program_.each.back().result == program_.stores[0].source && program_.each.back().loop != nullptr &&
                             !is_half(program_.stores[0].dtype);
  }

  /// Results of `once` keep their slots; those of `each` share slots where their lives do not overlap.
  void assign_slots() {
    std::vector<std::size_t> last_use(code_.size(), 0);
    for (std::size_t s = 0; s < program_.each.size(); ++s) {
      const MapInstruction& instruction = program_.each[s].instruction;
      for (std::size_t o = 0; o < instruction.arity; ++o) last_use[instruction.operands[o]] = s;
    }
    for (const MapStore& store : program_.stores) last_use[store.source] = program_.each.size();
    std::size_t slots = 0;
    std::int64_t width = 1;
    for (MapStep& step : program_.once) step.slot = slots++;
    std::vector<std::size_t> slot_of(code_.size(), 0);
    std::vector<std::size_t> free;
    for (std::size_t s = 0; s < program_.each.size(); ++s) {
      MapStep& step = program_.each[s];
      if (free.empty()) free.push_back(slots++);
      step.slot = slot_of[step.result] = free.back();
      free.pop_back();
      release(step.instruction, s, last_use, slot_of, free);
    }
    for (const auto* steps : {&program_.once, &program_.each}) {
      for (const MapStep& step : *steps) width = std::max(width, info_of(register_type(step.instruction.dtype)).bytes);
    }
    const std::int64_t fitting = map_scratch_bytes / (static_cast<std::int64_t>(std::max<std::size_t>(slots, 1)) * width);
    if (fitting < least_tile) refuse("attributes.code: ", slots, " values are alive at once, more than this library holds; split the kernel");
    program_.tile = std::min(preferred_tile, fitting / least_tile * least_tile);
    program_.slot_bytes = program_.tile * width;
  }

  /// Frees the slots of operands used for the last time, each once.
  void release(const MapInstruction& instruction, std::size_t step, const std::vector<std::size_t>& last_use,
               const std::vector<std::size_t>& slot_of, std::vector<std::size_t>& free) const {
    for (std::size_t o = 0; o < instruction.arity; ++o) {
      const std::uint32_t operand = instruction.operands[o];
      const auto* seen = std::find(instruction.operands.begin(), instruction.operands.begin() + o, operand);
      if (is_uniform_[operand] || last_use[operand] != step || seen != instruction.operands.begin() + o) continue;
      free.push_back(slot_of[operand]);
    }
  }

  const Image& image_;
  std::vector<MapInstruction> code_;
  std::vector<bool> is_used_;
  std::vector<bool> is_uniform_;
  /// Whether the step being added rounds its result itself.
  bool is_rounded_ = false;
  /// Dims of the iteration space, outermost first.
  std::vector<std::size_t> order_;
  MapProgram program_;
};

}  // namespace

MapProgram compile_map(const Image& image) {
  image.attributes.expect_only({"code"});
  if (image.outputs() == 0) refuse("map: expected at least one out");
  for (std::size_t i = 0; i < image.tensors.size(); ++i) image.expect_dims(i, image.tensors.back().dims);
  return Compiler(image).compile();
}

}  // namespace hipdnn_port::kernels
