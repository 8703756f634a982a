// Stored records to records for given values of the symbols. Every number is within the bounds of its field afterwards.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "program/json_field.h"
#include "program/place.h"
#include "program_records.h"

namespace hipdnn_rt {

/// Fills a concrete record from a stored one, as a visitor of the fields of both.
class RecordEvaluator {
 public:
  /// `values` has one for each entry of the table of expressions, or none where the record may have no expressions; `place` is the record's.
  RecordEvaluator(std::span<const std::int64_t> values, const Place& place) : values_(values), place_(place) {}

  template <template <typename> typename Record>
  static Record<Concrete> evaluate(const Record<Stored>& stored, std::span<const std::int64_t> values, const Place& place) {
    Record<Concrete> made;
    Record<Stored>::visit(RecordEvaluator(values, place), stored, made);
    return made;
  }

  template <typename From, typename To>
  void operator()(const FieldRow& row, const From& from, To& to) const {
    make(row, Place(place_, row.name), from, to);
  }

 private:
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>
  void make(const FieldRow&, const Place&, const T& from, T& to) const {
    to = from;
  }

  std::int64_t number(const Expression& from, const Place& place) const {
    if (!from.entry) return from.number;
    if (*from.entry >= values_.size()) place.fail("a number", "an expression");
    return values_[*from.entry];
  }

  void make(const FieldRow& row, const Place& place, const Expression& from, std::int64_t& to) const {
    to = number(from, place);
    if (to < row.least || to > row.greatest) place.fail(range_text(row.least, row.greatest), std::to_string(to));
  }

  void make(const FieldRow&, const Place& place, const ElementValue<Expression>& from, ElementValue<std::int64_t>& to) const {
    to = {number(from.whole, place), from.fraction};
  }

  void make(const FieldRow&, const Place& place, const StoredJson& from, std::string& to) const {
    for (const auto& [text, expression] : from.expressions) to += text + std::to_string(number(expression, place));
    to += from.rest;
  }

  void make(const FieldRow&, const Place& place, const StoredDescriptor& from, DescriptorSpec& to) const {
    to = from.spec;
    for (const StoredDescriptor::Place& open : from.expressions) {
      const std::int64_t value = number(open.expression, place);
      if (!set_integer(to.attributes[open.attribute], open.element, value)) place.fail("an attribute of 32 bits", std::to_string(value));
    }
  }

  template <typename From, typename To>
  void make(const FieldRow& row, const Place& place, const std::optional<From>& from, std::optional<To>& to) const {
    if (from) make(row, place, *from, to.emplace());
  }

  template <typename From, typename To>
  void make(const FieldRow& row, const Place& place, const std::vector<From>& from, std::vector<To>& to) const {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) make(row, Place(place, i), from[i], to[i]);
  }

  template <template <typename> typename Record>
    requires requires(const RecordEvaluator& visit, Record<Concrete>& record) { Record<Stored>::visit(visit, record, record); }
  void make(const FieldRow&, const Place& place, const Record<Stored>& from, Record<Concrete>& to) const {
    Record<Stored>::visit(RecordEvaluator(values_, place), from, to);
  }

  template <template <typename> typename Union>
    requires requires { Union<Stored>::kinds; }
  void make(const FieldRow& row, const Place& place, const Union<Stored>& from, Union<Concrete>& to) const {
    make_alternative<0>(row, place, from, to);
  }

  template <std::size_t index, typename From, typename To>
  void make_alternative(const FieldRow& row, const Place& place, const From& from, To& to) const {
    if constexpr (index < From::kinds.size()) {
      if (index == from.index()) return make(row, place, std::get<index>(from), to.template emplace<index>());
      make_alternative<index + 1>(row, place, from, to);
    }
  }

  std::span<const std::int64_t> values_;
  const Place& place_;
};

}  // namespace hipdnn_rt
