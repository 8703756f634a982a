#include "execute/loaded_program.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "device/clock.h"
#include "device/error.h"
#include "plan/plan_cache.h"
#include "program/checked.h"

namespace hipdnn_rt {
namespace {

/// One plan to build, for all steps that share it.
struct PlanJob {
  PlanKey key;
  const Executable* executable = nullptr;
  /// Bytes of constants to pack: the larger part of the cost.
  std::uint64_t weight = 0;
  std::shared_ptr<const Plan> plan;
  /// The constants, where the library packs them.
  std::vector<std::span<const std::byte>> packed;
  /// The library's words where it has no plan.
  std::string refusal;
};

void build(const Device& device, const std::shared_ptr<const Handle>& handle, const Program& program, PlanJob& job) {
  job.plan = device.plans().find(job.key);
  if (job.plan) return;
  job.plan = device.plans().insert(job.key, Plan::build(device, handle, *job.executable, job.key.constants));
  for (const std::span<const std::byte> constant : job.packed) program.release(constant);
}

void try_build(const Device& device, const std::shared_ptr<const Handle>& handle, const Program& program, PlanJob& job) {
  try {
    build(device, handle, program, job);
  } catch (const NoPlanError& error) {
    job.refusal = error.what();
  }
}

/// Take jobs until none is left or one has failed anywhere. Each worker has a handle of its own: a handle serves one thread at a time.
void work(const Device& device, const Program& program, std::vector<PlanJob*>& jobs, std::atomic<std::size_t>& next) {
  const auto handle = std::make_shared<const Handle>(device.create_handle(nullptr));
  for (std::size_t i = next++; i < jobs.size(); i = next++) try_build(device, handle, program, *jobs[i]);
}

void build_all(const Device& device, const Program& program, std::vector<PlanJob*> jobs) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const PlanJob* a, const PlanJob* b) { return a->weight > b->weight; });
  const int wanted = device.options().threads > 0 ? device.options().threads : static_cast<int>(std::thread::hardware_concurrency());
  // On CPU threads, plans that are built beside one that is timed would be measured with it.
  const bool is_timed_here = device.options().autotune > 1 && device.port().device_memory_is_host_memory;
  // Two plans, of a program at another size, are built while a thread would start.
  const std::size_t most = is_timed_here || jobs.size() <= 2 ? 1 : jobs.size();
  const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(wanted, 1)), 1, most);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work(device, program, jobs, next);
    } catch (...) {
      next = jobs.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < count; ++i) helpers.emplace_back(guarded);
    } catch (const std::system_error&) {
      // No more threads: those that there are build all.
    }
    guarded();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Throw where the library has refused plans, naming the steps that need them.
void throw_refusals(const Program& program, const std::vector<PlanJob*>& by_step) {
  std::vector<RefusedPlan> refusals;
  std::map<const Executable*, std::size_t> places;
  for (std::size_t s = 0; s < by_step.size(); ++s) {
    if (by_step[s] == nullptr || by_step[s]->plan) continue;
    const Executable& executable = *by_step[s]->executable;
    const auto [found, is_new] = places.try_emplace(&executable, refusals.size());
    if (is_new) refusals.push_back({executable.name, executable.summary, {}, by_step[s]->refusal});
    std::string& nodes = refusals[found->second].nodes;
    nodes += (nodes.empty() ? "" : ", ") + program.steps()[s].name;
  }
  if (!refusals.empty()) throw PlanRefusedError(std::move(refusals));
}

}  // namespace

std::shared_ptr<const LoadedProgram> LoadedProgram::load(std::shared_ptr<const Device> device, std::shared_ptr<const Program> program,
                                                          std::shared_ptr<const ConstantMemory> shared) {
  const auto start = Clock::now();
  const Port& port = device->port();
  const std::string& target = program->target();
  if (!device->runs(target)) {
    const std::string wanted = device->target();
    throw WrongTargetError("program.target: compiled for '" + target + "', port '" + std::string(port.name) + "' runs '" + wanted +
                           "'; compile the model again with --target " + wanted);
  }
  std::shared_ptr<LoadedProgram> loaded(new LoadedProgram());
  loaded->device_ = std::move(device);
  loaded->program_ = std::move(program);
  if (loaded->device_->options().memory_limit_mb > 0) loaded->lay_out();  // without the workspaces of plans, none of which is built yet
  loaded->place_constants(std::move(shared));
  loaded->build_plans();
  loaded->load_kernels();
  loaded->lay_out();
  loaded->load_ms_ = milliseconds_since(start);
  return loaded;
}

void LoadedProgram::place_constants(std::shared_ptr<const ConstantMemory> shared) {
  constants_.resize(program_->buffers().size(), nullptr);
  if (device_->port().device_memory_is_host_memory) {
    for (const Constant& constant : program_->constants()) {
      // The ABI's pointers are not const; the loader has checked that no step writes a constant.
      constants_[constant.buffer] = const_cast<std::byte*>(constant.data.data());
    }
    return;
  }
  shared_ = std::move(shared);
  std::vector<ConstantMemory::Tensor> own;
  for (const Constant& constant : program_->constants()) {
    if (shared_ != nullptr) constants_[constant.buffer] = shared_->find(constant.data);
    if (constants_[constant.buffer] == nullptr) own.push_back(constant.data);
  }
  own_.emplace(*device_, own);
  for (const ConstantMemory::Tensor tensor : own) program_->release(tensor);
  for (const Constant& constant : program_->constants()) {
    if (constants_[constant.buffer] == nullptr) constants_[constant.buffer] = own_->find(constant.data);
  }
}

void LoadedProgram::build_plans() {
  const auto start = Clock::now();
  std::map<PlanKey, PlanJob> jobs;
  std::vector<PlanJob*> by_step(program_->steps().size(), nullptr);
  for (std::size_t s = 0; s < by_step.size(); ++s) {
    const auto* execute = std::get_if<ExecuteStep>(&program_->steps()[s].action);
    if (execute == nullptr) continue;
    const Executable& executable = program_->executables()[execute->executable];
    PlanKey key{executable.canonical, {}};
    std::uint64_t weight = 0;
    std::vector<std::span<const std::byte>> packed;
    for (std::size_t i = 0; device_->takes_constants() && i < execute->operands.size(); ++i) {
      const View& view = execute->operands[i];
      if (program_->buffers()[view.buffer].kind != BufferKind::constant) continue;
      key.constants.push_back({executable.operands[i].uid, static_cast<std::byte*>(constants_[view.buffer]) + view.offset});
      const std::uint64_t bytes = executable.operands[i].extent_bytes;
      weight += bytes;
      packed.emplace_back(static_cast<const std::byte*>(constants_[view.buffer]) + view.offset, bytes);
    }
    PlanJob& job = jobs[key];
    by_step[s] = &job;
    if (job.executable != nullptr) continue;
    job = {std::move(key), &executable, weight, nullptr, std::move(packed), {}};
  }
  std::vector<PlanJob*> pending;
  for (auto& [key, job] : jobs) {
    job.plan = device_->plans().find(job.key);
    if (!job.plan) pending.push_back(&job);
  }
  build_all(*device_, *program_, std::move(pending));
  throw_refusals(*program_, by_step);
  std::set<const Plan*> distinct;
  for (const PlanJob* job : by_step) {
    plans_.push_back(job ? job->plan : nullptr);
    if (job) distinct.insert(job->plan.get());
  }
  plan_count_ = distinct.size();
  plan_ms_ = milliseconds_since(start);
}

void LoadedProgram::load_kernels() {
  if (program_->kernels().empty()) return;
  device_->activate();
  const HipApi& hip = device_->library().hip();
  for (const Kernel& kernel : program_->kernels()) {
    const std::string what = kernel.name + " (" + (kernel.summary.empty() ? kernel.function : kernel.summary) + ")";
    hipModule_t module = nullptr;
    if (const hipError_t status = hip.module_load_data(&module, kernel.image.c_str()); status != hipSuccess) {
      throw ProgramError("kernel " + what + ": hipModuleLoadData: " + describe_kernel_failure(hip, status));
    }
    modules_.emplace_back(device_->shared_library(), module);
    if (device_->options().threads > 0 && hip.set_module_threads != nullptr) {
      check(hip, hip.set_module_threads(module, device_->options().threads), "hipdnnHostSetModuleThreads_ext");
    }
    hipFunction_t function = nullptr;
    if (const hipError_t status = hip.module_get_function(&function, module, kernel.symbol.c_str()); status != hipSuccess) {
      throw ProgramError("kernel " + what + ": hipModuleGetFunction(" + kernel.symbol + "): " + describe_kernel_failure(hip, status));
    }
    functions_.push_back(function);
  }
}

void LoadedProgram::lay_out() {
  constant_bytes_ = 0;
  for (const Constant& constant : program_->constants()) constant_bytes_ += constant.data.size();
  const std::vector<Buffer>& buffers = program_->buffers();
  requests_.clear();
  const auto last_step = static_cast<std::uint32_t>(std::max<std::size_t>(program_->steps().size(), 1) - 1);
  for (const Buffer& buffer : buffers) {
    const bool is_used = buffer.first_step <= buffer.last_step;
    if (buffer.kind == BufferKind::temp) {
      requests_.push_back({is_used ? buffer.bytes : 0, is_used ? buffer.first_step : 0, buffer.last_step});
    } else if (buffer.kind == BufferKind::input && stages_host_arrays()) {
      requests_.push_back({buffer.bytes, 0, buffer.last_step});
    } else if (buffer.kind == BufferKind::output && stages_host_arrays()) {
      requests_.push_back({buffer.bytes, is_used ? buffer.first_step : 0, last_step});
    } else {
      requests_.push_back({0, 0, 0});
    }
  }
  for (std::size_t s = 0; s < plans_.size(); ++s) {
    const auto step = static_cast<std::uint32_t>(s);
    requests_.push_back({plans_[s] ? plans_[s]->workspace_bytes() : 0, step, step});
  }
  layout_ = plan_arena(requests_, device_->port().arena_alignment);
  check_memory();
}

void LoadedProgram::check_memory() const {
  constexpr std::uint64_t kMegabyte = 1U << 20U;
  const auto limit = static_cast<std::uint64_t>(device_->options().memory_limit_mb);
  std::uint64_t arguments = 0;
  for (const Buffer& buffer : program_->buffers()) {
    if (buffer.kind == BufferKind::input || buffer.kind == BufferKind::output) arguments += buffer.bytes;
  }
  const std::uint64_t needed = (arguments + constant_bytes_ + layout_.arena_bytes + kMegabyte - 1) / kMegabyte;
  if (limit == 0 || needed <= limit) return;
  throw ProgramError("the program needs " + std::to_string(needed) + " MiB at these sizes: inputs and outputs " + std::to_string(arguments) +
                     " bytes, constants " + std::to_string(constant_bytes_) + ", between steps " + std::to_string(layout_.arena_bytes) +
                     "; expected at most " + std::to_string(limit) + " (option memory_limit_mb)");
}

}  // namespace hipdnn_rt
