#include "program/dynamic_program.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "device/error.h"
#include "program/checked.h"
#include "program/checks.h"
#include "program/padded_program.h"
#include "program/record_evaluator.h"
#include "program/record_reader.h"
#include "program/safetensors.h"
#include "program/shared_tensors.h"
#include "storage/mapped_file.h"

namespace hipdnn_rt {
namespace {

/// Sizes that inputs are filled up to are multiples of this one, so that it bounds what is filled in for nothing.
constexpr std::int64_t kFillStep = 4096;

constexpr std::size_t kSpecializationLimit = 1024;

const Place& root() {
  static const Place place("program");
  return place;
}

void check_format(const Field& program) {
  const Field format = program["format"];
  const std::int64_t number = format.integer(1, std::numeric_limits<std::int64_t>::max());
  if (number == kProgramFormat) return;
  throw ProgramError(format.path() + ": expected " + std::to_string(kProgramFormat) + ", the one that this version reads, got " +
                     std::to_string(number) + "; compile the model again");
}

std::string listed(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

bool holds(Relation relation, std::int64_t a, std::int64_t b) {
  switch (relation) {
    case Relation::less: return a < b;
    case Relation::less_or_equal: return a <= b;
    case Relation::equal: return a == b;
    case Relation::not_equal: return a != b;
  }
  return false;
}

/// How many combinations of buckets there are; nothing where a symbol has none, or there are too many.
std::optional<std::size_t> combinations(const std::vector<Sizes>& buckets) {
  std::optional<std::size_t> count = buckets.empty() ? 0 : 1;
  for (const Sizes& sizes : buckets) count = count ? checked_multiply(*count, sizes.size()) : std::nullopt;
  return count && *count > 0 && *count <= kSpecializationLimit ? count : std::nullopt;
}

bool are_buckets(const Sizes& sizes, const std::vector<Sizes>& buckets) {
  return std::ranges::equal(sizes, buckets, [](std::int64_t size, const Sizes& of_symbol) { return std::ranges::binary_search(of_symbol, size); });
}

/// Throw ProgramError unless a specialization has the arguments of the whole.
void check_alike(const std::vector<DynamicArgument>& whole, const std::vector<Argument>& own, const std::string& what) {
  const bool is_alike = std::ranges::equal(whole, own, [](const DynamicArgument& a, const Argument& b) {
    return a.name == b.name && a.dtype == b.dtype && a.dims.size() == b.dims.size();
  });
  if (!is_alike) throw ProgramError(what + ": expected those of the program as a whole");
}

}  // namespace

std::shared_ptr<const DynamicProgram> DynamicProgram::parse(std::string text, const Tensors& tensors, std::shared_ptr<const void> owner) {
  return parse_owned(std::move(text), tensors, TensorOwner{{std::move(owner)}, {}});
}

std::shared_ptr<const DynamicProgram> DynamicProgram::parse_owned(std::string text, const Tensors& tensors, TensorOwner owner) {
  std::shared_ptr<DynamicProgram> program(new DynamicProgram());
  const nlohmann::json json = parse_json(text, root().text());
  const Field field(json, root().text());
  check_format(field);
  program->text_ = std::move(text);
  program->tensors_ = tensors;
  program->owner_ = std::move(owner);
  program->expressions_ = Expressions::read(field);
  program->record_ = RecordReader::read_record<records::Program<Stored>>(field, program->expressions_);
  program->check_sizes();
  program->check_growing();
  program->index_specializations();
  if (program->is_static()) program->static_ = program->with_values({});
  return program;
}

std::shared_ptr<const DynamicProgram> DynamicProgram::parse_container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                                      std::string_view cache_key) {
  return parse_owned(bytes, TensorOwner{{std::move(owner)}, {}}, cache_key);
}

std::shared_ptr<const DynamicProgram> DynamicProgram::parse_file(std::shared_ptr<const MappedFile> file, std::string_view cache_key) {
  auto program = parse_owned(file->bytes(), TensorOwner{{}, {file}}, cache_key);
  file->release(file->bytes());  // the checksum has read all of it
  return program;
}

std::shared_ptr<const DynamicProgram> DynamicProgram::parse_owned(std::span<const std::byte> bytes, TensorOwner owner,
                                                                  std::string_view cache_key) {
  const Safetensors container = parse_safetensors(bytes);
  const auto text = container.metadata.find("hipdnn_program");
  if (text == container.metadata.end()) {
    throw ProgramError("__metadata__.hipdnn_program: missing; a safetensors file, but not a .hipdnn program");
  }
  const auto key = container.metadata.find("hipdnn_cache_key");
  if (!cache_key.empty() && (key == container.metadata.end() || key->second != cache_key)) {
    throw ProgramError("__metadata__.hipdnn_cache_key: compiled for another key of the cache");
  }
  check_checksum(container, text->second);
  return parse_owned(text->second, container.tensors, std::move(owner));
}

std::shared_ptr<const DynamicProgram> DynamicProgram::sharing(std::shared_ptr<const DynamicProgram> program,
                                                              const std::shared_ptr<const DynamicProgram>& other) {
  Tensors tensors = program->tensors_;
  if (!share_tensors(tensors, other->tensors_)) return program;
  std::shared_ptr<DynamicProgram> made(new DynamicProgram(*program));
  made->tensors_ = std::move(tensors);
  made->owner_.memory.insert(made->owner_.memory.end(), other->owner_.memory.begin(), other->owner_.memory.end());
  made->owner_.files.insert(made->owner_.files.end(), other->owner_.files.begin(), other->owner_.files.end());
  if (made->is_static()) made->static_ = made->with_values({});
  return made;
}

std::shared_ptr<const DynamicProgram> DynamicProgram::load(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  try {
    return parse_file(file);
  } catch (const ProgramError& error) {
    throw ProgramError(path + ": " + error.what());
  }
}

void DynamicProgram::check_sizes() const {
  const std::size_t count = symbols().size();
  for (std::size_t symbol = 0; symbol < count; ++symbol) {
    const auto is_it = [&](const Expression& dim) { return expressions_.symbol(dim) == symbol; };
    const auto has_it = [&](const DynamicArgument& input) { return std::ranges::any_of(input.dims, is_it); };
    if (std::ranges::none_of(inputs(), has_it)) {
      Place(Place(root(), "symbols"), symbol).fail("the size of a dimension of an input", "'" + symbols()[symbol] + "'");
    }
  }
  const Place place(root(), "buckets");
  if (!buckets().empty() && buckets().size() != count) place.fail("a list for each symbol", std::to_string(buckets().size()));
  for (std::size_t symbol = 0; symbol < buckets().size(); ++symbol) {
    const Sizes& sizes = buckets()[symbol];
    if (std::ranges::adjacent_find(sizes, std::greater_equal<>()) != sizes.end()) Place(place, symbol).fail("sizes that rise", listed(sizes));
  }
  if (!record_.filled.empty() && record_.filled.size() != count) {
    Place(root(), "filled").fail("a size for each symbol", std::to_string(record_.filled.size()));
  }
  if (!exact().empty() && exact().size() != count) Place(root(), "exact").fail("a text for each symbol", std::to_string(exact().size()));
}

void DynamicProgram::check_growing() const {
  if (!growing()) return;
  const Place place(root(), "growing");
  const auto is_input = [&](std::int64_t index, std::int64_t axis) {
    return index < std::ssize(inputs()) && axis < std::ssize(inputs()[static_cast<std::size_t>(index)].dims);
  };
  constexpr std::int64_t rows_axis = 2;
  const auto is_number = [](const DynamicArgument& input) {
    return input.dtype == DType::i64 && input.dims == std::vector<Expression>{Expression{1, std::nullopt}};
  };
  if (!is_input(growing()->length, 0) || !is_number(inputs()[static_cast<std::size_t>(growing()->length)])) {
    Place(place, "length").fail("an input of i64[1]", std::to_string(growing()->length));
  }
  if (growing()->rows >= std::ssize(symbols())) Place(place, "rows").fail("a symbol", std::to_string(growing()->rows));
  if (growing()->caches.empty()) Place(place, "caches").fail("at least one", "none");
  for (const auto& cache : growing()->caches) {
    const bool fits = is_input(cache.input, rows_axis + 1) && cache.output < std::ssize(outputs()) &&
                      inputs()[static_cast<std::size_t>(cache.input)].dims == outputs()[static_cast<std::size_t>(cache.output)].dims;
    if (!fits) Place(place, "caches").fail("inputs and outputs of four dims", std::to_string(cache.input) + " and " + std::to_string(cache.output));
  }
  for (const auto& sized : growing()->sized) {
    if (!is_input(sized.input, sized.axis)) Place(place, "sized").fail("a dim of an input", std::to_string(sized.input));
  }
}

void DynamicProgram::index_specializations() {
  if (record_.specializations.empty()) return;
  const Place place(root(), "specializations");
  const std::optional<std::size_t> expected = combinations(buckets());
  if (!expected) place.fail("expected buckets for every symbol, of at most " + std::to_string(kSpecializationLimit) + " combinations");
  for (std::size_t i = 0; i < record_.specializations.size(); ++i) {
    const Sizes& sizes = record_.specializations[i].sizes;
    if (!are_buckets(sizes, buckets()) || !specializations_.emplace(sizes, i).second) {
      Place(Place(place, i), "sizes").fail("a bucket of each symbol, each combination once", listed(sizes));
    }
  }
  if (specializations_.size() != *expected) {
    place.fail("one for each of the " + std::to_string(*expected) + " combinations of buckets", std::to_string(specializations_.size()));
  }
}

Sizes DynamicProgram::sizes_of(std::span<const std::span<const std::int64_t>> dims) const {
  Sizes sizes(symbols().size(), -1);
  std::vector<std::string> origins(sizes.size());
  const auto place = [&](std::size_t input, std::size_t axis) {
    return "'" + inputs()[input].name + "', dimension " + std::to_string(axis);
  };
  for (std::size_t i = 0; i < inputs().size(); ++i) {
    if (dims[i].size() != inputs()[i].dims.size()) {
      throw InputError("'" + inputs()[i].name + "': expected rank " + std::to_string(inputs()[i].dims.size()) + ", got " +
                       std::to_string(dims[i].size()));
    }
    for (std::size_t axis = 0; axis < dims[i].size(); ++axis) {
      const std::optional<std::size_t> symbol = expressions_.symbol(inputs()[i].dims[axis]);
      if (!symbol) continue;
      if (sizes[*symbol] >= 0 && sizes[*symbol] != dims[i][axis]) {
        throw InputError(place(i, axis) + " ('" + symbols()[*symbol] + "'): expected " + std::to_string(sizes[*symbol]) + " as in " +
                         origins[*symbol] + ", got " + std::to_string(dims[i][axis]));
      }
      if (sizes[*symbol] < 0) origins[*symbol] = place(i, axis);
      sizes[*symbol] = dims[i][axis];
    }
  }
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  for (std::size_t i = 0; i < inputs().size(); ++i) {
    for (std::size_t axis = 0; axis < dims[i].size(); ++axis) {
      const Expression& dim = inputs()[i].dims[axis];
      const std::int64_t expected = dim.entry ? values[*dim.entry] : dim.number;
      if (expected == dims[i][axis]) continue;
      const std::string meaning = dim.entry ? " (" + text_of(dim) + ")" : "";
      throw InputError(place(i, axis) + meaning + ": expected " + std::to_string(expected) + ", got " + std::to_string(dims[i][axis]));
    }
  }
  return sizes;
}

std::string DynamicProgram::describe(const Sizes& sizes) const {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += symbols()[i];
    text += '=';
    text += std::to_string(sizes[i]);
  }
  return text;
}

bool DynamicProgram::has_buckets() const {
  return std::any_of(buckets().begin(), buckets().end(), [](const Sizes& sizes) { return !sizes.empty(); });
}

std::string DynamicProgram::place_of(std::size_t symbol) const {
  std::string place = "size '" + symbols()[symbol] + "'";
  for (std::size_t i = inputs().size(); i-- > 0;) {
    for (std::size_t axis = inputs()[i].dims.size(); axis-- > 0;) {
      if (expressions_.symbol(inputs()[i].dims[axis]) != symbol) continue;
      place = "'" + inputs()[i].name + "', dimension " + std::to_string(axis) + " ('" + symbols()[symbol] + "')";
    }
  }
  return place;
}

std::int64_t DynamicProgram::rounded(std::size_t symbol, std::int64_t size) const {
  const Sizes& sizes = buckets()[symbol];
  if (sizes.empty() || (size == 0 && !has_specializations())) return size;
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), size);
  if (found != sizes.end() && size > 0) return *found;
  if (size <= 0) throw InputError(place_of(symbol) + ": " + std::to_string(size) + " is below the buckets " + listed(sizes));
  throw InputError(place_of(symbol) + ": " + std::to_string(size) + " is above the buckets " + listed(sizes) +
                   "; run it in parts, or compile the model with a larger bucket");
}

void DynamicProgram::check_exact(const Sizes& asked, const Sizes& found) const {
  for (std::size_t symbol = 0; symbol < exact().size(); ++symbol) {
    if (asked[symbol] == found[symbol] || exact()[symbol].empty()) continue;
    const std::string size = std::to_string(asked[symbol]);
    throw InputError(place_of(symbol) + ": " + size + " is none of the buckets " + listed(buckets()[symbol]) +
                     ", and is not rounded up to one: " + exact()[symbol] + "; compile the model with a bucket of " + size);
  }
}

Sizes DynamicProgram::rounded(const Sizes& sizes) const {
  if (!has_buckets()) return sizes;
  // The program is checked for the rounded sizes only, and a model may go another way at those asked for.
  if (!has_specializations()) check_conditions(sizes, expressions_.evaluate(sizes));
  Sizes found;
  for (std::size_t symbol = 0; symbol < sizes.size(); ++symbol) found.push_back(rounded(symbol, sizes[symbol]));
  // A specialization is right for its own sizes, whatever the conditions say; for others it is where they hold for both.
  if (has_specializations() && found != sizes) {
    check_exact(sizes, found);
    check_conditions(sizes, expressions_.evaluate(sizes));
    check_conditions(found, expressions_.evaluate(found));
  }
  return found;
}

Sizes DynamicProgram::filled(const Sizes& sizes) const {
  if (record_.filled.empty()) return sizes;
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  Sizes found = sizes;
  for (std::size_t symbol = 0; symbol < sizes.size(); ++symbol) {
    const Expression& most = record_.filled[symbol];
    const std::int64_t limit = most.entry ? values[*most.entry] : most.number;
    if (limit > sizes[symbol]) found[symbol] = std::min(limit, (sizes[symbol] + kFillStep - 1) / kFillStep * kFillStep);
  }
  // The program is checked for the filled sizes only, and a model may go another way at those asked for.
  if (found != sizes) check_conditions(sizes, values);
  return found;
}

std::optional<Sizes> DynamicProgram::step_behind(const Sizes& sizes) const {
  Sizes found = sizes;
  for (std::size_t symbol = 0; symbol < record_.filled.size(); ++symbol) {
    const auto is_it = [&](const Expression& dim) { return expressions_.symbol(dim) == symbol; };
    const bool is_of_tokens = is_it(record_.filled[symbol]) && std::ranges::all_of(inputs(), [&](const DynamicArgument& input) {
      return input.dtype == DType::i64 || input.dtype == DType::i32 || std::ranges::none_of(input.dims, is_it);
    });
    if (is_of_tokens) found[symbol] = std::min<std::int64_t>(sizes[symbol], 1);
  }
  return found == sizes ? std::nullopt : std::optional(found);
}

std::vector<std::vector<std::int64_t>> DynamicProgram::dims_of(const std::vector<DynamicArgument>& arguments, const Sizes& sizes) const {
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  std::vector<std::vector<std::int64_t>> found;
  for (const DynamicArgument& argument : arguments) {
    std::vector<std::int64_t>& dims = found.emplace_back();
    for (const Expression& dim : argument.dims) dims.push_back(dim.entry ? values[*dim.entry] : dim.number);
  }
  return found;
}

void DynamicProgram::check_conditions(const Sizes& sizes, const std::vector<std::int64_t>& values) const {
  const auto value = [&](const Expression& side) { return side.entry ? values[*side.entry] : side.number; };
  for (const auto& condition : record_.conditions) {
    if (holds(condition.relation, value(condition.a), value(condition.b))) continue;
    throw InputError("the program does not hold for " + describe(sizes) + ": node '" + condition.node + "' needs " + text_of(condition.a) + " " +
                     std::string(hipdnn_rt::text_of(condition.relation)) + " " + text_of(condition.b) +
                     "; compile the model for these sizes");
  }
}

std::shared_ptr<const Program> DynamicProgram::at(const Sizes& sizes) const {
  if (is_static()) return static_;
  if (has_specializations()) return specialized_at(sizes);
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  check_conditions(sizes, values);
  try {
    return with_values(values);
  } catch (const ProgramError& error) {
    throw InputError("the program does not hold for " + describe(sizes) + ": " + error.what());
  }
}

std::shared_ptr<const Program> DynamicProgram::with_values(const std::vector<std::int64_t>& values) const {
  ProgramParts parts{record_.target, RecordEvaluator::evaluate<records::Body>(record_, values, root()), {}, {}};
  const RecordEvaluator evaluate(values, root());
  evaluate({.name = "executables"}, record_.executables, parts.executables);
  evaluate({.name = "kernels"}, record_.kernels, parts.kernels);
  return check_program(std::move(parts), tensors_, owner_, root(), !is_static());
}

ProgramParts DynamicProgram::parts_of(const records::Specialization<Stored>& specialization, const Place& place) const {
  ProgramParts parts{record_.target, RecordEvaluator::evaluate<records::Body>(specialization, {}, place), {}, {}};
  const auto pick = [](const auto& all, const std::vector<std::int64_t>& positions, const Place& list, auto& picked) {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const Place at(list, i);
      picked.push_back(RecordEvaluator::evaluate(all[check_index(positions[i], all.size(), at)], {}, at));
    }
  };
  pick(record_.executables, specialization.executables, Place(place, "executables"), parts.executables);
  pick(record_.kernels, specialization.kernels, Place(place, "kernels"), parts.kernels);
  return parts;
}

std::shared_ptr<const Program> DynamicProgram::specialized_at(const Sizes& sizes) const {
  const Sizes found = rounded(sizes);
  const std::size_t position = specializations_.at(found);
  const records::Specialization<Stored>& specialization = record_.specializations[position];
  const Place list(root(), "specializations"), place(list, position);
  try {
    auto exact = check_program(parts_of(specialization, place), tensors_, owner_, place, false);
    check_alike(inputs(), exact->inputs(), "inputs");
    check_alike(outputs(), exact->outputs(), "outputs");
    if (found == sizes) return exact;
    ProgramParts padded = padded_program(parts_of(specialization, place), *exact, dims_of(inputs(), sizes), dims_of(outputs(), sizes));
    return check_program(std::move(padded), tensors_, owner_, place, false);
  } catch (const ProgramError& error) {
    throw ProgramError("specialization for " + describe(found) + ": " + error.what());
  }
}

bool DynamicProgram::is_partial() const {
  if (!record_.conditions.empty() || has_specializations()) return true;
  try {
    at(Sizes(symbols().size(), 0));
    // Where all sizes are 0, results may have no elements; where one is, they may be made of none.
    for (std::size_t symbol = 0; symbols().size() > 1 && symbol < symbols().size(); ++symbol) {
      Sizes sizes(symbols().size(), 1);
      sizes[symbol] = 0;
      at(sizes);
    }
    return false;
  } catch (const InputError&) {
    return true;
  }
}

std::vector<std::string> DynamicProgram::code_kernels() const {
  std::vector<std::string> names;
  for (const auto& kernel : record_.kernels) {
    if (kernel.code) names.push_back(kernel.name);
  }
  return names;
}

std::vector<std::span<const std::byte>> DynamicProgram::stored_constants() const {
  std::set<std::string> names;
  const auto add = [&](const records::Body<Stored>& body) {
    for (const auto& constant : body.constants) {
      if (!constant.values) names.insert(constant.tensor);
    }
  };
  add(record_);
  for (const auto& specialization : record_.specializations) add(specialization);
  std::vector<std::span<const std::byte>> found;
  for (const std::string& name : names) {
    // A program that names a tensor which there is not is refused as a whole.
    if (const auto tensor = tensors_.find(name); tensor != tensors_.end()) found.push_back(tensor->second);
  }
  return found;
}

Executable parse_executable(std::string_view text) {
  const nlohmann::json json = parse_json(text, "executable");
  const Place place("executable");
  const auto stored = RecordReader::read_record<records::Executable<Stored>>(Field(json, place.text()), {});
  return check_executable(RecordEvaluator::evaluate(stored, {}, place), place);
}

}  // namespace hipdnn_rt
