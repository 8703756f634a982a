// `recurrence` and `quantized_recurrence`: LSTM, GRU and RNN with the loop over steps inside.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "../engines/kernels_tile.h"
#include "../engines/packed_memory.h"
#include "../engines/rowwise_parallel.h"
#include "elements.h"
#include "functions.h"
#include "lines.h"

namespace hipdnn_port::kernels {
namespace {

enum class Cell : std::uint8_t { lstm, gru, tanh, relu };

constexpr std::int64_t kMostRows = 16;  ///< of a group: at least as many as any instruction set has registers for
constexpr std::int64_t kMostGates = 4;
constexpr std::int64_t kNearBytes = 1 << 18;  ///< weights that stay in a cache near the core while all panels of a step pass by
constexpr std::int64_t kTogether = 8;         ///< groups that go through a step together where they do not
constexpr std::size_t kRows = 0, kWeights = 1, kState = 2, kHeld = 3, kFactors = 4, kShifts = 5;

/// A group of rows of the batch goes through a step together. Its state lies in scratch memory as the products read it, element by element
/// beside each other, once for what a step reads and once for what it writes. Units in panels of 16 are computed apart.
/// With weights of bytes, states are rounded to bytes in front of each step, those of all rows of a direction in one range.
class Recurrence : public Kernel {
 public:
  Recurrence(const Image& image, bool is_bytes) : Kernel(image), is_bytes_(is_bytes), is_reversed_(image.attributes.boolean("reverse")) {
    if (is_bytes_) {
      image.attributes.expect_only({"reverse"});
    } else {
      image.attributes.expect_only({"cell", "reverse"});
      cell_ = static_cast<Cell>(image.attributes.choice("cell", {"lstm", "gru", "tanh", "relu"}));
    }
    const std::size_t held = is_bytes_ ? 3 : cell_ == Cell::lstm || cell_ == Cell::gru ? 1 : 0;
    const bool has_lengths = image.inputs == kHeld + held + 1;
    image.expect_counts(kHeld + held + (has_lengths ? 1 : 0), cell_ == Cell::lstm ? 4 : 3);
    gates_ = cell_ == Cell::lstm ? 4 : cell_ == Cell::gru ? 3 : 1;
    if (has_lengths) lengths_ = kHeld + held;
    y_ = image.inputs;
    scratch_ = image.tensors.size() - 1;
    const Dims& y = tensor(y_).dims;
    if (y.size() != 4) refuse("tensors[", y_, "].dims: expected [steps, directions, batch, hidden], got ", show(y));
    steps_ = y[0];
    directions_ = y[1];
    batch_ = y[2];
    hidden_ = y[3];
    units_ = parts_of(hidden_, kPanelColumns);
    depth_ = parts_of(hidden_, kDepthStep) * kDepthStep;
    image.expect_dims(kRows, {steps_, batch_, directions_ * gates_ * hidden_});
    image.expect_dims(kWeights, {directions_ * units_ * gates_ * depth_ * kPanelColumns});
    expect_state(image, kState);
    if (cell_ == Cell::lstm) expect_state(image, kHeld);
    if (cell_ == Cell::gru) image.expect_dims(kHeld, {directions_, hidden_});
    if (is_bytes_) {
      image.expect_dims(kFactors, {directions_ * units_ * gates_ * kPanelColumns});
      image.expect_dims(kShifts, {directions_});
    }
    if (has_lengths) {
      expect_index_dtype(image, lengths_);
      image.expect_dims(lengths_, {batch_});
    }
    for (std::size_t i = y_ + 1; i < scratch_; ++i) image.expect_dims(i, {directions_, batch_, hidden_});
    image.expect_dims(scratch_, {is_bytes_ ? 4 : 3, directions_, batch_, units_ * kPanelColumns});
    expect_types(image);
    if (!tensor(kWeights).is_packed()) refuse("tensors[1].strides: expected no gaps");
    if (is_bytes_ && !tensor(kFactors).is_packed()) refuse("tensors[4].strides: expected no gaps");
    if (!tensor(scratch_).is_packed()) refuse("tensors[", scratch_, "].strides: expected no gaps");
    const PanelKernels& panels = tile_kernels().panels;
    const DType dtype = tensor(kRows).dtype;
    product_ = dtype == DType::f16 ? panels.halves.product : dtype == DType::bf16 ? panels.bfloats.product : panels.product;
    const CellKernels& cells = tile_kernels().cells;
    advance_ = cell_ == Cell::lstm ? cells.lstm : cell_ == Cell::gru ? cells.gru : cell_ == Cell::relu ? cells.relu : cells.tanh;
  }

 private:
  void expect_state(const Image& image, std::size_t index) const {
    image.expect_dims(index, {directions_, tensor(index).rank() == 3 && tensor(index).dims[1] == 1 ? 1 : batch_, hidden_});
  }

  void expect_types(const Image& image) const {
    if (tensor(kRows).dtype != DType::f32 && (is_bytes_ || !is_half(tensor(kRows).dtype))) {
      refuse("tensors[0].dtype: expected f32", is_bytes_ ? "" : ", f16 or bf16", ", got ", info_of(tensor(kRows).dtype).name);
    }
    for (std::size_t i = 1; i < scratch_; ++i) {
      if (i != lengths_ && !(is_bytes_ && (i == kWeights || i == kShifts))) image.expect_same_dtype(kRows, i);
    }
    expect_type(scratch_, DType::i32);
    if (!is_bytes_) return;
    expect_type(kWeights, DType::i8);
    expect_type(kShifts, DType::i32);
  }

  void expect_type(std::size_t index, DType dtype) const {
    const DType found = tensor(index).dtype;
    if (found != dtype) refuse("tensors[", index, "].dtype: expected ", info_of(dtype).name, ", got ", info_of(found).name);
  }

  /// Units of whole panels.
  std::int64_t width() const { return units_ * kPanelColumns; }

  void run(const Operands& operands, int threads) const override {
    switch (tensor(kRows).dtype) {
      case DType::f16: return Run<Half>(*this, operands).all(threads);
      case DType::bf16: return Run<Bfloat>(*this, operands).all(threads);
      default: return Run<float>(*this, operands).all(threads);
    }
  }

  /// One launch on elements of type T.
  template <class T>
  class Run {
   public:
    Run(const Recurrence& kernel, const Operands& operands)
        : k_(kernel), operands_(operands), rows_at_once_(std::min(tile_kernels().panels.rows, kMostRows)), blocks_(parts_of(kernel.batch_, rows_at_once_)) {}

    void all(int threads) const {
      const std::int64_t groups = k_.directions_ * blocks_;
      // Of a step, in elements of elementwise work: weights come from a cache, and meet each row.
      const std::int64_t work = k_.directions_ * k_.gates_ * k_.hidden_ * (k_.hidden_ * (16 + 3 * k_.batch_) / 8 + 8 * k_.batch_);
      const std::int64_t least = k_.is_bytes_ ? std::max<std::int64_t>(blocks_, 1) : 1;  // groups that share a range
      const int by_group = useful_threads(threads, groups / least, k_.steps_ * work, 0);
      const int by_unit = useful_threads(threads, k_.units_, work, 0);
      if (by_unit <= by_group) {
        const std::int64_t bytes = k_.units_ * k_.gates_ * k_.depth_ * kPanelColumns * static_cast<std::int64_t>(sizeof(T));
        const std::int64_t most = k_.is_bytes_ ? least : bytes > kNearBytes ? kTogether : 1;
        parallel_ranges(by_group, groups / least, [&](std::int64_t first, std::int64_t last, int) {
          for (std::int64_t i = first * least; i < last * least; i += most) {
            const std::int64_t end = std::min(i + most, last * least);
            begin(i, end);
            for (std::int64_t step = 0; step < k_.steps_; ++step) {
              round(i, end, step);
              advance(i, end, step, 0, k_.units_);
            }
            finish(i, end);
          }
        });
        return;
      }
      begin(0, groups);
      for (std::int64_t step = 0; step < k_.steps_; ++step) {
        round(0, groups, step);
        parallel_ranges(by_unit, k_.units_, [&](std::int64_t first, std::int64_t last, int) { advance(0, groups, step, first, last); });
      }
      finish(0, groups);
    }

   private:
    /// Rows of the batch in one direction.
    struct Group {
      std::int64_t direction;
      std::int64_t first;
      std::int64_t rows;
      float* states[2];  ///< [depth, rows]: before and after a step of even number
      float* cells;      ///< [rows, whole panels]
      std::int16_t* codes = nullptr;  ///< [depth / 2, rows, 2], with weights of bytes: the state in bytes without the one that stands for 0
      std::int32_t* base = nullptr;   ///< [rows], what products are beside those with the weights
      float* scale = nullptr;
    };

    Group group_of(std::int64_t index) const {
      Group group{.direction = index / blocks_, .first = index % blocks_ * rows_at_once_, .rows = 0, .states = {}, .cells = nullptr};
      group.rows = std::min(rows_at_once_, k_.batch_ - group.first);
      const std::int64_t plane = k_.directions_ * k_.batch_ * k_.width();
      float* const at = operands_.at<float>(k_.scratch_) + (group.direction * k_.batch_ + group.first) * k_.width();
      group.states[0] = at;
      group.states[1] = at + plane;
      group.cells = at + 2 * plane;
      if (k_.is_bytes_) {
        group.codes = reinterpret_cast<std::int16_t*>(at + 3 * plane);
        group.base = reinterpret_cast<std::int32_t*>(group.codes + group.rows * k_.depth_);
        group.scale = reinterpret_cast<float*>(group.base + group.rows);
      }
      return group;
    }

    void begin(std::int64_t first, std::int64_t last) const {
      for (std::int64_t i = first; i < last; ++i) begin(group_of(i));
    }

    void begin(const Group& group) const {
      for (float* const state : group.states) std::fill(state, state + k_.depth_ * group.rows, 0.0F);
      for (std::int64_t r = 0; r < group.rows; ++r) {
        for (std::int64_t i = 0; i < k_.hidden_; ++i) group.states[0][i * group.rows + r] = initial(kState, group, r, i);
        if (k_.cell_ != Cell::lstm) continue;
        float* const cell = group.cells + r * k_.width();
        for (std::int64_t i = 0; i < k_.hidden_; ++i) cell[i] = initial(kHeld, group, r, i);
        std::fill(cell + k_.hidden_, cell + k_.width(), 0.0F);
      }
    }

    float initial(std::size_t index, const Group& group, std::int64_t row, std::int64_t unit) const {
      const Tensor& t = k_.tensor(index);
      const std::int64_t in_batch = t.dims[1] == 1 ? 0 : (group.first + row) * t.strides[1];
      return Element<T>::load(operands_.at<const T>(index)[group.direction * t.strides[0] + in_batch + unit * t.strides[2]]);
    }

    void finish(std::int64_t first, std::int64_t last) const {
      for (std::int64_t i = first; i < last; ++i) finish(group_of(i));
    }

    void finish(const Group& group) const {
      const float* const state = group.states[k_.steps_ % 2];
      for (std::int64_t r = 0; r < group.rows; ++r) {
        for (std::int64_t i = 0; i < k_.hidden_; ++i) last_state(k_.y_ + 1, group, r, i) = Element<T>::store(state[i * group.rows + r]);
        if (k_.cell_ != Cell::lstm) continue;
        for (std::int64_t i = 0; i < k_.hidden_; ++i) last_state(k_.y_ + 2, group, r, i) = Element<T>::store(group.cells[r * k_.width() + i]);
      }
    }

    T& last_state(std::size_t index, const Group& group, std::int64_t row, std::int64_t unit) const {
      const Dims& strides = k_.tensor(index).strides;
      return operands_.at<T>(index)[group.direction * strides[0] + (group.first + row) * strides[1] + unit * strides[2]];
    }

    struct Place {
      std::int64_t step;
      bool is_backward;
      const float* before;
      float* after;
    };

    /// The states of whole directions in bytes, as a step reads them. Rows that ended before the step in front do not count.
    void round(std::int64_t first, std::int64_t last, std::int64_t step) const {
      if (!k_.is_bytes_) return;
      for (std::int64_t i = first; i < last; i += blocks_) {
        float low = 0.0F, high = 0.0F;
        for (std::int64_t n = i; n < i + blocks_; ++n) widen_range(group_of(n), step, low, high);
        const float scale = high > low ? (high - low) / 255.0F : 1.0F;
        const float exact = -low / scale;  // no number where the range is infinite, or too small for a scale
        const float zero = exact > 0.0F ? std::min(std::nearbyint(exact), 255.0F) : 0.0F;
        for (std::int64_t n = i; n < i + blocks_; ++n) {
          const Group group = group_of(n);
          k_.bytes_.round({.rows = group.rows,
                           .depth = k_.depth_,
                           .from = group.states[step % 2],
                           .scale = scale,
                           .low = -zero,
                           .high = 255.0F - zero,
                           .to = group.codes,
                           .sums = group.base});
          *group.scale = scale;
          // Unsigned, since a damaged program's shifts may be any numbers.
          const auto shift = static_cast<std::uint32_t>(operands_.at<const std::int32_t>(kShifts)[group.direction * k_.tensor(kShifts).strides[0]]);
          for (std::int64_t r = 0; r < group.rows; ++r) {
            group.base[r] = static_cast<std::int32_t>(static_cast<std::uint32_t>(group.base[r]) * shift);
          }
        }
      }
    }

    void widen_range(const Group& group, std::int64_t step, float& low, float& high) const {
      const float* const state = group.states[step % 2];
      if (k_.lengths_ == 0 || step == 0) return k_.bytes_.widen_range(state, k_.depth_ * group.rows, &low, &high);
      for (std::int64_t r = 0; r < group.rows; ++r) {
        if (step > length_of(group, r)) continue;
        for (std::int64_t i = 0; i < k_.hidden_; ++i) {
          low = std::min(low, state[i * group.rows + r]);
          high = std::max(high, state[i * group.rows + r]);
        }
      }
    }

    /// The panels [first, last) of groups in one step: a panel's weights meet all groups while they are near.
    void advance(std::int64_t group, std::int64_t end, std::int64_t step, std::int64_t first, std::int64_t last) const {
      if (end - group == 1) return advance(group_of(group), step, first, last);
      for (std::int64_t panel = first; panel < last; ++panel) {
        for (std::int64_t i = group; i < end; ++i) advance(group_of(i), step, panel, panel + 1);
      }
    }

    void advance(const Group& group, std::int64_t step, std::int64_t first, std::int64_t last) const {
      alignas(kLineBytes) std::array<float, kMostRows * kMostGates * kPanelColumns> products;  // NOLINT: the products write what is read
      alignas(kLineBytes) std::array<float, kMostRows * kMostGates * kPanelColumns> given;     // NOLINT: filled where it is read
      alignas(kLineBytes) std::array<float, kMostRows * kPanelColumns> states;                 // NOLINT: written before it is read
      alignas(kLineBytes) std::array<float, kPanelColumns> bias{};
      std::array<bool, kMostRows> counts;  // NOLINT: filled where it is read
      const Place place{.step = step,
                        .is_backward = group.direction == 1 || k_.is_reversed_,
                        .before = group.states[step % 2],
                        .after = group.states[1 - step % 2]};
      if (k_.lengths_ != 0) {
        for (std::int64_t r = 0; r < group.rows; ++r) counts[static_cast<std::size_t>(r)] = step < length_of(group, r);
      }
      CellArgs cells{.rows = group.rows,
                     .products = products.data(),
                     .bias = bias.data(),
                     .cell_row = k_.width(),
                     .counts = k_.lengths_ == 0 ? nullptr : counts.data(),
                     .states = states.data()};
      for (std::int64_t panel = first; panel < last; ++panel) {
        const std::int64_t width = std::min(kPanelColumns, k_.hidden_ - panel * kPanelColumns);
        find_given(group, place, panel, width, given.data(), cells);
        if (k_.is_bytes_) {
          multiply_bytes(group, panel, products.data());
        } else {
          multiply(group, panel, place.before, products.data());
        }
        cells.cells = group.cells + panel * kPanelColumns;
        cells.before = place.before + panel * kPanelColumns * group.rows;
        if (k_.cell_ == Cell::gru) read_bias(group, panel, width, bias.data());
        k_.advance_(cells);
        write(group, place, panel, width, cells);
      }
    }

    void multiply(const Group& group, std::int64_t panel, const float* state, float* products) const {
      const PanelKernels& panels = tile_kernels().panels;
      const std::int64_t size = k_.depth_ * kPanelColumns;
      const T* weights = operands_.at<const T>(kWeights) + (group.direction * k_.units_ + panel) * k_.gates_ * size;
      for (std::int64_t g = 0; g < k_.gates_;) {
        const std::int64_t count = k_.gates_ - g >= panels.panels ? panels.panels : 1;
        k_.product_({.rows = group.rows,
                     .panels = count,
                     .depth = k_.depth_,
                     .a = state,
                     .weights = weights + g * size,
                     .panel = size,
                     .c = products + g * kPanelColumns,
                     .c_row = k_.gates_ * kPanelColumns});
        g += count;
      }
    }

    void multiply_bytes(const Group& group, std::int64_t panel, float* products) const {
      const std::int64_t first = (group.direction * k_.units_ + panel) * k_.gates_;
      k_.bytes_.product({.rows = group.rows,
                         .panels = k_.gates_,
                         .depth = k_.depth_,
                         .a = group.codes,
                         .base = group.base,
                         .weights = operands_.at<const std::int8_t>(kWeights) + first * k_.depth_ * kPanelColumns,
                         .scale = *group.scale,
                         .factor = operands_.at<const float>(kFactors) + first * kPanelColumns,
                         .c = products,
                         .c_row = k_.gates_ * kPanelColumns});
    }

    /// The rows' elements of each gate: as they lie, asked for before the state is multiplied, for they lie apart from each other; or copied.
    void find_given(const Group& group, const Place& place, std::int64_t panel, std::int64_t width, float* copy, CellArgs& cells) const {
      const Dims& strides = k_.tensor(kRows).strides;
      const std::int64_t column = group.direction * k_.gates_ * k_.hidden_ + panel * kPanelColumns;
      const T* const rows = operands_.at<const T>(kRows) + group.first * strides[1] + column * strides[2];
      const std::int64_t gate = k_.hidden_ * strides[2];
      if constexpr (std::is_same_v<T, float>) {
        if (strides[2] == 1 && width == kPanelColumns && (k_.lengths_ == 0 || !place.is_backward)) {
          const T* const now = rows + time_of(group, place, 0) * strides[0];
          for (std::int64_t r = 0; r < group.rows; ++r) {
            for (std::int64_t g = 0; g < k_.gates_; ++g) __builtin_prefetch(now + r * strides[1] + g * gate);
          }
          cells.given = now;
          cells.given_row = strides[1];
          cells.given_gate = gate;
          return;
        }
      }
      for (std::int64_t r = 0; r < group.rows; ++r) {
        const T* const row = rows + time_of(group, place, r) * strides[0] + r * strides[1];
        for (std::int64_t g = 0; g < k_.gates_; ++g) {
          const T* const from = row + g * gate;
          float* const to = copy + (r * k_.gates_ + g) * kPanelColumns;
          for (std::int64_t j = 0; j < width; ++j) to[j] = Element<T>::load(from[j * strides[2]]);
          std::fill(to + width, to + kPanelColumns, 0.0F);
        }
      }
      cells.given = copy;
      cells.given_row = k_.gates_ * kPanelColumns;
      cells.given_gate = kPanelColumns;
    }

    void read_bias(const Group& group, std::int64_t panel, std::int64_t width, float* bias) const {
      const Dims& strides = k_.tensor(kHeld).strides;
      const T* const from = operands_.at<const T>(kHeld) + group.direction * strides[0] + panel * kPanelColumns * strides[1];
      for (std::int64_t j = 0; j < width; ++j) bias[j] = Element<T>::load(from[j * strides[1]]);
    }

    /// Steps of a row.
    std::int64_t length_of(const Group& group, std::int64_t row) const {
      if (k_.lengths_ == 0) return k_.steps_;
      const Tensor& t = k_.tensor(k_.lengths_);
      return std::min(k_.steps_, read_index(operands_.at(k_.lengths_), t.dtype, (group.first + row) * t.strides[0]));
    }

    /// The place in time of a row's step: backward from its own end, so that all rows begin together. Beyond its length, steps are places.
    std::int64_t time_of(const Group& group, const Place& place, std::int64_t row) const {
      const std::int64_t length = length_of(group, row);
      return place.is_backward && place.step < length ? length - 1 - place.step : place.step;
    }

    /// Beyond its length, a row keeps its state.
    void write(const Group& group, const Place& place, std::int64_t panel, std::int64_t width, const CellArgs& cells) const {
      const Dims& strides = k_.tensor(k_.y_).strides;
      const std::int64_t unit = panel * kPanelColumns, rows = group.rows;
      T* const y = operands_.at<T>(k_.y_) + group.direction * strides[1] + unit * strides[3];
      for (std::int64_t r = 0; r < rows; ++r) {
        float* const after = place.after + unit * rows + r;
        const float* const before = place.before + unit * rows + r;
        float* const made = cells.states + r * kPanelColumns;
        T* const row = y + time_of(group, place, r) * strides[0] + (group.first + r) * strides[2];
        if (cells.counts != nullptr && !cells.counts[r]) {
          for (std::int64_t j = 0; j < width; ++j) after[j * rows] = before[j * rows];
          for (std::int64_t j = 0; j < width; ++j) row[j * strides[3]] = Element<T>::store(0.0F);
          continue;
        }
        for (std::int64_t j = 0; j < width; ++j) after[j * rows] = made[j];
        if (std::is_same_v<T, float> && strides[3] == 1 && width == kPanelColumns) {
          std::memcpy(row, made, sizeof(float) * kPanelColumns);
        } else {
          for (std::int64_t j = 0; j < width; ++j) row[j * strides[3]] = Element<T>::store(made[j]);
        }
      }
    }

    const Recurrence& k_;
    const Operands& operands_;
    std::int64_t rows_at_once_;
    std::int64_t blocks_;
  };

  Cell cell_ = Cell::lstm;
  bool is_bytes_;  ///< the weights
  bool is_reversed_;
  std::int64_t gates_ = 0, steps_ = 0, directions_ = 0, batch_ = 0, hidden_ = 0, units_ = 0, depth_ = 0;
  std::size_t lengths_ = 0, y_ = 0, scratch_ = 0;  ///< no lengths: 0
  void (*product_)(const PanelProductArgs&) = nullptr;
  void (*advance_)(const CellArgs&) = nullptr;
  const BytePanels& bytes_ = tile_kernels().panels.bytes;
};

}  // namespace

std::unique_ptr<Kernel> make_recurrence(const Image& image) { return std::make_unique<Recurrence>(image, false); }
std::unique_ptr<Kernel> make_quantized_recurrence(const Image& image) { return std::make_unique<Recurrence>(image, true); }

}  // namespace hipdnn_port::kernels
