// From graph nodes to typed steps: iteration space, sources, outputs, value conversions.
#include "rowwise_lowering.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "frontend/names.h"
#include "frontend/status.h"

namespace hipdnn_port {
namespace {

std::string tensor_label(const Tensor& t) { return t.name.empty() ? text("tensor ", t.uid) : text("tensor ", t.uid, " (", t.name, ")"); }

/// Range that an integer type saturates to.
std::array<double, 3> integer_range(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_INT8: return {-128, 127, 0};
    case HIPDNN_DATA_UINT8: return {0, 255, 0};
    case HIPDNN_DATA_INT32: return {-2147483648.0, 2147483647.0, 0};
    default: return {-9223372036854775808.0, 9223372036854775808.0, 0};
  }
}

/// The register type that values of a memory type are held in: integers as i64.
Reg natural_reg(hipdnnDataType_t type) { return is_whole(type) ? Reg::i64 : reg_of(*dtype_of(type)); }

/// A constant in another register type.
RowValue converted(RowValue constant, TileKernel kernel, Reg reg) {
  const std::uint64_t bits = constant.bits;
  constant.reg = reg;
  constant.bits = 0;
  TileArgs args;
  args.src[0] = &bits;
  args.dst = &constant.bits;
  kernel(args);
  return constant;
}

/// The baked scalar's value, exact for every type.
RowValue constant_value(const Tensor& t) {
  RowValue v{RowValue::Source::constant, Reg::f32};
  std::copy(t.value->begin(), t.value->end(), reinterpret_cast<std::byte*>(&v.bits));
  const Reg reg = natural_reg(t.dtype);
  return converted(v, tile_kernels().convert(*dtype_of(t.dtype), reg), reg);
}

}  // namespace

bool is_whole(hipdnnDataType_t type) {
  return type == HIPDNN_DATA_INT8 || type == HIPDNN_DATA_UINT8 || type == HIPDNN_DATA_INT32 || type == HIPDNN_DATA_INT64;
}

bool is_real(hipdnnDataType_t type) {
  return type == HIPDNN_DATA_FLOAT || type == HIPDNN_DATA_DOUBLE || type == HIPDNN_DATA_HALF || type == HIPDNN_DATA_BFLOAT16 ||
         type == HIPDNN_DATA_FP8_E4M3 || type == HIPDNN_DATA_FP8_E5M2;
}

std::string node_label(const Graph& graph, std::size_t node) {
  const std::string& name = graph.nodes[node].name;
  return name.empty() ? text("node ", node) : text("node ", node, " (", name, ")");
}

RowProgram lower_rowwise(const Graph& graph) { return RowLowering(graph).run(); }

void RowLowering::refuse(const std::string& reason) const { throw Refusal(text(node_label(graph_, node_), ": ", reason)); }

RowProgram RowLowering::run() {
  find_extents();
  add_tensors();
  add_sources();
  for (node_ = 0; node_ < graph_.nodes.size(); ++node_) lower_node(graph_.nodes[node_]);
  add_outputs();
  find_rounding(program_);
  find_bytes(program_);
  return std::move(program_);
}

void RowLowering::find_extents() {
  std::size_t rank = 0;
  for (const Tensor& t : graph_.tensors) {
    if (!is_real(t.dtype) && !is_whole(t.dtype) && t.dtype != HIPDNN_DATA_BOOLEAN) {
      throw Refusal(text(tensor_label(t), ": element type ", data_type_name(t.dtype), " is not taken"));
    }
    if (t.element_count() > 1) rank = std::max(rank, t.dims.size());
  }
  if (rank > max_axes) throw Refusal(text("rank ", rank, " is above ", max_axes));
  program_.extents.assign(rank, 1);
  for (const Tensor& t : graph_.tensors) {
    if (t.element_count() == 1) continue;
    for (std::size_t i = 0; i < t.dims.size(); ++i) {
      std::int64_t& extent = program_.extents[rank - t.dims.size() + i];
      if (t.dims[i] != 1 && extent != 1 && t.dims[i] != extent) {
        throw Refusal(text(tensor_label(t), ": dimension ", i, " is ", t.dims[i], ", elsewhere ", extent, "; only 1 broadcasts"));
      }
      extent = std::max(extent, t.dims[i]);
    }
  }
}

AxisSet RowLowering::tensor_axes(const Tensor& t) const {
  AxisSet axes = 0;
  if (t.element_count() == 1) return axes;
  for (std::size_t i = 0; i < t.dims.size(); ++i) {
    if (t.dims[i] > 1) axes |= AxisSet{1} << axis_of(t, i);
  }
  return axes;
}

std::size_t RowLowering::axis_of(const Tensor& t, std::size_t dim) const { return program_.extents.size() - t.dims.size() + dim; }

void RowLowering::add_tensors() {
  int pointers = 0;
  for (const Tensor& t : graph_.tensors) {
    RowTensor& added = program_.tensors.emplace_back();
    added.dtype = *dtype_of(t.dtype);
    added.elements = t.element_count();
    added.strides.assign(program_.extents.size(), 0);
    if (t.has_pointer()) added.pointer = pointers++;
    for (std::size_t i = 0; i < t.dims.size() && added.elements > 1; ++i) {
      if (t.dims[i] > 1) added.strides[axis_of(t, i)] = t.strides[i];
    }
  }
}

void RowLowering::add_sources() {
  for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
    const Tensor& t = graph_.tensors[i];
    if (t.value) {
      value_of_[i] = program_.add(constant_value(t));
    } else if (graph_.producer(static_cast<int>(i)) < 0) {
      if (t.is_virtual) throw Refusal(text(tensor_label(t), " is virtual and no node writes it"));
      RowValue v{RowValue::Source::memory, natural_reg(t.dtype)};
      v.tensor = static_cast<int>(i);
      v.axes = tensor_axes(t);
      // A dimension expanded by a zero stride holds one value.
      for (std::size_t dim = 0; dim < t.dims.size() && v.axes != 0; ++dim) {
        if (t.strides[dim] == 0) v.axes &= ~(AxisSet{1} << axis_of(t, dim));
      }
      value_of_[i] = program_.add(v);
    }
  }
}

void RowLowering::lower_node(const Node& node) {
  switch (node.type) {
    case HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return lower_pointwise(node);
    case HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return lower_reduction(node);
    case HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT: return lower_layernorm(node);
    case HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT: return lower_rmsnorm(node);
    case HIPDNN_BACKEND_OPERATION_BATCHNORM_DESCRIPTOR_EXT: return lower_batchnorm(node);
    default: refuse(text(descriptor_name(node.type), " is neither pointwise, reduction, layer norm, RMS norm nor batch norm"));
  }
}

void RowLowering::add_outputs() {
  if (program_.outputs.empty()) throw Refusal("no node writes a tensor that has memory");
}

int RowLowering::add_constant(double constant, Reg reg) {
  RowValue v{RowValue::Source::constant, Reg::f64};
  v.bits = std::bit_cast<std::uint64_t>(constant);
  return program_.add(reg == Reg::f64 ? v : converted(v, find_elementwise(TileOp::cast, Reg::f64, reg), reg));
}

int RowLowering::add_fold(Fold fold, Prepare prepare, int arg) {
  const Reg reg = value(arg).reg;
  if ((value(arg).axes & program_.reduced) != program_.reduced) {
    // The value repeats along a reduced axis; a fold must see it as often as the axis is long.
    const int copy = add_step(TileOp::copy, reg, {arg});
    value(copy).axes |= program_.reduced;
    arg = copy;
  }
  RowValue v{RowValue::Source::step, reg};
  v.axes = value(arg).axes & ~program_.reduced;
  RowStep step;
  step.is_fold = true;
  step.fold = fold;
  step.prepare = prepare;
  step.args = {arg};
  step.result = program_.add(v);
  program_.steps.push_back(std::move(step));
  return program_.steps.back().result;
}

int RowLowering::as_reg(int index, Reg reg, hipdnnDataType_t saturate_to) {
  const RowValue v = value(index);
  if (v.reg == reg) return index;
  if (v.source == RowValue::Source::constant && reg != Reg::i64) return program_.add(converted(v, find_elementwise(TileOp::cast, v.reg, reg), reg));
  if (v.source == RowValue::Source::memory && (reg == Reg::f32 || reg == Reg::f64)) {
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const RowValue& other = program_.values[i];
      if (other.source == RowValue::Source::memory && other.tensor == v.tensor && other.reg == reg) return static_cast<int>(i);
    }
    RowValue loaded = v;
    loaded.reg = reg;
    return program_.add(loaded);
  }
  if (reg == Reg::i64 && is_float(v.reg)) return add_step(TileOp::to_i64, reg, {index}, integer_range(saturate_to));
  return add_step(TileOp::cast, reg, {index});
}

int RowLowering::as_mask(int index) { return value(index).reg == Reg::boolean ? index : add_step(TileOp::cast, Reg::boolean, {index}); }

int RowLowering::input(int t, Reg reg) {
  const int index = value_of_[static_cast<std::size_t>(t)];
  if (index < 0) refuse(text(tensor_label(tensor(t)), " is read before it is written; nodes must be in topological order"));
  return as_reg(index, reg);
}

void RowLowering::define(int t, int index, bool rounds) {
  const Tensor& out = tensor(t);
  const AxisSet axes = tensor_axes(out);
  if ((value(index).axes & ~axes) != 0) {
    refuse(text(tensor_label(out), " has dims ", show(out.dims), ", smaller than the broadcast result of its operands"));
  }
  const bool is_narrow = out.dtype == HIPDNN_DATA_INT8 || out.dtype == HIPDNN_DATA_UINT8;
  if (is_narrow && value(index).reg == Reg::f32 && value(index).source == RowValue::Source::step) {
    index = add_step(TileOp::narrow, *dtype_of(out.dtype), {index});
  } else if (is_byte(value(index).reg) && value(index).reg != *dtype_of(out.dtype)) {
    index = as_reg(index, natural_reg(out.dtype));
  }
  if (value(index).reg == Reg::boolean && out.dtype != HIPDNN_DATA_BOOLEAN) index = as_reg(index, natural_reg(out.dtype));
  if (out.has_pointer()) {
    for (std::size_t i = 0; i < out.dims.size(); ++i) {
      if (out.dims[i] > 1 && out.strides[i] == 0) refuse(text(tensor_label(out), ": an output's stride must not be 0 (dimension ", i, ")"));
    }
    program_.outputs.push_back({index, t, axes});
  }
  if (graph_.consumers(t).empty()) return;
  const RowValue& v = value(index);
  const bool narrows = v.source != RowValue::Source::memory || tensor(v.tensor).dtype != out.dtype;
  if (is_byte(v.reg)) {
    // a narrowed float: what readers see
  } else if (out.dtype == HIPDNN_DATA_BOOLEAN) {
    index = as_mask(index);
  } else if (v.reg == Reg::i64 && narrows && is_whole(out.dtype)) {
    if (out.dtype == HIPDNN_DATA_INT32) index = add_step(TileOp::wrap_i32, Reg::i64, {index});
    if (out.dtype == HIPDNN_DATA_INT8) index = add_step(TileOp::wrap_i8, Reg::i64, {index});
    if (out.dtype == HIPDNN_DATA_UINT8) index = add_step(TileOp::wrap_u8, Reg::i64, {index});
  } else {
    index = as_reg(index, natural_reg(out.dtype), out.dtype);
    if (rounds && out.dtype == HIPDNN_DATA_HALF) index = add_step(TileOp::round_f16, Reg::f32, {index});
    if (rounds && out.dtype == HIPDNN_DATA_BFLOAT16) index = add_step(TileOp::round_bf16, Reg::f32, {index});
    if (rounds && out.dtype == HIPDNN_DATA_FP8_E4M3) index = add_step(TileOp::round_f8e4m3, Reg::f32, {index});
    if (rounds && out.dtype == HIPDNN_DATA_FP8_E5M2) index = add_step(TileOp::round_f8e5m2, Reg::f32, {index});
  }
  value_of_[static_cast<std::size_t>(t)] = index;
}

}  // namespace hipdnn_port
