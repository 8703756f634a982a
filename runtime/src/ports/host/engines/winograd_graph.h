// What HOST_WINOGRAD_ENGINE reads out of a graph.
#pragma once

#include <cstdint>

#include "channels_last_convolution.h"
#include "frontend/graph.h"

namespace hipdnn_port {

/// A convolution with 3 x 3 taps in steps of one.
struct WinogradConvolution : ChannelsLastConvolution {
  std::int64_t tile_rows() const { return (result_height + 1) / 2; }
  std::int64_t tile_columns() const { return (result_width + 1) / 2; }
  std::int64_t tiles() const { return images * tile_rows() * tile_columns(); }
};

/// Throws a Refusal with the reason where it is none, or none for which that pays.
WinogradConvolution read_winograd(const Graph& graph);

}  // namespace hipdnn_port
