// A program as stored: one Program for every combination of sizes of its dynamic dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/expressions.h"
#include "program/program.h"
#include "program_records.h"

namespace hipdnn_rt {

class Place;
struct ProgramParts;

/// A value per symbol.
using Sizes = std::vector<std::int64_t>;
/// An input or output whose dims may be dynamic.
using DynamicArgument = records::Port<Stored>;

/// Immutable, safe to share between threads. A static program is one without symbols.
class DynamicProgram {
 public:
  /// Map a program file. Throws ProgramError, which names the file and the field. What depends on sizes is checked by `at`.
  static std::shared_ptr<const DynamicProgram> load(const std::string& path);
  /// Parse a mapped file; a key of a cache as below.
  static std::shared_ptr<const DynamicProgram> parse_file(std::shared_ptr<const MappedFile> file, std::string_view cache_key = {});
  /// Parse a container that is in memory already; `owner` keeps `bytes` alive. With a key of a cache, throws ProgramError unless it says that
  /// it was compiled for that.
  static std::shared_ptr<const DynamicProgram> parse_container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                               std::string_view cache_key = {});
  /// Parse a program's text with its tensors; `owner` keeps them alive.
  static std::shared_ptr<const DynamicProgram> parse(std::string text, const Tensors& tensors, std::shared_ptr<const void> owner);

  /// The program, its tensors where `other` has the same bytes: packed weights and copies on a device are then one for both. It keeps the
  /// other's memory alive.
  static std::shared_ptr<const DynamicProgram> sharing(std::shared_ptr<const DynamicProgram> program,
                                                       const std::shared_ptr<const DynamicProgram>& other);

  bool is_static() const { return expressions_.symbols().empty(); }
  const std::string& target() const { return record_.target; }
  /// Whether its products of f32 may round their operands to TF32.
  bool allows_tf32() const { return record_.tf32; }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& symbols() const { return expressions_.symbols(); }
  const std::vector<DynamicArgument>& inputs() const { return record_.inputs; }
  const std::vector<DynamicArgument>& outputs() const { return record_.outputs; }
  /// Whether there may be sizes for which the program does not hold: there are conditions, or it needs elements to compute anything.
  bool is_partial() const;
  /// A dim for people: "3", "batch", "past + seq".
  std::string text_of(const Expression& dim) const { return expressions_.text(dim); }

  /// Where caches grow in the model.
  const std::optional<records::Growing<Stored>>& growing() const { return record_.growing; }
  /// The symbol that a size is, by itself.
  std::optional<std::size_t> symbol_of(const Expression& size) const { return expressions_.symbol(size); }
  /// A size where the symbols have these values.
  std::int64_t value_of(const Expression& size, const Sizes& sizes) const {
    return size.entry ? expressions_.evaluate(sizes)[*size.entry] : size.number;
  }

  /// The values of the symbols where the inputs have these dims. Throws InputError, naming input and dimension, for dims that differ from
  /// the program's or contradict each other.
  Sizes sizes_of(std::span<const std::span<const std::int64_t>> dims) const;
  /// Per symbol the sizes that it is rounded up to, rising; empty where it is taken as it is.
  const std::vector<Sizes>& buckets() const { return record_.buckets; }
  bool has_buckets() const;
  /// Whether the file has a specialization for each combination of buckets: there are no others then.
  bool has_specializations() const { return !specializations_.empty(); }
  /// Per symbol why it is taken at its buckets alone and not rounded up; an empty text where it is rounded.
  const std::vector<std::string>& exact() const { return record_.exact; }
  /// The sizes of the program that serves these: each rounded up to a bucket of its symbol, where that has any; 0 stays, if the file has no
  /// specializations. Throws InputError for sizes above the largest bucket, and for those that the program does not hold for.
  Sizes rounded(const Sizes& sizes) const;
  /// The sizes of a program that computes the same from inputs filled up with zeros behind each of their dims. They are as large as the program
  /// allows, but not much larger: few programs serve sizes that grow from run to run. Throws InputError for sizes that the program does not
  /// hold for.
  Sizes filled(const Sizes& sizes) const;
  /// The sizes of a step of one token behind a run of several: 1 for each symbol that dims of integers alone are, tokens and their positions. None
  /// where inputs are not filled, which those of other models are not, or where the run is such a step.
  std::optional<Sizes> step_behind(const Sizes& sizes) const;
  /// The dims of each input where the symbols have these values.
  std::vector<std::vector<std::int64_t>> input_dims(const Sizes& sizes) const { return dims_of(inputs(), sizes); }
  /// The dims of each output where the symbols have these values.
  std::vector<std::vector<std::int64_t>> output_dims(const Sizes& sizes) const { return dims_of(outputs(), sizes); }
  /// "batch=3, seq=17".
  std::string describe(const Sizes& sizes) const;

  /// The program for these sizes, checked as a whole; where the file has specializations, the one for the buckets, between copies that pad
  /// and cut if the sizes are others. Throws InputError where the program does not hold for them, ProgramError where the file
  /// is broken.
  std::shared_ptr<const Program> at(const Sizes& sizes) const;

  /// Names of the kernels that hold code for a GPU.
  std::vector<std::string> code_kernels() const;

  /// The constants that the file has: every specialization refers to this memory.
  std::vector<std::span<const std::byte>> stored_constants() const;

 private:
  DynamicProgram() = default;
  static std::shared_ptr<const DynamicProgram> parse_owned(std::span<const std::byte> bytes, TensorOwner owner, std::string_view cache_key);
  static std::shared_ptr<const DynamicProgram> parse_owned(std::string text, const Tensors& tensors, TensorOwner owner);
  void check_sizes() const;
  void check_growing() const;
  void index_specializations();
  std::vector<std::vector<std::int64_t>> dims_of(const std::vector<DynamicArgument>& arguments, const Sizes& sizes) const;
  std::int64_t rounded(std::size_t symbol, std::int64_t size) const;
  /// The first dim of an input that a symbol is, for messages.
  std::string place_of(std::size_t symbol) const;
  /// Throw InputError where a size that is no bucket may not be rounded up.
  void check_exact(const Sizes& asked, const Sizes& found) const;
  void check_conditions(const Sizes& sizes, const std::vector<std::int64_t>& values) const;
  /// The program where the entries of the table have these values. Throws ProgramError.
  std::shared_ptr<const Program> with_values(const std::vector<std::int64_t>& values) const;
  std::shared_ptr<const Program> specialized_at(const Sizes& sizes) const;
  ProgramParts parts_of(const records::Specialization<Stored>& specialization, const Place& place) const;

  std::string text_;
  Expressions expressions_;
  records::Program<Stored> record_;
  /// Positions in the record's list.
  std::map<Sizes, std::size_t> specializations_;
  Tensors tensors_;
  TensorOwner owner_;
  /// What a static program is for its only sizes.
  std::shared_ptr<const Program> static_;
};

}  // namespace hipdnn_rt
