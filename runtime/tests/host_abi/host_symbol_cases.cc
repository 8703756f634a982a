// This library's other symbols: JSON, threads, descriptions, logging, version, profiling, and why no engine takes a graph.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cases.h"
#include "frontend/port_extensions.h"
#include "hipdnn_host.h"
#include "models.h"
#include "operation_samples.h"

namespace abi {
namespace {

void test_refusals_reach_the_user(const Library& library) {
  const Handle handle(library);
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  Descriptor custom(library, HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT);
  custom.refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT, {&in})
      .refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT, {&out})
      .characters(HIPDNN_ATTR_OPERATION_CUSTOM_OP_ID_EXT, "x")
      .data_type(HIPDNN_ATTR_CUSTOM_OP_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT)
      .finalize();
  const Descriptor made = finalized_graph(library, handle, {&custom});
  const Descriptor ranked = heuristic(library, made);
  for (const char* engine : {"HOST_ONEDNN_ENGINE", "HOST_ROWWISE_ENGINE", "HOST_REDUCTION_ENGINE"}) {
    check::contains(library.last_error(), engine);
  }
  std::int64_t id = 0;
  const auto id_by_name = library.backend.get<decltype(::hipdnnGetEngineIdByName_ext)>("hipdnnGetEngineIdByName_ext");
  check::equal(id_by_name(handle.get(), "HOST_ONEDNN_ENGINE", &id), HIPDNN_STATUS_SUCCESS);
  Descriptor engine(library, HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.refer(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, {&made}).integers(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, {id});
  check::equal(engine.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
  check::equal(id_by_name(handle.get(), "NO_ENGINE", &id), HIPDNN_STATUS_BAD_PARAM);
}

/// As AMD's library, which has no plugin of version 1.3 of the interface.
void test_older_plugins_are_not_asked_for_graphs_that_state_alignments(const Library& library) {
  const auto set_api = library.backend.get<decltype(::hipdnnHostSetPluginApi_ext)>("hipdnnHostSetPluginApi_ext");
  const Handle handle(library);
  const auto negated = [&](std::int64_t alignment, const auto& use) {
    Descriptor in(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
    in.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1})
        .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
        .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, {4})
        .integers(HIPDNN_ATTR_TENSOR_STRIDES, {1})
        .integers(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {alignment})
        .finalize();
    const Descriptor out = tensor(library, 2, {4});
    const Descriptor operation = std::move(pointwise(library, HIPDNN_POINTWISE_NEG, {&in}, out).finalize());
    use(finalized_graph(library, handle, {&operation}));
  };
  const auto proposals = [&](const Descriptor& graph) { return results(library, heuristic(library, graph)).size(); };
  negated(4, [&](const Descriptor& graph) { check::that(proposals(graph) > 0, "any alignment at first"); });
  check::equal(set_api(2), HIPDNN_STATUS_SUCCESS);
  negated(16, [&](const Descriptor& graph) { check::that(proposals(graph) > 0, "what is assumed without a statement"); });
  for (const std::int64_t alignment : {4, 32}) {
    negated(alignment, [&](const Descriptor& graph) {
      check::equal(proposals(graph), std::size_t{0});
      check::contains(library.last_error(), "an alignment of " + std::to_string(alignment) + " bytes, which plugins take from version 1.3");
      Descriptor engine(library, HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
      engine.refer(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, {&graph}).integers(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, {id_of("HOST_ROWWISE_ENGINE")});
      check::equal(engine.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
    });
  }
  check::equal(set_api(-1), HIPDNN_STATUS_BAD_PARAM);
  check::equal(set_api(3), HIPDNN_STATUS_SUCCESS);
}

/// A custom operation "scale by DATA's first character" on f32 vectors: out = x * (data[0] - '0').
struct CustomScale {
  CustomScale(const Library& library, const Handle& handle, std::int64_t length = 4)
      : in(tensor(library, 1, {length})), out(tensor(library, 2, {length})), node(library, HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT) {
    node.refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT, {&in})
        .refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT, {&out})
        .characters(HIPDNN_ATTR_OPERATION_CUSTOM_OP_ID_EXT, "test.scale")
        .characters(HIPDNN_ATTR_OPERATION_CUSTOM_OP_DATA_EXT, "3")
        .data_type(HIPDNN_ATTR_CUSTOM_OP_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT)
        .finalize();
    graph.emplace(finalized_graph(library, handle, {&node}));
  }

  static const char* refuses(const hipdnnHostCustomCall_ext_t* call, void*) {
    return call->inputs[0].dims[0] == 5 ? "five is too many" : nullptr;
  }
  static int execute(const hipdnnHostCustomCall_ext_t* call, int, void* user) {
    if (call->input_count != 1 || call->output_count != 1 || call->attribute_bytes != 1 || call->inputs[0].strides[0] != 1) return 7;
    const auto* x = static_cast<const float*>(call->inputs[0].data);
    auto* y = static_cast<float*>(call->outputs[0].data);
    for (std::int64_t i = 0; i < call->outputs[0].dims[0]; ++i) y[i] = x[i] * static_cast<float>(call->attributes[0] - '0');
    return *static_cast<int*>(user);
  }

  Descriptor in, out, node;
  std::optional<Descriptor> graph;
};

void test_custom_operation_runs_once_registered(const Library& library) {
  const Handle handle(library);
  const CustomScale model(library, handle);
  check::equal(results(library, heuristic(library, *model.graph)).size(), std::size_t{0});
  check::contains(library.last_error(), "no custom operation 'test.scale' is registered");

  const auto register_op = library.backend.get<decltype(::hipdnnHostRegisterCustomOp_ext)>("hipdnnHostRegisterCustomOp_ext");
  int status = 0;
  hipdnnHostCustomOp_ext_t operation{&CustomScale::refuses, &CustomScale::execute, &status};
  check::equal(register_op("test.scale", &operation), HIPDNN_STATUS_SUCCESS);
  const Descriptor built = plan(library, *model.graph);
  const Buffer x(library, std::vector<float>{1, 2, 3, 4});
  const Buffer y(library, std::vector<float>(4, 0.0F));
  const Descriptor bound = pack(library, {1, 2}, {x.get(), y.get()});
  check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(y.read<float>(), std::vector<float>{3, 6, 9, 12});

  status = 42;
  check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_EXECUTION_FAILED);
  check::contains(library.last_error(), "'test.scale' returned 42");
  const CustomScale refused(library, handle, 5);
  check::equal(results(library, heuristic(library, *refused.graph)).size(), std::size_t{0});
  check::contains(library.last_error(), "five is too many");

  check::equal(register_op("test.scale", nullptr), HIPDNN_STATUS_SUCCESS);
  check::equal(results(library, heuristic(library, *model.graph)).size(), std::size_t{0});
  status = 0;
  check::equal(library.execute(handle.get(), built.get(), bound.get()), HIPDNN_STATUS_SUCCESS, "a plan keeps its operation");
  operation.execute = nullptr;
  check::equal(register_op("test.scale", &operation), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
  check::equal(register_op(nullptr, &operation), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

void test_engine_tells_its_name_and_has_no_knobs(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor config = first_config(library, heuristic(library, model.graph));
  const Descriptor engine = config.read_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE);
  check::contains(engine.read_characters(HIPDNN_ATTR_ENGINE_NAME_EXT), "HOST_");
  check::equal(engine.count(HIPDNN_ATTR_ENGINE_KNOB_INFO, HIPDNN_TYPE_BACKEND_DESCRIPTOR), 0);
  Descriptor knob(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  knob.characters(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, "tile").integers(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {1}).finalize();
  Descriptor turned(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  turned.refer(HIPDNN_ATTR_ENGINECFG_ENGINE, {&engine}).refer(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES, {&knob});
  check::equal(turned.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "'tile'");
}

void test_plan_describes_itself(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor built = plan(library, model.graph);
  const auto describe = library.backend.get<decltype(::hipdnnPortDescribePlan_ext)>("hipdnnPortDescribePlan_ext");
  std::array<char, 512> text{};
  check::equal(describe(built.get(), text.data(), text.size()), HIPDNN_STATUS_SUCCESS);
  check::that(text[0] != '\0', "a description");
  std::array<char, 4> small{'#', '#', '#', '#'};
  check::equal(describe(built.get(), small.data(), 2), HIPDNN_STATUS_SUCCESS);
  check::equal(small[0], text[0]);
  check::equal(small[1], '\0');
  check::equal(small[2], '#');
  check::equal(describe(model.graph.get(), text.data(), text.size()), HIPDNN_STATUS_BAD_PARAM);
}

void test_threads_must_be_positive(const Library& library) {
  const Handle handle(library);
  const auto set_threads = library.backend.get<decltype(::hipdnnHostSetThreads_ext)>("hipdnnHostSetThreads_ext");
  check::equal(set_threads(handle.get(), 1), HIPDNN_STATUS_SUCCESS);
  check::equal(set_threads(handle.get(), 0), HIPDNN_STATUS_BAD_PARAM);
  check::equal(set_threads(nullptr, 1), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

/// An unfinalized graph of one operation, serialized and parsed.
nlohmann::json json_of(const Library& library, const Descriptor& operation) {
  const auto serialize = library.backend.get<decltype(::hipdnnBackendGetSerializedJsonGraph_ext)>("hipdnnBackendGetSerializedJsonGraph_ext");
  const Descriptor made = graph(library, {&operation});
  std::string text(1 << 16, '\0');
  std::size_t size = 0;
  check::equal(serialize(made.get(), text.size(), &size, text.data()), HIPDNN_STATUS_SUCCESS, library.last_error());
  return nlohmann::json::parse(text.c_str());
}

void test_absent_operands_are_null_in_json(const Library& library) {
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  const nlohmann::json inputs = json_of(library, pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, out).finalize())["nodes"][0]["inputs"];
  for (const char* key : {"in_1_tensor_uid", "in_2_tensor_uid", "axis_tensor_uid"}) check::that(inputs.contains(key) && inputs[key].is_null(), key);
}

void test_convolution_is_written_as_json(const Library& library) {
  const Descriptor x = tensor(library, 1, {1, 4, 8, 8});
  const Descriptor w = tensor(library, 2, {4, 4, 3, 3});
  const Descriptor y = tensor(library, 3, {1, 4, 6, 6});
  Descriptor conv(library, HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  conv.refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, {&x})
      .refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, {&w})
      .refer(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, {&y})
      .integers(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {0, 0})
      .integers(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, {0, 0})
      .integers(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1})
      .integers(HIPDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
      .enumerator(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_TYPE_CONVOLUTION_MODE, HIPDNN_CROSS_CORRELATION)
      .data_type(HIPDNN_ATTR_CONVOLUTION_COMP_TYPE, HIPDNN_DATA_FLOAT)
      .finalize();
  const nlohmann::json node = json_of(library, conv)["nodes"][0];
  check::equal(node["inputs"], nlohmann::json({{"x_tensor_uid", 1}, {"w_tensor_uid", 2}}));
  check::equal(node["outputs"], nlohmann::json({{"y_tensor_uid", 3}}));
  const nlohmann::json pair{0, 0};
  const nlohmann::json ones{1, 1};
  check::equal(node["parameters"], nlohmann::json({{"pre_padding", pair},
                                                   {"post_padding", pair},
                                                   {"stride", ones},
                                                   {"dilation", ones},
                                                   {"conv_mode", "CROSS_CORRELATION"}}));
}

/// As AMD's backend of mid 2026 writes these samples, and reads them.
void test_nodes_of_other_forms_are_written_as_amd_writes_them(const Library& library) {
  const std::map<std::string, nlohmann::json> expected{
      {"reduction", {{"in_tensor_uid", 1}, {"out_tensor_uid", 2}, {"mode", "max"}, {"is_deterministic", true}}},
      {"resample forward", {{"x_tensor_uid", 1}, {"resample_mode", "maxpool"}, {"padding_mode", "neg_inf_pad"}, {"generate_index", false}}},
      {"layer norm", {{"forward_phase", 2}, {"normalized_dim_count", 1}}},
      {"rms norm", {{"forward_phase", "TRAINING"}}},
      {"custom operation",
       {{"custom_op_id", "gather"}, {"data", nlohmann::json::array()}, {"input_tensor_uids", {1, 2}}, {"output_tensor_uids", {3}}}},
      {"block scale dequantize", {{"block_size", nlohmann::json::array({32})}, {"is_negative_scale", false}}},
  };
  std::size_t found = 0;
  for (const OperationSample& sample : operation_samples()) {
    if (!expected.contains(sample.name)) continue;
    ++found;
    Descriptor operation = make_operation(library, sample);
    const nlohmann::json node = json_of(library, operation.finalize())["nodes"][0];
    for (const auto& [key, value] : expected.at(sample.name).items()) check::equal(node.value(key, nlohmann::json()), value, sample.name + ": " + key);
  }
  check::equal(found, expected.size());
}

void test_every_operation_has_a_json_form(const Library& library) {
  for (const OperationSample& sample : operation_samples()) {
    Descriptor operation = make_operation(library, sample);
    const nlohmann::json node = json_of(library, operation.finalize())["nodes"][0];
    check::equal(node["name"].get<std::string>(), sample.name);
    const auto operands_in = [](const nlohmann::json& place) {
      std::size_t count = 0;
      for (const auto& [key, value] : place.items()) count += key.find("_uid") != std::string::npos && !value.empty() ? 1 : 0;
      return count;
    };
    std::size_t operands = operands_in(node);
    for (const char* side : {"inputs", "outputs"}) operands += node.contains(side) ? operands_in(node[side]) : 0;
    std::size_t expected = 0;
    for (const SampleAttribute& attribute : sample.attributes) {
      expected += std::holds_alternative<Tensors>(attribute.value) || attribute.name == HIPDNN_ATTR_POINTWISE_AXIS ? 1 : 0;
    }
    check::equal(operands, expected, sample.name);
  }
}

/// AMD's reader takes numbers alone.
void test_infinity_in_json_is_a_number_that_becomes_one(const Library& library) {
  const Descriptor out = tensor(library, 2, {4});
  const auto filled = [&](float value) {
    const Descriptor in = baked(library, 1, value);
    const Descriptor fill = std::move(pointwise(library, HIPDNN_POINTWISE_IDENTITY, {&in}, out).finalize());
    return json_of(library, fill)["tensors"][0]["value"].get<float>();
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {infinity, -infinity, std::numeric_limits<float>::max(), -0.5F}) check::equal(filled(value), value);
  Descriptor in = tensor(library, 1, {4});
  Descriptor relu = pointwise(library, HIPDNN_POINTWISE_RELU_FWD, {&in}, out);
  relu.real(HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, infinity).finalize();
  check::equal(json_of(library, relu)["nodes"][0]["inputs"]["relu_upper_clip"].get<float>(), infinity);
}

void test_nan_has_no_json_form(const Library& library) {
  const auto serialize = library.backend.get<decltype(::hipdnnBackendGetSerializedJsonGraph_ext)>("hipdnnBackendGetSerializedJsonGraph_ext");
  const Descriptor in = baked(library, 1, std::numeric_limits<float>::quiet_NaN());
  const Descriptor out = tensor(library, 2, {4});
  const Descriptor fill = std::move(pointwise(library, HIPDNN_POINTWISE_IDENTITY, {&in}, out).finalize());
  const Descriptor made = graph(library, {&fill});
  std::size_t size = 0;
  check::equal(serialize(made.get(), 0, &size, nullptr), HIPDNN_STATUS_NOT_SUPPORTED);
  check::contains(library.last_error(), "NaN");
}

void test_damaged_plan_is_said_to_be(const Library& library) {
  const Handle handle(library);
  const auto deserialize = library.backend.get<decltype(::hipdnnBackendCreateAndDeserializeExecutionPlan_ext)>(
      "hipdnnBackendCreateAndDeserializeExecutionPlan_ext");
  hipdnnBackendDescriptor_t made = nullptr;
  const std::uint8_t nonsense[] = {1, 2, 3};
  check::equal(deserialize(handle.get(), &made, nonsense, sizeof nonsense), HIPDNN_STATUS_NOT_SUPPORTED);
  check::contains(library.last_error(), "damaged");
  check::equal(made, nullptr);
}

void test_log_level_must_exist(const Library& library) {
  const auto set = library.backend.get<decltype(::hipdnnBackendSetGlobalLogLevel_ext)>("hipdnnBackendSetGlobalLogLevel_ext");
  check::equal(set(static_cast<hipdnnSeverity_t>(5)), HIPDNN_STATUS_BAD_PARAM);
}

void test_log_callback_gets_messages_from_its_level_on(const Library& library) {
  const auto set_callback = library.backend.get<decltype(::hipdnnSetUserLogCallback_ext)>("hipdnnSetUserLogCallback_ext");
  std::vector<std::string> messages;
  const auto collect = [](void* user, hipdnnSeverity_t, const char* message) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(message);
  };
  check::equal(set_callback(collect, HIPDNN_SEV_ERROR, HIPDNN_LOG_CALLBACK_SYNC, nullptr), HIPDNN_STATUS_BAD_PARAM);
  check::equal(set_callback(collect, HIPDNN_SEV_ERROR, HIPDNN_LOG_CALLBACK_SYNC, &messages), HIPDNN_STATUS_SUCCESS);
  library.finalize(nullptr);
  check::equal(messages.size(), 1U);
  check::contains(messages.at(0), "hipdnnBackendFinalize");
  check::equal(set_callback(collect, HIPDNN_SEV_OFF, HIPDNN_LOG_CALLBACK_SYNC, &messages), HIPDNN_STATUS_SUCCESS);
  library.finalize(nullptr);
  check::equal(messages.size(), 1U, "after removal");
}

void test_profiling_measures_between_start_and_stop(const Library& library) {
  const Handle handle(library);
  Descriptor timer(library, HIPDNN_BACKEND_PROFILING_CONTROL_EXT);
  timer.handle(HIPDNN_ATTR_PROFILING_HANDLE_EXT, handle);
  const bool yes = true;
  check::equal(timer.set(HIPDNN_ATTR_PROFILING_STOP_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes), HIPDNN_STATUS_BAD_PARAM, "stop before start");
  timer.flag(HIPDNN_ATTR_PROFILING_START_EXT, true).flag(HIPDNN_ATTR_PROFILING_STOP_EXT, true).finalize();
  float elapsed = -1;
  std::int64_t actual = 0;
  check::equal(timer.get(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT, 1, &actual, &elapsed), HIPDNN_STATUS_SUCCESS);
  check::that(elapsed >= 0, "elapsed milliseconds");
}

void test_plugin_paths_are_not_supported(const Library& library) {
  const auto set_paths = library.backend.get<decltype(::hipdnnSetEnginePluginPaths_ext)>("hipdnnSetEnginePluginPaths_ext");
  check::equal(set_paths(0, nullptr, HIPDNN_PLUGIN_LOADING_ADDITIVE), HIPDNN_STATUS_NOT_SUPPORTED);
}

void test_no_plugin_is_loaded(const Library& library) {
  const Handle handle(library);
  const auto loaded = library.backend.get<decltype(::hipdnnGetLoadedEnginePluginPaths_ext)>("hipdnnGetLoadedEnginePluginPaths_ext");
  std::size_t count = 5, length = 5;
  check::equal(loaded(handle.get(), &count, nullptr, &length), HIPDNN_STATUS_SUCCESS);
  check::equal(count + length, 0U);
  check::equal(loaded(nullptr, &count, nullptr, &length), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

}  // namespace

void add_host_symbol_cases(check::Suite& suite, const Library& library) {
  suite.add("host symbol: refusals reach the user", [&] { test_refusals_reach_the_user(library); });
  suite.add("host symbol: older plugins are not asked for graphs that state alignments",
            [&] { test_older_plugins_are_not_asked_for_graphs_that_state_alignments(library); });
  suite.add("host symbol: a custom operation runs once registered", [&] { test_custom_operation_runs_once_registered(library); });
  suite.add("host symbol: engine tells its name and has no knobs", [&] { test_engine_tells_its_name_and_has_no_knobs(library); });
  suite.add("host symbol: plan describes itself", [&] { test_plan_describes_itself(library); });
  suite.add("host symbol: threads must be positive", [&] { test_threads_must_be_positive(library); });
  suite.add("host symbol: absent operands are null in json", [&] { test_absent_operands_are_null_in_json(library); });
  suite.add("host symbol: convolution is written as json", [&] { test_convolution_is_written_as_json(library); });
  suite.add("host symbol: nodes of other forms are written as AMD writes them",
            [&] { test_nodes_of_other_forms_are_written_as_amd_writes_them(library); });
  suite.add("host symbol: every operation has a json form", [&] { test_every_operation_has_a_json_form(library); });
  suite.add("host symbol: infinity in json is a number that becomes one", [&] { test_infinity_in_json_is_a_number_that_becomes_one(library); });
  suite.add("host symbol: nan has no json form", [&] { test_nan_has_no_json_form(library); });
  suite.add("host symbol: a damaged plan is said to be", [&] { test_damaged_plan_is_said_to_be(library); });
  suite.add("host symbol: log level must exist", [&] { test_log_level_must_exist(library); });
  suite.add("host symbol: log callback gets messages from its level on", [&] { test_log_callback_gets_messages_from_its_level_on(library); });
  suite.add("host symbol: profiling measures between start and stop", [&] { test_profiling_measures_between_start_and_stop(library); });
  suite.add("host symbol: no plugin is loaded", [&] { test_no_plugin_is_loaded(library); });
  suite.add("host symbol: plugin paths are not supported", [&] { test_plugin_paths_are_not_supported(library); });
}

}  // namespace abi
