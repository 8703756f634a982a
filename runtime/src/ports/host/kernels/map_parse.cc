// Reads and types the code of a `map`.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "map_program.h"

namespace hipdnn_port::kernels {
namespace {

using nlohmann::json;

struct Operation {
  std::string_view name;
  MapOp op;
  std::size_t arity;
};

constexpr Operation operations[] = {
    {"neg", MapOp::neg, 1}, {"abs", MapOp::abs, 1}, {"sign", MapOp::sign, 1}, {"floor", MapOp::floor, 1}, {"ceil", MapOp::ceil, 1},
    {"round", MapOp::round, 1}, {"trunc", MapOp::trunc, 1}, {"sqrt", MapOp::sqrt, 1}, {"rsqrt", MapOp::rsqrt, 1}, {"exp", MapOp::exp, 1},
    {"log", MapOp::log, 1}, {"sin", MapOp::sin, 1}, {"cos", MapOp::cos, 1}, {"tan", MapOp::tan, 1}, {"asin", MapOp::asin, 1},
    {"acos", MapOp::acos, 1}, {"atan", MapOp::atan, 1}, {"sinh", MapOp::sinh, 1}, {"cosh", MapOp::cosh, 1}, {"tanh", MapOp::tanh, 1},
    {"asinh", MapOp::asinh, 1}, {"acosh", MapOp::acosh, 1}, {"atanh", MapOp::atanh, 1}, {"erf", MapOp::erf, 1},
    {"not", MapOp::logical_not, 1}, {"bit_not", MapOp::bit_not, 1}, {"is_nan", MapOp::is_nan, 1}, {"is_inf", MapOp::is_inf, 1},
    {"is_pos_inf", MapOp::is_pos_inf, 1}, {"is_neg_inf", MapOp::is_neg_inf, 1}, {"reciprocal", MapOp::reciprocal, 1},
    {"add", MapOp::add, 2}, {"sub", MapOp::sub, 2}, {"mul", MapOp::mul, 2}, {"div", MapOp::div, 2}, {"mod", MapOp::mod, 2},
    {"fmod", MapOp::fmod, 2}, {"pow", MapOp::pow, 2}, {"min", MapOp::min, 2}, {"max", MapOp::max, 2}, {"and", MapOp::logical_and, 2},
    {"or", MapOp::logical_or, 2}, {"xor", MapOp::logical_xor, 2}, {"bit_and", MapOp::bit_and, 2}, {"bit_or", MapOp::bit_or, 2},
    {"bit_xor", MapOp::bit_xor, 2}, {"shl", MapOp::shl, 2}, {"shr", MapOp::shr, 2}, {"eq", MapOp::eq, 2}, {"ne", MapOp::ne, 2},
    {"lt", MapOp::lt, 2}, {"le", MapOp::le, 2}, {"gt", MapOp::gt, 2}, {"ge", MapOp::ge, 2}, {"atan2", MapOp::atan2, 2},
    {"where", MapOp::where, 3},
};

bool answers_bool(MapOp op) { return (op >= MapOp::eq && op <= MapOp::ge) || (op >= MapOp::is_nan && op <= MapOp::is_neg_inf); }

/// Least and greatest value of an integer type; the greatest as its bits.
std::pair<std::int64_t, std::uint64_t> range_of(DType dtype) {
  const auto bits = static_cast<unsigned>(8 * info_of(dtype).bytes);
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const std::uint64_t greatest = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) >> (is_signed ? 1 : 0);
  return {is_signed ? -static_cast<std::int64_t>(greatest) - 1 : 0, greatest};
}

std::uint64_t read_bits(const json& value, DType dtype, const std::string& what) {
  if (dtype == DType::f64) return std::bit_cast<std::uint64_t>(read_real(value, what));
  if (is_float(dtype)) return std::bit_cast<std::uint32_t>(static_cast<float>(read_real(value, what)));
  if (dtype == DType::boolean && value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const auto [least, greatest] = dtype == DType::boolean ? std::pair<std::int64_t, std::uint64_t>{0, 1} : range_of(dtype);
  const bool fits = value.is_number_unsigned()  ? value.get<std::uint64_t>() <= greatest
                    : value.is_number_integer() ? value.get<std::int64_t>() >= least && value.get<std::int64_t>() < 0
                                                : false;
  if (!fits) refuse_value(what, "a value of " + std::string(info_of(dtype).name), value);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : static_cast<std::uint64_t>(value.get<std::int64_t>());
}

/// One instruction being read: a list whose first element is its name.
class Reader {
 public:
  Reader(const Image& image, const std::vector<MapInstruction>& before, const json& value)
      : image_(image), before_(before), value_(value), what_("attributes.code[" + std::to_string(before.size()) + "]") {
    if (!value.is_array() || value.empty() || !value[0].is_string()) refuse_value(what_, "a list that starts with an operation's name", value);
  }

  MapInstruction read() {
    const auto& name = value_[0].get_ref<const std::string&>();
    if (name == "load") return read_load();
    if (name == "const") return read_constant();
    if (name == "index") return read_index();
    if (name == "store") return read_store();
    if (name == "cast" || name == "saturate") return read_conversion(name == "cast" ? MapOp::cast : MapOp::saturate);
    const auto* found = std::ranges::find(operations, std::string_view(name), &Operation::name);
    if (found == std::end(operations)) refuse(what_, ": no operation is named '", name, "'");
    return read_operation(*found);
  }

 private:
  void expect_size(std::size_t size) const {
    if (value_.size() != size) refuse(what_, ": '", value_[0].get<std::string>(), "' has ", size - 1, " arguments, got ", value_.size() - 1);
  }

  std::uint32_t number(std::size_t position, std::size_t limit, std::string_view expected) const {
    const json& value = value_[position];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= limit) refuse_value(what_, expected, value);
    return value.get<std::uint32_t>();
  }

  std::uint32_t register_at(std::size_t position) const {
    const std::uint32_t index = number(position, before_.size(), "the number of an earlier instruction");
    if (before_[index].op == MapOp::store) refuse(what_, ": instruction ", index, " is a store and has no result");
    return index;
  }

  MapInstruction read_load() const {
    expect_size(2);
    const std::uint32_t tensor = number(1, image_.inputs, "the number of an in");
    return {.op = MapOp::load, .dtype = image_.tensors[tensor].dtype, .tensor = tensor};
  }

  MapInstruction read_constant() const {
    expect_size(3);
    const DType dtype = read_dtype(value_[1], what_);
    return {.op = MapOp::constant, .dtype = dtype, .bits = read_bits(value_[2], dtype, what_)};
  }

  MapInstruction read_index() const {
    expect_size(2);
    return {.op = MapOp::index, .dtype = DType::i64, .axis = number(1, image_.tensors.back().rank(), "a dim")};
  }

  MapInstruction read_store() const {
    expect_size(3);
    const std::uint32_t tensor = number(1, image_.tensors.size(), "the number of an out");
    if (tensor < image_.inputs) refuse(what_, ": tensor ", tensor, " is an in and cannot be stored to");
    const std::uint32_t source = register_at(2);
    expect_dtype(source, image_.tensors[tensor].dtype);
    return {.op = MapOp::store, .dtype = image_.tensors[tensor].dtype, .arity = 1, .operands = {source}, .tensor = tensor};
  }

  MapInstruction read_conversion(MapOp op) const {
    expect_size(3);
    const DType dtype = read_dtype(value_[1], what_);
    const std::uint32_t source = register_at(2);
    if (op == MapOp::saturate && (!is_integer(dtype) || before_[source].dtype == DType::boolean)) {
      refuse(what_, ": 'saturate' makes integers of numbers, not ", info_of(dtype).name, " of ", info_of(before_[source].dtype).name);
    }
    return {.op = op, .dtype = dtype, .arity = 1, .operands = {source}};
  }

  MapInstruction read_operation(const Operation& operation) const {
    expect_size(operation.arity + 1);
    MapInstruction instruction{.op = operation.op, .arity = operation.arity};
    for (std::size_t i = 0; i < operation.arity; ++i) instruction.operands[i] = register_at(i + 1);
    const std::size_t first = operation.op == MapOp::where ? 1 : 0;
    if (first == 1) expect_dtype(instruction.operands[0], DType::boolean);
    const DType operand = before_[instruction.operands[first]].dtype;
    for (std::size_t i = first + 1; i < operation.arity; ++i) expect_dtype(instruction.operands[i], operand);
    instruction.dtype = answers_bool(operation.op) ? DType::boolean : operand;
    if (find_map_loop(operation.op, register_type(operand), register_type(instruction.dtype)) == nullptr) {
      refuse(what_, ": '", operation.name, "' is not defined for ", info_of(operand).name);
    }
    return instruction;
  }

  void expect_dtype(std::uint32_t index, DType dtype) const {
    if (before_[index].dtype == dtype) return;
    refuse(what_, ": expected instruction ", index, " to be ", info_of(dtype).name, ", it is ", info_of(before_[index].dtype).name);
  }

  const Image& image_;
  const std::vector<MapInstruction>& before_;
  const json& value_;
  std::string what_;
};

}  // namespace

std::vector<MapInstruction> parse_map_code(const Image& image) {
  const json& code = image.attributes.value("code");
  if (!code.is_array() || code.size() > max_map_code) refuse_value("attributes.code", "a list of at most 4096 instructions", code);
  std::vector<MapInstruction> instructions;
  instructions.reserve(code.size());
  std::vector<bool> is_stored(image.tensors.size(), false);
  for (const json& value : code) {
    const MapInstruction instruction = Reader(image, instructions, value).read();
    if (instruction.op == MapOp::store) {
      if (is_stored[instruction.tensor]) refuse("attributes.code[", instructions.size(), "]: tensor ", instruction.tensor, " is stored twice");
      is_stored[instruction.tensor] = true;
    }
    instructions.push_back(instruction);
  }
  for (std::size_t i = image.inputs; i < image.tensors.size(); ++i) {
    if (!is_stored[i]) refuse("attributes.code: nothing is stored to tensors[", i, "]");
  }
  return instructions;
}

}  // namespace hipdnn_port::kernels
