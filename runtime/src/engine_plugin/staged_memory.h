// Operands in a GPU's memory: copied to the host for an execution, and results back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hip_runtime_abi.h"
#include "hipdnn_plugin.h"

namespace hipdnn_plugin {

/// What copies from and to a GPU. The library stays loaded for the life of the process.
struct Hip {
  decltype(&::hipMemcpyAsync) memcpy_async = nullptr;
  decltype(&::hipStreamSynchronize) stream_synchronize = nullptr;
};

/// The HIP library that this process has loaded; null where it has none, or the host's library plays HIP, whose memory is the host's. Any thread.
const Hip* loaded_hip();

/// The memory of one operand.
struct Operand {
  std::int64_t uid;
  /// From its first element to the end of its last.
  std::size_t bytes;
  bool is_result;
};

/// The operands of one execution, in the host's memory. Used by one thread.
class StagedMemory {
 public:
  /// Copies what lies in front of this on the stream. Throws Failure where HIP refuses.
  StagedMemory(const Hip& hip, hipStream_t stream, std::span<const Operand> operands, std::span<const hipdnnPluginDeviceBuffer_t> buffers,
               std::size_t workspace_bytes);
  std::span<const hipdnnPluginDeviceBuffer_t> buffers() const { return staged_; }
  void* workspace() { return workspace_.data(); }
  /// Copies results back; they are there when this returns.
  void finish();

 private:
  /// Aligned as hipMalloc's memory, so that a graph may state of an operand what holds on the GPU.
  struct alignas(256) Line {
    std::byte bytes[256];
  };
  struct Copy {
    void* device;
    std::vector<Line> host;
    const Operand* operand;
  };

  void copy(void* to, const void* from, std::size_t bytes) const;
  void wait() const;

  const Hip& hip_;
  hipStream_t stream_;
  std::vector<Copy> copies_;
  std::vector<hipdnnPluginDeviceBuffer_t> staged_;
  std::vector<std::byte> workspace_;
};

}  // namespace hipdnn_plugin
