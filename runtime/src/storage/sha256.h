// SHA-256 (FIPS 180-4): the content keys of models, compiled programs and plans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hipdnn_rt {

/// A running digest. Copyable; one thread at a time.
class Sha256 {
 public:
  /// `fastest` uses the processor's own SHA instructions where it has them. Both give the same digests.
  enum class Method { fastest, portable };

  explicit Sha256(Method method = Method::fastest);

  /// Whether this processor has SHA instructions that `fastest` uses.
  static bool has_instructions();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }

  /// 64 lower-case hexadecimal digits of everything given so far; more may follow.
  std::string hex_digest() const;

 private:
  static constexpr std::size_t kBlockBytes = 64;
  using State = std::array<std::uint32_t, 8>;
  using Compress = void (*)(State& state, const std::byte* blocks, std::size_t count);

  static void compress_portable(State& state, const std::byte* blocks, std::size_t count);
  static void compress_with_instructions(State& state, const std::byte* blocks, std::size_t count);

  Compress compress_;
  State state_;
  std::array<std::byte, kBlockBytes> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace hipdnn_rt
