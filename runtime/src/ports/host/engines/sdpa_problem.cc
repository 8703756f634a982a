#include "sdpa_problem.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "frontend/names.h"
#include "frontend/status.h"
#include "rowwise_engine.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

constexpr hipdnnBackendAttributeName_t not_computed[] = {
    HIPDNN_ATTR_OPERATION_SDPA_FWD_SEED_EXT,          HIPDNN_ATTR_OPERATION_SDPA_FWD_OFFSET_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_MASK_EXT,  HIPDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SCALE_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC,   HIPDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_Q_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_K_EXT,     HIPDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_V_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_S_EXT,     HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALE_S_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALE_O_EXT,       HIPDNN_ATTR_OPERATION_SDPA_FWD_RNG_DUMP_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_AMAX_S_EXT,        HIPDNN_ATTR_OPERATION_SDPA_FWD_AMAX_O_EXT,
};

/// Reads the operands of one node, numbering their pointers as pointer_uids does.
class Reader {
 public:
  Reader(const Graph& graph, const Node& node) : graph_(graph), node_(node), uids_(pointer_uids(graph)) {}

  const Tensor& tensor(hipdnnBackendAttributeName_t name) const { return graph_.tensor(node_.tensor(name)); }

  /// The operand under `name`, which must have one of the types.
  SdpaOperand operand(hipdnnBackendAttributeName_t name, std::span<const hipdnnDataType_t> types) const {
    const Tensor& t = tensor(name);
    if (std::ranges::find(types, t.dtype) == types.end()) throw Refusal(text(attribute_name(name), " is ", hipdnn_port::describe(t)));
    if (!t.has_pointer()) throw Refusal(text(attribute_name(name), " is baked or virtual: ", hipdnn_port::describe(t)));
    SdpaOperand operand{.pointer = static_cast<std::size_t>(std::ranges::find(uids_, t.uid) - uids_.begin()), .dtype = t.dtype};
    const std::size_t missing = operand.strides.size() - std::min(t.dims.size(), operand.strides.size());
    for (std::size_t d = missing; d < operand.strides.size(); ++d) {
      operand.strides[d] = t.dims[d - missing] == 1 ? 0 : t.strides[d - missing];
    }
    return operand;
  }

  std::optional<SdpaOperand> find_operand(hipdnnBackendAttributeName_t name, std::span<const hipdnnDataType_t> types) const {
    return node_.has_tensor(name) ? std::optional(operand(name, types)) : std::nullopt;
  }

  const std::vector<std::int64_t>& uids() const { return uids_; }

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<std::int64_t> uids_;
};

void refuse_what_is_not_computed(const Node& node) {
  for (const hipdnnBackendAttributeName_t name : not_computed) {
    if (node.has_tensor(name)) throw Refusal(text(attribute_name(name), " is set: no dropout, blocks or 8-bit scales here"));
  }
  if (node.integer_or(HIPDNN_ATTR_SDPA_FWD_ALIBI_MASK_EXT, 0) != 0) throw Refusal("has an ALiBi mask");
  if (node.real_or(HIPDNN_ATTR_SDPA_FWD_DROPOUT_PROBABILITY_EXT, 0.0) != 0.0) throw Refusal("has dropout");
}

void read_scale(SdpaProblem& problem, const Node& node, const Reader& reader, std::span<const hipdnnDataType_t> types) {
  problem.scale = node.real_or(HIPDNN_ATTR_SDPA_FWD_ATTN_SCALE_VALUE_EXT, 1.0);
  if (!node.has_tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)) return;
  const Tensor& scale = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
  if (scale.value) {
    problem.scale = scale.scalar();
  } else {
    problem.scale = 1.0;
    problem.scale_tensor = reader.operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, types);
  }
}

void read_band(SdpaProblem& problem, const Node& node) {
  const auto flag = [&](hipdnnBackendAttributeName_t name) { return node.integer_or(name, 0) != 0; };
  problem.is_bottom_right = flag(HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT) ||
                            node.integer_or(HIPDNN_ATTR_SDPA_FWD_DIAGONAL_ALIGNMENT_EXT, HIPDNN_DIAGONAL_ALIGNMENT_TOP_LEFT_EXT) ==
                                HIPDNN_DIAGONAL_ALIGNMENT_BOTTOM_RIGHT_EXT;
  if (node.has(HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT)) problem.left_bound = node.integer(HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT);
  if (node.has(HIPDNN_ATTR_SDPA_FWD_RIGHT_BOUND_EXT)) problem.right_bound = node.integer(HIPDNN_ATTR_SDPA_FWD_RIGHT_BOUND_EXT);
  if (flag(HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_EXT) || flag(HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT)) problem.right_bound = 0;
}

/// Tables of pages for keys and values of the same page size, and how many keys a sequence may have with them.
void read_pages(SdpaProblem& problem, const Node& node, const Reader& reader) {
  constexpr hipdnnDataType_t indices[] = {HIPDNN_DATA_INT32};
  problem.key_pages = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, indices);
  problem.value_pages = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, indices);
  if (!problem.key_pages) return;
  const Tensor& k = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
  const Tensor& v = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
  if (k.dims[0] != v.dims[0] || k.dims[2] != v.dims[2]) throw Refusal("has pages of keys and of values that differ in number or rows");
  problem.pages = k.dims[0];
  problem.page_rows = k.dims[2];
  const std::int64_t table = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC).dims[2];
  problem.keys = node.integer_or(HIPDNN_ATTR_SDPA_FWD_MAX_SEQ_LEN_KV_EXT, table * problem.page_rows);
}

std::int32_t page_of(const SdpaOperand& table, void* const* pointers, std::int64_t batch, std::int64_t number) {
  std::int32_t page = 0;
  std::memcpy(&page, table.at(pointers, batch, 0, number), sizeof page);
  return page;
}

std::int64_t length_of(const std::optional<SdpaOperand>& lengths, void* const* pointers, std::int64_t batch, std::int64_t longest) {
  if (!lengths) return longest;
  std::int32_t length = 0;
  std::memcpy(&length, lengths->at(pointers, batch, 0, 0), sizeof length);
  return std::clamp<std::int64_t>(length, 0, longest);
}

}  // namespace

const std::byte* SdpaOperand::at(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t row) const {
  return at_output(pointers, batch, head, row);
}

std::byte* SdpaOperand::at_output(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t row) const {
  const std::int64_t element = batch * strides[0] + head * strides[1] + row * strides[2];
  return static_cast<std::byte*>(pointers[pointer]) + element * static_cast<std::int64_t>(element_bytes(dtype));
}

std::int64_t SdpaProblem::query_length(void* const* pointers, std::int64_t batch) const {
  return length_of(query_lengths, pointers, batch, queries);
}

std::int64_t SdpaProblem::key_length(void* const* pointers, std::int64_t batch) const {
  return length_of(key_lengths, pointers, batch, keys);
}

void SdpaProblem::check_pages(void* const* pointers) const {
  if (!key_pages) return;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const std::int64_t used = (key_length(pointers, batch) + page_rows - 1) / page_rows;
    for (std::int64_t number = 0; number < used; ++number) {
      for (const auto& table : {*key_pages, *value_pages}) {
        const std::int32_t page = page_of(table, pointers, batch, number);
        if (page < 0 || page >= pages) {
          fail(HIPDNN_STATUS_BAD_PARAM, "attention: entry ", number, " of batch ", batch, " in a page table is ", page, ", there are pages 0 to ", pages - 1);
        }
      }
    }
  }
}

HeadRows SdpaProblem::key_rows(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t last) const {
  return rows_of(k, key_pages, pointers, batch, head, first, last);
}

HeadRows SdpaProblem::value_rows(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t last) const {
  return rows_of(v, value_pages, pointers, batch, head, first, last);
}

HeadRows SdpaProblem::rows_of(const SdpaOperand& operand, const std::optional<SdpaOperand>& table, void* const* pointers, std::int64_t batch,
                          std::int64_t head, std::int64_t first, std::int64_t last) const {
  if (!table) return {operand.at(pointers, batch, head, first), last - first};
  const std::int64_t number = first / page_rows, row = first % page_rows;
  return {operand.at(pointers, page_of(*table, pointers, batch, number), head, row), std::min(last - first, page_rows - row)};
}

KeyRange SdpaProblem::attended(std::int64_t query, std::int64_t query_length, std::int64_t key_length) const {
  const std::int64_t diagonal = query + (is_bottom_right ? key_length - query_length : 0);
  KeyRange range{0, key_length};
  if (left_bound) range.first = std::clamp<std::int64_t>(diagonal - *left_bound + 1, 0, key_length);
  if (right_bound) range.last = std::clamp<std::int64_t>(diagonal + *right_bound + 1, 0, key_length);
  return range;
}

SdpaProblem read_sdpa(const Graph& graph) {
  if (graph.nodes.size() != 1 || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) {
    throw Refusal("takes one attention forward node");
  }
  const Node& node = graph.nodes[0];
  refuse_what_is_not_computed(node);
  const Reader reader(graph, node);
  constexpr hipdnnDataType_t floats[] = {HIPDNN_DATA_FLOAT, HIPDNN_DATA_HALF, HIPDNN_DATA_BFLOAT16};
  constexpr hipdnnDataType_t masks[] = {HIPDNN_DATA_FLOAT, HIPDNN_DATA_HALF, HIPDNN_DATA_BFLOAT16, HIPDNN_DATA_BOOLEAN};
  constexpr hipdnnDataType_t lengths[] = {HIPDNN_DATA_INT32};
  constexpr hipdnnDataType_t wide[] = {HIPDNN_DATA_FLOAT};
  const Tensor& q = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
  const Tensor& k = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
  const Tensor& v = reader.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC);

  SdpaProblem problem{.batches = q.dims[0],
                      .heads = q.dims[1],
                      .heads_per_key_head = q.dims[1] / k.dims[1],
                      .heads_per_value_head = q.dims[1] / v.dims[1],
                      .queries = q.dims[2],
                      .keys = k.dims[2],
                      .depth = q.dims[3],
                      .value_depth = v.dims[3],
                      .uids = reader.uids(),
                      .q = reader.operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC, floats),
                      .k = reader.operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, floats),
                      .v = reader.operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC, floats),
                      .o = reader.operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC, floats),
                      .mask = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, masks),
                      .sink = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_SINK_TOKEN_EXT, wide),
                      .query_lengths = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, lengths),
                      .key_lengths = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, lengths),
                      .stats = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, wide),
                      .max = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_MAX_EXT, wide),
                      .sum_exp = reader.find_operand(HIPDNN_ATTR_OPERATION_SDPA_FWD_SUM_EXP_EXT, wide)};
  problem.soft_cap = node.real_or(sdpa_soft_cap, 0.0);
  if (problem.sink && (problem.stats || problem.max || problem.sum_exp)) throw Refusal("has a sink and statistics, which no one says to count it");
  read_pages(problem, node, reader);
  read_scale(problem, node, reader, floats);
  read_band(problem, node);
  return problem;
}

}  // namespace hipdnn_port
