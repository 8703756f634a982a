// `elementwise`: a small program over every element of an iteration space. Its code becomes a row program.
#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "../engines/rowwise_engine.h"
#include "../engines/rowwise_parallel.h"
#include "../engines/rowwise_tiles.h"
#include "functions.h"

namespace hipdnn_port::kernels {
namespace {

using nlohmann::json;

constexpr std::size_t max_code = 4096;
/// Of one thread, on its stack.
constexpr std::int64_t max_scratch_bytes = 64 * 1024;
constexpr std::int64_t least_tile = 16;
/// A tile is small enough for this many threads to share a large kernel; how many there are is said after it is made.
constexpr int expected_threads = 8;

struct Operation {
  std::string_view name;
  TileOp op;
  std::size_t arity;
};

constexpr Operation operations[] = {
    {"neg", TileOp::neg, 1}, {"abs", TileOp::abs, 1}, {"sign", TileOp::sign, 1}, {"floor", TileOp::floor, 1}, {"ceil", TileOp::ceil, 1},
    {"round", TileOp::round, 1}, {"trunc", TileOp::trunc, 1}, {"sqrt", TileOp::sqrt, 1}, {"rsqrt", TileOp::rsqrt, 1}, {"exp", TileOp::exp, 1},
    {"log", TileOp::log, 1}, {"sin", TileOp::sin, 1}, {"cos", TileOp::cos, 1}, {"tan", TileOp::tan, 1}, {"asin", TileOp::asin, 1},
    {"acos", TileOp::acos, 1}, {"atan", TileOp::atan, 1}, {"sinh", TileOp::sinh, 1}, {"cosh", TileOp::cosh, 1}, {"tanh", TileOp::tanh, 1},
    {"asinh", TileOp::asinh, 1}, {"acosh", TileOp::acosh, 1}, {"atanh", TileOp::atanh, 1}, {"erf", TileOp::erf, 1},
    {"not", TileOp::logical_not, 1}, {"bit_not", TileOp::bit_not, 1}, {"is_nan", TileOp::is_nan, 1}, {"is_inf", TileOp::is_inf, 1},
    {"is_pos_inf", TileOp::is_pos_inf, 1}, {"is_neg_inf", TileOp::is_neg_inf, 1}, {"reciprocal", TileOp::reciprocal, 1},
    {"add", TileOp::add, 2}, {"sub", TileOp::sub, 2}, {"mul", TileOp::mul, 2}, {"div", TileOp::div, 2}, {"mod", TileOp::mod, 2},
    {"fmod", TileOp::fmod, 2}, {"pow", TileOp::pow, 2}, {"min", TileOp::min, 2}, {"max", TileOp::max, 2}, {"and", TileOp::logical_and, 2},
    {"or", TileOp::logical_or, 2}, {"xor", TileOp::logical_xor, 2}, {"bit_and", TileOp::bit_and, 2}, {"bit_or", TileOp::bit_or, 2},
    {"bit_xor", TileOp::bit_xor, 2}, {"shl", TileOp::shl, 2}, {"shr", TileOp::shr, 2}, {"eq", TileOp::eq, 2}, {"ne", TileOp::ne, 2},
    {"lt", TileOp::lt, 2}, {"le", TileOp::le, 2}, {"gt", TileOp::gt, 2}, {"ge", TileOp::ge, 2}, {"atan2", TileOp::atan2, 2},
    {"where", TileOp::select, 3},
};

bool answers_bool(TileOp op) { return (op >= TileOp::eq && op <= TileOp::ge) || (op >= TileOp::is_nan && op <= TileOp::is_neg_inf); }

/// Whether a 16-bit result is exact where the operands are 16-bit values.
bool is_exact(TileOp op) {
  constexpr TileOp exact[] = {TileOp::neg,   TileOp::abs,   TileOp::sign, TileOp::floor, TileOp::ceil,
                              TileOp::round, TileOp::trunc, TileOp::min,  TileOp::max,   TileOp::select};
  return std::ranges::find(exact, op) != std::end(exact);
}

/// Least and greatest value of an integer type; the greatest as its bits.
std::pair<std::int64_t, std::uint64_t> range_of(DType dtype) {
  const auto bits = static_cast<unsigned>(8 * info_of(dtype).bytes);
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const std::uint64_t greatest = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) >> (is_signed ? 1 : 0);
  return {is_signed ? -static_cast<std::int64_t>(greatest) - 1 : 0, greatest};
}

/// Reads the code; every instruction names only earlier registers, of types it takes. Throws KernelError.
class CodeReader {
 public:
  explicit CodeReader(const Image& image) : image_(image), index_of_(image.tensors.back().rank(), -1), is_stored_(image.tensors.size(), false) {
    program_.extents = image.tensors.back().dims;
    program_.may_overlap = true;
    for (const Tensor& t : image.tensors) {
      RowTensor tensor{t.dtype, static_cast<int>(program_.tensors.size()), t.elements(), t.strides};
      for (std::size_t d = 0; d < t.rank(); ++d) tensor.strides[d] = t.dims[d] > 1 ? t.strides[d] : 0;
      program_.tensors.push_back(std::move(tensor));
    }
  }

  RowProgram read() {
    const json& code = image_.attributes.value("code");
    if (!code.is_array() || code.size() > max_code) refuse_value("attributes.code", "a list of at most 4096 instructions", code);
    registers_.reserve(code.size());
    for (const json& instruction : code) {
      instruction_ = &instruction;
      registers_.push_back(read_instruction());
    }
    for (std::size_t i = image_.inputs; i < image_.tensors.size(); ++i) {
      if (!is_stored_[i]) refuse("attributes.code: nothing is stored to tensors[", i, "]");
    }
    remove_unused(program_);
    return std::move(program_);
  }

 private:
  /// The result of an instruction. 16-bit floats are rounded where an instruction reads them; a store rounds by itself.
  struct Register {
    DType dtype;
    int value = -1;  // of the program; -1 for a store
    bool is_rounded = true;
  };

  Register read_instruction() {
    const json& given = *instruction_;
    if (!given.is_array() || given.empty() || !given[0].is_string()) refuse_value(what(), "a list that starts with an operation's name", given);
    const auto& name = given[0].get_ref<const std::string&>();
    if (name == "load") return read_load();
    if (name == "const") return read_constant();
    if (name == "index") return read_index();
    if (name == "store") return read_store();
    if (name == "cast") return read_cast();
    if (name == "saturate") return read_saturate();
    const auto* found = std::ranges::find(operations, std::string_view(name), &Operation::name);
    if (found == std::end(operations)) refuse(what(), ": no operation is named '", name, "'");
    return read_operation(*found);
  }

  /// Names the instruction in messages.
  std::string what() const { return "attributes.code[" + std::to_string(registers_.size()) + "]"; }

  DType read_type(const json& value) const {
    const auto known = find_dtype(value);
    return known ? *known : read_dtype(value, what());
  }

  void expect_size(std::size_t size) const {
    const json& given = *instruction_;
    if (given.size() != size) refuse(what(), ": '", given[0].get<std::string>(), "' has ", size - 1, " arguments, got ", given.size() - 1);
  }

  std::uint32_t number(std::size_t position, std::size_t limit, std::string_view expected) const {
    const json& value = (*instruction_)[position];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= limit) refuse_value(what(), expected, value);
    return value.get<std::uint32_t>();
  }

  Register& register_at(std::size_t position) {
    const std::uint32_t index = number(position, registers_.size(), "the number of an earlier instruction");
    if (registers_[index].value < 0) refuse(what(), ": instruction ", index, " is a store and has no result");
    return registers_[index];
  }

  void expect_dtype(const Register& given, DType dtype) const {
    if (given.dtype == dtype) return;
    refuse(what(), ": expected instruction ", &given - registers_.data(), " to be ", info_of(dtype).name, ", it is ", info_of(given.dtype).name);
  }

  /// A register's value as an instruction reads it.
  int read_value(Register& from) {
    if (!from.is_rounded) from.value = program_.add(rounding(from.dtype), Reg::f32, {from.value});
    from.is_rounded = true;
    return from.value;
  }

  static TileOp rounding(DType dtype) {
    switch (dtype) {
      case DType::f16: return TileOp::round_f16;
      case DType::bf16: return TileOp::round_bf16;
      case DType::f8e4m3: return TileOp::round_f8e4m3;
      default: return TileOp::round_f8e5m2;
    }
  }

  AxisSet axes_of(std::size_t tensor) const {
    AxisSet axes = 0;
    const Dims& strides = program_.tensors[tensor].strides;
    for (std::size_t d = 0; d < strides.size(); ++d) axes |= strides[d] != 0 ? AxisSet{1} << d : 0;
    return axes;
  }

  Register read_load() {
    expect_size(2);
    const std::uint32_t tensor = number(1, image_.inputs, "the number of an in");
    const DType dtype = image_.tensors[tensor].dtype;
    return {dtype, program_.add({RowValue::Source::memory, reg_of(dtype), axes_of(tensor), static_cast<int>(tensor)})};
  }

  std::uint64_t read_bits(const json& value, DType dtype) const {
    if (dtype == DType::f64) return std::bit_cast<std::uint64_t>(read_real(value, what()));
    if (is_float(dtype)) return std::bit_cast<std::uint32_t>(static_cast<float>(read_real(value, what())));
    if (dtype == DType::boolean && value.is_boolean()) return value.get<bool>() ? 1 : 0;
    const auto [least, greatest] = dtype == DType::boolean ? std::pair<std::int64_t, std::uint64_t>{0, 1} : range_of(dtype);
    const bool fits = value.is_number_unsigned()  ? value.get<std::uint64_t>() <= greatest
                      : value.is_number_integer() ? value.get<std::int64_t>() >= least && value.get<std::int64_t>() < 0
                                                  : false;
    if (!fits) refuse_value(what(), "a value of " + std::string(info_of(dtype).name), value);
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : static_cast<std::uint64_t>(value.get<std::int64_t>());
  }

  Register read_constant() {
    expect_size(3);
    const DType dtype = read_type((*instruction_)[1]);
    RowValue value{RowValue::Source::constant, reg_of(dtype)};
    value.bits = read_bits((*instruction_)[2], dtype);
    return {dtype, program_.add(value), !is_narrow(dtype)};
  }

  Register read_index() {
    expect_size(2);
    const std::uint32_t axis = number(1, index_of_.size(), "a dim");
    int& known = index_of_[axis];
    if (known < 0) {
      RowValue value{RowValue::Source::axis_index, Reg::i64, AxisSet{1} << axis};
      value.axis = static_cast<int>(axis);
      known = program_.add(program_.extents[axis] == 1 ? RowValue{RowValue::Source::constant, Reg::i64} : value);
    }
    return {DType::i64, known};
  }

  Register read_store() {
    expect_size(3);
    const std::uint32_t tensor = number(1, image_.tensors.size(), "the number of an out");
    if (tensor < image_.inputs) refuse(what(), ": tensor ", tensor, " is an in and cannot be stored to");
    const Register& source = register_at(2);
    expect_dtype(source, image_.tensors[tensor].dtype);
    if (is_stored_[tensor]) refuse(what(), ": tensor ", tensor, " is stored twice");
    is_stored_[tensor] = true;
    program_.outputs.push_back({source.value, static_cast<int>(tensor), axes_of(tensor)});
    return {source.dtype};
  }

  Register read_cast() {
    expect_size(3);
    const DType to = read_type((*instruction_)[1]);
    Register& from = register_at(2);
    // In one step: rounding to f32 first would round twice.
    if (is_narrow(to) && from.dtype == DType::f64) return {to, program_.add(rounding(to), Reg::f32, {from.value})};
    const int value = read_value(from);
    if (reg_of(from.dtype) == reg_of(to)) return {to, value, !is_narrow(to)};
    RowValue loaded = program_.values[static_cast<std::size_t>(value)];
    // What a load has converted already is cast: a tensor's elements are converted once.
    const bool is_as_stored = loaded.source == RowValue::Source::memory && loaded.reg == reg_of(program_.tensors[static_cast<std::size_t>(loaded.tensor)].dtype);
    loaded.reg = reg_of(to);
    // Rare types have fast conversions on the way from memory, but no fast casts. Floats become integers in another manner there.
    const bool converts = is_as_stored && !is_float(from.dtype) &&
                          tile_kernels().elementwise(TileOp::cast, from.dtype, loaded.reg) == nullptr &&
                          tile_kernels().convert(from.dtype, loaded.reg) != nullptr;
    return {to, converts ? program_.add(loaded) : program_.add(TileOp::cast, loaded.reg, {value}), !is_narrow(to)};
  }

  Register read_saturate() {
    expect_size(3);
    const DType dtype = read_type((*instruction_)[1]);
    Register& source = register_at(2);
    if (!is_integer(dtype) || source.dtype == DType::boolean) {
      refuse(what(), ": 'saturate' makes integers of numbers, not ", info_of(dtype).name, " of ", info_of(source.dtype).name);
    }
    return {dtype, program_.add(TileOp::saturate, dtype, {read_value(source)})};
  }

  Register read_operation(const Operation& operation) {
    expect_size(operation.arity + 1);
    const std::size_t first = operation.op == TileOp::select ? 2 : 1;  // of the operands of one type
    if (first == 2) expect_dtype(register_at(1), DType::boolean);
    const DType operand = register_at(first).dtype;
    std::vector<int> args;
    for (std::size_t i = 1; i <= operation.arity; ++i) {
      if (i > first) expect_dtype(register_at(i), operand);
      args.push_back(read_value(register_at(i)));
    }
    const DType dtype = answers_bool(operation.op) ? DType::boolean : operand;
    if (find_elementwise(operation.op, reg_of(operand), reg_of(dtype)) == nullptr) {
      refuse(what(), ": '", operation.name, "' is not defined for ", info_of(operand).name);
    }
    return {dtype, program_.add(operation.op, reg_of(dtype), std::move(args)), !is_narrow(dtype) || is_exact(operation.op)};
  }

  const Image& image_;
  RowProgram program_;
  std::vector<Register> registers_;
  std::vector<int> index_of_;  // values, by axis
  std::vector<bool> is_stored_;
  const json* instruction_ = nullptr;
};

/// Tiles whose intermediates fit the scratch.
TileProgram fitting_tiles(const RowProgram& program) {
  for (std::int64_t elements = wanted_tile_elements(program, expected_threads);; elements /= 2) {
    TileProgram tiles(program, elements, true);
    if (tiles.scratch_bytes() <= max_scratch_bytes) return tiles;
    if (elements <= least_tile) refuse("attributes.code: more values are alive at once than this library holds; split the kernel");
  }
}

class Elementwise : public Kernel {
 public:
  explicit Elementwise(const Image& image) : Kernel(image), tensors_(image.tensors.size()) {
    image.attributes.expect_only({"code"});
    if (image.outputs() == 0) refuse("elementwise: expected at least one out");
    elements_ = image.tensors.back().elements();
    for (std::size_t i = 0; i < image.tensors.size(); ++i) image.expect_dims(i, image.tensors.back().dims);
    const RowProgram program = CodeReader(image).read();
    if (elements_ > 0) tiles_ = fitting_tiles(program);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    std::array<void*, max_operands> pointers;
    for (std::size_t i = 0; i < tensors_; ++i) pointers[i] = operands.at(i);
    const int used = useful_threads(threads, tiles_->tile_count(), elements_, tiles_->instructions().size());
    parallel_ranges(used, tiles_->tile_count(), [&](std::int64_t first, std::int64_t last, int) {
      // Not initialized: what is read has been written.
      alignas(64) std::array<std::byte, max_scratch_bytes> scratch;
      tiles_->run_tiles(first, last, pointers.data(), scratch.data());
    });
  }

  std::size_t tensors_;
  std::int64_t elements_ = 0;
  std::optional<TileProgram> tiles_;
};

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const Image& image) { return std::make_unique<Elementwise>(image); }

}  // namespace hipdnn_port::kernels
