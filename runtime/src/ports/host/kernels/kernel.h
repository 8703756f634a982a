// A kernel made ready: checked against its image once, then launched on pointers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "image.h"

namespace hipdnn_port::kernels {

/// The pointers of one launch, one per tensor of the image; each is aligned to its element, and null only where the tensor is empty.
class Operands {
 public:
  /// As the ABI passes them: the address of each pointer.
  explicit Operands(void** addresses) : addresses_(addresses) {}

  template <class T = std::byte>
  T* at(std::size_t tensor) const {
    return static_cast<T*>(*static_cast<void**>(addresses_[tensor]));
  }

 private:
  void** addresses_;
};

/// Immutable after construction, so that launches on several threads may share it. A launch allocates nothing.
class Kernel {
 public:
  explicit Kernel(const Image& image) : tensors_(image.tensors) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Checks the pointers, then runs on at most `threads` threads. Throws KernelError for what only a run can tell.
  void launch(void** addresses, int threads) const;

 protected:
  /// At least one output has elements.
  virtual void run(const Operands& operands, int threads) const = 0;

  const Tensor& tensor(std::size_t index) const { return tensors_[index]; }

 private:
  std::vector<Tensor> tensors_;
};

/// The kernel of an image. Throws KernelError where its function is unknown, or does not take such tensors and attributes.
std::unique_ptr<Kernel> make_kernel(const Image& image);

/// An index that lies outside, met by any thread of a launch; the first one is kept.
class IndexCheck {
 public:
  /// The position that `index` means in a dim of `size`, counted from the end where negative; 0, noted, where there is none.
  std::int64_t position(std::int64_t index, std::int64_t size) {
    const std::int64_t from_start = index < 0 ? index + size : index;
    if (from_start >= 0 && from_start < size) return from_start;
    note(index, size);
    return 0;
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  /// Throws KernelError where an index was outside.
  void finish(std::size_t tensor) const {
    if (failed()) refuse("tensors[", tensor, "]: index ", index_, " is out of range for a dim of ", size_);
  }

 private:
  void note(std::int64_t index, std::int64_t size) {
    if (failed_.exchange(true)) return;
    index_ = index;
    size_ = size;
  }

  std::atomic<bool> failed_{false};
  std::int64_t index_ = 0;
  std::int64_t size_ = 0;
};

/// Indices are i32 or i64.
void expect_index_dtype(const Image& image, std::size_t tensor);

/// Refuses tensor `index` unless it has the rank of tensor `data`, and no dim but `axis` is larger than there.
void expect_inside(const Image& image, std::size_t index, std::size_t data, std::size_t axis);

/// Element `at` of a tensor of indices.
inline std::int64_t read_index(const std::byte* base, DType dtype, std::int64_t at) {
  return dtype == DType::i32 ? std::int64_t{reinterpret_cast<const std::int32_t*>(base)[at]} : reinterpret_cast<const std::int64_t*>(base)[at];
}

}  // namespace hipdnn_port::kernels
