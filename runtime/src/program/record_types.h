// What the generated records of a program file are made of, as they are stored and for given sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/descriptor_spec.h"
#include "program/dtype.h"
#include "program/expressions.h"

namespace hipdnn_rt {

/// Bounds the work that a hostile file can cause; real programs stay two orders of magnitude below.
inline constexpr std::size_t kListLimit = 65'536;

/// What the schema says of a field beside its type: bounds of its integers, and the most elements of its lists.
struct FieldRow {
  std::string_view name;
  bool is_required = true;
  std::int64_t least = 0;
  std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  std::size_t most = kListLimit;
};

/// What a choice is called in a file.
template <typename Choice>
constexpr std::string_view text_of(Choice choice) {
  return texts_of(choice)[static_cast<std::size_t>(choice)];
}

/// An element of a computed constant: a whole number, or a fraction.
template <typename Number>
struct ElementValue {
  Number whole{};
  std::optional<double> fraction;
};

/// A descriptor whose integers may be expressions: `spec` has 0 in their places.
struct StoredDescriptor {
  struct Place {
    std::size_t attribute;
    std::size_t element;
    Expression expression;
  };
  DescriptorSpec spec;
  std::vector<Place> expressions;
};

/// JSON text whose integers may be expressions: each with the text in front of it, and the text behind the last.
struct StoredJson {
  std::vector<std::pair<std::string, Expression>> expressions;
  std::string rest;
};

/// Records as a file has them: a number may be an expression.
struct Stored {
  using Number = Expression;
  using Value = ElementValue<Expression>;
  using Descriptor = StoredDescriptor;
  using Json = StoredJson;
};

/// Records for given values of the symbols.
struct Concrete {
  using Number = std::int64_t;
  using Value = ElementValue<std::int64_t>;
  using Descriptor = DescriptorSpec;
  using Json = std::string;
};

}  // namespace hipdnn_rt
