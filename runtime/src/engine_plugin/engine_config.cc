#include "engine_plugin/engine_config.h"

#include <array>
#include <span>
#include <string>

#include "engine_plugin/flatbuffer.h"
#include "engine_plugin/flatbuffer_writer.h"
#include "graph_tables.h"

namespace hipdnn_plugin {
namespace {

/// Of the unions of a knob's value and constraint.
constexpr std::uint8_t integer_kind = 1;

int read_threads(const FlatTable& setting) {
  const std::string_view name = setting.text(KnobSettingSlot::knob_id);
  if (name != threads_knob) refuse_value("there is no knob '" + std::string(name) + "', only " + std::string(threads_knob));
  const auto value = setting.table(KnobSettingSlot::value + 1);
  if (setting.scalar<std::uint8_t>(KnobSettingSlot::value, 0) != integer_kind || !value) refuse_value(std::string(threads_knob) + " is an integer");
  const auto threads = value->scalar<std::int64_t>(IntValueSlot::value, 0);
  if (threads < 0 || threads > most_threads) {
    refuse_value(std::string(threads_knob) + " is " + std::to_string(threads) + ", expected 0 to " + std::to_string(most_threads));
  }
  return static_cast<int>(threads);
}

}  // namespace

EngineConfig read_engine_config(std::span<const std::byte> bytes) {
  FlatBuffer buffer(bytes, "the engine configuration");
  const FlatTable table = FlatTable::root(buffer);
  EngineConfig config;
  config.engine_id = table.scalar<std::int64_t>(EngineConfigSlot::engine_id, 0);
  for (const FlatTable& setting : table.tables(EngineConfigSlot::knobs)) config.threads = read_threads(setting);
  return config;
}

std::vector<std::byte> write_engine_details(std::int64_t engine_id) {
  using Table = FlatWriter::Table;
  FlatWriter writer;
  const auto details = writer.table(Table()
                                        .scalar(EngineDetailsSlot::engine_id, engine_id)
                                        .reference(EngineDetailsSlot::knobs)
                                        .reference(EngineDetailsSlot::behavior_notes));
  const auto knobs = writer.tables(details[1], 1);
  const auto knob = writer.table(Table()
                                     .reference(KnobSlot::knob_id)
                                     .reference(KnobSlot::description)
                                     .reference(KnobSlot::default_value + 1)
                                     .reference(KnobSlot::constraint + 1)
                                     .scalar(KnobSlot::default_value, integer_kind)
                                     .scalar(KnobSlot::constraint, integer_kind),
                                 knobs[0]);
  writer.text(knob[0], threads_knob);
  writer.text(knob[1], "threads that the plan is made for and runs on; 0 for the CPUs that the process may use");
  writer.table(Table().scalar<std::int64_t>(IntValueSlot::value, 0), knob[2]);
  writer.table(Table().scalar<std::int64_t>(IntConstraintSlot::min_value, 0).scalar(IntConstraintSlot::max_value, most_threads).scalar<std::int64_t>(IntConstraintSlot::step, 1),
               knob[3]);
  constexpr std::array<std::int32_t, 1> notes{HIPDNN_BEHAVIOR_NOTE_SUPPORTS_EXECUTION_PLAN_SERIALIZATION};
  writer.numbers(details[2], std::span<const std::int32_t>(notes));
  return writer.take();
}

}  // namespace hipdnn_plugin
