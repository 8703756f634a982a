// Arrays of Python as the runtime's inputs and outputs: checked, and used where they lie.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/context.h"

namespace hipdnn_rt::bindings {

/// Any array; read-only ones are inputs only.
using ReadArray = nanobind::ndarray<nanobind::ro>;
using WriteArray = nanobind::ndarray<>;

/// View `object` (NumPy or DLPack) as the program's argument. bf16 and floats of 8 bits may come as unsigned integers, which NumPy has.
/// Throws InputError naming the argument where dtype, shape, layout or memory do not fit what the device reads.
ReadArray import_input(nanobind::handle object, const Argument& argument, const Device& device);
WriteArray import_output(nanobind::handle object, const Argument& argument, const Device& device);

/// A DLPack capsule of memory of a device's, dense where there are no `strides` (in elements). `owner` is kept alive by it.
/// Throws InputError for an unknown dtype.
nanobind::object wrap_device_memory(const Device& device, std::uintptr_t address, const std::vector<std::size_t>& dims,
                                    const std::optional<std::vector<std::int64_t>>& strides, const std::string& dtype, nanobind::handle owner);

InputArray as_input(const ReadArray& array);
OutputArray as_output(const WriteArray& array);

/// Memory for output arrays of one program. A block comes back when the array that uses it dies and serves a later run: its pages are
/// mapped and its address is known to the variant packs. Safe to use from several threads; outlives the session through its arrays.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  explicit OutputPool(const std::vector<Argument>& outputs);

  /// A NumPy array (bf16 and floats of 8 bits as unsigned integers) with undefined contents for output `index`.
  nanobind::ndarray<nanobind::numpy> make_array(std::size_t index);

 private:
  struct FreeBlock {
    void operator()(void* pointer) const { std::free(pointer); }
  };
  using Block = std::unique_ptr<void, FreeBlock>;
  /// What an array's owner capsule holds.
  struct Lease {
    std::shared_ptr<OutputPool> pool;
    std::size_t index;
    Block block;
  };

  Block take(std::size_t index);
  void give_back(std::size_t index, Block block);

  std::vector<Argument> outputs_;
  std::mutex mutex_;
  std::vector<std::vector<Block>> free_;
};

}  // namespace hipdnn_rt::bindings
