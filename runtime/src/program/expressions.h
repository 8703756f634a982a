// Integer expressions over the symbols of a program: the sizes of its dynamic dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/json_field.h"

namespace hipdnn_rt {

/// A number, or an entry of a program's table.
struct Expression {
  std::int64_t number = 0;
  std::optional<std::size_t> entry;

  friend bool operator==(const Expression&, const Expression&) = default;
};

/// The table of a program. Immutable after reading.
class Expressions {
 public:
  /// Read `symbols` and `expressions` of a program; empty where it has none. Throws ProgramError.
  static Expressions read(const Field& root);

  const std::vector<std::string>& symbols() const { return symbols_; }

  /// Read a number, within bounds, or a reference to the table. Throws ProgramError.
  Expression reference(const Field& field, std::int64_t least, std::int64_t greatest) const;
  /// Whether a JSON value is a reference.
  static bool is_reference(const nlohmann::json& value);

  /// The value of every entry where the symbols have the given values. Throws InputError where one leaves 64 bits or divides by zero.
  std::vector<std::int64_t> evaluate(std::span<const std::int64_t> symbols) const;
  /// The symbol that an expression is, by itself.
  std::optional<std::size_t> symbol(const Expression& expression) const;
  /// For people: "past + seq"; what is nested deeper than any real size is left out.
  std::string text(const Expression& expression) const { return text(expression, kShownDepth); }

 private:
  enum class Operator { symbol, add, multiply, floor_divide, ceil_divide, modulo, maximum };
  struct Entry {
    Operator action;
    Expression a;
    Expression b;
  };
  static constexpr int kShownDepth = 8;
  static Operator read_operator(const Field& field);
  std::string text(const Expression& expression, int depth) const;

  std::vector<std::string> symbols_;
  std::vector<Entry> entries_;
};

}  // namespace hipdnn_rt
