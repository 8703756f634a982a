#include "block_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "kernels_blocks.h"
#include "kernels_tile.h"
#include "narrow_floats.h"
#include "packed_memory.h"
#include "shared_forms.h"

namespace hipdnn_port {
namespace {

constexpr int kLeast4 = -8, kLeast8 = -128;
constexpr std::size_t kLine = 64;

std::int64_t depth_stride(const Tensor& t) { return t.strides[t.strides.size() - 2]; }
std::int64_t column_stride(const Tensor& t) { return t.strides.back(); }

/// Reads the numbers of one column's block.
class Reader {
 public:
  Reader(const StoredBlocks& stored, const void* numbers)
      : is_4_(stored.numbers->dtype == HIPDNN_DATA_INT4),
        depth_(depth_stride(*stored.numbers)),
        column_(column_stride(*stored.numbers)),
        from_(static_cast<const std::byte*>(numbers)) {}

  void read(std::int64_t column, std::int64_t first, std::int64_t count, std::int8_t* to) const {
    for (std::int64_t k = 0; k < count; ++k) to[k] = number((first + k) * depth_ + column * column_);
  }

 private:
  std::int8_t number(std::int64_t at) const {
    return is_4_ ? int4_at(from_, at) : static_cast<std::int8_t>(from_[at]);
  }

  bool is_4_;
  std::int64_t depth_, column_;
  const std::byte* from_;
};

/// Calls body(panel column, block, numbers, count) for all blocks; columns in the order of panels.
template <class Body>
void for_each_block(const PackedBlocks& packed, const Reader& reader, const Body& body) {
  std::array<std::int8_t, kLargestBlock> numbers;  // NOLINT: filled up to `count` before use
  for (std::int64_t column = 0; column < packed.columns; ++column) {
    for (std::int64_t b = 0; b < packed.blocks; ++b) {
      const std::int64_t count = std::min(packed.block, packed.depth - b * packed.block);
      reader.read(column, b * packed.block, count, numbers.data());
      body(column, b, numbers.data(), count);
    }
  }
}

/// Whether the numbers of every block differ by no more than 4 bits can tell, with zeros that 4 bits can tell.
bool fits_4(const PackedBlocks& packed, const Reader& reader) {
  bool fits = true;
  for_each_block(packed, reader, [&](std::int64_t, std::int64_t, const std::int8_t* numbers, std::int64_t count) {
    const auto [least, greatest] = std::minmax_element(numbers, numbers + count);
    fits = fits && *least >= -15 && *greatest <= 15 && *greatest - std::min<int>(*least, 0) <= 15;
  });
  return fits;
}

void put(PackedBlocks& packed, std::int64_t column, std::int64_t k, unsigned code) {
  const std::int64_t panel = column / kPanelColumns, lane = column % kPanelColumns;
  std::byte* const weights = packed.weights + panel * packed.panel_bytes();
  const auto line = static_cast<std::int64_t>(kLine);
  if (packed.bits == 8) {
    weights[k / 4 * line + lane * 4 + k % 4] = static_cast<std::byte>(code);
    return;
  }
  std::byte& byte = weights[k / 8 * line + lane * 4 + k % 4];
  byte |= static_cast<std::byte>(code << (k % 8 >= 4 ? 4U : 0U));
}

/// Whether numbers of 4 bits lie along the depth, eight of them in whole bytes.
bool has_words(const PackedBlocks& packed, const StoredBlocks& stored) {
  return stored.numbers->dtype == HIPDNN_DATA_INT4 && depth_stride(*stored.numbers) == 1 && column_stride(*stored.numbers) % 2 == 0 &&
         packed.depth % 8 == 0;
}

/// Eight numbers as they are stored, as the four bytes of a line that they become.
std::uint32_t packed_word(std::uint32_t word) {
  const auto spread = [](std::uint32_t half) {  // the four codes of 16 bits to the lower halves of four bytes
    half = (half | half << 8U) & 0x00FF00FFU;
    return (half | half << 4U) & 0x0F0F0F0FU;
  };
  word ^= 0x88888888U;  // two's complement to codes with the zero in the middle
  return spread(word & 0xFFFFU) | spread(word >> 16U) << 4U;
}

void pack_words(PackedBlocks& packed, const StoredBlocks& stored, const void* numbers) {
  for (std::int64_t column = 0; column < packed.columns; ++column) {
    const std::byte* from = static_cast<const std::byte*>(numbers) + column * column_stride(*stored.numbers) / 2;
    std::byte* to = packed.weights + column / kPanelColumns * packed.panel_bytes() + column % kPanelColumns * 4;
    for (std::int64_t k = 0; k < packed.depth; k += 8, from += 4, to += kLine) {
      std::uint32_t word;
      std::memcpy(&word, from, sizeof word);
      word = packed_word(word);
      std::memcpy(to, &word, sizeof word);
    }
  }
}

/// Index of a scale or zero.
std::int64_t cell_of(const PackedBlocks& packed, std::int64_t column, std::int64_t block) {
  return (column / kPanelColumns * packed.blocks + block) * kPanelColumns + column % kPanelColumns;
}

void pack_scales(PackedBlocks& packed, const Tensor& stored, const void* from) {
  const TileKernel convert = find_conversion(stored.dtype, HIPDNN_DATA_FLOAT);
  const auto bytes = static_cast<std::int64_t>(element_bytes(stored.dtype));
  for (std::int64_t column = 0; column < packed.columns; ++column) {
    TileArgs args{.cols = packed.blocks, .dst = packed.scales + cell_of(packed, column, 0), .dst_col = kPanelColumns};
    args.src[0] = static_cast<const std::byte*>(from) + column * column_stride(stored) * bytes;
    args.src_col[0] = depth_stride(stored);
    convert(args);
  }
}

}  // namespace

std::int64_t PackedBlocks::bytes() const {
  const std::int64_t cells = panels * blocks * kPanelColumns;
  return panels * panel_bytes() + cells * static_cast<std::int64_t>(sizeof(float)) + (has_zeros ? cells : 0);
}

void PackedBlocks::lie_at(std::byte* memory) {
  const std::int64_t cells = panels * blocks * kPanelColumns;
  weights = memory;
  scales = reinterpret_cast<float*>(weights + panels * panel_bytes());
  zeros = has_zeros ? reinterpret_cast<std::uint8_t*>(scales + cells) : nullptr;
}

PackedBlocks unplaced_blocks(const StoredBlocks& stored) {
  const Tensor& numbers = *stored.numbers;
  PackedBlocks packed;
  packed.depth = numbers.dims[numbers.dims.size() - 2];
  packed.columns = numbers.dims.back();
  packed.block = stored.block;
  packed.blocks = (packed.depth + stored.block - 1) / stored.block;
  packed.panels = (packed.columns + kPanelColumns - 1) / kPanelColumns;
  packed.bits = numbers.dtype == HIPDNN_DATA_INT4 ? 4 : 8;
  return packed;
}

void pack_blocks(PackedBlocks& packed, const StoredBlocks& stored, const void* numbers, const void* scales) {
  std::memset(packed.weights, 0, static_cast<std::size_t>(packed.bytes()));
  pack_scales(packed, *stored.scales, scales);
  if (has_words(packed, stored)) return pack_words(packed, stored, numbers);
  for_each_block(packed, Reader(stored, numbers), [&](std::int64_t column, std::int64_t b, const std::int8_t* from, std::int64_t count) {
    int zero = packed.bits == 4 ? -kLeast4 : -kLeast8;
    if (packed.zeros != nullptr) {
      zero = std::max(-static_cast<int>(*std::min_element(from, from + count)), 0);
      packed.zeros[cell_of(packed, column, b)] = static_cast<std::uint8_t>(zero);
    }
    for (std::int64_t k = 0; k < count; ++k) put(packed, column, b * packed.block + k, static_cast<unsigned>(from[k] + zero));
  });
}

namespace {

std::shared_ptr<const PackedBlocks> packed_anew(const StoredBlocks& stored, const void* numbers, const void* scales) {
  auto packed = std::make_shared<PackedBlocks>(unplaced_blocks(stored));
  if (packed->bits == 8 && fits_4(*packed, Reader(stored, numbers))) {
    packed->bits = 4;
    packed->has_zeros = true;
  }
  packed->memory = packed_memory(static_cast<std::size_t>(packed->bytes()));
  packed->lie_at(static_cast<std::byte*>(packed->memory.get()));
  pack_blocks(*packed, stored, numbers, scales);
  return packed;
}

}  // namespace

std::shared_ptr<const PackedBlocks> packed_blocks(const StoredBlocks& stored, const void* numbers, const void* scales) {
  using Dims = std::vector<std::int64_t>;
  using Key = std::tuple<const void*, const void*, hipdnnDataType_t, std::int64_t, Dims, Dims, Dims>;
  static SharedForms<Key, PackedBlocks> forms;
  const Tensor& t = *stored.numbers;
  return forms.find({numbers, scales, t.dtype, stored.block, t.dims, t.strides, stored.scales->strides},
                    [&] { return packed_anew(stored, numbers, scales); });
}

}  // namespace hipdnn_port
