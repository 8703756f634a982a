// Reads a program's text and checks it as a whole.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <set>

#include "device/error.h"
#include "program/checked.h"
#include "program/checksum.h"
#include "program/json_field.h"
#include "program/program.h"
#include "program/safetensors.h"
#include "storage/mapped_file.h"

namespace hipdnn_rt {
namespace {

/// Bounds the work that a hostile file can cause; real programs stay two orders of magnitude below.
constexpr std::size_t kListLimit = 65'536;
constexpr std::size_t kRankLimit = 64;
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
/// The ABI's default for tensor pointers.
constexpr std::uintptr_t kPointerAlignment = 16;
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

BufferKind read_kind(const Field& field) {
  const std::string& kind = field.text();
  if (kind == "input") return BufferKind::input;
  if (kind == "output") return BufferKind::output;
  if (kind == "constant") return BufferKind::constant;
  if (kind == "temp") return BufferKind::temp;
  field.fail("one of \"input\", \"output\", \"constant\", \"temp\"");
}

const char* name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::input: return "input";
    case BufferKind::output: return "output";
    case BufferKind::constant: return "constant";
    case BufferKind::temp: return "temp";
  }
  return "unknown";
}

}  // namespace

/// Fills a Program field by field. Lives for one parse.
class ProgramReader {
 public:
  ProgramReader(const Program::Tensors& tensors, Program& program) : tensors_(tensors), program_(program) {}

  void read(const Field& root) {
    Program::check_format(root);
    program_.target_ = root["target"].text();
    read_buffers(root["buffers"]);
    read_arguments(root["inputs"], BufferKind::input, program_.inputs_);
    read_arguments(root["outputs"], BufferKind::output, program_.outputs_);
    read_constants(root["constants"]);
    check_all_bound(root["buffers"]);
    const Field executables = root["executables"];
    const std::size_t count = executables.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) program_.executables_.push_back(parse_executable(executables.at(i)));
    if (const auto kernels = root.find("kernels")) read_kernels(*kernels);
    read_steps(root["steps"]);
    check_outputs_written(root["outputs"]);
    check_liveness(root["buffers"]);
  }

 private:
  void read_buffers(const Field& field) {
    const std::size_t count = field.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) {
      const Field entry = field.at(i);
      program_.buffers_.push_back({read_kind(entry["kind"]), entry["bytes"].byte_count(), kNever, 0});
    }
    is_bound_.resize(count, false);
    is_written_.resize(count, false);
  }

  /// The index of a buffer of this kind that nothing else is bound to.
  std::uint32_t bind_buffer(const Field& field, BufferKind kind, std::uint64_t bytes) {
    const std::uint32_t index = buffer_index(field);
    const Buffer& buffer = program_.buffers_[index];
    if (buffer.kind != kind) field.fail(std::string("a buffer of kind \"") + name_of(kind) + "\"");
    if (is_bound_[index]) field.fail("a buffer that nothing else is bound to");
    if (buffer.bytes != bytes) {
      throw ProgramError(field.path() + ": buffer " + std::to_string(index) + " has " + std::to_string(buffer.bytes) +
                         " bytes, its contents " + std::to_string(bytes));
    }
    is_bound_[index] = true;
    return index;
  }

  std::uint32_t buffer_index(const Field& field) const {
    return static_cast<std::uint32_t>(field.integer(0, static_cast<std::int64_t>(program_.buffers_.size()) - 1));
  }

  void read_arguments(const Field& field, BufferKind kind, std::vector<Argument>& arguments) {
    const std::size_t count = field.array_size(kListLimit);
    std::set<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
      const Field entry = field.at(i);
      Argument argument{entry["name"].text(), {}, entry["dims"].integers(kRankLimit, 0, kInt64Max), 0, 0};
      if (!names.insert(argument.name).second) entry["name"].fail("a name used once");
      const std::optional<DType> dtype = dtype_from_name(entry["dtype"].text());
      if (!dtype) entry["dtype"].fail("an element type of the format");
      argument.dtype = *dtype;
      std::optional<std::uint64_t> bytes = info_of(*dtype).bytes;
      for (const std::int64_t dim : argument.dims) {
        bytes = bytes ? checked_multiply(*bytes, static_cast<std::uint64_t>(dim)) : std::nullopt;
      }
      if (!bytes) entry["dims"].fail("dims whose size fits 64 bits");
      argument.bytes = *bytes;
      argument.buffer = bind_buffer(entry["buffer"], kind, *bytes);
      arguments.push_back(std::move(argument));
    }
  }

  void read_constants(const Field& field) {
    const std::size_t count = field.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) {
      const Field entry = field.at(i);
      const Field name = entry["tensor"];
      const auto tensor = tensors_.find(name.text());
      if (tensor == tensors_.end()) name.fail("the name of a stored tensor");
      if (reinterpret_cast<std::uintptr_t>(tensor->second.data()) % kPointerAlignment != 0 && !tensor->second.empty()) {
        name.fail("a tensor aligned to " + std::to_string(kPointerAlignment) + " bytes");
      }
      program_.constants_.push_back(
          {name.text(), bind_buffer(entry["buffer"], BufferKind::constant, tensor->second.size()), tensor->second});
    }
  }

  void check_all_bound(const Field& field) const {
    for (std::size_t i = 0; i < program_.buffers_.size(); ++i) {
      const BufferKind kind = program_.buffers_[i].kind;
      if (kind != BufferKind::temp && !is_bound_[i]) {
        throw ProgramError(field.at(i).path() + ": no " + name_of(kind) + " is bound to it");
      }
    }
  }

  void read_kernels(const Field& field) {
    const std::size_t count = field.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) program_.kernels_.push_back(parse_kernel(field.at(i)));
  }

  void read_steps(const Field& field) {
    const std::size_t count = field.array_size(kListLimit);
    for (std::size_t i = 0; i < count; ++i) {
      const Field entry = field.at(i);
      const Field kind = entry["kind"];
      Step step;
      if (const auto name = entry.find("name")) step.name = name->text();
      if (kind.text() == "execute") {
        step.action = read_execute(entry, static_cast<std::uint32_t>(i));
      } else if (kind.text() == "launch") {
        step.action = read_launch(entry, static_cast<std::uint32_t>(i));
      } else if (kind.text() == "copy") {
        step.action = read_copy(entry, static_cast<std::uint32_t>(i));
      } else {
        kind.fail("\"execute\", \"launch\" or \"copy\"");
      }
      program_.steps_.push_back(std::move(step));
    }
  }

  ExecuteStep read_execute(const Field& entry, std::uint32_t step) {
    const auto limit = static_cast<std::int64_t>(program_.executables_.size()) - 1;
    const auto index = static_cast<std::uint32_t>(entry["executable"].integer(0, limit));
    return {index, read_operands(entry["operands"], program_.executables_[index].operands, step)};
  }

  LaunchStep read_launch(const Field& entry, std::uint32_t step) {
    const auto limit = static_cast<std::int64_t>(program_.kernels_.size()) - 1;
    const auto index = static_cast<std::uint32_t>(entry["kernel"].integer(0, limit));
    return {index, read_operands(entry["operands"], program_.kernels_[index].operands, step)};
  }

  std::vector<View> read_operands(const Field& views, const std::vector<Operand>& operands, std::uint32_t step) {
    if (views.array_size(kListLimit) != operands.size()) views.fail(std::to_string(operands.size()) + " operands");
    std::vector<View> places;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Field field = views.at(i);
      places.push_back(read_view(field, operands[i].extent_bytes));
      if (places.back().offset % operands[i].alignment != 0) {
        field["offset"].fail("a multiple of " + std::to_string(operands[i].alignment) + ", the tensor's byte alignment");
      }
    }
    // Reads before writes: a step may read a buffer that it also writes. A tensor of no elements is neither read nor written.
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_output && operands[i].extent_bytes != 0) note_read(views.at(i), places[i], step);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_output && operands[i].extent_bytes != 0) note_write(views.at(i), places[i], step);
    }
    return places;
  }

  CopyStep read_copy(const Field& entry, std::uint32_t step) {
    const std::uint64_t bytes = entry["bytes"].byte_count();
    const CopyStep copy{bytes, read_view(entry["src"], bytes), read_view(entry["dst"], bytes)};
    const std::uint64_t low = std::min(copy.source.offset, copy.destination.offset);
    const std::uint64_t high = std::max(copy.source.offset, copy.destination.offset);
    if (copy.source.buffer == copy.destination.buffer && high - low < bytes) entry["dst"].fail("a destination apart from the source");
    note_read(entry["src"], copy.source, step);
    note_write(entry["dst"], copy.destination, step);
    return copy;
  }

  View read_view(const Field& field, std::uint64_t bytes) const {
    const View view{buffer_index(field["buffer"]), field["offset"].byte_count()};
    const std::uint64_t size = program_.buffers_[view.buffer].bytes;
    if (!is_within(view.offset, bytes, size)) {
      throw ProgramError(field.path() + ": " + std::to_string(bytes) + " bytes from offset " + std::to_string(view.offset) +
                         " pass the end of buffer " + std::to_string(view.buffer) + " (" + std::to_string(size) + " bytes)");
    }
    return view;
  }

  void note_read(const Field& field, const View& view, std::uint32_t step) {
    const BufferKind kind = program_.buffers_[view.buffer].kind;
    if ((kind == BufferKind::temp || kind == BufferKind::output) && !is_written_[view.buffer]) {
      throw ProgramError(field.path() + ": reads buffer " + std::to_string(view.buffer) + ", which no earlier step has written");
    }
    note_touch(view, step);
  }

  void note_write(const Field& field, const View& view, std::uint32_t step) {
    const BufferKind kind = program_.buffers_[view.buffer].kind;
    if (kind == BufferKind::input || kind == BufferKind::constant) {
      throw ProgramError(field.path() + ": writes buffer " + std::to_string(view.buffer) + " of kind " + name_of(kind));
    }
    is_written_[view.buffer] = true;
    note_touch(view, step);
  }

  void note_touch(const View& view, std::uint32_t step) {
    Buffer& buffer = program_.buffers_[view.buffer];
    buffer.first_step = std::min(buffer.first_step, step);
    buffer.last_step = step;
  }

  void check_outputs_written(const Field& field) const {
    for (std::size_t i = 0; i < program_.outputs_.size(); ++i) {
      const Argument& output = program_.outputs_[i];
      if (!is_written_[output.buffer] && output.bytes != 0) throw ProgramError(field.at(i).path() + ": no step writes it");
    }
  }

  /// `first` and `last` of the file must enclose every use; the loader itself relies on the uses alone.
  void check_liveness(const Field& field) const {
    for (std::size_t i = 0; i < program_.buffers_.size(); ++i) {
      const Buffer& buffer = program_.buffers_[i];
      if (buffer.first_step == kNever) continue;
      const Field entry = field.at(i);
      entry["first"].integer(0, buffer.first_step);
      entry["last"].integer(buffer.last_step, static_cast<std::int64_t>(program_.steps_.size()) - 1);
    }
  }

  const Program::Tensors& tensors_;
  Program& program_;
  std::vector<bool> is_bound_;
  std::vector<bool> is_written_;
};

namespace {

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// Compare the file's checksum, where it has one, with its contents.
void check_contents(const Safetensors& container, const std::string& text) {
  const auto entry = container.metadata.find("hipdnn_checksum");
  if (entry == container.metadata.end()) return;
  const std::string of_text = hex(checksum(std::as_bytes(std::span(text))));
  const std::string of_data = hex(checksum(container.data));
  if (entry->second == of_text + of_data) return;
  const char* part = entry->second.starts_with(of_text) ? "tensor data" : "program text";
  throw ProgramError(std::string("__metadata__.hipdnn_checksum: does not match the ") + part +
                     "; the file is damaged or was edited, compile the model again");
}

}  // namespace

void Program::check_format(const Field& root) {
  const Field format = root["format"];
  if (format.integer(1, kInt64Max) <= kProgramFormat) return;
  throw ProgramError(format.path() + ": " + std::to_string(format.integer(1, kInt64Max)) + " is newer than " +
                     std::to_string(kProgramFormat) + ", the newest this version reads; update hipdnn_mlir or compile the model again");
}

std::shared_ptr<const Program> Program::read(const nlohmann::json& json, std::string text, const Tensors& tensors,
                                             std::shared_ptr<const void> owner) {
  std::shared_ptr<Program> program(new Program());
  program->owner_ = std::move(owner);
  program->text_ = std::move(text);
  ProgramReader(tensors, *program).read(Field(json, "program"));
  return program;
}

std::shared_ptr<const Program> Program::parse(std::string_view text, const Tensors& tensors, std::shared_ptr<const void> owner) {
  return read(parse_json(text, "program"), std::string(text), tensors, std::move(owner));
}

Contents open_container(std::span<const std::byte> bytes) {
  const Safetensors container = parse_safetensors(bytes);
  const auto text = container.metadata.find("hipdnn_program");
  if (text == container.metadata.end()) {
    throw ProgramError("__metadata__.hipdnn_program: missing; a safetensors file, but not a .hipdnn program");
  }
  check_contents(container, text->second);
  return {text->second, container.tensors};
}

std::shared_ptr<const Program> Program::parse_container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const Contents contents = open_container(bytes);
  return parse(contents.text, contents.tensors, std::move(owner));
}

std::shared_ptr<const Program> Program::load(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  try {
    return parse_container(file->bytes(), file);
  } catch (const ProgramError& error) {
    throw ProgramError(path + ": " + error.what());
  }
}

}  // namespace hipdnn_rt
