// What a library tells of its engines, their knobs and its heuristic policies.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

struct Named {
  std::int64_t id;
  std::string name;
};

/// The entries of one of the two lists: `count` is its length, `info` has an id and four texts, asked for in two calls.
template <class Count, class Info>
std::vector<Named> list(const Handle& handle, Count* count, Info* info) {
  std::size_t entries = 0;
  check::equal(count(handle.get(), &entries), HIPDNN_STATUS_SUCCESS);
  std::vector<Named> listed;
  for (std::size_t i = 0; i < entries; ++i) {
    std::int64_t id = 0, again = 0;
    std::size_t name = 0, second = 0, third = 0, fourth = 0;
    check::equal(info(handle.get(), i, &id, nullptr, &name, nullptr, &second, nullptr, &third, nullptr, &fourth), HIPDNN_STATUS_SUCCESS);
    std::vector<char> names(name + 1), seconds(second + 1), thirds(third + 1), fourths(fourth + 1);
    check::equal(info(handle.get(), i, &again, names.data(), &name, seconds.data(), &second, thirds.data(), &third, fourths.data(), &fourth),
                 HIPDNN_STATUS_SUCCESS);
    check::equal(again, id, "the second call's id");
    listed.push_back({id, names.data()});
    check::that(!listed.back().name.empty(), "entry " + std::to_string(i) + " has no name");
  }
  std::int64_t id = 0;
  std::size_t size = 0;
  check::that(info(handle.get(), entries, &id, nullptr, &size, nullptr, &size, nullptr, &size, nullptr, &size) != HIPDNN_STATUS_SUCCESS,
              "an index past the last");
  check::equal(count(nullptr, &entries), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "without a handle");
  return listed;
}

std::vector<Named> engines_of(const Library& library, const Handle& handle) {
  return list(handle, library.backend.get<decltype(::hipdnnGetEngineCount_ext)>("hipdnnGetEngineCount_ext"),
              library.backend.get<decltype(::hipdnnGetEngineInfo_ext)>("hipdnnGetEngineInfo_ext"));
}

std::vector<Named> policies_of(const Library& library, const Handle& handle) {
  return list(handle, library.backend.optional<decltype(::hipdnnGetHeuristicPolicyCount_ext)>("hipdnnGetHeuristicPolicyCount_ext"),
              library.backend.optional<decltype(::hipdnnGetHeuristicPolicyInfo_ext)>("hipdnnGetHeuristicPolicyInfo_ext"));
}

void test_engine_ids_are_hashes_of_names(const Library& library) {
  const Handle handle(library);
  const std::vector<Named> listed = engines_of(library, handle);
  check::that(!listed.empty(), "the library has engines");
  std::string previous;
  for (const auto& [id, name] : listed) {
    check::equal(id, id_of(name), name);
    check::that(previous < name, "sorted by name");
    previous = name;
  }
}

void test_engine_is_found_by_its_name(const Library& library) {
  const Handle handle(library);
  const auto id_by_name = library.backend.optional<decltype(::hipdnnGetEngineIdByName_ext)>("hipdnnGetEngineIdByName_ext");
  std::int64_t id = 0;
  for (const auto& [expected, name] : engines_of(library, handle)) {
    check::equal(id_by_name(handle.get(), name.c_str(), &id), HIPDNN_STATUS_SUCCESS, name);
    check::equal(id, expected, name);
  }
  check::that(id_by_name(handle.get(), "NO_ENGINE_HAS_THIS_NAME", &id) != HIPDNN_STATUS_SUCCESS, "a name of no engine");
}

/// The engine that the heuristic puts first for a small graph.
struct FirstEngine {
  explicit FirstEngine(const Library& library)
      : handle(library), model(library, handle), config(first_config(library, heuristic(library, model.graph))),
        engine(config.read_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE)) {}

  Handle handle;
  AddRelu model;
  Descriptor config, engine;
};

void test_engine_tells_its_name(const Library& library) {
  const FirstEngine first(library);
  std::int64_t size = 0;
  library.allow_not_supported(first.engine.get(HIPDNN_ATTR_ENGINE_NAME_EXT, HIPDNN_TYPE_CHAR, 0, &size, nullptr), "ENGINE_NAME_EXT");
  const std::string name = first.engine.read_characters(HIPDNN_ATTR_ENGINE_NAME_EXT);
  check::that(!name.empty() && name.back() == '\0', "the name's NUL is counted");
  check::equal(id_of(name.c_str()), first.engine.read_integer(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX), name);
}

void test_engine_tells_its_knobs(const Library& library) {
  const FirstEngine first(library);
  std::int64_t count = -1;
  library.allow_not_supported(first.engine.get(HIPDNN_ATTR_ENGINE_KNOB_INFO, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr), "ENGINE_KNOB_INFO");
  check::that(count >= 0, "the number of knobs is written");
  std::set<hipdnnBackendDescriptor_t> handles{nullptr};
  const auto knobs = first.engine.read_descriptors(HIPDNN_ATTR_ENGINE_KNOB_INFO);
  for (const Descriptor& knob : knobs) check::that(handles.insert(knob.get()).second, "each knob is a handle of its own");
  check::equal(static_cast<std::int64_t>(knobs.size()), count);
}

void test_policy_ids_are_hashes_of_names(const Library& library) {
  const Handle handle(library);
  for (const auto& [id, name] : policies_of(library, handle)) check::equal(id, id_of(name), name);
}

/// An unfinalized heuristic of the graph with the policies in this order; the case is refused where the library takes none.
Descriptor ordered(const Library& library, const Descriptor& graph, const Dims& policies) {
  Descriptor made(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  made.refer(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {&graph})
      .enumerator(HIPDNN_ATTR_ENGINEHEUR_MODE, HIPDNN_TYPE_HEUR_MODE, HIPDNN_HEUR_MODE_FALLBACK);
  const auto count = static_cast<std::int64_t>(policies.size());
  library.allow_not_supported(made.set(HIPDNN_ATTR_ENGINEHEUR_POLICY_ORDER_EXT, HIPDNN_TYPE_INT64, count, policies.data()), "POLICY_ORDER_EXT");
  return made;
}

void test_policies_in_another_order_rank_engines(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  Dims order;
  for (const Named& policy : policies_of(library, handle)) order.insert(order.begin(), policy.id);
  if (order.empty()) throw check::Refused("the library has no policies");
  Descriptor ranked = ordered(library, model.graph, order);
  ranked.finalize();
  check::that(!results(library, ranked).empty(), "an engine takes add and relu: " + library.last_error());
  const Descriptor config = first_config(library, ranked);
  Descriptor built(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  built.refer(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&config}).finalize();
  check_add_relu(library, handle, built);
}

void test_no_policy_is_an_error(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  check::that(ordered(library, model.graph, {12345}).try_finalize() != HIPDNN_STATUS_SUCCESS, "no policy has id 12345");
}

}  // namespace

void add_listing_cases(check::Suite& suite, const Library& library) {
  suite.add("engine: ids are hashes of names", [&] { test_engine_ids_are_hashes_of_names(library); });
  suite.add("engine: found by its name", [&] { test_engine_is_found_by_its_name(library); });
  suite.add("engine: tells its name", [&] { test_engine_tells_its_name(library); });
  suite.add("engine: tells its knobs", [&] { test_engine_tells_its_knobs(library); });
  suite.add("policy: ids are hashes of names", [&] { test_policy_ids_are_hashes_of_names(library); });
  suite.add("policy: another order ranks engines", [&] { test_policies_in_another_order_rank_engines(library); });
  suite.add("policy: an order of none is an error", [&] { test_no_policy_is_an_error(library); });
}

}  // namespace abi
