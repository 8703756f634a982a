// JSON to the records of a program, by the rows of their fields. Every complaint is a ProgramError that names the field.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "program/json_field.h"
#include "program_records.h"

namespace hipdnn_rt {

/// Read a list of descriptors; references point backwards in it.
std::vector<StoredDescriptor> read_descriptors(const Field& field, const Expressions& table);
/// Read an object, whatever it holds.
StoredJson read_json(const Field& field, const Expressions& table);

/// Fills the members of a record from an object, as a visitor of its fields.
class RecordReader {
 public:
  /// Expressions are entries of `table`; both arguments must outlive the reader.
  RecordReader(const Field& object, const Expressions& table) : object_(object), table_(table) {}

  template <typename Record>
  static Record read_record(const Field& field, const Expressions& table) {
    Record record;
    if (!field.json().is_object()) field.fail("an object");
    Record::visit(RecordReader(field, table), record);
    return record;
  }

  template <typename T>
  void operator()(const FieldRow& row, T& value) const {
    if (const auto field = object_.find(row.name)) {
      read(*field, row, value);
    } else if (row.is_required) {
      object_[row.name];
    }
  }

 private:
  void read(const Field& field, const FieldRow&, std::string& value) const { value = field.text(); }
  void read(const Field& field, const FieldRow&, bool& value) const { value = field.boolean(); }
  void read(const Field& field, const FieldRow& row, std::int64_t& value) const { value = field.integer(row.least, row.greatest); }
  void read(const Field& field, const FieldRow& row, Expression& value) const { value = table_.reference(field, row.least, row.greatest); }
  void read(const Field& field, const FieldRow&, StoredJson& value) const { value = read_json(field, table_); }
  void read(const Field& field, const FieldRow&, std::vector<StoredDescriptor>& value) const { value = read_descriptors(field, table_); }

  void read(const Field& field, const FieldRow&, DType& value) const {
    const std::optional<DType> dtype = dtype_from_name(field.text());
    if (!dtype) field.fail("an element type of the format");
    value = *dtype;
  }

  void read(const Field& field, const FieldRow& row, ElementValue<Expression>& value) const {
    const nlohmann::json& json = field.json();
    if (json.is_boolean()) {
      value.whole.number = json.get<bool>() ? 1 : 0;
    } else if (json.is_number_float() || json.is_string()) {
      value.fraction = field.real();
    } else {
      value.whole = table_.reference(field, std::numeric_limits<std::int64_t>::min(), row.greatest);
    }
  }

  template <typename Choice>
    requires std::is_enum_v<Choice>
  void read(const Field& field, const FieldRow&, Choice& value) const {
    value = static_cast<Choice>(position(field, texts_of(value)));
  }

  template <typename T>
  void read(const Field& field, const FieldRow& row, std::optional<T>& value) const {
    read(field, row, value.emplace());
  }

  template <typename T>
  void read(const Field& field, const FieldRow& row, std::vector<T>& value) const {
    value.resize(field.array_size(row.most));
    for (std::size_t i = 0; i < value.size(); ++i) read(field.at(i), row, value[i]);
  }

  template <typename Record>
    requires requires(const RecordReader& reader, Record& record) { Record::visit(reader, record); }
  void read(const Field& field, const FieldRow&, Record& value) const {
    value = read_record<Record>(field, table_);
  }

  /// One of several records: `kind` says which.
  template <typename Union>
    requires requires { Union::kinds; }
  void read(const Field& field, const FieldRow& row, Union& value) const {
    read_alternative<0>(field, row, position(field["kind"], Union::kinds), value);
  }

  template <std::size_t index, typename Union>
  void read_alternative(const Field& field, const FieldRow& row, std::size_t kind, Union& value) const {
    if constexpr (index < Union::kinds.size()) {
      if (index == kind) return read(field, row, value.template emplace<index>());
      read_alternative<index + 1>(field, row, kind, value);
    }
  }

  template <typename Texts>
  static std::size_t position(const Field& field, const Texts& texts) {
    const auto found = std::ranges::find(texts, field.text());
    if (found != texts.end()) return static_cast<std::size_t>(found - texts.begin());
    std::string known;
    for (const std::string_view text : texts) known.append(known.empty() ? "\"" : ", \"").append(text).append(1, '"');
    field.fail("one of " + known);
  }

  const Field& object_;
  const Expressions& table_;
};

}  // namespace hipdnn_rt
