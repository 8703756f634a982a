// Contexts of one loaded program, lent to concurrent runs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hipdnn_rt/context.h"

namespace hipdnn_rt {

/// Safe to use from several threads: each run takes a free context, or makes one where all are busy.
class ContextPool {
 public:
  explicit ContextPool(std::shared_ptr<const LoadedProgram> program) : program_(std::move(program)) {}

  const LoadedProgram& program() const { return *program_; }
  /// As Context::run, on a context of the pool. One that fails is dropped.
  void run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs);
  /// As Context::run_timed, on a context of the pool.
  std::vector<double> run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs);
  /// Contexts made so far and still alive.
  std::size_t context_count() const;

 private:
  std::unique_ptr<Context> acquire();
  void release(std::unique_ptr<Context> context);

  std::shared_ptr<const LoadedProgram> program_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> free_;
  std::size_t busy_count_ = 0;
};

}  // namespace hipdnn_rt
