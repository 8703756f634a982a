// `map`: a small program over every element of an iteration space, run tile by tile.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "map_program.h"

namespace hipdnn_port::kernels {
namespace {

/// One thread's share of a launch: scratch for the registers of a tile, and where each register lies.
class MapRun {
 public:
  MapRun(const MapProgram& program, const Operands& operands) : program_(program), operands_(operands) {}

  void run(std::int64_t first_tile, std::int64_t last_tile) {
    for (const MapStep& step : program_.once) compute(step, 0, program_.tile, slot(step));
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
      const std::int64_t first = tile * program_.tile;
      run_tile(first, std::min(program_.tile, program_.elements - first));
    }
  }

 private:
  void run_tile(std::int64_t first, std::int64_t count) {
    void* const output = program_.writes_output ? output_run(first, count) : nullptr;
    for (const MapStep& step : program_.each) {
      const bool is_last = &step == &program_.each.back();
      compute(step, first, count, is_last && output != nullptr ? output : slot(step));
    }
    if (output != nullptr) return;
    for (const MapStore& store : program_.stores) {
      const std::int64_t bytes = info_of(store.dtype).bytes;
      const std::int64_t register_bytes = info_of(register_type(store.dtype)).bytes;
      const auto* from = static_cast<const std::byte*>(registers_[store.source]);
      std::byte* const to = operands_.at(store.tensor);
      store.walk.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
        store.move(from, to + offset * bytes, store.walk.inner_stride(), run);
        from += run * register_bytes;
      });
    }
  }

  /// The output's memory where the tile is one dense run of it, else null.
  void* output_run(std::int64_t first, std::int64_t count) const {
    const MapStore& store = program_.stores[0];
    return dense_run(store.walk, operands_.at(store.tensor), info_of(store.dtype).bytes, first, count);
  }

  static std::byte* dense_run(const Walk& walk, std::byte* base, std::int64_t bytes, std::int64_t first, std::int64_t count) {
    if (walk.inner_stride() != 1 || first % walk.inner_dim() + count > walk.inner_dim()) return nullptr;
    return base + offset_of(walk.dims, walk.strides, first) * bytes;
  }

  void compute(const MapStep& step, std::int64_t first, std::int64_t count, void* out) {
    registers_[step.result] = out;
    MapTile tile{out, {}, count};
    switch (step.instruction.op) {
      case MapOp::load: load(step, first, count, static_cast<std::byte*>(out)); break;
      case MapOp::index: fill_index(step, first, count, static_cast<std::int64_t*>(out)); break;
      case MapOp::constant: step.move(&step.instruction.bits, out, 0, count); break;
      default:
        for (std::size_t o = 0; o < step.instruction.arity; ++o) tile.in[o] = registers_[step.instruction.operands[o]];
        step.loop(tile);
    }
    if (step.rounding != nullptr) step.rounding({out, {out, nullptr, nullptr}, count});
  }

  void load(const MapStep& step, std::int64_t first, std::int64_t count, std::byte* out) {
    const std::int64_t bytes = info_of(step.instruction.dtype).bytes;
    const std::int64_t register_bytes = info_of(register_type(step.instruction.dtype)).bytes;
    std::byte* const base = operands_.at(step.instruction.tensor);
    if (std::byte* const run = step.may_alias ? dense_run(step.walk, base, bytes, first, count) : nullptr) {
      registers_[step.result] = run;
      return;
    }
    if (step.walk.is_uniform()) {
      step.move(base, out, 0, count);
      return;
    }
    step.walk.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
      step.move(base + offset * bytes, out, step.walk.inner_stride(), run);
      out += run * register_bytes;
    });
  }

  static void fill_index(const MapStep& step, std::int64_t first, std::int64_t count, std::int64_t* out) {
    const std::int64_t stride = step.walk.inner_stride();
    step.walk.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
      for (std::int64_t i = 0; i < run; ++i) out[i] = offset + i * stride;
      out += run;
    });
  }

  std::byte* slot(const MapStep& step) { return scratch_.data() + static_cast<std::int64_t>(step.slot) * program_.slot_bytes; }

  const MapProgram& program_;
  const Operands& operands_;
  // Neither is initialized: what is read has been written.
  alignas(64) std::array<std::byte, map_scratch_bytes> scratch_;
  std::array<const void*, max_map_code> registers_;
};

class Map : public Kernel {
 public:
  explicit Map(const Image& image) : Kernel(image), program_(compile_map(image)) {}

 private:
  void run(const Operands& operands, int threads) const override {
    const std::int64_t tiles = (program_.elements + program_.tile - 1) / program_.tile;
    const int used = useful_threads(threads, tiles, program_.elements, program_.each.size());
    parallel_ranges(used, tiles, [&](std::int64_t first, std::int64_t last, int) { MapRun(program_, operands).run(first, last); });
  }

  MapProgram program_;
};

}  // namespace

std::unique_ptr<Kernel> make_map(const Image& image) { return std::make_unique<Map>(image); }

}  // namespace hipdnn_port::kernels
