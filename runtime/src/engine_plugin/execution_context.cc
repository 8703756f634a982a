// What an execution context keeps, its form as bytes, and its plans for other shapes.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "engine_plugin/failure.h"
#include "engine_plugin/host_engines.h"

namespace hipdnn_plugin {
namespace {

/// In front of a serialized context; the graph's bytes follow. The plan is built again, so that no version of the engines matters.
struct Head {
  std::array<char, 8> mark;
  std::int64_t engine_id;
  std::int64_t threads;
};

constexpr std::array<char, 8> mark{'H', 'D', 'N', 'N', 'C', 'P', 'U', '1'};
constexpr std::size_t most_shapes = 16;

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

Context::Context(std::span<const std::byte> graph, const EngineConfig& config)
    : bytes_(copy_of(graph)), config_(config), descriptors_(read_graph(bytes_).descriptors), plan_(descriptors_, config_) {}

std::unique_ptr<Context> Context::restore(std::span<const std::byte> bytes) {
  Head head{};
  if (bytes.size() >= sizeof(Head)) std::memcpy(&head, bytes.data(), sizeof(Head));
  if (head.mark != mark) refuse_value("these bytes are no plan of this plugin");
  if (head.threads < 0 || head.threads > most_threads) refuse_value("the plan is damaged");
  return std::make_unique<Context>(bytes.subspan(sizeof(Head)), EngineConfig{head.engine_id, static_cast<int>(head.threads)});
}

std::vector<std::byte> Context::serialize() const {
  const Head head{mark, config_.engine_id, config_.threads};
  std::vector<std::byte> serialized(sizeof(Head) + bytes_.size());
  std::memcpy(serialized.data(), &head, sizeof(Head));
  std::ranges::copy(bytes_, serialized.begin() + sizeof(Head));
  return serialized;
}

std::shared_ptr<const HostPlan> Context::plan_for(std::vector<ShapeOverride> shapes) {
  std::ranges::sort(shapes, {}, &ShapeOverride::uid);
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(shaped_, shapes, &Shaped::shapes);
  if (found != shaped_.end()) {
    std::rotate(found, found + 1, shaped_.end());
    return shaped_.back().plan;
  }
  auto plan = std::make_shared<const HostPlan>(with_shapes(descriptors_, shapes), config_);
  if (shaped_.size() == most_shapes) shaped_.erase(shaped_.begin());
  shaped_.push_back({std::move(shapes), plan});
  return plan;
}

void Context::execute(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers, std::vector<ShapeOverride> overrides, const Hip* hip,
                      hipStream_t stream) {
  if (overrides.empty()) return plan_.execute(workspace, buffers, hip, stream);
  const auto plan = plan_for(std::move(overrides));
  std::vector<std::byte> own;
  if (plan->workspace_bytes() > plan_.workspace_bytes()) {
    own.resize(plan->workspace_bytes());
    workspace = own.data();
  }
  plan->execute(workspace, buffers, hip, stream);
}

}  // namespace hipdnn_plugin
