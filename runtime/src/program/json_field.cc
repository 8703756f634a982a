#include "program/json_field.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

/// The format itself nests 7 deep; the rest is room for fields of later versions.
constexpr int kDepthLimit = 32;
constexpr std::size_t kExcerptLength = 40;

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthLimit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

/// Size-bounded text of a value for a message.
std::string excerpt(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kExcerptLength) text = text.substr(0, kExcerptLength) + "...";
  return text;
}

/// The value as an int64, or nothing where it is no integer or does not fit.
std::optional<std::int64_t> as_int64(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& what) {
  if (is_too_deep(text)) throw ProgramError(what + ": JSON nested deeper than " + std::to_string(kDepthLimit) + " levels");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    std::string reason = error.what();
    if (const auto position = reason.find("at line"); position != std::string::npos) reason = reason.substr(position);
    for (char& c : reason) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    throw ProgramError(what + ": not valid JSON (" + reason.substr(0, 160) + "); the file is damaged, compile the model again");
  }
}

std::string json_text(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

std::string range_text(std::int64_t minimum, std::int64_t maximum) {
  if (maximum == std::numeric_limits<std::int64_t>::max()) return "an integer of at least " + std::to_string(minimum);
  return "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum);
}

Field Field::operator[](std::string_view key) const {
  std::optional<Field> member = find(key);
  if (!member) throw ProgramError(path_ + "." + std::string(key) + ": missing");
  return *std::move(member);
}

std::optional<Field> Field::find(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto member = value_->find(key);
  if (member == value_->end()) return std::nullopt;
  return Field(*member, path_ + "." + std::string(key));
}

std::size_t Field::array_size(std::size_t limit) const {
  if (!value_->is_array()) fail("an array");
  if (value_->size() > limit) fail("at most " + std::to_string(limit) + " elements");
  return value_->size();
}

Field Field::at(std::size_t index) const { return {(*value_)[index], path_ + "[" + std::to_string(index) + "]"}; }

const std::string& Field::text() const {
  if (!value_->is_string()) fail("a string");
  return value_->get_ref<const std::string&>();
}

bool Field::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::int64_t Field::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::optional<std::int64_t> number = as_int64(*value_);
  if (!number || *number < minimum || *number > maximum) fail(range_text(minimum, maximum));
  return *number;
}

std::optional<std::int64_t> Field::integer_at(std::size_t index, std::int64_t minimum, std::int64_t maximum) const {
  const std::optional<std::int64_t> number = as_int64((*value_)[index]);
  return number && *number >= minimum && *number <= maximum ? number : std::nullopt;
}

std::vector<std::int64_t> Field::integers(std::size_t limit, std::int64_t minimum, std::int64_t maximum) const {
  std::vector<std::int64_t> numbers;
  const std::size_t count = array_size(limit);
  numbers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<std::int64_t> number = integer_at(i, minimum, maximum);
    numbers.push_back(number ? *number : at(i).integer(minimum, maximum));
  }
  return numbers;
}

double Field::real() const {
  if (value_->is_number()) return value_->get<double>();
  if (value_->is_string()) {
    const std::string& name = text();
    if (name == "inf") return std::numeric_limits<double>::infinity();
    if (name == "-inf") return -std::numeric_limits<double>::infinity();
    if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  fail("a number, \"inf\", \"-inf\" or \"nan\"");
}

void Field::fail(const std::string& expected) const { throw ProgramError(path_ + ": expected " + expected + ", got " + excerpt(*value_)); }

}  // namespace hipdnn_rt
