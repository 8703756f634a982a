// Tile kernels compiled for AVX-512.
#include "kernels_tile.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 finds that in its own header
#include <immintrin.h>

namespace hipdnn_port::tile_avx512 {
constexpr bool is_complete = false;
constexpr const char* isa_name = "avx512";
constexpr int register_bytes = 64;
constexpr int tile_rows = 6;     // of the products of attention: as many accumulators as leave registers for the operands
constexpr int tile_vectors = 4;
constexpr int panel_rows = 12;   // the same of products with panels
constexpr int panels_at_once = 2;
constexpr int narrow_streams = 1;  // one, asked for ahead, came at the speed of memory
inline __m256i load_narrow(const std::uint16_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline __m512 widen_halves(const std::uint16_t* from) { return _mm512_cvtph_ps(load_narrow(from)); }
inline __m512i widen_bfloats(const std::uint16_t* from) { return _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_narrow(from)), 16); }
inline __m512i widen_pairs(const std::int8_t* from) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))); }
inline __m512i multiply_pairs(__m512i a, __m512i b) { return _mm512_madd_epi16(a, b); }
#include "kernels_all.inc"
}  // namespace hipdnn_port::tile_avx512

const hipdnn_port::TileKernels& hipdnn_port::tile_kernels_avx512() { return tile_avx512::kernels; }
#endif
