#include "hipdnn_rt/context_pool.h"

namespace hipdnn_rt {

void ContextPool::run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs) {
  std::unique_ptr<Context> context = acquire();
  try {
    context->run(inputs, outputs);
  } catch (...) {
    release(nullptr);
    throw;
  }
  release(std::move(context));
}

std::vector<double> ContextPool::run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs) {
  std::unique_ptr<Context> context = acquire();
  std::vector<double> elapsed_us;
  try {
    elapsed_us = context->run_timed(inputs, outputs);
  } catch (...) {
    release(nullptr);
    throw;
  }
  release(std::move(context));
  return elapsed_us;
}

std::size_t ContextPool::context_count() const {
  const std::lock_guard lock(mutex_);
  return free_.size() + busy_count_;
}

std::unique_ptr<Context> ContextPool::acquire() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Context> context = std::move(free_.back());
      free_.pop_back();
      ++busy_count_;
      return context;
    }
  }
  // Outside the lock: making a context allocates an arena.
  auto context = std::make_unique<Context>(program_);
  const std::lock_guard lock(mutex_);
  ++busy_count_;
  return context;
}

void ContextPool::release(std::unique_ptr<Context> context) {
  const std::lock_guard lock(mutex_);
  --busy_count_;
  if (context) free_.push_back(std::move(context));
}

}  // namespace hipdnn_rt
