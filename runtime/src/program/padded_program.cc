#include "program/padded_program.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr std::uint64_t kCopyLimit = 1024;

/// One copy of bytes, from a place to another.
struct Copy {
  View source;
  View destination;
  std::uint64_t bytes;
};

std::uint64_t product(Dims::const_iterator first, Dims::const_iterator last) {
  std::uint64_t result = 1;
  for (; first != last; ++first) result *= static_cast<std::uint64_t>(*first);
  return result;
}

/// How a small dense array lies in a large one of the same type, neither without elements: in rows along the last axis that differs.
class Rows {
 public:
  Rows(const Argument& argument, Dims small, Dims large) : small_(std::move(small)), large_(std::move(large)) {
    axis_ = small_.size() - 1;
    while (small_[axis_] == large_[axis_]) --axis_;
    const auto behind = static_cast<std::ptrdiff_t>(axis_) + 1;
    item_bytes_ = product(large_.begin() + behind, large_.end()) * info_of(argument.dtype).bytes;
  }

  std::size_t axis() const { return axis_; }
  std::uint64_t item_bytes() const { return item_bytes_; }
  std::uint64_t items_of_small() const { return static_cast<std::uint64_t>(small_[axis_]); }
  std::uint64_t items_of_large() const { return static_cast<std::uint64_t>(large_[axis_]); }
  std::uint64_t rows_of_small() const { return product(small_.begin(), front(small_)); }
  std::uint64_t rows_of_large() const { return product(large_.begin(), front(large_)); }
  /// The row of the large array where that row of the small one lies.
  std::uint64_t in_large(std::uint64_t row) const { return moved(row, small_, large_); }
  /// The row of the small array that is nearest to that row of the large one.
  std::uint64_t in_small(std::uint64_t row) const { return moved(row, large_, small_); }

 private:
  Dims::const_iterator front(const Dims& dims) const { return dims.begin() + static_cast<std::ptrdiff_t>(axis_); }

  std::uint64_t moved(std::uint64_t row, const Dims& from, const Dims& to) const {
    std::uint64_t result = 0;
    std::uint64_t stride = 1;
    for (std::size_t axis = axis_; axis-- > 0;) {
      const auto size = static_cast<std::uint64_t>(from[axis]);
      result += std::min(row % size, static_cast<std::uint64_t>(to[axis]) - 1) * stride;
      row /= size;
      stride *= static_cast<std::uint64_t>(to[axis]);
    }
    return result;
  }

  Dims small_;
  Dims large_;
  std::size_t axis_ = 0;
  std::uint64_t item_bytes_ = 0;
};

void check_rows(const Argument& argument, const Rows& rows, std::uint64_t count) {
  if (count <= kCopyLimit) return;
  throw InputError("'" + argument.name + "', dimension " + std::to_string(rows.axis()) + ": padding takes " + std::to_string(count) +
                   " copies on the device, more than " + std::to_string(kCopyLimit) + "; give a bucket's sizes, or arrays in host memory");
}

/// The copies that fill the large array: each row, then its last item again and again, twice as many with each copy.
std::vector<Copy> padding(const Argument& large, const Dims& dims, std::uint32_t from) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) throw InputError("'" + large.name + "': there is no element to repeat");
  const Rows rows(large, dims, large.dims);
  check_rows(large, rows, rows.rows_of_large());
  std::vector<Copy> copies;
  for (std::uint64_t row = 0; row < rows.rows_of_large(); ++row) {
    const std::uint64_t start = row * rows.items_of_large() * rows.item_bytes();
    const std::uint64_t given_bytes = rows.items_of_small() * rows.item_bytes();
    copies.push_back({{from, rows.in_small(row) * given_bytes}, {large.buffer, start}, given_bytes});
    const std::uint64_t last = start + given_bytes - rows.item_bytes();
    std::uint64_t filled = rows.items_of_small();
    for (std::uint64_t equal = 1; filled < rows.items_of_large();) {
      const std::uint64_t count = std::min(equal, rows.items_of_large() - filled);
      copies.push_back({{large.buffer, last}, {large.buffer, start + filled * rows.item_bytes()}, count * rows.item_bytes()});
      filled += count;
      equal += count;
    }
  }
  return copies;
}

/// The copies that take the small array out of the large one.
std::vector<Copy> cutting(const Argument& large, const Dims& dims, std::uint32_t to) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {};
  const Rows rows(large, dims, large.dims);
  check_rows(large, rows, rows.rows_of_small());
  std::vector<Copy> copies;
  const std::uint64_t bytes = rows.items_of_small() * rows.item_bytes();
  for (std::uint64_t row = 0; row < rows.rows_of_small(); ++row) {
    copies.push_back({{large.buffer, rows.in_large(row) * rows.items_of_large() * rows.item_bytes()}, {to, row * bytes}, bytes});
  }
  return copies;
}

records::Step<Concrete> step_of(const Copy& copy, const std::string& name) {
  const auto place = [](const View& view) { return records::Location<Concrete>{view.buffer, static_cast<std::int64_t>(view.offset)}; };
  return {records::Copy<Concrete>{name, static_cast<std::int64_t>(copy.bytes), place(copy.source), place(copy.destination)}};
}

/// Put a buffer of these dims in the place of an input's or output's, whose own becomes a temp; returns its index.
std::uint32_t replace_buffer(records::Body<Concrete>& body, records::Port<Concrete>& port, const Argument& checked, const Dims& dims, BufferKind kind) {
  const auto index = static_cast<std::uint32_t>(body.buffers.size());
  body.buffers[checked.buffer].kind = BufferKind::temp;
  body.buffers.push_back({kind, static_cast<std::int64_t>(product(dims.begin(), dims.end()) * info_of(checked.dtype).bytes)});
  port.dims = dims;
  port.buffer = index;
  return index;
}

void check_dims(const Argument& argument, const Dims& dims) {
  const bool fits = std::equal(dims.begin(), dims.end(), argument.dims.begin(), argument.dims.end(),
                               [](std::int64_t asked, std::int64_t size) { return asked >= 0 && asked <= size; });
  if (!fits) throw ProgramError("dims of '" + argument.name + "' are not those that the sizes say");
}

}  // namespace

ProgramParts padded_program(ProgramParts parts, const Program& checked, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  records::Body<Concrete>& body = parts.body;
  std::vector<records::Step<Concrete>> steps;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Argument& large = checked.inputs()[i];
    check_dims(large, inputs[i]);
    if (inputs[i] == large.dims) continue;
    const std::uint32_t given = replace_buffer(body, body.inputs[i], large, inputs[i], BufferKind::input);
    for (const Copy& copy : padding(large, inputs[i], given)) steps.push_back(step_of(copy, "pad " + large.name));
  }
  std::ranges::move(body.steps, std::back_inserter(steps));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Argument& large = checked.outputs()[i];
    check_dims(large, outputs[i]);
    if (outputs[i] == large.dims) continue;
    const std::uint32_t wanted = replace_buffer(body, body.outputs[i], large, outputs[i], BufferKind::output);
    for (const Copy& copy : cutting(large, outputs[i], wanted)) steps.push_back(step_of(copy, "cut " + large.name));
  }
  body.steps = std::move(steps);
  return parts;
}

}  // namespace hipdnn_rt
