// A JSON value that knows where it stands in the document, so that every complaint about it names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace hipdnn_rt {

/// Parse JSON text of unknown origin. Throws ProgramError, naming `what`, for broken text or nesting deeper than the format needs.
nlohmann::json parse_json(std::string_view text, const std::string& what);

/// A string as JSON.
std::string json_text(const std::string& text);

/// "an integer from 0 to 3", for messages.
std::string range_text(std::int64_t minimum, std::int64_t maximum);

/// A view of a value inside a parsed document, which must outlive it.
class Field {
 public:
  Field(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& json() const { return *value_; }
  const std::string& path() const { return path_; }

  /// Member of an object. Throws ProgramError where this is no object or has no such member.
  Field operator[](std::string_view key) const;
  std::optional<Field> find(std::string_view key) const;
  /// Number of elements; throws unless this is an array of at most `limit`.
  std::size_t array_size(std::size_t limit) const;
  /// Element of an array whose size has been asked for.
  Field at(std::size_t index) const;

  const std::string& text() const;
  bool boolean() const;
  /// An integer within [minimum, maximum].
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  /// The element of an array, where it is an integer within [minimum, maximum].
  std::optional<std::int64_t> integer_at(std::size_t index, std::int64_t minimum, std::int64_t maximum) const;
  std::vector<std::int64_t> integers(std::size_t limit, std::int64_t minimum, std::int64_t maximum) const;
  /// A number, or one of "inf", "-inf", "nan".
  double real() const;

  /// Throw ProgramError: "<path>: expected <expected>, got <this value>".
  [[noreturn]] void fail(const std::string& expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace hipdnn_rt
