// A program as loaded from a file or from text: parsed, checked, immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/descriptor_spec.h"
#include "program/dtype.h"
#include "program_records.h"
#include "storage/mapped_file.h"

namespace hipdnn_rt {

/// What pointers to tensors are multiples of, in bytes: the ABI's default.
inline constexpr std::uintptr_t kPointerAlignment = 16;

/// An input or output of the model: a dense array in C order.
struct Argument {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> dims;
  std::uint64_t bytes;
  std::uint32_t buffer;
};

/// A tensor that the program reads; `data` lives as long as the program.
struct Constant {
  std::string tensor;
  std::uint32_t buffer;
  std::span<const std::byte> data;
  /// What owns the memory where the elements were computed from sizes; null where the tensor is stored.
  std::shared_ptr<const void> computed;
};

/// Memory a step may use. `first_step` and `last_step` are the steps that touch it, first_step > last_step where none does.
struct Buffer {
  BufferKind kind;
  std::uint64_t bytes;
  std::uint32_t first_step;
  std::uint32_t last_step;
};

/// A tensor of an executable or kernel that needs a pointer at run time.
struct Operand {
  /// Of a kernel's tensor: its position, counted from 1.
  std::int64_t uid;
  bool is_output;
  /// Bytes from its pointer that may be touched.
  std::uint64_t extent_bytes;
  /// What its pointer must be a multiple of, in bytes.
  std::uint64_t alignment;
};

/// One operation graph, as the list of descriptors that makes it.
struct Executable {
  std::string name;
  std::string summary;
  std::vector<Operand> operands;
  std::vector<DescriptorSpec> descriptors;
  /// Bytes that are equal for equal descriptors with equal operands.
  std::string canonical;
};

/// One kernel for what no operation graph expresses.
struct Kernel {
  std::string name;
  std::string summary;
  std::string function;
  /// Ins first.
  std::vector<Operand> operands;
  /// What the port's module is loaded from, and its function there.
  std::string image;
  std::string symbol;
  /// Positions in `operands` of the function's arguments.
  std::vector<std::size_t> arguments;
  /// Blocks of the launch and threads of a block, in x, y, z. No blocks: nothing is launched.
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  /// Whether its code waits for the kernels in front before it touches what they may have written: it may be launched while they still run.
  bool waits_itself = false;
  /// Shared memory of a block that the launch asks for.
  std::uint32_t shared_bytes = 0;
  /// Where the image is code for a GPU.
  std::string described;

  /// The function with its tensors and attributes, JSON as in a program file.
  const std::string& description() const { return described.empty() ? image : described; }
};

/// A place in a buffer.
struct View {
  std::uint32_t buffer;
  std::uint64_t offset;
};

struct ExecuteStep {
  std::uint32_t executable;
  /// In the order of the executable's operands.
  std::vector<View> operands;
};

struct LaunchStep {
  std::uint32_t kernel;
  /// In the order of the kernel's operands.
  std::vector<View> operands;
};

struct CopyStep {
  std::uint64_t bytes;
  View source;
  View destination;
};

struct Step {
  std::string name;
  std::variant<ExecuteStep, LaunchStep, CopyStep> action;
};

/// Named tensors outside a file; the owner keeps the memory alive.
using Tensors = std::map<std::string, std::span<const std::byte>, std::less<>>;

/// What keeps the memory of tensors alive, and the files among it.
struct TensorOwner {
  std::vector<std::shared_ptr<const void>> memory;
  std::vector<std::shared_ptr<const MappedFile>> files;
};

/// A whole program. Everything in it has been checked: an index is in range, an extent lies in its buffer, a step reads only what has been written.
/// Immutable, safe to share between threads.
class Program {
 public:
  const std::string& target() const { return target_; }
  const std::vector<Argument>& inputs() const { return inputs_; }
  const std::vector<Argument>& outputs() const { return outputs_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Executable>& executables() const { return executables_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const std::vector<Step>& steps() const { return steps_; }
  /// Say of a constant's bytes that they were copied: where they lie in a file, their pages stay memory of this process no longer.
  void release(std::span<const std::byte> bytes) const {
    for (const auto& file : owner_.files) file->release(bytes);
  }

 private:
  friend class ProgramChecker;
  Program() = default;

  std::string target_;
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  std::vector<Constant> constants_;
  std::vector<Buffer> buffers_;
  std::vector<Executable> executables_;
  std::vector<Kernel> kernels_;
  std::vector<Step> steps_;
  TensorOwner owner_;
};

/// Parse one member of a program's `executables`, without expressions. Throws ProgramError naming the field.
Executable parse_executable(std::string_view text);

/// Bits of one element of a hipDNN data type; nothing where it is unknown.
std::optional<std::uint64_t> element_bits(std::int64_t dtype);

}  // namespace hipdnn_rt
