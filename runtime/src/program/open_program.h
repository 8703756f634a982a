// A program as stored: one Program for every combination of the sizes that its model leaves open.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program/expressions.h"
#include "program/program.h"
#include "program/stored_instances.h"

namespace hipdnn_rt {

/// An input or output whose dims may be open.
struct OpenArgument {
  std::string name;
  DType dtype;
  std::vector<Expression> dims;
};

/// What sizes have to fulfil for a program to hold.
struct Condition {
  enum class Relation { less, less_or_equal, equal, not_equal };
  Relation relation;
  Expression a;
  Expression b;
  /// What needs it, for messages.
  std::string node;
};

/// Immutable, safe to share between threads. A static program is one without symbols.
class OpenProgram {
 public:
  /// As the functions of Program of the same names. What depends on sizes is checked by `at`.
  static std::shared_ptr<const OpenProgram> load(const std::string& path);
  static std::shared_ptr<const OpenProgram> parse_container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  static std::shared_ptr<const OpenProgram> parse(std::string_view text, const Program::Tensors& tensors, std::shared_ptr<const void> owner);

  bool is_static() const { return expressions_.symbols().empty(); }
  const std::string& target() const { return target_; }
  /// Whether its products of f32 may round their operands to TF32.
  bool allows_tf32() const { return allows_tf32_; }
  /// Of the file: programs that need nothing newer keep an older one.
  std::int64_t format() const { return format_; }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& symbols() const { return expressions_.symbols(); }
  const std::vector<OpenArgument>& inputs() const { return inputs_; }
  const std::vector<OpenArgument>& outputs() const { return outputs_; }
  /// Whether there may be sizes for which the program does not hold: there are conditions, or it needs elements to compute anything.
  bool is_partial() const;
  /// A dim for people: "3", "batch", "past + seq".
  std::string text_of(const Expression& dim) const { return expressions_.text(dim); }

  /// The values of the symbols where the inputs have these dims. Throws InputError, naming input and dimension, for dims that differ from
  /// the program's or contradict each other.
  Sizes sizes_of(std::span<const std::span<const std::int64_t>> dims) const;
  /// Per symbol the sizes that it is rounded up to, rising; empty where it is taken as it is.
  const std::vector<Sizes>& buckets() const { return buckets_; }
  bool has_buckets() const;
  /// Whether the file has a program for each combination of buckets: there are no others then.
  bool is_stored() const { return !instances_.empty(); }
  /// Per symbol why it is taken at its buckets alone and not rounded up; an empty text where it is rounded.
  const std::vector<std::string>& exact() const { return exact_; }
  /// The sizes of the instance that serves these: each rounded up to a bucket of its symbol, where that has any; 0 stays, if instances are
  /// not stored. Throws InputError for sizes above the largest bucket, and for those that the program does not hold for.
  Sizes rounded(const Sizes& sizes) const;
  /// The dims of each output where the symbols have these values.
  std::vector<std::vector<std::int64_t>> output_dims(const Sizes& sizes) const { return dims_of(outputs_, sizes); }
  /// "batch=3, seq=17".
  std::string describe(const Sizes& sizes) const;

  /// The program for these sizes, checked as a whole; where instances are stored, the one for the buckets, between copies that pad and cut if
  /// the sizes are others. Throws InputError where the program does not hold for them, ProgramError where the file
  /// is broken.
  std::shared_ptr<const Program> at(const Sizes& sizes) const;

  /// The constants that the file has: every instance refers to this memory.
  std::vector<std::span<const std::byte>> stored_constants() const;

 private:
  OpenProgram() = default;
  std::vector<std::vector<std::int64_t>> dims_of(const std::vector<OpenArgument>& arguments, const Sizes& sizes) const;
  std::int64_t rounded(std::size_t symbol, std::int64_t size) const;
  /// The first dim of an input that a symbol is, for messages.
  std::string place_of(std::size_t symbol) const;
  /// Throw InputError where a size that is no bucket may not be rounded up.
  void check_exact(const Sizes& asked, const Sizes& found) const;
  std::shared_ptr<const Program> stored_at(const Sizes& sizes) const;
  void check_conditions(const Sizes& sizes, const std::vector<std::int64_t>& values) const;
  nlohmann::json instance(const std::vector<std::int64_t>& values) const;

  std::string target_;
  bool allows_tf32_ = false;
  std::int64_t format_ = 0;
  std::string text_;
  nlohmann::json json_;
  Expressions expressions_;
  std::vector<OpenArgument> inputs_;
  std::vector<OpenArgument> outputs_;
  std::vector<Condition> conditions_;
  std::vector<Sizes> buckets_;
  std::vector<std::string> exact_;
  StoredInstances instances_;
  Program::Tensors tensors_;
  std::shared_ptr<const void> owner_;
  /// The only instance of a static program.
  std::shared_ptr<const Program> static_;
};

}  // namespace hipdnn_rt
