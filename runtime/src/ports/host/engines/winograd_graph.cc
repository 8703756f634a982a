#include "winograd_graph.h"

#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_winograd.h"

namespace hipdnn_port {
namespace {

/// With fewer tiles, the transformed weights, 16 numbers in the place of 9, take longer to read than the products saved.
constexpr std::int64_t kLeastTiles = 36;
/// With fewer channels, the transforms take longer than that: with 32, up to 1.4 times as long as a direct convolution, with 64 from 0.65 to 0.8.
constexpr std::int64_t kLeastChannels = 64;

}  // namespace

WinogradConvolution read_winograd(const Graph& graph) {
  WinogradConvolution found{read_channels_last_convolution(graph)};
  const Tensor& w = graph.tensor(found.w);
  const std::vector<std::int64_t> one{1, 1};
  if (w.dims[2] != 3 || w.dims[3] != 3 || found.steps != one || found.dilations != one) throw Refusal("takes 3 x 3 taps in steps of one");
  if (w.dims[1] != found.channels) throw Refusal("has groups");
  if (found.channels < kLeastChannels || found.result_channels < kLeastChannels || found.channels % kWinogradChannels != 0 ||
      found.result_channels % kWinogradChannels != 0) {
    throw Refusal(text(found.channels, " and ", found.result_channels, " channels, expected multiples of ", kWinogradChannels, " from ", kLeastChannels, " on"));
  }
  if (found.tiles() < kLeastTiles) throw Refusal(text(found.tiles(), " tiles of 2 x 2 results, expected ", kLeastTiles));
  return found;
}

}  // namespace hipdnn_port
