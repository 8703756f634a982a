#include "growing_node.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "aligned_array.h"
#include "device/error.h"

namespace hipdnn_ep {
namespace {

using hipdnn_rt::Memory;
using Shape = std::vector<std::int64_t>;
using Extents = std::span<const std::int64_t>;

constexpr std::size_t kRowsAxis = 2;
/// Buffers have so many rows, or room for twice as many as are valid at first, where a program is for any.
constexpr std::int64_t kLeastRows = 1024;

std::size_t volume(Extents dims, std::size_t element_bytes = 1) {
  const auto times = [](std::size_t all, std::int64_t dim) { return all * static_cast<std::size_t>(dim); };
  return std::accumulate(dims.begin(), dims.end(), element_bytes, times);
}

std::string shown(Extents dims) {
  std::string text;
  for (const std::int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

/// The least of some rising sizes from `least` to `most`; `least` itself where there is none.
std::int64_t rounded(const hipdnn_rt::Sizes& sizes, std::int64_t least, std::int64_t most) {
  const auto found = std::ranges::lower_bound(sizes, least);
  return found != sizes.end() && *found <= most ? *found : least;
}

/// Work put on a stream.
class Queue {
 public:
  Queue(const hipdnn_rt::HipApi& hip, hipStream_t stream) : hip_(hip), stream_(stream) {}

  void zero(std::byte* data, std::size_t bytes) const {
    if (bytes > 0) hipdnn_rt::check(hip_, hip_.memset_async(data, 0, bytes, stream_), "hipMemsetAsync");
  }

  /// Copy what two arrays have in common: from the beginning of each dim on, as far as both go.
  void copy(std::byte* to, Extents room, const std::byte* from, Extents dims, std::size_t element_bytes, hipMemcpyKind kind) const {
    std::size_t last = dims.size();
    while (last > 0 && dims[last - 1] == room[last - 1]) --last;
    const std::size_t inner = volume(dims.subspan(last), element_bytes);
    if (last <= 1) return copy_rows(to, 0, from, 0, last == 0 ? inner : inner * static_cast<std::size_t>(std::min(dims[0], room[0])), 1, kind);
    const auto count = static_cast<std::size_t>(std::min(dims[0], room[0]));
    const Extents between = dims.subspan(1, last - 2);
    if (std::ranges::equal(between, room.subspan(1, last - 2))) {
      const std::size_t to_pitch = static_cast<std::size_t>(room[last - 1]) * inner, from_pitch = static_cast<std::size_t>(dims[last - 1]) * inner;
      return copy_rows(to, to_pitch, from, from_pitch, std::min(to_pitch, from_pitch), volume(between, count), kind);
    }
    for (std::size_t i = 0; i < count; ++i) {
      copy(to, room.subspan(1), from, dims.subspan(1), element_bytes, kind);
      to += volume(room.subspan(1), element_bytes);
      from += volume(dims.subspan(1), element_bytes);
    }
  }

  void wait() const { hipdnn_rt::check(hip_, hip_.stream_synchronize(stream_), "hipStreamSynchronize"); }

 private:
  void copy_rows(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch, std::size_t width, std::size_t height,
                 hipMemcpyKind kind) const {
    if (width == 0 || height == 0) return;
    if (height == 1) return hipdnn_rt::check(hip_, hip_.memcpy_async(to, from, width, kind, stream_), "hipMemcpyAsync");
    hipdnn_rt::check(hip_, hip_.memcpy_2d_async(to, to_pitch, from, from_pitch, width, height, kind, stream_), "hipMemcpy2DAsync");
  }

  const hipdnn_rt::HipApi& hip_;
  hipStream_t stream_;
};

}  // namespace

struct GrowingNode::Input {
  const std::byte* data;
  Memory memory;
  Shape dims;
};

struct GrowingNode::Run {
  std::vector<Input> inputs;
  std::int64_t before = 0;  ///< valid rows
  std::int64_t total = 0;   ///< valid rows afterwards
  std::int64_t rows = 0;    ///< of the buffers
  bool is_growing = true;
  hipdnn_rt::Sizes sizes;  ///< of the model's run, but for the rows of its caches
};

/// One block for each input and output, as large as it was ever needed. It holds caches for the time of a run alone.
class GrowingNode::Scratch {
 public:
  explicit Scratch(std::size_t count) : blocks_(count) {}

  /// Zeros at first, then what is left of other runs.
  std::byte* find(const hipdnn_rt::Device& device, std::size_t index, std::size_t bytes, const Queue& queue) {
    Block& block = blocks_[index];
    if (block.bytes < bytes) {
      block = {};
      block = {device.allocate(bytes), bytes};
      queue.zero(static_cast<std::byte*>(block.memory.get()), bytes);
    }
    return static_cast<std::byte*>(block.memory.get());
  }

 private:
  struct Block {
    hipdnn_rt::DeviceBuffer memory;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks_;
};

/// The arrays of one run, and what is copied out of them behind it.
struct GrowingNode::Binding {
  struct CopyOut {
    std::byte* to;
    Memory memory;
    Shape room;
    const std::byte* from;
    const hipdnn_rt::Argument& argument;
  };
  Scratch& scratch;
  const Queue& queue;
  std::vector<hipdnn_rt::InputArray> inputs = {};
  std::vector<hipdnn_rt::OutputArray> outputs = {};
  std::vector<CopyOut> copies = {};
};

GrowingNode::GrowingNode(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program, NodeSignature signature,
                         std::optional<SizeCompiler> rest)
    : FusedNode(settings.ort),
      settings_(settings),
      program_(std::move(program)),
      signature_(std::move(signature)),
      constants_(settings.weights->upload(*settings.device.device, *program_)),
      added_(program_->symbol_of(program_->growing()->added)),
      are_flags_(std::ranges::all_of(program_->growing()->sized,
                                     [&](const auto& sized) {
                                       using hipdnn_rt::DType;
                                       const DType dtype = program_->inputs()[static_cast<std::size_t>(sized.input)].dtype;
                                       return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::boolean;
                                     })),
      programs_(settings.max_specializations) {
  if (rest) rest_ = std::make_unique<DynamicNode>(settings, std::move(*rest), signature_);
  signature_ = signature_on_buffers(*program_, std::move(signature_));
  check_arguments(*program_, signature_);
}

GrowingNode::~GrowingNode() = default;

void GrowingNode::run(OrtKernelContext* context) {
  Run run = read(context);
  std::shared_ptr<NodeProgram> program;
  try {
    if (run.is_growing) run.rows = rows_for(run);
    program = program_for(run);
  } catch (const hipdnn_rt::InputError&) {
    if (!rest_ || !run.is_growing) throw;
    return rest_->run(context);
  }
  run_on_buffers(context, run, *program);
  if (run.total - run.before > 1) load_step(std::move(run));
}

void GrowingNode::load_step(Run run) {
  if (!added_) return;
  run.sizes[*added_] = 1;
  try {
    static_cast<void>(program_for(run));
  } catch (const hipdnn_rt::InputError&) {  // the run that needs it says so
  }
}

GrowingNode::Input GrowingNode::read_input(OrtKernelContext* context, std::size_t index) const {
  const OrtApi& api = *settings_.ort.api;
  const NodeValue& input = signature_.inputs[index];
  const OrtValue* value = nullptr;
  const void* data = nullptr;
  check(settings_.ort, api.KernelContext_GetInput(context, input.index, &value));
  if (value == nullptr) throw hipdnn_rt::InputError("input '" + input.name + "' is missing");
  check(settings_.ort, api.GetTensorData(value, &data));
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(settings_.ort, api.GetTensorTypeAndShape(value, &raw));
  const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
  std::size_t rank = 0;
  check(settings_.ort, api.GetDimensionsCount(raw, &rank));
  Shape dims(rank);
  if (rank > 0) check(settings_.ort, api.GetDimensions(raw, dims.data(), rank));
  if (const std::size_t expected = program_->inputs()[index].dims.size(); rank != expected) {
    throw hipdnn_rt::InputError("input '" + input.name + "': expected " + std::to_string(expected) + " dims, got " + shown(dims));
  }
  return {static_cast<const std::byte*>(data), memory_of(settings_.ort, settings_.device, value), std::move(dims)};
}

GrowingNode::Run GrowingNode::read(OrtKernelContext* context) const {
  const auto& growing = *program_->growing();
  Run run;
  for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
    run.inputs.push_back(static_cast<std::int64_t>(i) == growing.length ? Input{nullptr, Memory::host, {1}} : read_input(context, i));
  }
  check_caches(run);
  const std::int64_t given = run.inputs[static_cast<std::size_t>(growing.caches.front().input)].dims[kRowsAxis];
  const std::int64_t total = read_total(run);
  // The program's masks are as long as its buffers.
  std::vector<Shape> own;
  for (const Input& input : run.inputs) own.push_back(input.dims);
  for (const auto& sized : growing.sized) own[static_cast<std::size_t>(sized.input)][static_cast<std::size_t>(sized.axis)] = given;
  const std::vector<Extents> dims(own.begin(), own.end());
  run.sizes = program_->sizes_of(dims);
  const std::int64_t fresh = program_->value_of(growing.added, run.sizes);
  run.is_growing = total < 0 || total == given + fresh;
  run.total = total < 0 ? given + fresh : total;
  run.before = run.total - fresh;
  run.rows = given;
  if (!run.is_growing && (run.total > given || run.before < 0)) {
    throw hipdnn_rt::InputError("the length of '" + signature_.inputs[static_cast<std::size_t>(growing.sized.front().input)].name + "' is " +
                                std::to_string(total) + ": expected " + std::to_string(given + fresh) + " for caches of " +
                                std::to_string(given) + " rows and " + std::to_string(fresh) + " new, or at most " + std::to_string(given) +
                                " where they are buffers");
  }
  return run;
}

std::int64_t GrowingNode::read_total(Run& run) const {
  std::int64_t total = -1;
  for (const auto& sized : program_->growing()->sized) {
    const auto input = static_cast<std::size_t>(sized.input);
    const std::int64_t dim = run.inputs[input].dims[static_cast<std::size_t>(sized.axis)];
    if (total >= 0 && dim != total) {
      throw hipdnn_rt::InputError("input '" + signature_.inputs[input].name + "': expected " + std::to_string(total) + " in dim " +
                                  std::to_string(sized.axis) + ", got " + std::to_string(dim));
    }
    total = dim;
  }
  return total;
}

void GrowingNode::check_caches(const Run& run) const {
  const auto& growing = *program_->growing();
  const auto first = static_cast<std::size_t>(growing.caches.front().input);
  const Shape& expected = run.inputs[first].dims;
  for (const auto& cache : growing.caches) {
    const auto input = static_cast<std::size_t>(cache.input);
    const Shape& dims = run.inputs[input].dims;
    if (dims[0] == expected[0] && dims[kRowsAxis] == expected[kRowsAxis]) continue;
    throw hipdnn_rt::InputError("input '" + signature_.inputs[input].name + "' is " + shown(dims) + ": expected batch and rows of '" +
                                signature_.inputs[first].name + "', " + shown(expected));
  }
}

const hipdnn_rt::Sizes& GrowingNode::buckets_of(std::optional<std::size_t> symbol) const {
  static const hipdnn_rt::Sizes none;
  return symbol && *symbol < program_->buckets().size() ? program_->buckets()[*symbol] : none;
}

std::int64_t GrowingNode::window_for(std::int64_t fresh, std::int64_t room) const {
  return are_flags_ && !program_->growing()->sized.empty() ? rounded(buckets_of(added_), fresh, room) : fresh;
}

std::int64_t GrowingNode::rows_for(const Run& run) const {
  const hipdnn_rt::Sizes& rows = buckets_of(static_cast<std::size_t>(program_->growing()->rows));
  if (rows.empty()) return std::max(kLeastRows, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * run.total))));
  const std::int64_t window = window_for(run.total - run.before, rows.back());
  const std::int64_t found = std::min(rounded(rows, run.before + window, rows.back()), rows.back());
  if (found >= run.total) return found;
  throw hipdnn_rt::InputError("no room in the caches: expected at most " + std::to_string(rows.back()) + " rows, got " +
                              std::to_string(run.total) + "; begin a new text, or compile for longer caches");
}

std::shared_ptr<NodeProgram> GrowingNode::program_for(const Run& run) {
  hipdnn_rt::Sizes sizes = run.sizes;
  sizes[static_cast<std::size_t>(program_->growing()->rows)] = run.rows;
  if (added_) sizes[*added_] = window_for(sizes[*added_], run.rows - run.before);
  return programs_.get(sizes, [&] { return load_program(settings_, *program_, sizes, program_->at(sizes), signature_, constants_); });
}

std::unique_ptr<GrowingNode::Scratch> GrowingNode::take() {
  {
    const std::lock_guard lock(mutex_);
    if (free_) return std::move(free_);
  }
  return std::make_unique<Scratch>(signature_.inputs.size() + signature_.outputs.size());
}

void GrowingNode::give_back(std::unique_ptr<Scratch> scratch) {
  const std::lock_guard lock(mutex_);
  free_ = std::move(scratch);
}

bool GrowingNode::stays(const void* data, Memory memory) const {
  // A program that copies arrays of the host itself is waited for, by which the copies behind it would be late.
  return memory == Memory::device || (!settings_.device.is_device_memory && is_aligned(data));
}

void GrowingNode::bind_inputs(const Run& run, const NodeProgram& program, Binding& binding) const {
  const auto& growing = *program_->growing();
  // Several new rows may attend to all of a buffer, under a mask that no NaN of another text is hidden by. A single one reads what is valid.
  const bool reads_all = window_for(run.total - run.before, run.rows - run.before) > 1;
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const hipdnn_rt::Argument& argument = program.program().inputs()[i];
    const auto index = static_cast<std::int64_t>(i);
    const bool is_length = index == growing.length;
    const bool is_cache = std::ranges::any_of(growing.caches, [&](const auto& cache) { return cache.input == index; });
    const auto& [given, memory, dims] = run.inputs[i];
    const std::byte* data = is_length ? reinterpret_cast<const std::byte*>(&run.before) : given;
    if (volume(dims) > 0) check_memory(argument, data);
    if (dims == argument.dims && !(is_cache && run.is_growing) && stays(data, memory)) {
      binding.inputs.push_back({data, memory});
      continue;
    }
    std::byte* block = binding.scratch.find(*settings_.device.device, i, argument.bytes, binding.queue);
    if (dims != argument.dims && (!is_cache || reads_all)) binding.queue.zero(block, argument.bytes);
    binding.queue.copy(block, argument.dims, data, dims, hipdnn_rt::info_of(argument.dtype).bytes,
                       memory == Memory::host ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice);
    binding.inputs.push_back({block, Memory::device});
  }
}

void GrowingNode::bind_outputs(OrtKernelContext* context, const Run& run, const NodeProgram& program, Binding& binding) const {
  const OrtApi& api = *settings_.ort.api;
  const auto& growing = *program_->growing();
  hipdnn_rt::Sizes sizes = run.sizes;
  sizes[static_cast<std::size_t>(growing.rows)] = run.rows;
  std::vector<Shape> rooms = program_->output_dims(sizes);
  for (std::size_t i = 0; i < signature_.outputs.size(); ++i) {
    const hipdnn_rt::Argument& argument = program.program().outputs()[i];
    const auto cache = std::ranges::find(growing.caches, static_cast<std::int64_t>(i), [](const auto& entry) { return entry.output; });
    const bool is_grown = cache != growing.caches.end() && run.is_growing;
    if (is_grown) rooms[i][kRowsAxis] = run.total;
    OrtValue* value = nullptr;
    void* data = nullptr;
    check(settings_.ort, api.KernelContext_GetOutput(context, signature_.outputs[i].index, rooms[i].data(), rooms[i].size(), &value));
    check(settings_.ort, api.GetTensorMutableData(value, &data));
    if (volume(rooms[i]) > 0) check_memory(argument, data);
    const Memory memory = memory_of(settings_.ort, settings_.device, value);
    if (!is_grown && rooms[i] == argument.dims && stays(data, memory)) {
      binding.outputs.push_back({data, memory});
      continue;
    }
    const std::size_t index = is_grown ? static_cast<std::size_t>(cache->input) : signature_.inputs.size() + i;
    std::byte* block = binding.scratch.find(*settings_.device.device, index, argument.bytes, binding.queue);
    binding.outputs.push_back({block, Memory::device});
    binding.copies.push_back({static_cast<std::byte*>(data), memory, std::move(rooms[i]), block, argument});
  }
}

void GrowingNode::run_on_buffers(OrtKernelContext* context, const Run& run, NodeProgram& program) {
  const hipdnn_rt::Device& device = *settings_.device.device;
  device.activate();
  const hipStream_t stream = stream_of(settings_.ort, settings_.device, context);
  const Queue queue(device.library().hip(), stream);
  std::unique_ptr<Scratch> scratch = take();
  try {
    Binding binding{*scratch, queue};
    bind_inputs(run, program, binding);
    bind_outputs(context, run, program, binding);
    if (!settings_.device.is_device_memory) queue.wait();  // the program runs on a stream of its own
    program.run(binding.inputs, binding.outputs, stream);
    for (const auto& [to, memory, room, from, argument] : binding.copies) {
      queue.copy(to, room, from, argument.dims, hipdnn_rt::info_of(argument.dtype).bytes,
                 memory == Memory::host ? hipMemcpyDeviceToHost : hipMemcpyDeviceToDevice);
    }
    queue.wait();  // the next run may be on another stream, and arrays of the host are ONNX Runtime's again
  } catch (...) {
    device.library().hip().stream_synchronize(stream);  // memory that is freed must not be in use
    throw;
  }
  give_back(std::move(scratch));
}

}  // namespace hipdnn_ep
