// A CUDA driver that counts what is queued between kernels.
#pragma once

namespace stub_driver {

/// Writes of one byte, and empty nodes of a graph, since the last call.
int take_waits();
/// Whether streams are being recorded.
void record(bool is_recording);

}  // namespace stub_driver
