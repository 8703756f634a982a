// The safetensors container: named tensors and string metadata in one file.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace hipdnn_rt {

/// A parsed container. The spans point into the bytes it was parsed from.
struct Safetensors {
  std::map<std::string, std::string, std::less<>> metadata;
  std::map<std::string, std::span<const std::byte>, std::less<>> tensors;
  /// All tensors, as they follow each other.
  std::span<const std::byte> data;
};

/// Parse and check a whole container: the header's length and JSON, and that the tensors fill the data exactly, without gap or overlap,
/// each as long as its dtype and shape say. Throws ProgramError naming the tensor or field.
Safetensors parse_safetensors(std::span<const std::byte> bytes);

/// Compare the entry `hipdnn_checksum` of the metadata, where there is one, with `text` and the tensor data. Throws ProgramError.
void check_checksum(const Safetensors& container, const std::string& text);

}  // namespace hipdnn_rt
