#include "program/expressions.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "device/error.h"
#include "program/checked.h"

namespace hipdnn_rt {
namespace {

/// Bounds the work that a hostile file can cause.
constexpr std::size_t kEntryLimit = 65'536;
constexpr const char* kReference = "expr";

/// Rounds down; nothing where the quotient does not exist.
std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  if (b <= 0) return std::nullopt;
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace

Expressions Expressions::read(const Field& root) {
  Expressions table;
  const std::optional<Field> symbols = root.find("symbols");
  const std::optional<Field> entries = root.find("expressions");
  if (!symbols) return table;
  std::set<std::string> names;
  const std::size_t symbol_count = symbols->array_size(kEntryLimit);
  for (std::size_t i = 0; i < symbol_count; ++i) {
    table.symbols_.push_back(symbols->at(i).text());
    if (!names.insert(table.symbols_.back()).second) symbols->at(i).fail("a name used once");
  }
  const std::size_t count = entries ? entries->array_size(kEntryLimit) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Field field = entries->at(i);
    const std::size_t size = field.array_size(3);
    if (size < 2) field.fail("an operator and its operands");
    Entry entry{read_operator(field.at(0)), {}, {}};
    if (size != (entry.action == Operator::symbol ? 2U : 3U)) field.fail("an operator and its operands");
    if (entry.action == Operator::symbol) {
      entry.a.number = field.at(1).integer(0, static_cast<std::int64_t>(symbol_count) - 1);
    } else {
      entry.a = table.reference(field.at(1), kInt64Min, kInt64Max);
      entry.b = table.reference(field.at(2), kInt64Min, kInt64Max);
    }
    table.entries_.push_back(entry);
  }
  return table;
}

Expressions::Operator Expressions::read_operator(const Field& field) {
  const std::string& name = field.text();
  if (name == "symbol") return Operator::symbol;
  if (name == "+") return Operator::add;
  if (name == "*") return Operator::multiply;
  if (name == "floordiv") return Operator::floor_divide;
  if (name == "ceildiv") return Operator::ceil_divide;
  if (name == "mod") return Operator::modulo;
  if (name == "max") return Operator::maximum;
  field.fail("one of \"symbol\", \"+\", \"*\", \"floordiv\", \"ceildiv\", \"mod\", \"max\"");
}

Expression Expressions::reference(const Field& field, std::int64_t least, std::int64_t greatest) const {
  if (!is_reference(field.json())) return {field.integer(least, greatest), std::nullopt};
  return {0, static_cast<std::size_t>(field[kReference].integer(0, static_cast<std::int64_t>(entries_.size()) - 1))};
}

bool Expressions::is_reference(const nlohmann::json& value) { return value.is_object() && value.size() == 1 && value.contains(kReference); }

std::vector<std::int64_t> Expressions::evaluate(std::span<const std::int64_t> symbols) const {
  std::vector<std::int64_t> values;
  values.reserve(entries_.size());
  const auto value = [&](const Expression& operand) { return operand.entry ? values[*operand.entry] : operand.number; };
  for (const Entry& entry : entries_) {
    std::optional<std::int64_t> result;
    const std::int64_t a = value(entry.a);
    const std::int64_t b = value(entry.b);
    switch (entry.action) {
      case Operator::symbol: result = symbols[static_cast<std::size_t>(entry.a.number)]; break;
      case Operator::add: result = checked_add(a, b); break;
      case Operator::multiply: result = checked_multiply(a, b); break;
      case Operator::floor_divide: result = floor_divide(a, b); break;
      case Operator::ceil_divide:
        if (a != kInt64Min) result = floor_divide(-a, b);
        if (result && *result != kInt64Min) result = -*result;
        break;
      case Operator::modulo:
        if (b > 0) result = a % b + (a % b < 0 ? b : 0);
        break;
      case Operator::maximum: result = std::max(a, b); break;
    }
    if (!result) {
      std::string message = "the size " + text({0, values.size()}) + " leaves the range of 64 bits";
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        message += (i == 0 ? " where " : ", ") + symbols_[i] + " is " + std::to_string(symbols[i]);
      }
      throw InputError(message);
    }
    values.push_back(*result);
  }
  return values;
}

std::optional<std::size_t> Expressions::symbol(const Expression& expression) const {
  if (!expression.entry || entries_[*expression.entry].action != Operator::symbol) return std::nullopt;
  return static_cast<std::size_t>(entries_[*expression.entry].a.number);
}

std::string Expressions::text(const Expression& expression, int depth) const {
  if (!expression.entry) return std::to_string(expression.number);
  const Entry& entry = entries_[*expression.entry];
  if (entry.action == Operator::symbol) return symbols_[static_cast<std::size_t>(entry.a.number)];
  if (depth == 0) return "...";
  const auto operand = [&](const Expression& part) {
    std::string inner = text(part, depth - 1);
    if (inner.find(' ') == std::string::npos) return inner;
    inner.insert(0, 1, '(');
    inner += ')';
    return inner;
  };
  const char* name = "mod";
  switch (entry.action) {
    case Operator::add: name = "+"; break;
    case Operator::multiply: name = "*"; break;
    case Operator::floor_divide: name = "floordiv"; break;
    case Operator::ceil_divide: name = "ceildiv"; break;
    case Operator::maximum: name = "max"; break;
    default: break;
  }
  std::string result = operand(entry.a);
  result += ' ';
  result += name;
  result += ' ';
  result += operand(entry.b);
  return result;
}

}  // namespace hipdnn_rt
