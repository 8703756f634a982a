// Tile kernels compiled for AVX2 with FMA.
#include "kernels_tile.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx2,fma,f16c")  // no CPU has AVX2 without F16C
#include <immintrin.h>

namespace hipdnn_port::tile_avx2 {
constexpr bool is_complete = false;
constexpr const char* isa_name = "avx2";
constexpr int register_bytes = 32;
constexpr int tile_rows = 6;     // of the products of attention: as many accumulators as leave registers for the operands
constexpr int tile_vectors = 2;
constexpr int panel_rows = 6;    // the same of products with panels
constexpr int panels_at_once = 1;
constexpr int narrow_streams = 4;
inline __m128i load_narrow(const std::uint16_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline __m256 widen_halves(const std::uint16_t* from) { return _mm256_cvtph_ps(load_narrow(from)); }
inline __m256i widen_bfloats(const std::uint16_t* from) { return _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_narrow(from)), 16); }
inline __m256i widen_pairs(const std::int8_t* from) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
inline __m256i multiply_pairs(__m256i a, __m256i b) { return _mm256_madd_epi16(a, b); }
#include "kernels_all.inc"
}  // namespace hipdnn_port::tile_avx2

const hipdnn_port::TileKernels& hipdnn_port::tile_kernels_avx2() { return tile_avx2::kernels; }
#endif
