// The host library's engines: which of them take a graph, and plans of them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/library.h"
#include "device/owned.h"
#include "engine_plugin/engine_config.h"
#include "engine_plugin/graph_reader.h"
#include "engine_plugin/staged_memory.h"
#include "hipdnn_plugin.h"
#include "plan/descriptor.h"

namespace hipdnn_plugin {

struct HostEngine {
  std::int64_t id;
  std::string name;
};

/// The host library beside this one, opened when it is first needed. Throws hipdnn_rt::DeviceError where it cannot be. Any thread.
const std::shared_ptr<const hipdnn_rt::Library>& host_library();

/// All of its engines; they live as long as this library. Any thread.
const std::vector<HostEngine>& host_engines();

/// The engines that take the graph; none, with a line in the log, for one that the library refuses.
std::vector<std::int64_t> applicable_engines(const ReadGraph& graph);

/// A plan on the host library, with the handle it is made and run with. Immutable: executions may run on several threads at once.
class HostPlan {
 public:
  /// Throws Failure with INVALID_VALUE for an engine that does not exist, hipdnn_rt::LibraryError where the engine does not take the graph.
  HostPlan(std::span<const hipdnn_rt::DescriptorSpec> graph, const EngineConfig& config);

  /// With room to align a workspace that lies anywhere; 0 where none is needed.
  std::size_t workspace_bytes() const;
  /// `workspace` has that many bytes. With HIP, memory is a GPU's, and the execution takes its place on the stream; it is over when this returns.
  /// Throws Failure with BAD_PARAM for a tensor without memory, or with memory that is not aligned as the graph says.
  void execute(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers, const Hip* hip, hipStream_t stream) const;

 private:
  void execute_here(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers) const;

  hipdnn_rt::Handle handle_;
  hipdnn_rt::Descriptor plan_;
  std::size_t planned_bytes_ = 0;
  std::vector<Operand> operands_;
};

/// What an execution context keeps: the graph's bytes, the configuration, the plan, and plans for other shapes. Any thread.
class Context {
 public:
  Context(std::span<const std::byte> graph, const EngineConfig& config);
  /// From what `serialize` gave, in another process too. Throws Failure with INVALID_VALUE for other bytes.
  static std::unique_ptr<Context> restore(std::span<const std::byte> bytes);

  const HostPlan& plan() const { return plan_; }
  std::vector<std::byte> serialize() const;
  /// An execution with other shapes. What its plan needs of memory beyond the context's workspace it takes itself.
  void execute(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers, std::vector<ShapeOverride> overrides, const Hip* hip,
               hipStream_t stream);

 private:
  struct Shaped {
    std::vector<ShapeOverride> shapes;
    std::shared_ptr<const HostPlan> plan;
  };

  std::shared_ptr<const HostPlan> plan_for(std::vector<ShapeOverride> shapes);

  std::vector<std::byte> bytes_;
  EngineConfig config_;
  std::vector<hipdnn_rt::DescriptorSpec> descriptors_;
  HostPlan plan_;
  std::mutex mutex_;
  /// Those used last, the newest at the end.
  std::vector<Shaped> shaped_;
};

}  // namespace hipdnn_plugin
