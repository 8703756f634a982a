// Products of signed bytes with block-scaled weights, by the dot products of AVX-512 VNNI.
#include "kernels_blocks.h"

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 finds that in its own header
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,prefer-vector-width=512")
#include <immintrin.h>

#include <cstring>
#include <utility>

namespace hipdnn_port {
namespace {

__m512i four_bytes(const std::int8_t* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}

template <int rows, int bits>
void bytes_product(const BlockProductArgs& p) {
  const std::int8_t* a[rows];
  for (int r = 0; r < rows; ++r) a[r] = static_cast<const std::int8_t*>(p.a) + r * p.a_row;
  __m512 total[rows];
  for (int r = 0; r < rows; ++r) total[r] = _mm512_setzero_ps();
  const __m512i low = _mm512_set1_epi8(0xF);
  const std::byte* weights = p.weights;
  for (std::int64_t b = 0; b < p.blocks; ++b) {
    __m512i sums[rows];
    if (p.zero == nullptr) {
      for (int r = 0; r < rows; ++r) sums[r] = _mm512_set1_epi32(-(1 << (bits - 1)) * p.a_sum[r * p.blocks + b]);
    } else {
      const __m512i zero = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p.zero + b * kPanelColumns)));
      for (int r = 0; r < rows; ++r) sums[r] = _mm512_mullo_epi32(zero, _mm512_set1_epi32(-p.a_sum[r * p.blocks + b]));
    }
    const std::int64_t end = (b + 1) * p.block;
    for (std::int64_t k = b * p.block; k < end; k += 8) {
      if constexpr (bits == 4) {
        fetch_ahead(weights);
        const __m512i line = _mm512_loadu_si512(weights);
        const __m512i first = _mm512_and_si512(line, low);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi16(line, 4), low);
        for (int r = 0; r < rows; ++r) sums[r] = _mm512_dpbusd_epi32(sums[r], first, four_bytes(a[r] + k));
        for (int r = 0; r < rows; ++r) sums[r] = _mm512_dpbusd_epi32(sums[r], second, four_bytes(a[r] + k + 4));
        weights += sizeof line;
      } else {
        for (int half = 0; half < 2; ++half) {
          fetch_ahead(weights);
          const __m512i line = _mm512_loadu_si512(weights);
          for (int r = 0; r < rows; ++r) sums[r] = _mm512_dpbusd_epi32(sums[r], line, four_bytes(a[r] + k + 4 * half));
          weights += sizeof line;
        }
      }
    }
    const __m512 scale = _mm512_loadu_ps(p.scale + b * kPanelColumns);
    for (int r = 0; r < rows; ++r) {
      const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(p.a_scale[r * p.blocks + b]));
      total[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r]), both, total[r]);
    }
  }
  for (int r = 0; r < rows; ++r) _mm512_storeu_ps(p.c + r * p.c_row, total[r]);
}

template <int bits, int... row>
void find_bytes_product(const BlockProductArgs& p, std::integer_sequence<int, row...>) {
  static constexpr BlockKernels::Product products[] = {&bytes_product<row + 1, bits>...};
  products[p.rows - 1](p);
}

template <int bits>
void run_bytes_product(const BlockProductArgs& p) {
  find_bytes_product<bits>(p, std::make_integer_sequence<int, kBlockRows>());
}

}  // namespace

const BytesKernels& bytes_kernels_vnni() {
  static constexpr BytesKernels kernels{&run_bytes_product<4>, &run_bytes_product<8>, "avx512_vnni"};
  return kernels;
}

}  // namespace hipdnn_port
#endif
