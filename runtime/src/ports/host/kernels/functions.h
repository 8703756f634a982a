// The makers of the functions that images may name; docs/host-library.md says what each computes.
#pragma once

#include <memory>

#include "kernel.h"

namespace hipdnn_port::kernels {

std::unique_ptr<Kernel> make_elementwise(const Image& image);
std::unique_ptr<Kernel> make_gather(const Image& image);
std::unique_ptr<Kernel> make_gather_elements(const Image& image);
std::unique_ptr<Kernel> make_gather_nd(const Image& image);
std::unique_ptr<Kernel> make_scatter_elements(const Image& image);
std::unique_ptr<Kernel> make_scatter_nd(const Image& image);
std::unique_ptr<Kernel> make_cache_update(const Image& image);
std::unique_ptr<Kernel> make_decode_attention(const Image& image);
std::unique_ptr<Kernel> make_expert_matmul(const Image& image);
std::unique_ptr<Kernel> make_top_k(const Image& image);
std::unique_ptr<Kernel> make_suppress_boxes(const Image& image);
std::unique_ptr<Kernel> make_recurrence(const Image& image);
std::unique_ptr<Kernel> make_quantized_recurrence(const Image& image);
std::unique_ptr<Kernel> make_arg_reduce(const Image& image);
std::unique_ptr<Kernel> make_scan(const Image& image);
std::unique_ptr<Kernel> make_reduce(const Image& image);
std::unique_ptr<Kernel> make_pad(const Image& image);
std::unique_ptr<Kernel> make_slice(const Image& image);
std::unique_ptr<Kernel> make_resize(const Image& image);
std::unique_ptr<Kernel> make_grid_sample(const Image& image);
std::unique_ptr<Kernel> make_reverse_sequence(const Image& image);

}  // namespace hipdnn_port::kernels
