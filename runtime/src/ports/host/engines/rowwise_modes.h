// The pointwise modes as the tile kernels compute them.
#pragma once

#include "hipdnn_backend.h"
#include "kernels_tile.h"

namespace hipdnn_port {

/// Which register types a mode is computed in.
enum class ModeClass : std::uint8_t {
  arithmetic,  // integer operands stay integers
  real,        // floating point whatever the operands are
  compare,     // boolean result, operands in their own type
  logical,     // boolean operands and result
  select,      // binary select
  identity,    // conversion only
  index,       // position along an axis
};

struct PointwiseMode {
  hipdnnPointwiseMode_t mode;
  const char* name;
  int operands;
  ModeClass kind;
  TileOp op;
};

/// The row of a forward mode, nullptr for a backward or unknown one.
const PointwiseMode* find_pointwise_mode(hipdnnPointwiseMode_t mode);

}  // namespace hipdnn_port
