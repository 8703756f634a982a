// Small graphs the cases are about.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "library.h"

namespace abi {

using Dims = std::vector<std::int64_t>;

/// Row-major strides of `dims`.
Dims packed(const Dims& dims);
/// A finalized f32 tensor with row-major strides.
Descriptor tensor(const Library& library, std::int64_t uid, const Dims& dims, bool is_virtual = false);
/// A finalized f32 scalar with its value baked in.
Descriptor baked(const Library& library, std::int64_t uid, float value);
/// An unfinalized pointwise operation in f32.
Descriptor pointwise(const Library& library, hipdnnPointwiseMode_t mode, const std::vector<const Descriptor*>& inputs, const Descriptor& out);
/// An unfinalized graph with everything set but the handle.
Descriptor graph(const Library& library, const std::vector<const Descriptor*>& operations);
/// The same, with its handle and finalized.
Descriptor finalized_graph(const Library& library, const Handle& handle, const std::vector<const Descriptor*>& operations);
/// A finalized heuristic for the graph.
Descriptor heuristic(const Library& library, const Descriptor& graph);
/// The heuristic's configurations, best first, not finalized.
std::vector<Descriptor> results(const Library& library, const Descriptor& heuristic);
/// A finalized configuration with the heuristic's first engine; the heuristic must have one.
Descriptor first_config(const Library& library, const Descriptor& heuristic);
/// A finalized plan of the first engine for a finalized graph.
Descriptor plan(const Library& library, const Descriptor& graph);
/// A finalized variant pack.
Descriptor pack(const Library& library, const Dims& uids, const std::vector<void*>& pointers, void* workspace = nullptr);

/// out(uid 3) = relu(in(uid 1) + bias(uid 2)), the sum (uid 4) virtual; dims 4 x 8, the bias 1 x 8.
struct AddRelu {
  AddRelu(const Library& library, const Handle& handle);
  Descriptor in, bias, out, sum, add, relu, graph;
};

/// Runs a plan of AddRelu twice on numbers of its own and checks the results.
void check_add_relu(const Library& library, const Handle& handle, const Descriptor& built);

/// The id of an engine or a policy: the FNV-1a hash of its name.
std::int64_t id_of(std::string_view name);

}  // namespace abi
