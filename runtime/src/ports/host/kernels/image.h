// A kernel's image: JSON text that names a function of this library, its tensors and its attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../engines/element_type.h"

namespace hipdnn_port::kernels {

/// What is wrong with an image, or with the values a launch met. The message names the field or tensor.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws a KernelError whose message is the joined arguments.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  throw KernelError(stream.str());
}

using Dims = std::vector<std::int64_t>;

/// More than any tensor of a model has; room for one position per dim lies on the stack.
inline constexpr std::size_t max_rank = 32;

/// A tensor as the image describes it. Dims are zero or more, strides in elements; number of elements and extent in bytes fit int64.
struct Tensor {
  bool is_output = false;
  DType dtype = DType::f32;
  Dims dims;
  Dims strides;

  std::size_t rank() const { return dims.size(); }
  std::int64_t bytes() const { return info_of(dtype).bytes; }
  std::int64_t elements() const;
  /// Whether its elements lie in C order without gaps.
  bool is_packed() const;
};

/// "[2, 3]".
std::string show(const Dims& dims);

/// Product of dims that belong to a tensor, so that it fits.
std::int64_t product(std::span<const std::int64_t> dims);

/// The attributes of a kernel, each read with the check that it needs. All throw KernelError.
class Attributes {
 public:
  Attributes();
  explicit Attributes(nlohmann::json values);

  /// Refuses attributes not among `known`: what a newer compiler means by them would get lost.
  void expect_only(std::initializer_list<std::string_view> known) const;
  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t greatest) const;
  /// A dim of a tensor of this rank.
  std::size_t axis(std::string_view name, std::size_t rank) const;
  bool boolean(std::string_view name) const;
  double real(std::string_view name) const;
  /// Position in `choices` of the attribute's text.
  std::size_t choice(std::string_view name, std::initializer_list<std::string_view> choices) const;
  /// `count` integers of at most 2^62 in magnitude.
  Dims integers(std::string_view name, std::size_t count) const;
  std::vector<double> reals(std::string_view name, std::size_t count) const;
  const nlohmann::json& value(std::string_view name) const;

 private:
  std::shared_ptr<const nlohmann::json> values_;
};

/// A parsed image; `inputs` of the tensors come first, then the outputs.
struct Image {
  std::string function;
  std::vector<Tensor> tensors;
  std::size_t inputs = 0;
  Attributes attributes;

  /// Throws KernelError where the text is no image.
  static Image parse(std::string_view text);

  std::size_t outputs() const { return tensors.size() - inputs; }
  /// Refuses an image with other numbers of tensors.
  void expect_counts(std::size_t in, std::size_t out) const;
  /// Refuses tensors `a` and `b` of different types.
  void expect_same_dtype(std::size_t a, std::size_t b) const;
  /// Refuses a tensor with other dims.
  void expect_dims(std::size_t tensor, const Dims& dims) const;
};

/// A number of JSON, or one of the names "inf", "-inf", "nan".
double read_real(const nlohmann::json& value, std::string_view what);
DType read_dtype(const nlohmann::json& value, std::string_view what);
/// The type of that name, where there is one.
std::optional<DType> find_dtype(const nlohmann::json& value);
/// Throws KernelError: "<what>: expected <expected>, got <value>".
[[noreturn]] void refuse_value(std::string_view what, std::string_view expected, const nlohmann::json& value);

}  // namespace hipdnn_port::kernels
