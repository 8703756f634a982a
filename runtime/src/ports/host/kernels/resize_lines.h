// Lines of a resized tensor: the innermost dim is interpolated once for each line of the input, the others then mix whole lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "elements.h"
#include "resize_axis.h"

namespace hipdnn_port::kernels {

/// The innermost dim for lines: positions are offsets in elements.
class LineAxis {
 public:
  LineAxis() = default;
  LineAxis(const ResizeAxis& axis, std::int64_t size) : count_(axis.count), size_(size), positions_(axis.positions) {
    weights_.assign(axis.weights.begin(), axis.weights.end());
    for (std::int64_t i = 0; i < size && is_whole_; ++i) is_whole_ = count_ == 1 && positions_[static_cast<std::size_t>(i)] == i;
  }

  std::int64_t size() const { return size_; }
  /// Is a line the input's elements as they lie in memory?
  bool is_whole() const { return is_whole_; }

  template <class T>
  void resize(const T* from, float* line) const {
    switch (count_) {
      case 1: return resize_by<1>(from, line);
      case 2: return resize_by<2>(from, line);
      case 4: return resize_by<4>(from, line);
      default: return resize_by<0>(from, line);
    }
  }

 private:
  /// `taps` is the count where it is known, else 0.
  template <std::int64_t taps, class T>
  void resize_by(const T* from, float* line) const {
    const std::int64_t count = taps == 0 ? count_ : taps;
    const std::int64_t* position = positions_.data();
    const float* weight = weights_.data();
    for (std::int64_t i = 0; i < size_; ++i, position += count, weight += count) {
      float sum = 0;
      for (std::int64_t k = 0; k < count; ++k) sum += weight[k] * Element<T>::load(from[position[k]]);
      line[i] = sum;
    }
  }

  std::int64_t count_ = 1;
  std::int64_t size_ = 0;
  bool is_whole_ = true;
  std::vector<std::int64_t> positions_;
  std::vector<float> weights_;
};

/// Interpolated lines of one tensor, the latest used kept: rows that follow each other mix the same ones. Of one thread, for one run.
template <class T>
class ResizedLines {
 public:
  /// `mixed` lines are wanted at once.
  ResizedLines(const LineAxis& axis, const T* source, std::size_t mixed)
      : axis_(axis), source_(source), offsets_(2 * mixed, -1), used_(2 * mixed, 0), lines_(2 * mixed * static_cast<std::size_t>(axis.size())) {}

  /// The line that begins at an element of the input; it lasts for as many further calls as lines are wanted at once.
  const float* at(std::int64_t offset) {
    if constexpr (std::is_same_v<T, float>) {
      if (axis_.is_whole()) return source_ + offset;
    }
    auto place = static_cast<std::size_t>(std::ranges::find(offsets_, offset) - offsets_.begin());
    const bool is_kept = place < offsets_.size();
    if (!is_kept) place = static_cast<std::size_t>(std::ranges::min_element(used_) - used_.begin());
    float* line = lines_.data() + place * static_cast<std::size_t>(axis_.size());
    if (!is_kept) axis_.resize(source_ + offset, line);
    offsets_[place] = offset;
    used_[place] = ++calls_;
    return line;
  }

 private:
  const LineAxis& axis_;
  const T* source_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> used_;  ///< the number of the latest call for each
  std::vector<float> lines_;
  std::int64_t calls_ = 0;
};

}  // namespace hipdnn_port::kernels
