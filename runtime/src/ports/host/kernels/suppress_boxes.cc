// `suppress_boxes`: of boxes that overlap, those of the greatest scores.
#include <algorithm>
#include <limits>

#include "functions.h"
#include "lines.h"

namespace hipdnn_port::kernels {
namespace {

/// A box between its least and its greatest corner.
struct Box {
  float low[2];
  float high[2];

  static Box between_corners(const float* x, std::int64_t step) {
    Box made{};
    for (std::int64_t d = 0; d < 2; ++d) {
      made.low[d] = std::min(x[d * step], x[(d + 2) * step]);
      made.high[d] = std::max(x[d * step], x[(d + 2) * step]);
    }
    return made;
  }

  static Box around_center(const float* x, std::int64_t step) {
    Box made{};
    for (std::int64_t d = 0; d < 2; ++d) {
      const float half = x[(d + 2) * step] / 2;
      made.low[d] = x[d * step] - half;
      made.high[d] = x[d * step] + half;
    }
    return made;
  }

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }

  /// Whether what both cover is more than `limit` of what either covers; boxes without an area overlap nothing.
  bool overlaps(const Box& other, float limit) const {
    const float width = std::min(high[0], other.high[0]) - std::max(low[0], other.low[0]);
    const float height = std::min(high[1], other.high[1]) - std::max(low[1], other.low[1]);
    if (!(width > 0) || !(height > 0)) return false;
    const float both = width * height;
    const float one = area();
    const float two = other.area();
    const float either = one + two - both;
    return one > 0 && two > 0 && either > 0 && both / either > limit;
  }
};

class SuppressBoxes : public Kernel {
 public:
  explicit SuppressBoxes(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"center"});
    image.expect_counts(4, 3);
    is_center_ = image.attributes.boolean("center");
    for (std::size_t i = 0; i < 4; ++i) expect_dtype(image, i, DType::f32);
    expect_i64(image, 4);
    expect_i64(image, 5);
    expect_dtype(image, 6, DType::i32);
    const Dims& scores = image.tensors[1].dims;
    if (scores.size() != 3) refuse("tensors[1].dims: expected [batches, classes, boxes], got ", show(scores));
    if (scores[2] > std::numeric_limits<std::int32_t>::max()) refuse("tensors[1].dims: ", scores[2], " boxes are too many");
    image.expect_dims(0, {scores[0], scores[2], 4});
    image.expect_dims(2, {1});
    image.expect_dims(3, {1});
    const Dims& chosen = image.tensors[4].dims;
    if (chosen.size() != 3) refuse("tensors[4].dims: expected [batches, classes, boxes to choose], got ", show(chosen));
    image.expect_dims(4, {scores[0], scores[1], chosen[2]});
    image.expect_dims(5, {scores[0], scores[1]});
    image.expect_dims(6, scores);
    if (image.tensors[6].strides[2] != 1) refuse("tensors[6].strides: expected a last dim without gaps");
  }

 private:
  static void expect_dtype(const Image& image, std::size_t index, DType dtype) {
    if (image.tensors[index].dtype == dtype) return;
    refuse("tensors[", index, "].dtype: expected ", info_of(dtype).name, ", got ", info_of(image.tensors[index].dtype).name);
  }

  void run(const Operands& operands, int threads) const override {
    const std::int64_t classes = tensor(1).dims[1];
    const std::int64_t lists = tensor(1).dims[0] * classes;
    parallel_ranges(useful_threads(threads, lists, 4 * lists * tensor(1).dims[2], 1), lists, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t list = first; list < last; ++list) choose(operands, list / classes, list % classes);
    });
  }

  void choose(const Operands& operands, std::int64_t batch, std::int64_t of_class) const {
    const auto start = [&](std::size_t index) { return batch * tensor(index).strides[0] + of_class * tensor(index).strides[1]; };
    const float* scores = operands.at<const float>(1) + start(1);
    const std::int64_t step = tensor(1).strides[2];
    std::int32_t* candidates = operands.at<std::int32_t>(6) + start(6);
    const float least = *operands.at<const float>(3);
    std::int32_t* end = candidates;
    for (std::int64_t i = 0; i < tensor(1).dims[2]; ++i) {
      *end = static_cast<std::int32_t>(i);  // without a branch, which a CPU cannot foresee
      end += scores[i * step] > least ? 1 : 0;
    }
    const auto is_behind = [&](std::int32_t a, std::int32_t b) {
      return scores[a * step] < scores[b * step] || (scores[a * step] == scores[b * step] && a > b);
    };
    std::make_heap(candidates, end, is_behind);

    const float* boxes = operands.at<const float>(0) + batch * tensor(0).strides[0];
    const float limit = *operands.at<const float>(2);
    std::int64_t* chosen = operands.at<std::int64_t>(4) + start(4);
    const std::int64_t chosen_step = tensor(4).strides[2];
    std::int64_t found = 0;
    while (end != candidates && found < tensor(4).dims[2]) {
      std::pop_heap(candidates, end--, is_behind);
      const Box box = box_at(boxes, *end);
      bool is_kept = true;
      for (std::int64_t j = 0; is_kept && j < found; ++j) is_kept = !box.overlaps(box_at(boxes, chosen[j * chosen_step]), limit);
      if (is_kept) chosen[found++ * chosen_step] = *end;
    }
    operands.at<std::int64_t>(5)[start(5)] = found;
    for (std::int64_t i = found; i < tensor(4).dims[2]; ++i) chosen[i * chosen_step] = 0;
  }

  Box box_at(const float* boxes, std::int64_t index) const {
    const float* x = boxes + index * tensor(0).strides[1];
    return is_center_ ? Box::around_center(x, tensor(0).strides[2]) : Box::between_corners(x, tensor(0).strides[2]);
  }

  bool is_center_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_suppress_boxes(const Image& image) { return std::make_unique<SuppressBoxes>(image); }

}  // namespace hipdnn_port::kernels
