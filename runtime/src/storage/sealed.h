// Files of a cache with a checksum: a digest is no signature, but what a power failure has damaged shows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipdnn_rt {

/// A file's bytes: the checksum of all else, a line of JSON, any bytes.
std::vector<std::byte> seal(std::string_view line, std::span<const std::byte> rest = {});

/// What `seal` was given. It points into the file's bytes.
struct Unsealed {
  std::string_view line;
  std::span<const std::byte> rest;
};
/// Nothing for bytes that are no such file, or a damaged one.
std::optional<Unsealed> unseal(std::span<const std::byte> bytes);

/// A file's content; nothing where it cannot be read.
std::optional<std::vector<std::byte>> read_file(const std::string& path);

}  // namespace hipdnn_rt
