// Files that appear complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hipdnn_ep {

/// Write `bytes` to a temporary file beside `path` and rename it there. Throws hipdnn_rt::Error with path and reason; nothing is left then.
void write_atomically(const std::string& path, std::span<const std::byte> bytes);

}  // namespace hipdnn_ep
