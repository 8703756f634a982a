#include "profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atomic_file.h"
#include "execute/step_label.h"

namespace hipdnn_ep {
namespace {

/// "x: 1x3x224x224, y: 1x1000"
std::string describe_inputs(const hipdnn_rt::Program& program) {
  std::string text;
  for (const hipdnn_rt::Argument& input : program.inputs()) {
    text += (text.empty() ? "" : ", ") + input.name + ": ";
    for (std::size_t i = 0; i < input.dims.size(); ++i) text.append(i == 0 ? "" : "x").append(std::to_string(input.dims[i]));
  }
  return text;
}

}  // namespace

void Profile::record(const std::string& node, const hipdnn_rt::LoadedProgram& program, const std::vector<double>& elapsed_us) {
  const std::lock_guard lock(mutex_);
  NodeTimes& times = nodes_[node][describe_inputs(program.program())];
  const std::vector<hipdnn_rt::Step>& steps = program.program().steps();
  if (times.steps.empty()) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      hipdnn_rt::StepLabel label = label_of(program, i);
      times.steps.push_back({steps[i].name, std::move(label.operations), std::move(label.engine)});
    }
  }
  for (std::size_t i = 0; i < times.steps.size(); ++i) {
    times.steps[i].total_us += elapsed_us[i];
    times.steps[i].least_us = times.runs == 0 ? elapsed_us[i] : std::min(times.steps[i].least_us, elapsed_us[i]);
  }
  ++times.runs;
}

void Profile::write(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  nlohmann::json nodes = nlohmann::json::array();
  for (const auto& [name, programs] : nodes_) {
    for (const auto& [inputs, times] : programs) {
      nlohmann::json steps = nlohmann::json::array();
      for (const StepTimes& step : times.steps) {
        steps.push_back({{"name", step.name},
                         {"summary", step.summary},
                         {"engine", step.engine},
                         {"mean_us", step.total_us / static_cast<double>(times.runs)},
                         {"min_us", step.least_us}});
      }
      nodes.push_back({{"node", name}, {"inputs", inputs}, {"runs", times.runs}, {"steps", std::move(steps)}});
    }
  }
  const std::string text = nlohmann::json{{"nodes", std::move(nodes)}}.dump(1) + "\n";
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace hipdnn_ep
