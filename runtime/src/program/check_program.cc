// Checks a program as a whole, and makes of its records what runs.
#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "program/checked.h"
#include "program/checks.h"
#include "program/computed_constant.h"

namespace hipdnn_rt {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

std::string name_of(BufferKind kind) { return std::string(text_of(kind)); }

}  // namespace

/// Fills a Program list by list. Lives for one check.
class ProgramChecker {
 public:
  static std::shared_ptr<const Program> run(ProgramParts parts, const Tensors& tensors, TensorOwner owner, const Place& root,
                                            bool drops_empty) {
    std::shared_ptr<Program> program(new Program());
    program->owner_ = std::move(owner);
    ProgramChecker(tensors, root, *program).check(std::move(parts), drops_empty);
    return program;
  }

 private:
  ProgramChecker(const Tensors& tensors, const Place& root, Program& program) : tensors_(tensors), root_(root), program_(program) {}

  void check(ProgramParts parts, bool drops_empty) {
    program_.target_ = std::move(parts.target);
    add_buffers(parts.body.buffers);
    add_arguments(parts.body.inputs, BufferKind::input, Place(root_, "inputs"), program_.inputs_);
    add_arguments(parts.body.outputs, BufferKind::output, Place(root_, "outputs"), program_.outputs_);
    add_constants(parts.body.constants);
    check_all_bound();
    const Place executables(root_, "executables"), kernels(root_, "kernels");
    for (std::size_t i = 0; i < parts.executables.size(); ++i) {
      const Place place(executables, i);
      if (!drops_empty || !is_empty(parts.executables[i])) {
        positions_.push_back(static_cast<std::uint32_t>(program_.executables_.size()));
        program_.executables_.push_back(check_executable(std::move(parts.executables[i]), place));
        continue;
      }
      if (has_results(parts.executables[i])) {
        place.fail("its results are made of no elements (" + parts.executables[i].summary + "); sizes of at least 1 are needed");
      }
      positions_.push_back(kNever);
    }
    for (std::size_t i = 0; i < parts.kernels.size(); ++i) {
      program_.kernels_.push_back(check_kernel(std::move(parts.kernels[i]), Place(kernels, i)));
    }
    const Place steps(root_, "steps");
    for (std::size_t i = 0; i < parts.body.steps.size(); ++i) {
      const Place place(steps, i);
      std::visit([&](auto& step) { add(step, place); }, parts.body.steps[i]);
    }
    check_outputs_written();
  }

  void add_buffers(const std::vector<records::Buffer<Concrete>>& buffers) {
    for (const auto& buffer : buffers) program_.buffers_.push_back({buffer.kind, static_cast<std::uint64_t>(buffer.bytes), kNever, 0});
    is_bound_.resize(buffers.size(), false);
    is_written_.resize(buffers.size(), false);
  }

  /// The index of a buffer of this kind that nothing else is bound to.
  std::uint32_t bind_buffer(std::int64_t number, BufferKind kind, std::uint64_t bytes, const Place& place) {
    const std::uint32_t index = check_index(number, program_.buffers_.size(), place);
    const Buffer& buffer = program_.buffers_[index];
    if (buffer.kind != kind) place.fail("a buffer of kind \"" + name_of(kind) + "\"", std::to_string(index));
    if (is_bound_[index]) place.fail("a buffer that nothing else is bound to", std::to_string(index));
    if (buffer.bytes != bytes) {
      place.fail("buffer " + std::to_string(index) + " has " + std::to_string(buffer.bytes) + " bytes, its contents " + std::to_string(bytes));
    }
    is_bound_[index] = true;
    return index;
  }

  void add_arguments(std::vector<records::Port<Concrete>>& ports, BufferKind kind, const Place& place, std::vector<Argument>& arguments) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const Place at(place, i);
      if (!names.insert(ports[i].name).second) Place(at, "name").fail("a name used once", "\"" + ports[i].name + "\"");
      std::optional<std::uint64_t> bytes = info_of(ports[i].dtype).bytes;
      for (const std::int64_t dim : ports[i].dims) bytes = bytes ? checked_multiply(*bytes, static_cast<std::uint64_t>(dim)) : std::nullopt;
      if (!bytes) Place(at, "dims").fail("dims whose size fits 64 bits", "more");
      const std::uint32_t buffer = bind_buffer(ports[i].buffer, kind, *bytes, Place(at, "buffer"));
      arguments.push_back({std::move(ports[i].name), ports[i].dtype, std::move(ports[i].dims), *bytes, buffer});
    }
  }

  void add_constants(std::vector<records::Constant<Concrete>>& constants) {
    const Place place(root_, "constants");
    std::uint64_t left = kComputedBytesLimit;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const Place at(place, i);
      Constant constant{std::move(constants[i].tensor), 0, {}, nullptr};
      if (constants[i].values) {
        constant.computed = compute_constant(constants[i], constant.data, left, at);
      } else {
        const auto tensor = tensors_.find(constant.tensor);
        const Place name(at, "tensor");
        if (tensor == tensors_.end()) name.fail("the name of a stored tensor", "\"" + constant.tensor + "\"");
        constant.data = tensor->second;
        if (reinterpret_cast<std::uintptr_t>(constant.data.data()) % kPointerAlignment != 0 && !constant.data.empty()) {
          name.fail("a tensor aligned to " + std::to_string(kPointerAlignment) + " bytes", "\"" + constant.tensor + "\"");
        }
      }
      constant.buffer = bind_buffer(constants[i].buffer, BufferKind::constant, constant.data.size(), Place(at, "buffer"));
      program_.constants_.push_back(std::move(constant));
    }
  }

  void check_all_bound() const {
    const Place place(root_, "buffers");
    for (std::size_t i = 0; i < program_.buffers_.size(); ++i) {
      const BufferKind kind = program_.buffers_[i].kind;
      if (kind != BufferKind::temp && !is_bound_[i]) Place(place, i).fail("no " + name_of(kind) + " is bound to it");
    }
  }

  void add(records::Execute<Concrete>& step, const Place& place) {
    const std::uint32_t index = positions_[check_index(step.executable, positions_.size(), Place(place, "executable"))];
    if (index == kNever) return;
    program_.steps_.push_back({std::move(step.name), ExecuteStep{index, add_views(step.operands, program_.executables_[index].operands, place)}});
  }

  void add(records::Launch<Concrete>& step, const Place& place) {
    const std::uint32_t index = check_index(step.kernel, program_.kernels_.size(), Place(place, "kernel"));
    program_.steps_.push_back({std::move(step.name), LaunchStep{index, add_views(step.operands, program_.kernels_[index].operands, place)}});
  }

  void add(records::Copy<Concrete>& step, const Place& place) {
    const auto bytes = static_cast<std::uint64_t>(step.bytes);
    const Place source(place, "src"), destination(place, "dst");
    const CopyStep copy{bytes, view_of(step.src, bytes, source), view_of(step.dst, bytes, destination)};
    const std::uint64_t low = std::min(copy.source.offset, copy.destination.offset);
    const std::uint64_t high = std::max(copy.source.offset, copy.destination.offset);
    if (copy.source.buffer == copy.destination.buffer && high - low < bytes) {
      destination.fail("a destination apart from the source", "offset " + std::to_string(copy.destination.offset));
    }
    if (bytes == 0) return;
    note_read(copy.source, source);
    note_write(copy.destination, destination);
    program_.steps_.push_back({std::move(step.name), copy});
  }

  std::vector<View> add_views(const std::vector<records::Location<Concrete>>& locations, const std::vector<Operand>& operands, const Place& step) {
    const Place place(step, "operands");
    if (locations.size() != operands.size()) place.fail(std::to_string(operands.size()) + " operands", std::to_string(locations.size()));
    std::vector<View> views;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Place at(place, i);
      views.push_back(view_of(locations[i], operands[i].extent_bytes, at));
      if (views.back().offset % operands[i].alignment != 0) {
        Place(at, "offset").fail("a multiple of " + std::to_string(operands[i].alignment) + ", the tensor's byte alignment",
                                 std::to_string(views.back().offset));
      }
    }
    // Reads before writes: a step may read a buffer that it also writes. A tensor of no elements is neither read nor written.
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_output && operands[i].extent_bytes != 0) note_read(views[i], Place(place, i));
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_output && operands[i].extent_bytes != 0) note_write(views[i], Place(place, i));
    }
    return views;
  }

  View view_of(const records::Location<Concrete>& location, std::uint64_t bytes, const Place& place) const {
    View view{check_index(location.buffer, program_.buffers_.size(), Place(place, "buffer")), static_cast<std::uint64_t>(location.offset)};
    // A part of no elements, behind others of none, is nowhere: offsets of parts need not be multiples of the size that is zero.
    if (bytes == 0) view.offset = 0;
    const std::uint64_t size = program_.buffers_[view.buffer].bytes;
    if (!is_within(view.offset, bytes, size)) {
      place.fail(std::to_string(bytes) + " bytes from offset " + std::to_string(view.offset) + " pass the end of buffer " +
                 std::to_string(view.buffer) + " (" + std::to_string(size) + " bytes)");
    }
    return view;
  }

  void note_read(const View& view, const Place& place) {
    const BufferKind kind = program_.buffers_[view.buffer].kind;
    if ((kind == BufferKind::temp || kind == BufferKind::output) && !is_written_[view.buffer]) {
      place.fail("reads buffer " + std::to_string(view.buffer) + ", which no earlier step has written");
    }
    note_touch(view);
  }

  void note_write(const View& view, const Place& place) {
    const BufferKind kind = program_.buffers_[view.buffer].kind;
    if (kind == BufferKind::input || kind == BufferKind::constant) {
      place.fail("writes buffer " + std::to_string(view.buffer) + " of kind " + name_of(kind));
    }
    is_written_[view.buffer] = true;
    note_touch(view);
  }

  /// The step that is being added touches a buffer.
  void note_touch(const View& view) {
    const auto step = static_cast<std::uint32_t>(program_.steps_.size());
    Buffer& buffer = program_.buffers_[view.buffer];
    buffer.first_step = std::min(buffer.first_step, step);
    buffer.last_step = step;
  }

  void check_outputs_written() const {
    const Place place(root_, "outputs");
    for (std::size_t i = 0; i < program_.outputs_.size(); ++i) {
      const Argument& output = program_.outputs_[i];
      if (!is_written_[output.buffer] && output.bytes != 0) Place(place, i).fail("no step writes it");
    }
  }

  const Tensors& tensors_;
  const Place& root_;
  Program& program_;
  std::vector<bool> is_bound_;
  std::vector<bool> is_written_;
  /// Of the file's executables among the program's.
  std::vector<std::uint32_t> positions_;
};

std::shared_ptr<const Program> check_program(ProgramParts parts, const Tensors& tensors, TensorOwner owner, const Place& place,
                                             bool drops_empty) {
  return ProgramChecker::run(std::move(parts), tensors, std::move(owner), place, drops_empty);
}

}  // namespace hipdnn_rt
