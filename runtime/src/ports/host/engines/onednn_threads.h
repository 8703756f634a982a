// How many threads oneDNN uses on behalf of the calling thread.
#pragma once

namespace hipdnn_port::onednn {

/// Primitives created or run by the calling thread from now on divide their work into at most `count` parts. No lock, no allocation.
void set_threads(int count);
int threads();

}  // namespace hipdnn_port::onednn
