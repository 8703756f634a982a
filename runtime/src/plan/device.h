// One device of a port, and the plans built on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/library.h"
#include "device/log.h"
#include "device/owned.h"
#include "device/plugins.h"
#include "options_table.h"

namespace hipdnn_rt {

/// Device memory, in bytes.
struct MemoryInfo {
  std::size_t free_bytes;
  std::size_t total_bytes;
};

class PlanCache;
class PlanStore;
class Reference;

/// An engine of the hipDNN library, with the plugin that brings it.
struct EngineInfo {
  std::int64_t id = 0;
  std::string name;
  std::string plugin;
  std::string version;
};

/// What the process brings to a device beside the options.
struct DeviceEnvironment {
  /// Folder of the host library to compare with; empty for where it comes with this package.
  std::string reference_directory = {};
  std::uint64_t plan_cache_bytes = 256U << 20U;
  Log log = {};
};

/// One device of a port, with its settings and the plans built on it. Safe to share between threads.
class Device {
 public:
  /// Throws InputError for an engine, a policy or plugins that the library does not have, DeviceError for a device that cannot be used.
  /// `options.port` is the library's, `options.plan_cache` a folder or empty for none, and `options.tf32` is settled.
  Device(std::shared_ptr<const Library> library, DeviceOptions options, DeviceEnvironment environment = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Library& library() const { return *library_; }
  const std::shared_ptr<const Library>& shared_library() const { return library_; }
  const Port& port() const { return library_->port(); }
  const DeviceOptions& options() const { return options_; }
  const DeviceEnvironment& environment() const { return environment_; }
  int ordinal() const { return options_.device; }
  /// Whether products of f32 may round their operands to TF32, where the port has engines that do.
  bool allows_tf32() const { return options_.tf32.value_or(false); }
  /// Whether runs are recorded: asked for, and the port can.
  bool uses_graphs() const;
  /// Whether plans take the constants extension: pointers that never change, known at plan time.
  bool takes_constants() const { return takes_constants_; }
  /// Engine names by id, empty where the library does not tell.
  const std::map<std::int64_t, std::string>& engine_names() const { return engine_names_; }
  /// The library's engines, sorted by name; none where it does not tell.
  const std::vector<EngineInfo>& engines() const { return engines_; }
  /// Names of the library's heuristic policies; none where it does not tell.
  const std::vector<std::string>& policies() const { return policies_; }
  /// Files of the library's plugins; none where it does not tell.
  const std::vector<std::string>& plugins() const { return plugins_; }
  /// The ids of the option `policies`.
  const std::vector<std::int64_t>& policy_order() const { return policy_order_; }
  /// The engine of the option `engine`.
  std::optional<std::int64_t> preferred_engine() const { return preferred_engine_; }
  /// The device's model, for people; empty where the port does not tell.
  const std::string& name() const { return name_; }
  /// The instruction set, as targets are named; empty where the port does not tell.
  const std::string& architecture() const { return architecture_; }
  /// What to compile for to run here.
  std::string target() const { return architecture_.empty() ? std::string(port().name) : architecture_; }
  /// Whether programs compiled for `target` run here: of this instruction set, or PTX for an older one.
  bool runs(std::string_view target) const;
  PlanCache& plans() const { return *plans_; }
  /// What plans are compared with; null where they are not.
  const Reference* reference() const { return reference_.get(); }
  /// All that a library's judgement of a graph depends on, a line each.
  std::string library_setting() const;
  /// Null where nothing is kept.
  const PlanStore* plan_store() const { return plan_store_.get(); }
  /// Held while a plan is timed: what runs beside it would be measured with it.
  std::mutex& timing() const { return timing_; }
  void log(hipdnnSeverity_t severity, const std::string& line) const {
    if (environment_.log) environment_.log(severity, line);
  }

  /// Make this the calling thread's device. Everything below does so itself.
  void activate() const;
  DeviceBuffer allocate(std::size_t bytes) const;
  /// Whether `allocate_pinned` works on this port.
  bool has_pinned_memory() const { return library_->hip().host_malloc != nullptr && library_->hip().host_free != nullptr; }
  /// Throws DeviceError where the port has no pinned memory or none is left.
  PinnedBuffer allocate_pinned(std::size_t bytes) const;
  /// What is left of the device's memory; nothing where the port does not tell.
  std::optional<MemoryInfo> memory_info() const;
  Stream create_stream() const;
  /// Throws InputError for a stream of another device, on which a run would fail and leave the process unable to use this one. Libraries that do not
  /// tell are trusted.
  void check_stream(hipStream_t stream) const;
  Event create_event(bool is_timed = true) const;
  /// A handle with this device's thread setting; `stream` may be null for a handle that only builds plans.
  Handle create_handle(hipStream_t stream) const;

 private:
  /// All that plans depend on beside their graph.
  std::string plan_setting() const;
  std::vector<std::int64_t> order_policies() const;
  /// What the handle has loaded; a line in the log where what was asked for is not among it.
  void read_plugins(hipdnnHandle_t handle);
  /// Null, with a line in the log, where the host library cannot be opened.
  std::unique_ptr<const Reference> open_reference() const;

  std::shared_ptr<const Library> library_;
  DeviceOptions options_;
  DeviceEnvironment environment_;
  PluginPaths plugin_paths_;
  /// With one device there is nothing to choose: it is every thread's from the start.
  bool has_choice_ = true;
  bool takes_constants_ = false;
  std::string architecture_;
  std::string name_;
  std::vector<EngineInfo> engines_;
  std::map<std::int64_t, std::string> engine_names_;
  std::vector<std::string> policies_;
  std::vector<std::string> plugins_;
  std::vector<std::int64_t> policy_order_;
  std::optional<std::int64_t> preferred_engine_;
  std::unique_ptr<PlanCache> plans_;
  std::unique_ptr<PlanStore> plan_store_;
  std::unique_ptr<const Reference> reference_;
  mutable std::mutex timing_;
};

}  // namespace hipdnn_rt
