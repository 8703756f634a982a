#include "plan/proposals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

/// Configurations as the heuristic returns them; unfinalized.
std::vector<Descriptor> rank(const Device& device, const Descriptor& graph, const std::string& executable) {
  const std::shared_ptr<const Library>& library = device.shared_library();
  const std::string what = executable + ", engine heuristic";
  Descriptor heuristic(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set_descriptor(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph, what);
  const hipdnnBackendHeurMode_t mode = HIPDNN_HEUR_MODE_FALLBACK;
  heuristic.set(HIPDNN_ATTR_ENGINEHEUR_MODE, HIPDNN_TYPE_HEUR_MODE, 1, &mode, what);
  if (const auto& policies = device.policy_order(); !policies.empty()) {
    heuristic.set(HIPDNN_ATTR_ENGINEHEUR_POLICY_ORDER_EXT, HIPDNN_TYPE_INT64, static_cast<std::int64_t>(policies.size()), policies.data(), what);
  }
  heuristic.finalize(what);

  std::int64_t count = heuristic.get_count(HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, what);
  std::vector<Descriptor> configurations;
  std::vector<hipdnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configurations.back().get());
  }
  if (count == 0) return configurations;
  const HipdnnApi& api = library->hipdnn();
  check(api, api.get_attribute(heuristic.get(), HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "hipdnnBackendGetAttribute(" + what + ", results)");
  configurations.resize(std::min(configurations.size(), static_cast<std::size_t>(count)));
  return configurations;
}

std::string name_of(const Device& device, std::int64_t id) {
  const auto found = device.engine_names().find(id);
  return found == device.engine_names().end() ? std::to_string(id) : found->second;
}

/// An attribute of a knob choice, where it has this type.
template <typename Value>
bool read_choice(const Descriptor& choice, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::int64_t most, Value* value) {
  const HipdnnApi& api = choice.library().hipdnn();
  std::int64_t count = 0;
  if (api.get_attribute(choice.get(), name, type, most, &count, value) == HIPDNN_STATUS_SUCCESS) return count > 0;
  take_last_error(api);  // not to appear in a later message
  return false;
}

std::string read_knobs(const Descriptor& configuration) {
  const HipdnnApi& api = configuration.library().hipdnn();
  constexpr auto attribute = HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES;
  std::int64_t count = 0;
  if (api.get_attribute(configuration.get(), attribute, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr) != HIPDNN_STATUS_SUCCESS) {
    take_last_error(api);
    return {};
  }
  if (count <= 0) return {};
  std::vector<hipdnnBackendDescriptor_t> raw(static_cast<std::size_t>(count), nullptr);
  if (api.get_attribute(configuration.get(), attribute, HIPDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()) != HIPDNN_STATUS_SUCCESS) {
    take_last_error(api);
    return {};
  }
  std::string knobs;
  for (const hipdnnBackendDescriptor_t choice : raw) {
    if (choice == nullptr) continue;
    const std::string knob = describe_knob(Descriptor(configuration.shared_library(), choice));
    if (!knob.empty()) knobs += (knobs.empty() ? "" : " ") + knob;
  }
  return knobs;
}

/// One knob's choice; its value is an integer or a number where it reads as one, else a text.
Descriptor choose_knob(const std::shared_ptr<const Library>& library, const std::string& name, const std::string& value, const std::string& what) {
  const auto parse = [&](auto& number) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && end == value.data() + value.size();
  };
  Descriptor choice(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  choice.set(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, HIPDNN_TYPE_CHAR, static_cast<std::int64_t>(name.size()), name.data(), what);
  constexpr auto value_name = HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE;
  std::int64_t integer = 0;
  double number = 0;
  if (parse(integer)) {
    choice.set(value_name, HIPDNN_TYPE_INT64, 1, &integer, what);
  } else if (parse(number)) {
    choice.set(value_name, HIPDNN_TYPE_DOUBLE, 1, &number, what);
  } else {
    choice.set(value_name, HIPDNN_TYPE_CHAR, static_cast<std::int64_t>(value.size()), value.data(), what);
  }
  choice.finalize(what);
  return choice;
}

/// The preferred engine with the device's knobs; nothing where there are none, or the engine takes the graph or the knobs not. A configuration
/// of the heuristic's does not say whose it is before it is finalized, when it takes no knobs any more.
std::optional<Proposal> configure(const Device& device, const Descriptor& graph, const std::string& executable) {
  const auto& knobs = device.options().knobs;
  if (knobs.empty() || !device.preferred_engine()) return std::nullopt;
  const std::shared_ptr<const Library>& library = device.shared_library();
  const std::string what = executable + ", knobs of " + device.options().engine;
  const std::int64_t id = *device.preferred_engine();
  Descriptor engine(library, HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set_descriptor(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, graph, what);
  engine.set(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, HIPDNN_TYPE_INT64, 1, &id, what);
  if (engine.try_finalize() != HIPDNN_STATUS_SUCCESS) {
    take_last_error(library->hipdnn());  // another engine's graph
    return std::nullopt;
  }
  try {
    std::vector<Descriptor> choices;
    std::vector<hipdnnBackendDescriptor_t> raw;
    std::string asked;
    for (const auto& [name, value] : knobs) {
      raw.push_back(choices.emplace_back(choose_knob(library, name, value, what)).get());
      asked += (asked.empty() ? "" : " ") + name + "=" + value;
    }
    Descriptor configuration(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    configuration.set_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, engine, what);
    configuration.set(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES, HIPDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data(), what);
    configuration.finalize(what);
    std::string told = read_knobs(configuration);
    return Proposal{std::move(configuration), id, name_of(device, id), told.empty() ? asked : std::move(told), true};
  } catch (const LibraryError& error) {
    if (!error.is_refusal()) throw;
    device.log(HIPDNN_SEV_WARN, std::string(error.what()) + "; the engine's own are used");
    return std::nullopt;
  }
}

}  // namespace

std::string Proposal::describe() const { return knobs.empty() ? engine_name : engine_name + " (" + knobs + ")"; }

std::vector<Proposal> propose(const Device& device, const Descriptor& graph, const std::string& executable, std::string& reasons) {
  std::vector<Proposal> proposals;
  if (auto configured = configure(device, graph, executable)) proposals.push_back(std::move(*configured));
  for (Descriptor& configuration : rank(device, graph, executable)) {
    try {
      configuration.finalize(executable + ", engine configuration");
      const std::int64_t id =
          configuration.get_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, executable).get_int64(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, executable);
      std::string knobs = read_knobs(configuration);
      proposals.push_back({std::move(configuration), id, name_of(device, id), std::move(knobs), false});
    } catch (const DeviceError& error) {
      reasons += (reasons.empty() ? "an engine: " : "; an engine: ") + std::string(error.what());
    }
  }
  return proposals;
}

std::string describe_knob(const Descriptor& choice) {
  constexpr auto value_name = HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE;
  std::array<char, 256> name{}, words{};
  constexpr std::int64_t most = name.size() - 1;
  if (!read_choice(choice, HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, HIPDNN_TYPE_CHAR, most, name.data())) return {};
  const std::string head = std::string(name.data()) + "=";
  std::int64_t integer = 0;
  double number = 0;
  if (read_choice(choice, value_name, HIPDNN_TYPE_INT64, 1, &integer)) return head + std::to_string(integer);
  if (read_choice(choice, value_name, HIPDNN_TYPE_DOUBLE, 1, &number)) return head + nlohmann::json(number).dump();
  return read_choice(choice, value_name, HIPDNN_TYPE_CHAR, most, words.data()) ? head + words.data() : std::string();
}

std::int64_t engine_id_of(const std::string& name) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3U;
  return static_cast<std::int64_t>(hash);
}

}  // namespace hipdnn_rt
