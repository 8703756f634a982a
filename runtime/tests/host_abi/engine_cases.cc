// The rules of heuristics, engines, configurations and knobs.
#include <cstdint>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

constexpr auto descriptors = HIPDNN_TYPE_BACKEND_DESCRIPTOR;

void test_heuristic_fills_configurations_that_are_not_finalized(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor ranked = heuristic(library, model.graph);
  std::vector<Descriptor> configs = results(library, ranked);
  check::that(!configs.empty(), "an engine takes add and relu: " + library.last_error());
  std::int64_t actual = 0;
  check::equal(configs[0].get(HIPDNN_ATTR_ENGINECFG_ENGINE, descriptors, 0, &actual, nullptr), HIPDNN_STATUS_NOT_INITIALIZED);
  configs[0].finalize();
  const Descriptor engine = configs[0].read_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE);
  engine.read_integer(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX);
  check::that(configs[0].read_integer(HIPDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) >= 0, "workspace estimate");
}

void test_heuristic_is_not_readable_before_finalize(const Library& library) {
  const Descriptor unfinished(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  std::int64_t actual = 0;
  check::equal(unfinished.get(HIPDNN_ATTR_ENGINEHEUR_RESULTS, descriptors, 0, &actual, nullptr), HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

void test_heuristic_needs_a_finalized_graph(const Library& library) {
  const Descriptor unfinished(library, HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const Descriptor made(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  hipdnnBackendDescriptor_t raw = unfinished.get();
  check::equal(made.set(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptors, 1, &raw), HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  check::that(made.try_finalize() != HIPDNN_STATUS_SUCCESS, "without a graph");
}

void test_no_engine_is_success(const Library& library) {
  const Handle handle(library);
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  Descriptor custom(library, HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT);
  custom.refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT, {&in})
      .refer(HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT, {&out})
      .characters(HIPDNN_ATTR_OPERATION_CUSTOM_OP_ID_EXT, "nobody.implements.this")
      .data_type(HIPDNN_ATTR_CUSTOM_OP_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT)
      .finalize();
  const Descriptor made = finalized_graph(library, handle, {&custom});
  check::equal(heuristic(library, made).count(HIPDNN_ATTR_ENGINEHEUR_RESULTS, descriptors), 0);
}

void test_engine_is_chosen_by_global_index(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor config = first_config(library, heuristic(library, model.graph));
  const std::int64_t id = config.read_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE).read_integer(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX);
  Descriptor engine(library, HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.refer(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, {&model.graph}).integers(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, {id}).finalize();
  Descriptor chosen(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  chosen.refer(HIPDNN_ATTR_ENGINECFG_ENGINE, {&engine}).finalize();
  Descriptor plan(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&chosen}).finalize();
  std::int64_t chosen_id = 0;
  std::int64_t actual = 0;
  const auto status = plan.get(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_GLOBAL_INDEX_EXT, HIPDNN_TYPE_INT64, 1, &actual, &chosen_id);
  if (status == HIPDNN_STATUS_NOT_SUPPORTED) return;  // not every version has it
  check::equal(status, HIPDNN_STATUS_SUCCESS, library.last_error());
  check::equal(chosen_id, id);
}

void test_unknown_engine_index_is_refused(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  Descriptor engine(library, HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.refer(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, {&model.graph}).integers(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, {12345});
  check::that(engine.try_finalize() != HIPDNN_STATUS_SUCCESS, "no engine has id 12345");
}

void test_knob_choice_keeps_its_value(const Library& library) {
  Descriptor knob(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  knob.characters(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, "tile").integers(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {16}).finalize();
  check::equal(knob.read_integer(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE), 16);
  check::equal(knob.read_characters(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE), std::string("tile\0", 5));
}

void test_what_holds_one_element_does_not_tell_how_many(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor config = first_config(library, heuristic(library, model.graph));
  const Descriptor engine = config.read_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE);
  Descriptor built(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  built.refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config}).finalize();
  const auto refuses = [](const Descriptor& of, int name, hipdnnBackendAttributeType_t type) {
    std::int64_t actual = 0;
    void* element = nullptr;
    const std::string what = "attribute " + std::to_string(name);
    check::equal(of.get(name, type, 0, &actual, &element), HIPDNN_STATUS_BAD_PARAM, what + ", its number");
    check::equal(of.get(name, type, 1, &actual, nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, what + ", without an array");
    check::that(element == nullptr, what + " is written where nothing is asked for");
  };
  refuses(engine, HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, HIPDNN_TYPE_INT64);
  refuses(config, HIPDNN_ATTR_ENGINECFG_ENGINE, descriptors);
  refuses(config, HIPDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, HIPDNN_TYPE_INT64);
  refuses(built, HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptors);
  refuses(built, HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_TYPE_INT64);
}

void test_plan_needs_a_finalized_configuration(const Library& library) {
  const Descriptor config(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const Descriptor plan(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  hipdnnBackendDescriptor_t raw = config.get();
  check::equal(plan.set(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptors, 1, &raw), HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

}  // namespace

void add_engine_cases(check::Suite& suite, const Library& library) {
  suite.add("engine: heuristic fills configurations that are not finalized",
            [&] { test_heuristic_fills_configurations_that_are_not_finalized(library); });
  suite.add("engine: heuristic is not readable before finalize", [&] { test_heuristic_is_not_readable_before_finalize(library); });
  suite.add("engine: heuristic needs a finalized graph", [&] { test_heuristic_needs_a_finalized_graph(library); });
  suite.add("engine: no engine is success", [&] { test_no_engine_is_success(library); });
  suite.add("engine: chosen by global index", [&] { test_engine_is_chosen_by_global_index(library); });
  suite.add("engine: unknown index is refused", [&] { test_unknown_engine_index_is_refused(library); });
  suite.add("engine: knob choice keeps its value", [&] { test_knob_choice_keeps_its_value(library); });
  suite.add("engine: what holds one element does not tell how many", [&] { test_what_holds_one_element_does_not_tell_how_many(library); });
  suite.add("engine: plan needs a finalized configuration", [&] { test_plan_needs_a_finalized_configuration(library); });
}

}  // namespace abi
