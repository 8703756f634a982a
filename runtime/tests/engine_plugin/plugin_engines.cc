// A hipDNN backend whose engines are those of a plugin, found as AMD's finds it: in HIPDNN_PLUGIN_DIR. The front is this project's, so that every
// rule of the API meets graphs, plans and bytes that went through the interface of plugins.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "graph_writer.h"
#include "hipdnn_plugin.h"

namespace plugin_backend {
namespace {

using namespace hipdnn_port;

/// The functions of the plugin, and one handle, which every thread uses.
class Plugin {
 public:
  Plugin() {
    const char* path = std::getenv("HIPDNN_PLUGIN_DIR");
    library_ = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(std::string("HIPDNN_PLUGIN_DIR names no plugin: ") + (path == nullptr ? "" : dlerror()));
    call<decltype(hipdnnEnginePluginCreate)>("hipdnnEnginePluginCreate", &handle_);
  }

  /// Call a function by its name. Throws std::runtime_error with the plugin's words.
  template <typename Function, typename... Arguments>
  void call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("the plugin lacks ") + name);
    if (function(arguments...) == HIPDNN_PLUGIN_STATUS_SUCCESS) return;
    const char* words = nullptr;
    reinterpret_cast<decltype(&hipdnnPluginGetLastErrorString)>(dlsym(library_, "hipdnnPluginGetLastErrorString"))(&words);
    throw std::runtime_error(words);
  }

  hipdnnEnginePluginHandle_t handle() const { return handle_; }

 private:
  void* library_;
  hipdnnEnginePluginHandle_t handle_ = nullptr;
};

const Plugin& plugin() {
  static const auto& loaded = *new Plugin;
  return loaded;
}

hipdnnPluginConstData_t data_of(const auto& bytes) { return {bytes.data(), bytes.size()}; }

#define PLUGIN_CALL(function, ...) plugin().call<decltype(function)>(#function, __VA_ARGS__)

/// Where it is serialized, the uids lie in front of the plugin's bytes.
class PluginPlan final : public Plan {
 public:
  PluginPlan(std::string name, std::vector<std::int64_t> uids, hipdnnEnginePluginExecutionContext_t context)
      : name_(std::move(name)), context_(context) {
    uids_ = std::move(uids);
    std::size_t bytes = 0;
    PLUGIN_CALL(hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext, plugin().handle(), context_, &bytes);
    workspace_bytes_ = static_cast<std::int64_t>(bytes);
  }
  ~PluginPlan() override { PLUGIN_CALL(hipdnnEnginePluginDestroyExecutionContext, plugin().handle(), context_); }
  PluginPlan(const PluginPlan&) = delete;
  PluginPlan& operator=(const PluginPlan&) = delete;

  std::string describe() const override { return name_ + " of a plugin"; }

  void execute(void* const* pointers, void* workspace, const Launch& /*launch*/) const override {
    std::vector<hipdnnPluginDeviceBuffer_t> buffers;
    for (std::size_t i = 0; i < uids_.size(); ++i) buffers.push_back({uids_[i], pointers[i]});
    PLUGIN_CALL(hipdnnEnginePluginExecuteOpGraph, plugin().handle(), context_, workspace, buffers.data(), static_cast<std::uint32_t>(buffers.size()));
  }

  std::string serialize() const override {
    hipdnnPluginConstData_t bytes{};
    PLUGIN_CALL(hipdnnEnginePluginSerializeExecutionContextWithEngineId, plugin().handle(), engine_id(name_), context_, &bytes);
    const auto count = static_cast<std::uint64_t>(uids_.size());
    std::string serialized(reinterpret_cast<const char*>(&count), sizeof count);
    serialized.append(reinterpret_cast<const char*>(uids_.data()), count * sizeof(std::int64_t));
    serialized.append(static_cast<const char*>(bytes.ptr), bytes.size);
    PLUGIN_CALL(hipdnnEnginePluginDestroySerializedExecutionContext, plugin().handle(), &bytes);
    return serialized;
  }

 private:
  std::string name_;
  hipdnnEnginePluginExecutionContext_t context_;
};

class PluginEngine final : public Engine {
 public:
  PluginEngine(std::int64_t id, std::string name) : id_(id), name_(std::move(name)) {}

  std::string_view name() const override { return name_; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    try {
      const auto bytes = write_graph(graph);
      const auto data = data_of(bytes);
      std::vector<std::int64_t> ids(engines().size());
      std::uint32_t count = 0;
      PLUGIN_CALL(hipdnnEnginePluginGetApplicableEngineIds, plugin().handle(), &data, ids.data(), static_cast<std::uint32_t>(ids.size()), &count);
      ids.resize(count);
      if (std::ranges::find(ids, id_) != ids.end()) return std::nullopt;
    } catch (const std::exception& error) {
      return error.what();
    }
    return "the plugin does not name it";
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& /*options*/) const override {
    const auto bytes = write_graph(graph), configuration = write_configuration(id_);
    const auto data = data_of(bytes), chosen = data_of(configuration);
    hipdnnEnginePluginExecutionContext_t context = nullptr;
    PLUGIN_CALL(hipdnnEnginePluginCreateExecutionContext, plugin().handle(), &chosen, &data, &context);
    std::vector<std::int64_t> uids;
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.has_pointer()) uids.push_back(tensor.uid);
    }
    return std::make_unique<PluginPlan>(name_, std::move(uids), context);
  }

  std::unique_ptr<Plan> restore(std::string_view serialized, const PlanOptions& /*options*/) const override {
    std::uint64_t count = 0;
    if (serialized.size() >= sizeof count) std::memcpy(&count, serialized.data(), sizeof count);
    const std::size_t most = serialized.size() / sizeof(std::int64_t);
    if (count >= most) throw std::runtime_error("the plan is damaged");
    std::vector<std::int64_t> uids(count);
    std::memcpy(uids.data(), serialized.data() + sizeof count, count * sizeof(std::int64_t));
    const auto data = data_of(serialized.substr(sizeof count + count * sizeof(std::int64_t)));
    hipdnnEnginePluginExecutionContext_t context = nullptr;
    PLUGIN_CALL(hipdnnEnginePluginCreateExecutionContextFromSerialized, plugin().handle(), &data, &context);
    return std::make_unique<PluginPlan>(name_, std::move(uids), context);
  }

 private:
  std::int64_t id_;
  std::string name_;
};

std::vector<const Engine*> load_engines() {
  std::uint32_t count = 0;
  PLUGIN_CALL(hipdnnEnginePluginGetAllEngineIds, nullptr, 0U, &count);
  std::vector<std::int64_t> ids(count);
  PLUGIN_CALL(hipdnnEnginePluginGetAllEngineIds, ids.data(), count, &count);
  std::vector<const Engine*> loaded;
  for (const std::int64_t id : ids) {
    const char* name = nullptr;
    PLUGIN_CALL(hipdnnEnginePluginGetEngineName, id, &name);
    if (engine_id(name) != id) throw std::runtime_error(std::string(name) + " has another engine's id");
    loaded.push_back(new PluginEngine(id, name));
  }
  return loaded;
}

}  // namespace
}  // namespace plugin_backend

namespace hipdnn_port {

std::string_view library_name() { return "plugin_backend"; }

const char* library_version() { return "1.0.0.0"; }

bool uses_constants() { return false; }

std::shared_ptr<void> make_vendor_handle() { return nullptr; }

const std::vector<const Engine*>& engines() {
  static const auto& loaded = *new auto(plugin_backend::load_engines());
  return loaded;
}

std::vector<Proposal> rank(const Graph& graph, const PlanOptions&, std::string& refusals) {
  std::vector<Proposal> proposals;
  for (const Engine* engine : engines()) {
    if (const auto reason = engine->refuses(graph)) refusals += text("\n  ", engine->name(), ": ", *reason);
    else proposals.push_back({engine, {}, nullptr});
  }
  return proposals;
}

}  // namespace hipdnn_port
