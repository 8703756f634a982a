#include "program/open_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "device/error.h"
#include "program/checked.h"
#include "program/padded_program.h"
#include "storage/mapped_file.h"

namespace hipdnn_rt {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kListLimit = 65'536;
constexpr std::size_t kRankLimit = 64;
/// Bytes of a constant that an instance computes.
constexpr std::uint64_t kComputedBytesLimit = std::uint64_t{1} << 31;
/// Sizes that one symbol is rounded up to.
constexpr std::size_t kBucketLimit = 1024;
constexpr const char* kValues = "values";
constexpr const char* kBuckets = "buckets";

/// `value` with every reference to the table replaced by its number.
Json substituted(const Json& value, const std::vector<std::int64_t>& numbers) {
  if (const std::optional<std::size_t> entry = Expressions::referred(value)) {
    if (*entry >= numbers.size()) throw ProgramError("program.expressions: entry " + std::to_string(*entry) + " is missing");
    return numbers[*entry];
  }
  if (!value.is_structured()) return value;
  Json result = value.is_array() ? Json::array() : Json::object();
  if (value.is_array()) {
    result.get_ref<Json::array_t&>().reserve(value.size());
    for (const Json& item : value) result.push_back(substituted(item, numbers));
  } else {
    for (const auto& [key, item] : value.items()) result.emplace(key, substituted(item, numbers));
  }
  return result;
}

/// Write one number, a whole one or one of the type's own, as an element.
void write_element(const Json& value, DType dtype, const std::string& path, std::byte* to) {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  if (!value.is_number() && !value.is_boolean()) throw ProgramError(path + ": expected numbers");
  const auto real = [&] { return value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>(); };
  const auto whole = [&] {
    if (value.is_boolean()) return static_cast<std::int64_t>(value.get<bool>());
    if (!value.is_number_integer()) throw ProgramError(path + ": expected whole numbers");
    return value.get<std::int64_t>();
  };
  switch (dtype) {
    case DType::f64: return put(real());
    case DType::f32: return put(static_cast<float>(real()));
    case DType::i8:
    case DType::u8:
    case DType::boolean: return put(static_cast<std::uint8_t>(whole()));
    case DType::i16:
    case DType::u16: return put(static_cast<std::uint16_t>(whole()));
    case DType::i32:
    case DType::u32: return put(static_cast<std::uint32_t>(whole()));
    case DType::i64:
    case DType::u64: return put(whole());
    case DType::f16:
    case DType::bf16: break;
  }
  throw ProgramError(path + ": elements of this type are not computed");
}

/// The elements of a constant that is computed from the sizes; aligned as tensors of a file are.
std::shared_ptr<const std::vector<std::max_align_t>> compute(const Field& constant, std::uint64_t& bytes) {
  const std::optional<DType> dtype = dtype_from_name(constant["dtype"].text());
  if (!dtype) constant["dtype"].fail("an element type of the format");
  const std::uint64_t element = info_of(*dtype).bytes;
  std::optional<std::uint64_t> total = element;
  for (const std::int64_t dim : constant["dims"].integers(kRankLimit, 0, std::numeric_limits<std::int64_t>::max())) {
    total = total ? checked_multiply(*total, static_cast<std::uint64_t>(dim)) : std::nullopt;
  }
  if (!total || *total > kComputedBytesLimit) constant["dims"].fail("dims of at most 2^31 bytes");
  const Field values = constant[kValues];
  const std::size_t count = values.array_size(kListLimit);
  bytes = *total;
  if (count != 1 && count != bytes / element) values.fail("one element, or as many as the dims have");
  auto memory = std::make_shared<std::vector<std::max_align_t>>((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  auto* to = reinterpret_cast<std::byte*>(memory->data());
  for (std::uint64_t i = 0; i < bytes / element; ++i) {
    if (count == 1 && i > 0) {
      std::memcpy(to + i * element, to, element);
    } else {
      write_element(values.at(i).json(), *dtype, values.path(), to + i * element);
    }
  }
  return memory;
}

bool has_zero(const Json& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Json& dim) { return dim.is_number_integer() && dim.get<std::int64_t>() == 0; });
}

/// Whether a tensor descriptor of an executable has no elements: hipDNN takes none such, and there is nothing to do.
bool is_empty(const Json& executable) {
  for (const Json& descriptor : executable.at("descriptors")) {
    if (descriptor.at(0) != static_cast<int>(HIPDNN_BACKEND_TENSOR_DESCRIPTOR)) continue;
    for (const Json& attribute : descriptor.at(1)) {
      if (attribute.at(0) == static_cast<int>(HIPDNN_ATTR_TENSOR_DIMENSIONS) && has_zero(attribute.at(2))) return true;
    }
  }
  return false;
}

/// Take out graphs on tensors without elements, and the steps that run them.
void drop_empty(Json& program) {
  Json::array_t kept_executables;
  std::vector<std::int64_t> positions;
  for (Json& executable : program.at("executables")) {
    const bool drops = is_empty(executable);
    positions.push_back(drops ? -1 : static_cast<std::int64_t>(kept_executables.size()));
    if (!drops) kept_executables.push_back(std::move(executable));
  }
  if (kept_executables.size() == positions.size()) {
    program["executables"] = std::move(kept_executables);
    return;
  }
  Json::array_t kept_steps;
  for (Json& step : program.at("steps")) {
    if (step.at("kind") == "execute") {
      const std::int64_t position = positions.at(step.at("executable").get<std::size_t>());
      if (position < 0) continue;
      step["executable"] = position;
    }
    kept_steps.push_back(std::move(step));
  }
  const auto last = static_cast<std::int64_t>(kept_steps.size());
  for (Json& buffer : program.at("buffers")) {
    buffer["first"] = 0;
    buffer["last"] = std::max<std::int64_t>(last - 1, 0);
  }
  program["executables"] = std::move(kept_executables);
  program["steps"] = std::move(kept_steps);
}

std::vector<OpenArgument> read_arguments(const Field& field, const Expressions& expressions) {
  std::vector<OpenArgument> arguments;
  const std::size_t count = field.array_size(kListLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const Field entry = field.at(i);
    const std::optional<DType> dtype = dtype_from_name(entry["dtype"].text());
    if (!dtype) entry["dtype"].fail("an element type of the format");
    OpenArgument argument{entry["name"].text(), *dtype, {}};
    const Field dims = entry["dims"];
    const std::size_t rank = dims.array_size(kRankLimit);
    for (std::size_t axis = 0; axis < rank; ++axis) argument.dims.push_back(expressions.reference(dims.at(axis), 0));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

constexpr std::array<std::pair<std::string_view, Condition::Relation>, 4> kRelations{{{"<", Condition::Relation::less},
                                                                                     {"<=", Condition::Relation::less_or_equal},
                                                                                     {"==", Condition::Relation::equal},
                                                                                     {"!=", Condition::Relation::not_equal}}};

std::vector<Condition> read_conditions(const Field& field, const Expressions& expressions) {
  std::vector<Condition> conditions;
  const std::size_t count = field.array_size(kListLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const Field entry = field.at(i);
    if (entry.array_size(4) != 4) entry.fail("a relation, two sizes and a name");
    const std::string name = entry.at(0).text();
    const auto relation = std::find_if(kRelations.begin(), kRelations.end(), [&](const auto& known) { return known.first == name; });
    if (relation == kRelations.end()) entry.at(0).fail("one of \"<\", \"<=\", \"==\", \"!=\"");
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();
    conditions.push_back({relation->second, expressions.reference(entry.at(1), kAny), expressions.reference(entry.at(2), kAny),
                          entry.at(3).text()});
  }
  return conditions;
}

bool holds(Condition::Relation relation, std::int64_t a, std::int64_t b) {
  switch (relation) {
    case Condition::Relation::less: return a < b;
    case Condition::Relation::less_or_equal: return a <= b;
    case Condition::Relation::equal: return a == b;
    case Condition::Relation::not_equal: return a != b;
  }
  return false;
}

std::vector<Sizes> read_buckets(const Field& field, std::size_t symbols) {
  if (field.array_size(kListLimit) != symbols) field.fail("a list for each symbol");
  std::vector<Sizes> buckets;
  for (std::size_t symbol = 0; symbol < symbols; ++symbol) {
    const Field sizes = field.at(symbol);
    buckets.push_back(sizes.integers(kBucketLimit, 1, std::numeric_limits<std::int64_t>::max()));
    const bool rises = std::adjacent_find(buckets.back().begin(), buckets.back().end(), std::greater_equal<>()) == buckets.back().end();
    if (!rises) sizes.fail("sizes that rise");
  }
  return buckets;
}

std::vector<std::string> read_exact(const Field& field, std::size_t symbols) {
  if (field.array_size(kListLimit) != symbols) field.fail("a text for each symbol");
  std::vector<std::string> reasons;
  for (std::size_t symbol = 0; symbol < symbols; ++symbol) reasons.push_back(field.at(symbol).text());
  return reasons;
}

std::string listed(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text;
}

/// Throw ProgramError unless an instance has the arguments of the whole.
void check_alike(const std::vector<OpenArgument>& whole, const std::vector<Argument>& instance, const std::string& what) {
  const bool is_alike = std::equal(whole.begin(), whole.end(), instance.begin(), instance.end(), [](const OpenArgument& a, const Argument& b) {
    return a.name == b.name && a.dtype == b.dtype && a.dims.size() == b.dims.size();
  });
  if (!is_alike) throw ProgramError(what + ": expected those of the program as a whole");
}

/// What an instance's program refers to: the owner of the file, and its computed constants.
struct Keeper {
  std::shared_ptr<const void> file;
  std::vector<std::shared_ptr<const void>> computed;
};

}  // namespace

std::shared_ptr<const OpenProgram> OpenProgram::parse(std::string_view text, const Program::Tensors& tensors,
                                                      std::shared_ptr<const void> owner) {
  std::shared_ptr<OpenProgram> program(new OpenProgram());
  Json json = parse_json(text, "program");
  const Field root(json, "program");
  program->expressions_ = Expressions::read(root);
  program->text_ = text;
  if (program->is_static()) {
    program->static_ = Program::read(json, program->text_, tensors, std::move(owner));
  } else {
    Program::check_format(root);
  }
  program->format_ = root["format"].integer(1, kProgramFormat);
  program->target_ = root["target"].text();
  if (const auto tf32 = root.find("tf32")) program->allows_tf32_ = tf32->boolean();
  program->inputs_ = read_arguments(root["inputs"], program->expressions_);
  program->outputs_ = read_arguments(root["outputs"], program->expressions_);
  if (program->is_static()) return program;
  for (std::size_t symbol = 0; symbol < program->symbols().size(); ++symbol) {
    const auto is_it = [&](const Expression& dim) { return program->expressions_.symbol(dim) == symbol; };
    const bool is_bound = std::any_of(program->inputs_.begin(), program->inputs_.end(),
                                      [&](const OpenArgument& input) { return std::any_of(input.dims.begin(), input.dims.end(), is_it); });
    if (!is_bound) root["symbols"].at(symbol).fail("the size of a dimension of an input");
  }
  if (const std::optional<Field> conditions = root.find("conditions")) {
    program->conditions_ = read_conditions(*conditions, program->expressions_);
  }
  if (const std::optional<Field> buckets = root.find(kBuckets)) program->buckets_ = read_buckets(*buckets, program->symbols().size());
  if (const std::optional<Field> exact = root.find("exact")) program->exact_ = read_exact(*exact, program->symbols().size());
  program->instances_ = StoredInstances::read(root, program->buckets_);
  program->json_ = std::move(json);
  program->tensors_ = tensors;
  program->owner_ = std::move(owner);
  return program;
}

std::shared_ptr<const OpenProgram> OpenProgram::parse_container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const Contents contents = open_container(bytes);
  return parse(contents.text, contents.tensors, std::move(owner));
}

std::shared_ptr<const OpenProgram> OpenProgram::load(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  try {
    return parse_container(file->bytes(), file);
  } catch (const ProgramError& error) {
    throw ProgramError(path + ": " + error.what());
  }
}

Sizes OpenProgram::sizes_of(std::span<const std::span<const std::int64_t>> dims) const {
  Sizes sizes(symbols().size(), -1);
  std::vector<std::string> origins(sizes.size());
  const auto place = [&](std::size_t input, std::size_t axis) {
    return "'" + inputs_[input].name + "', dimension " + std::to_string(axis);
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (dims[i].size() != inputs_[i].dims.size()) {
      throw InputError("'" + inputs_[i].name + "': expected rank " + std::to_string(inputs_[i].dims.size()) + ", got " +
                       std::to_string(dims[i].size()));
    }
    for (std::size_t axis = 0; axis < dims[i].size(); ++axis) {
      const std::optional<std::size_t> symbol = expressions_.symbol(inputs_[i].dims[axis]);
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
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t axis = 0; axis < dims[i].size(); ++axis) {
      const Expression& dim = inputs_[i].dims[axis];
      const std::int64_t expected = dim.entry ? values[*dim.entry] : dim.number;
      if (expected == dims[i][axis]) continue;
      const std::string meaning = dim.entry ? " (" + text_of(dim) + ")" : "";
      throw InputError(place(i, axis) + meaning + ": expected " + std::to_string(expected) + ", got " + std::to_string(dims[i][axis]));
    }
  }
  return sizes;
}

std::string OpenProgram::describe(const Sizes& sizes) const {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += symbols()[i];
    text += '=';
    text += std::to_string(sizes[i]);
  }
  return text;
}

bool OpenProgram::has_buckets() const {
  return std::any_of(buckets_.begin(), buckets_.end(), [](const Sizes& sizes) { return !sizes.empty(); });
}

std::string OpenProgram::place_of(std::size_t symbol) const {
  std::string place = "size '" + symbols()[symbol] + "'";
  for (std::size_t i = inputs_.size(); i-- > 0;) {
    for (std::size_t axis = inputs_[i].dims.size(); axis-- > 0;) {
      if (expressions_.symbol(inputs_[i].dims[axis]) != symbol) continue;
      place = "'" + inputs_[i].name + "', dimension " + std::to_string(axis) + " ('" + symbols()[symbol] + "')";
    }
  }
  return place;
}

std::int64_t OpenProgram::rounded(std::size_t symbol, std::int64_t size) const {
  const Sizes& sizes = buckets_[symbol];
  if (sizes.empty() || (size == 0 && !is_stored())) return size;
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), size);
  if (found != sizes.end() && size > 0) return *found;
  if (size <= 0) throw InputError(place_of(symbol) + ": " + std::to_string(size) + " is below the buckets " + listed(sizes));
  throw InputError(place_of(symbol) + ": " + std::to_string(size) + " is above the buckets " + listed(sizes) +
                   "; run it in parts, or compile the model with a larger bucket");
}

void OpenProgram::check_exact(const Sizes& asked, const Sizes& found) const {
  for (std::size_t symbol = 0; symbol < exact_.size(); ++symbol) {
    if (asked[symbol] == found[symbol] || exact_[symbol].empty()) continue;
    const std::string size = std::to_string(asked[symbol]);
    throw InputError(place_of(symbol) + ": " + size + " is none of the buckets " + listed(buckets_[symbol]) +
                     ", and is not rounded up to one: " + exact_[symbol] + "; compile the model with a bucket of " + size);
  }
}

Sizes OpenProgram::rounded(const Sizes& sizes) const {
  if (!has_buckets()) return sizes;
  // The instance is checked for its own sizes only, and a model may go another way at those asked for.
  if (!is_stored()) check_conditions(sizes, expressions_.evaluate(sizes));
  Sizes found;
  for (std::size_t symbol = 0; symbol < sizes.size(); ++symbol) found.push_back(rounded(symbol, sizes[symbol]));
  // A stored instance is right for its own sizes, whatever the conditions say; for others it is where they hold for both.
  if (is_stored() && found != sizes) {
    check_exact(sizes, found);
    check_conditions(sizes, expressions_.evaluate(sizes));
    check_conditions(found, expressions_.evaluate(found));
  }
  return found;
}

std::vector<std::vector<std::int64_t>> OpenProgram::dims_of(const std::vector<OpenArgument>& arguments, const Sizes& sizes) const {
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  std::vector<std::vector<std::int64_t>> found;
  for (const OpenArgument& argument : arguments) {
    std::vector<std::int64_t>& dims = found.emplace_back();
    for (const Expression& dim : argument.dims) dims.push_back(dim.entry ? values[*dim.entry] : dim.number);
  }
  return found;
}

void OpenProgram::check_conditions(const Sizes& sizes, const std::vector<std::int64_t>& values) const {
  const auto value = [&](const Expression& side) { return side.entry ? values[*side.entry] : side.number; };
  for (const Condition& condition : conditions_) {
    if (holds(condition.relation, value(condition.a), value(condition.b))) continue;
    const auto relation = std::find_if(kRelations.begin(), kRelations.end(), [&](const auto& known) { return known.second == condition.relation; });
    throw InputError("the program does not hold for " + describe(sizes) + ": node '" + condition.node + "' needs " + text_of(condition.a) + " " +
                     std::string(relation->first) + " " + text_of(condition.b) + "; compile the model for these sizes");
  }
}

Json OpenProgram::instance(const std::vector<std::int64_t>& values) const {
  Json program = Json::object();
  for (const auto& [key, value] : json_.items()) {
    if (key != "symbols" && key != "expressions" && key != "conditions" && key != kBuckets) {
      program.emplace(key, substituted(value, values));
    }
  }
  drop_empty(program);
  return program;
}

std::shared_ptr<const Program> OpenProgram::at(const Sizes& sizes) const {
  if (is_static()) return static_;
  if (is_stored()) return stored_at(sizes);
  const std::vector<std::int64_t> values = expressions_.evaluate(sizes);
  check_conditions(sizes, values);
  try {
    Json program = instance(values);
    auto keeper = std::make_shared<Keeper>();
    keeper->file = owner_;
    Program::Tensors tensors = tensors_;
    const Field constants = Field(program, "program")["constants"];
    const std::size_t count = constants.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) {
      const Field constant = constants.at(i);
      if (!constant.find(kValues)) continue;
      std::uint64_t bytes = 0;
      const auto memory = compute(constant, bytes);
      tensors[constant["tensor"].text()] = {reinterpret_cast<const std::byte*>(memory->data()), bytes};
      keeper->computed.push_back(memory);
    }
    return Program::read(program, program.dump(), tensors, keeper);
  } catch (const Json::exception& error) {
    throw ProgramError(std::string("program: ") + error.what());
  } catch (const ProgramError& error) {
    throw InputError("the program does not hold for " + describe(sizes) + ": " + error.what());
  }
}

std::shared_ptr<const Program> OpenProgram::stored_at(const Sizes& sizes) const {
  const Sizes found = rounded(sizes);
  try {
    const Json program = instances_.at(json_, found);
    auto exact = Program::read(program, program.dump(), tensors_, owner_);
    check_alike(inputs_, exact->inputs(), "inputs");
    check_alike(outputs_, exact->outputs(), "outputs");
    if (found == sizes) return exact;
    const Json padded = padded_program(program, *exact, dims_of(inputs_, sizes), dims_of(outputs_, sizes));
    return Program::read(padded, padded.dump(), tensors_, owner_);
  } catch (const ProgramError& error) {
    throw ProgramError("instance for " + describe(found) + ": " + error.what());
  }
}

bool OpenProgram::is_partial() const {
  if (!conditions_.empty() || is_stored()) return true;
  try {
    at(Sizes(symbols().size(), 0));
    return false;
  } catch (const InputError&) {
    return true;
  }
}

std::vector<std::span<const std::byte>> OpenProgram::stored_constants() const {
  std::vector<std::span<const std::byte>> found;
  if (is_static()) {
    for (const Constant& constant : static_->constants()) found.push_back(constant.data);
    return found;
  }
  if (is_stored()) {
    for (const std::string& name : instances_.tensors(json_)) {
      if (const auto tensor = tensors_.find(name); tensor != tensors_.end()) found.push_back(tensor->second);
    }
    return found;  // an instance that names a tensor which there is not is refused as a whole
  }
  const Field constants = Field(json_, "program")["constants"];
  const std::size_t count = constants.array_size(kListLimit);
  for (std::size_t i = 0; i < count; ++i) {
    if (constants.at(i).find(kValues)) continue;
    const Field name = constants.at(i)["tensor"];
    const auto tensor = tensors_.find(name.text());
    if (tensor == tensors_.end()) name.fail("the name of a stored tensor");
    found.push_back(tensor->second);
  }
  return found;
}

}  // namespace hipdnn_rt
