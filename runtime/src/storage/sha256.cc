#include "storage/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace hipdnn_rt {
namespace {

// Constants and function names are those of FIPS 180-4, sections 4.1.2, 4.2.2 and 5.3.3.
alignas(16) constexpr std::array<std::uint32_t, 64> kRoundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr std::array<std::uint32_t, 8> kInitialState{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

std::uint32_t big_sigma_0(std::uint32_t x) { return std::rotr(x, 2) ^ std::rotr(x, 13) ^ std::rotr(x, 22); }
std::uint32_t big_sigma_1(std::uint32_t x) { return std::rotr(x, 6) ^ std::rotr(x, 11) ^ std::rotr(x, 25); }
std::uint32_t small_sigma_0(std::uint32_t x) { return std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3); }
std::uint32_t small_sigma_1(std::uint32_t x) { return std::rotr(x, 17) ^ std::rotr(x, 19) ^ (x >> 10); }
std::uint32_t choose(std::uint32_t x, std::uint32_t y, std::uint32_t z) { return z ^ (x & (y ^ z)); }
std::uint32_t majority(std::uint32_t x, std::uint32_t y, std::uint32_t z) { return (x & y) | (z & (x | y)); }

std::uint32_t read_big_endian(const std::byte* bytes) {
  return std::to_integer<std::uint32_t>(bytes[0]) << 24 | std::to_integer<std::uint32_t>(bytes[1]) << 16 |
         std::to_integer<std::uint32_t>(bytes[2]) << 8 | std::to_integer<std::uint32_t>(bytes[3]);
}

}  // namespace

Sha256::Sha256(Method method) : compress_(&compress_portable), state_(kInitialState) {
  if (method == Method::fastest && has_instructions()) compress_ = &compress_with_instructions;
}

void Sha256::update(std::span<const std::byte> bytes) {
  total_bytes_ += bytes.size();
  if (pending_bytes_ > 0) {
    const std::size_t taken = std::min(bytes.size(), kBlockBytes - pending_bytes_);
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_));
    pending_bytes_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_bytes_ < kBlockBytes) return;
    compress_(state_, pending_.data(), 1);
  }
  const std::size_t blocks = bytes.size() / kBlockBytes;
  compress_(state_, bytes.data(), blocks);
  bytes = bytes.subspan(blocks * kBlockBytes);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_bytes_ = bytes.size();
}

std::string Sha256::hex_digest() const {
  // Padding: one bit, zeros up to 8 bytes short of a block's end, then the length in bits.
  std::array<std::byte, 2 * kBlockBytes> tail{};
  std::copy_n(pending_.begin(), pending_bytes_, tail.begin());
  tail[pending_bytes_] = std::byte{0x80};
  const std::size_t blocks = pending_bytes_ + 1 + sizeof(std::uint64_t) <= kBlockBytes ? 1 : 2;
  for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i) {
    tail[blocks * kBlockBytes - 1 - i] = static_cast<std::byte>((total_bytes_ * 8) >> (8 * i));
  }
  State state = state_;
  compress_(state, tail.data(), blocks);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[(word >> shift) & 0xf];
  }
  return text;
}

void Sha256::compress_portable(State& state, const std::byte* blocks, std::size_t count) {
  for (; count > 0; --count, blocks += kBlockBytes) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t t = 0; t < 16; ++t) w[t] = read_big_endian(blocks + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) w[t] = small_sigma_1(w[t - 2]) + w[t - 7] + small_sigma_0(w[t - 15]) + w[t - 16];
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t t1 = h + big_sigma_1(e) + choose(e, f, g) + kRoundConstants[t] + w[t];
      const std::uint32_t t2 = big_sigma_0(a) + majority(a, b, c);
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const State change{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += change[i];
  }
}

#if defined(__x86_64__)

bool Sha256::has_instructions() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned sse4_1_bit = 1U << 19;  // leaf 1, ECX
  constexpr unsigned sha_bit = 1U << 29;     // leaf 7, EBX
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & sse4_1_bit) == 0) return false;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & sha_bit) != 0;
}

[[gnu::target("sha,sse4.1")]] void Sha256::compress_with_instructions(State& state, const std::byte* blocks, std::size_t count) {
  // The instructions keep the eight words as two registers, (a b e f) and (c d g h), from the highest element down.
  const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data())), 0xb1);       // c d a b
  const __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4)), 0x1b);  // e f g h
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i byte_swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count > 0; --count, blocks += kBlockBytes) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), byte_swap);
      } else {
        const __m128i last = w[(i + 3) % 4];
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i input = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRoundConstants.data()) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool Sha256::has_instructions() { return false; }

void Sha256::compress_with_instructions(State& state, const std::byte* blocks, std::size_t count) { compress_portable(state, blocks, count); }

#endif

}  // namespace hipdnn_rt
