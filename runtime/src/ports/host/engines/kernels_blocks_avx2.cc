// Products of signed bytes with block-scaled weights, for CPUs with AVX2 and without dot products of bytes.
#include "kernels_blocks.h"

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx2,fma")
#include <immintrin.h>

#include <cstring>
#include <utility>

namespace hipdnn_port {
namespace {

/// Rows at once: their sums stay in registers.
constexpr std::int64_t kRows = 4;
/// Vectors of columns of a panel.
constexpr int kHalves = 2;

__m256i four_bytes(const std::int8_t* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm256_set1_epi32(word);
}

/// Sums of pairs of 16 bits.
__m256i add_pairs(__m256i sums, __m256i products) { return _mm256_add_epi32(sums, _mm256_madd_epi16(products, _mm256_set1_epi16(1))); }

/// Eight codes of 4 bits a column; products of pairs stay below 2^13.
struct FourBits {
  static constexpr int bits = 4;
  static constexpr std::int32_t middle = 8;

  template <int rows>
  static void add(const std::byte* line, const std::int8_t* const* a, std::int64_t k, int half, __m256i (*sums)[kHalves]) {
    const __m256i low = _mm256_set1_epi8(0xF);
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line) + half);
    const __m256i first = _mm256_and_si256(codes, low);
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(codes, 4), low);
    for (int r = 0; r < rows; ++r) {
      const __m256i products = _mm256_add_epi16(_mm256_maddubs_epi16(first, four_bytes(a[r] + k)), _mm256_maddubs_epi16(second, four_bytes(a[r] + k + 4)));
      sums[r][half] = add_pairs(sums[r][half], products);
    }
  }
};

/// Four codes of 8 bits a column, less the middle: pairs of products of their magnitudes, at most 128, stay below 2^15.
struct EightBits {
  static constexpr int bits = 8;
  static constexpr std::int32_t middle = 0;

  template <int rows>
  static void add(const std::byte* line, const std::int8_t* const* a, std::int64_t k, int half, __m256i (*sums)[kHalves]) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line) + half);
    const __m256i numbers = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
    const __m256i magnitudes = _mm256_abs_epi8(numbers);
    for (int r = 0; r < rows; ++r) {
      sums[r][half] = add_pairs(sums[r][half], _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(four_bytes(a[r] + k), numbers)));
    }
  }
};

/// What the codes of a block are counted from, of one half of the columns.
template <class Weight>
__m256i zeros(const BlockProductArgs& p, std::int64_t block, int half) {
  if (p.zero == nullptr) return _mm256_set1_epi32(Weight::middle);
  const auto* const at = reinterpret_cast<const __m128i*>(p.zero + block * kPanelColumns + half * kPanelColumns / kHalves);
  return _mm256_sub_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at)), _mm256_set1_epi32(Weight::bits == 8 ? 128 : 0));
}

template <class Weight, int rows>
void product_of_rows(const BlockProductArgs& p, std::int64_t row) {
  constexpr std::int64_t step = 32 / Weight::bits;
  const std::int8_t* a[rows];
  for (int r = 0; r < rows; ++r) a[r] = static_cast<const std::int8_t*>(p.a) + (row + r) * p.a_row;
  __m256 total[rows][kHalves];
  for (int r = 0; r < rows; ++r) {
    for (int half = 0; half < kHalves; ++half) total[r][half] = _mm256_setzero_ps();
  }
  const std::byte* line = p.weights;
  for (std::int64_t b = 0; b < p.blocks; ++b) {
    __m256i sums[rows][kHalves];
    for (int half = 0; half < kHalves; ++half) {
      const __m256i zero = zeros<Weight>(p, b, half);
      for (int r = 0; r < rows; ++r) sums[r][half] = _mm256_mullo_epi32(zero, _mm256_set1_epi32(-p.a_sum[(row + r) * p.blocks + b]));
    }
    for (std::int64_t k = b * p.block; k < (b + 1) * p.block; k += step, line += sizeof(__m256i) * kHalves) {
      fetch_ahead(line);
      for (int half = 0; half < kHalves; ++half) Weight::template add<rows>(line, a, k, half, sums);
    }
    for (int half = 0; half < kHalves; ++half) {
      const __m256 scale = _mm256_loadu_ps(p.scale + b * kPanelColumns + half * kPanelColumns / kHalves);
      for (int r = 0; r < rows; ++r) {
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(p.a_scale[(row + r) * p.blocks + b]));
        total[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r][half]), both, total[r][half]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int half = 0; half < kHalves; ++half) _mm256_storeu_ps(p.c + (row + r) * p.c_row + half * kPanelColumns / kHalves, total[r][half]);
  }
}

template <class Weight, int... row>
void run_rows(const BlockProductArgs& p, std::int64_t first, std::int64_t rows, std::integer_sequence<int, row...>) {
  static constexpr void (*products[])(const BlockProductArgs&, std::int64_t) = {&product_of_rows<Weight, row + 1>...};
  products[rows - 1](p, first);
}

template <class Weight>
void run_bytes_product(const BlockProductArgs& p) {
  for (std::int64_t row = 0; row < p.rows; row += kRows) {
    run_rows<Weight>(p, row, p.rows - row < kRows ? p.rows - row : kRows, std::make_integer_sequence<int, kRows>());
  }
}

}  // namespace

const BytesKernels& bytes_kernels_avx2() {
  static constexpr BytesKernels kernels{&run_bytes_product<FourBits>, &run_bytes_product<EightBits>, "avx2"};
  return kernels;
}

}  // namespace hipdnn_port
#endif
