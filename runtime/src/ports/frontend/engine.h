// What a port gives to this library: its name, the vendor's handle, and engines, which say whether they take a graph, build a plan, execute it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph.h"

namespace hipdnn_port {

/// Pointers that never change for the life of a plan (weights), by tensor uid. They may be packed at plan time; the memory outlives the plan.
using Constants = std::map<std::int64_t, const void*>;

struct PlanOptions {
  Constants constants;
  int threads = 1;
  /// What `make_vendor_handle` gave for the handle that the graph belongs to.
  std::shared_ptr<void> vendor_handle = nullptr;
  /// What the engine's own proposal carries, see Proposal::detail; null where the caller named the engine.
  std::shared_ptr<const void> detail = nullptr;
};

/// Where an execution happens: what the caller's handle says.
struct Launch {
  Launch(int threads, hipStream_t stream = nullptr, void* vendor_handle = nullptr)  // NOLINT: a number of threads is all the host needs
      : threads(threads), stream(stream), vendor_handle(vendor_handle) {}
  int threads;
  hipStream_t stream;
  void* vendor_handle;
};

/// A compiled graph. Immutable after construction: `execute` may run on several threads at once, each with its own pointers and
/// workspace, and must not lock, nor allocate or throw where as many have run at once before.
class Plan {
 public:
  virtual ~Plan() = default;
  /// Tensors whose pointers `execute` expects, in that order. Constants packed at plan time stay in the list (their pointers are ignored).
  const std::vector<std::int64_t>& uids() const { return uids_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// One line for people: the primitive or kernel chosen, e.g. "brgconv_1x1:avx512_core + bias + relu".
  virtual std::string describe() const = 0;
  /// Run in order on the launch's stream; where there are no streams, on the calling thread and at most `threads` threads. `pointers` matches
  /// uids(); workspace is 64-byte aligned.
  virtual void execute(void* const* pointers, void* workspace, const Launch& launch) const = 0;
  /// What the engine's `restore` makes an equal plan of, in another process too; empty where there is no such thing.
  virtual std::string serialize() const { return {}; }

 protected:
  std::vector<std::int64_t> uids_;
  std::int64_t workspace_bytes_ = 0;
};

/// One engine. `refuses` is cheap and allocation is allowed; a returned string says why the graph is not taken.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  virtual std::optional<std::string> refuses(const Graph& graph) const = 0;
  /// Throws std::runtime_error (reason) where the graph turns out not to be buildable after all.
  virtual std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const = 0;
  /// The plan that `serialized` was made from. Throws std::runtime_error (reason) where that is not possible; options have no constants.
  virtual std::unique_ptr<Plan> restore(std::string_view /*serialized*/, const PlanOptions& /*options*/) const {
    throw std::runtime_error("its plans are not serialized");
  }
};

/// All engines.
const std::vector<const Engine*>& engines();

/// One way to run a graph.
struct Proposal {
  const Engine* engine;
  /// What the engine would be set to, by name; tells an engine's proposals apart.
  std::vector<std::pair<std::string, std::int64_t>> knobs;
  /// Handed to the engine when it builds the plan.
  std::shared_ptr<const void> detail;
};

/// What the port has for a graph, best first; `refusals` gets a line for each engine that does not take it.
std::vector<Proposal> rank(const Graph& graph, const PlanOptions& options, std::string& refusals);

/// The library's name as a plugin, and its version.
std::string_view library_name();
const char* library_version();

/// Whether plans are made for constants that they are told of (weights packed for an engine). A library that does not has no attributes to tell
/// them, so that a program's equal graphs share one plan, whatever their weights.
bool uses_constants();

/// The vendor library's own handle for a new handle of ours; null where there is none. Throws StatusError.
std::shared_ptr<void> make_vendor_handle();

/// Signed FNV-1a-64 of an engine's name: its global index in the ABI.
std::int64_t engine_id(std::string_view name);

}  // namespace hipdnn_port
