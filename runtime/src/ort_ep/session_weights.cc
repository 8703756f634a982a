#include "session_weights.h"

#include <utility>

namespace hipdnn_ep {

std::shared_ptr<const hipdnn_rt::DynamicProgram> SessionWeights::share(std::shared_ptr<const hipdnn_rt::DynamicProgram> program) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : programs_) {
    if (const auto other = known.lock()) program = hipdnn_rt::DynamicProgram::sharing(std::move(program), other);
  }
  programs_.push_back(program);
  return program;
}

std::shared_ptr<const hipdnn_rt::ConstantMemory> SessionWeights::upload(const hipdnn_rt::Device& device, const hipdnn_rt::DynamicProgram& program) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const hipdnn_rt::ConstantMemory>> others;
  for (const Uploaded& known : uploaded_) {
    if (auto memory = known.device == &device ? known.memory.lock() : nullptr) others.push_back(std::move(memory));
  }
  auto memory = std::make_shared<const hipdnn_rt::ConstantMemory>(device, program.stored_constants(), std::move(others));
  uploaded_.push_back({&device, memory});
  return memory;
}

}  // namespace hipdnn_ep
