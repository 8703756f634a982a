// Graphs and plans as bytes: written, read back, run.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

/// The bytes that a function of the form (capacity, size, bytes) writes, by the rules of such functions; `size` is
/// what it told when it was asked for that.
template <class Byte, class Write>
std::vector<Byte> written(const Library& library, const Write& write, std::size_t size) {
  check::that(size > 0, "the size is written");
  constexpr std::size_t guard = 16;
  std::vector<Byte> bytes(size + guard, Byte{'#'});
  std::size_t again = 0;
  check::that(write(size - 1, &again, bytes.data()) != HIPDNN_STATUS_SUCCESS, "a buffer that is too small");
  check::equal(write(size, &again, bytes.data()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(again, size, "the size of the second call");
  check::that(std::all_of(bytes.end() - guard, bytes.end(), [](Byte byte) { return byte == Byte{'#'}; }), "bytes past the size");
  bytes.resize(size);
  return bytes;
}

std::string json_text_of(const Library& library, const Descriptor& graph) {
  const auto serialize = library.backend.optional<decltype(::hipdnnBackendGetSerializedJsonGraph_ext)>("hipdnnBackendGetSerializedJsonGraph_ext");
  const auto write = [&](std::size_t capacity, std::size_t* size, char* bytes) { return serialize(graph.get(), capacity, size, bytes); };
  std::size_t size = 0;
  check::equal(write(0, &size, nullptr), HIPDNN_STATUS_SUCCESS, library.last_error());
  const std::vector<char> bytes = written<char>(library, write, size);
  check::equal(bytes.back(), '\0', "the terminator is counted");
  return bytes.data();
}

void test_graph_is_written_as_json(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const auto json = nlohmann::json::parse(json_text_of(library, model.graph));
  check::equal(json.at("name").get<std::string>(), "test");
  for (const char* type : {"compute_data_type", "io_data_type", "intermediate_data_type"}) {
    check::equal(json.at(type).get<std::string>(), "float", type);
  }
  check::equal(json.at("nodes").size(), 2U);
  const auto& relu = json["nodes"][1];
  check::equal(relu.at("type").get<std::string>(), "PointwiseAttributes");
  check::equal(relu.at("inputs").at("operation").get<std::string>(), "relu_fwd");
  check::equal(relu.at("inputs").at("in_0_tensor_uid").get<int>(), 4);
  check::equal(relu.at("outputs").at("out_0_tensor_uid").get<int>(), 3);
  check::equal(json.at("tensors").size(), 4U);
  for (const auto& tensor : json["tensors"]) {
    const int uid = tensor.at("uid").get<int>();
    const Dims dims = uid == 2 ? Dims{1, 8} : Dims{4, 8};
    check::equal(tensor.at("virtual").get<bool>(), uid == 4);
    check::equal(tensor.at("dims").get<Dims>(), dims);
    check::equal(tensor.at("strides").get<Dims>(), packed(dims));
    check::equal(tensor.at("data_type").get<std::string>(), "float");
    check::that(!tensor.value("is_runtime_pass_by_value", false), "a tensor in memory");
  }
}

/// A graph that was read back is not finalized; with a handle it is one like any other.
void check_graph(const Library& library, const Handle& handle, Descriptor& graph) {
  check::equal(graph.count(HIPDNN_ATTR_OPERATIONGRAPH_OPS, HIPDNN_TYPE_BACKEND_DESCRIPTOR), 2);
  graph.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle).finalize();
  check_add_relu(library, handle, plan(library, graph));
}

void test_graph_comes_back_from_json(const Library& library) {
  using Read = hipdnnStatus_t(hipdnnBackendDescriptor_t*, const char*, std::size_t);
  const auto read = library.backend.optional<Read>("hipdnnBackendCreateAndDeserializeJsonGraph_ext");
  const Handle handle(library);
  const std::string json = json_text_of(library, AddRelu(library, handle).graph);
  hipdnnBackendDescriptor_t raw = nullptr;
  check::that(read(&raw, "{]", 2) != HIPDNN_STATUS_SUCCESS, "what is no JSON");
  check::equal(read(&raw, json.c_str(), json.size()), HIPDNN_STATUS_SUCCESS, library.last_error());
  Descriptor graph(library, raw);
  check_graph(library, handle, graph);
}

void test_graph_comes_back_from_bytes(const Library& library) {
  using Write = hipdnnStatus_t(hipdnnBackendDescriptor_t, std::size_t, std::size_t*, std::uint8_t*);
  using Read = hipdnnStatus_t(hipdnnBackendDescriptor_t*, const std::uint8_t*, std::size_t);
  const auto serialize = library.backend.optional<Write>("hipdnnBackendGetSerializedBinaryGraph_ext");
  const auto read = library.backend.optional<Read>("hipdnnBackendCreateAndDeserializeGraph_ext");
  const Handle handle(library);
  const std::vector<std::uint8_t> bytes = [&] {
    const AddRelu model(library, handle);
    const auto write = [&](std::size_t capacity, std::size_t* size, std::uint8_t* to) { return serialize(model.graph.get(), capacity, size, to); };
    std::size_t size = 0;
    check::equal(write(0, &size, nullptr), HIPDNN_STATUS_SUCCESS, library.last_error());
    return written<std::uint8_t>(library, write, size);
  }();
  hipdnnBackendDescriptor_t raw = nullptr;
  check::equal(read(&raw, bytes.data(), bytes.size()), HIPDNN_STATUS_SUCCESS, library.last_error());
  Descriptor graph(library, raw);
  check_graph(library, handle, graph);
}

struct PlanBytes {
  explicit PlanBytes(const Library& library)
      : serialize(library.backend.optional<decltype(::hipdnnBackendGetSerializedExecutionPlan_ext)>("hipdnnBackendGetSerializedExecutionPlan_ext")),
        read(library.backend.optional<decltype(::hipdnnBackendCreateAndDeserializeExecutionPlan_ext)>(
            "hipdnnBackendCreateAndDeserializeExecutionPlan_ext")) {}

  /// The case is refused where the plan's engine does not serialize.
  std::vector<std::uint8_t> of(const Library& library, const Descriptor& plan) const {
    const auto write = [&](std::size_t capacity, std::size_t* size, std::uint8_t* to) { return serialize(plan.get(), capacity, size, to); };
    std::size_t size = 0;
    library.allow_refusal(write(0, &size, nullptr), "the engine does not serialize its plan");
    return written<std::uint8_t>(library, write, size);
  }

  decltype(&::hipdnnBackendGetSerializedExecutionPlan_ext) serialize;
  decltype(&::hipdnnBackendCreateAndDeserializeExecutionPlan_ext) read;
};

Dims sorted_uids(const Descriptor& plan) {
  Dims uids = plan.read_integers(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT);
  std::ranges::sort(uids);
  return uids;
}

void test_plan_comes_back_from_bytes(const Library& library) {
  const PlanBytes plans(library);
  const std::vector<std::uint8_t> bytes = [&] {
    const Handle handle(library);
    return plans.of(library, plan(library, AddRelu(library, handle).graph));
  }();
  const Handle handle(library);  // what made the plan is gone
  hipdnnBackendDescriptor_t raw = nullptr;
  library.allow_refusal(plans.read(handle.get(), &raw, bytes.data(), bytes.size()), "the engine does not read its plan");
  const Descriptor restored(library, raw);
  check::equal(sorted_uids(restored), Dims{1, 2, 3, 4});
  std::int64_t configs = 0;
  hipdnnBackendDescriptor_t config = nullptr;
  const auto status = restored.get(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configs, &config);
  const Descriptor owned(library, config);
  check::that(status != HIPDNN_STATUS_SUCCESS || configs == 0, "a plan that was read has no configuration");
  hipdnnHandle_t raw_handle = handle.get();
  check::equal(restored.set(HIPDNN_ATTR_EXECUTION_PLAN_HANDLE, HIPDNN_TYPE_HANDLE, 1, &raw_handle), HIPDNN_STATUS_NOT_INITIALIZED, "it is finalized");
  check_add_relu(library, handle, restored);
}

void test_what_is_no_plan_is_refused(const Library& library) {
  const PlanBytes plans(library);
  const Handle handle(library);
  std::size_t size = 0;
  check::equal(plans.serialize(nullptr, 0, &size, nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const Descriptor unfinished(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  check::that(plans.serialize(unfinished.get(), 0, &size, nullptr) != HIPDNN_STATUS_SUCCESS, "a plan that is not finalized");
  const std::vector<std::uint8_t> nonsense(64, 0x5a);
  hipdnnBackendDescriptor_t raw = nullptr;
  check::that(plans.read(handle.get(), &raw, nonsense.data(), nonsense.size()) != HIPDNN_STATUS_SUCCESS, "nonsense was read as a plan");
  check::that(!library.last_error().empty(), "a message");
  check::equal(plans.read(handle.get(), &raw, nullptr, 1), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::equal(plans.read(handle.get(), nullptr, nonsense.data(), nonsense.size()), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

void test_half_a_plan_is_refused(const Library& library) {
  const PlanBytes plans(library);
  const Handle handle(library);
  const std::vector<std::uint8_t> bytes = plans.of(library, plan(library, AddRelu(library, handle).graph));
  hipdnnBackendDescriptor_t raw = nullptr;
  check::that(plans.read(handle.get(), &raw, bytes.data(), bytes.size() / 2) != HIPDNN_STATUS_SUCCESS, "half a plan was read as one");
}

}  // namespace

void add_serialization_cases(check::Suite& suite, const Library& library) {
  suite.add("serialization: graph is written as json", [&] { test_graph_is_written_as_json(library); });
  suite.add("serialization: graph comes back from json", [&] { test_graph_comes_back_from_json(library); });
  suite.add("serialization: graph comes back from bytes", [&] { test_graph_comes_back_from_bytes(library); });
  suite.add("serialization: plan comes back from bytes", [&] { test_plan_comes_back_from_bytes(library); });
  suite.add("serialization: what is no plan is refused", [&] { test_what_is_no_plan_is_refused(library); });
  suite.add("serialization: half a plan is refused", [&] { test_half_a_plan_is_refused(library); });
}

}  // namespace abi
