// A CUDA driver that counts what is queued between kernels, and keeps how kernels are launched.
#pragma once

#include <vector>

namespace stub_driver {

/// What was queued since the last call.
struct Waits {
  int written_bytes = 0;
  int empty_nodes = 0;
};
Waits take_waits();

/// A kernel's launch.
struct Launched {
  unsigned int grid_y;
  /// Whether it may begin while what is in front of it runs.
  bool overlaps;
};
/// Since the last call.
std::vector<Launched> take_launches();

/// Whether streams are being recorded.
void record(bool is_recording);

}  // namespace stub_driver
