// A CUDA driver that counts what is queued between kernels.
#pragma once

namespace stub_driver {

/// What was queued since the last call.
struct Waits {
  int written_bytes = 0;
  int empty_nodes = 0;
};
Waits take_waits();
/// Whether streams are being recorded.
void record(bool is_recording);

}  // namespace stub_driver
