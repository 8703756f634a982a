// Kernels of recurrent cells: the arithmetic behind the product of a state, on panels of units.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// One panel of kPanelColumns units of some rows. A gate's sum is an element of `products` and one of `given`.
struct CellArgs {
  std::int64_t rows = 0;
  const float* products = nullptr;      ///< [rows][gates][kPanelColumns]
  const float* given = nullptr;
  std::int64_t given_row = 0;
  std::int64_t given_gate = 0;          ///< elements from one gate to the next
  const float* bias = nullptr;          ///< [kPanelColumns], of the third gate's product
  float* cells = nullptr;               ///< of LSTM, kept from step to step
  std::int64_t cell_row = 0;
  const float* before = nullptr;        ///< [kPanelColumns][rows], the states that a step begins with
  const bool* counts = nullptr;         ///< whether a row does, or null: all do; others are left as they are
  float* states = nullptr;              ///< [rows][kPanelColumns]
};

struct CellKernels {
  void (*lstm)(const CellArgs&);  ///< gates in, out, forget, candidate
  void (*gru)(const CellArgs&);   ///< gates update, reset, candidate, whose product and bias are reset
  void (*tanh)(const CellArgs&);
  void (*relu)(const CellArgs&);
};

}  // namespace hipdnn_port
