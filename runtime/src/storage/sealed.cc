#include "storage/sealed.h"

#include <fstream>
#include <iterator>

#include "storage/sha256.h"

namespace hipdnn_rt {
namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kLineLimit = 65'536;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

std::vector<std::byte> seal(std::string_view line, std::span<const std::byte> rest) {
  Sha256 digest;
  digest.update(bytes_of(line));
  digest.update(std::string_view("\n"));
  digest.update(rest);
  std::vector<std::byte> file;
  append(file, bytes_of(digest.hex_digest() + "\n"));
  append(file, bytes_of(line));
  append(file, bytes_of("\n"));
  append(file, rest);
  return file;
}

std::optional<Unsealed> unseal(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() <= kDigestDigits || text[kDigestDigits] != '\n') return std::nullopt;
  const std::string_view content = text.substr(kDigestDigits + 1);
  Sha256 digest;
  digest.update(bytes_of(content));
  if (digest.hex_digest() != text.substr(0, kDigestDigits)) return std::nullopt;
  const std::size_t end = content.substr(0, kLineLimit).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return Unsealed{content.substr(0, end), bytes_of(content.substr(end + 1))};
}

std::optional<std::vector<std::byte>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  const auto bytes = bytes_of(text);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace hipdnn_rt
