// Weights of the programs of one session, of which equal ones are kept once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "execute/constant_memory.h"
#include "program/dynamic_program.h"

namespace hipdnn_ep {

/// Branches of a merged decoder are programs that have the same weights. Safe to use from several threads.
class SessionWeights {
 public:
  /// The program, its weights where earlier ones have the same bytes.
  std::shared_ptr<const hipdnn_rt::DynamicProgram> share(std::shared_ptr<const hipdnn_rt::DynamicProgram> program);
  /// The constants of a program on a device. Those that earlier ones have there are not uploaded again.
  std::shared_ptr<const hipdnn_rt::ConstantMemory> upload(const hipdnn_rt::Device& device, const hipdnn_rt::DynamicProgram& program);

 private:
  struct Uploaded {
    const hipdnn_rt::Device* device;
    std::weak_ptr<const hipdnn_rt::ConstantMemory> memory;
  };

  std::mutex mutex_;
  std::vector<std::weak_ptr<const hipdnn_rt::DynamicProgram>> programs_;
  std::vector<Uploaded> uploaded_;
};

}  // namespace hipdnn_ep
