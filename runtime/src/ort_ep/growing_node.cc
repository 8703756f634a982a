#include "growing_node.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include "aligned_array.h"
#include "device/error.h"

namespace hipdnn_ep {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kRowsAxis = 2;
/// Buffers have so many rows, or room for twice as many as are valid at first.
constexpr std::int64_t kLeastRows = 1024;

std::int64_t volume(std::span<const std::int64_t> dims) { return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()); }

/// Arrays that differ in one dim, from which as much is copied as both have.
void copy_along(std::byte* to, std::int64_t to_size, const std::byte* from, std::int64_t from_size, const Shape& dims, std::size_t axis,
                std::size_t element_bytes) {
  const std::span<const std::int64_t> all(dims);
  const auto outer = volume(all.first(axis));
  const auto inner = static_cast<std::size_t>(volume(all.subspan(axis + 1))) * element_bytes;
  const auto copied = static_cast<std::size_t>(std::min(to_size, from_size)) * inner;
  if (copied == 0) return;
  for (std::int64_t row = 0; row < outer; ++row) {
    std::memcpy(to, from, copied);
    to += static_cast<std::size_t>(to_size) * inner;
    from += static_cast<std::size_t>(from_size) * inner;
  }
}

std::string shown(const Shape& dims) {
  std::string text;
  for (const std::int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

}  // namespace

struct GrowingNode::Buffers {
  std::vector<AlignedArray> arrays;
  Shape dims;
  std::uint64_t bytes = 0;
};

struct GrowingNode::Run {
  std::vector<const std::byte*> data;
  std::vector<Shape> dims;
  std::int64_t before = 0;  ///< valid rows
  std::int64_t total = 0;   ///< valid rows afterwards
  std::int64_t rows = 0;    ///< of the buffers
  bool is_growing = true;
  hipdnn_rt::Sizes sizes;
};

GrowingNode::GrowingNode(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program, NodeSignature signature,
                         std::optional<SizeCompiler> rest)
    : FusedNode(settings.ort),
      settings_(settings),
      program_(std::move(program)),
      signature_(std::move(signature)),
      constants_(settings.weights->upload(*settings.device.device, *program_)),
      programs_(settings.max_specializations) {
  if (rest) rest_ = std::make_unique<DynamicNode>(settings, std::move(*rest), signature_);
  const std::size_t length = static_cast<std::size_t>(program_->growing()->length);
  const auto place = signature_.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(length, signature_.inputs.size()));
  signature_.inputs.insert(place, {program_->inputs()[length].name, {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, Shape{1}, {""}}, 0});
  check_arguments(*program_, signature_);
}

GrowingNode::~GrowingNode() = default;

void GrowingNode::run(OrtKernelContext* context) {
  if (settings_.device.is_device_memory) {  // of a device whose memory the host reads and writes: nothing else has growing programs
    void* stream = nullptr;
    check(settings_.ort, settings_.ort.api->KernelContext_GetGPUComputeStream(context, &stream));
    const hipdnn_rt::HipApi& hip = settings_.device.device->library().hip();
    hipdnn_rt::check(hip, hip.stream_synchronize(static_cast<hipStream_t>(stream)), "hipStreamSynchronize");
  }
  Run run = read(context);
  std::shared_ptr<NodeProgram> program;
  try {
    program = program_for(run);
  } catch (const hipdnn_rt::InputError&) {
    if (!rest_ || !run.is_growing) throw;
    return rest_->run(context);
  }
  run_on_buffers(context, run, *program);
  if (run.total - run.before > 1) load_step(std::move(run));
}

void GrowingNode::load_step(Run run) {
  const std::optional<std::size_t> added = program_->symbol_of(program_->growing()->added);
  if (!added) return;
  run.sizes[*added] = 1;
  try {
    static_cast<void>(program_for(run));
  } catch (const hipdnn_rt::InputError&) {  // the run that needs it says so
  }
}

GrowingNode::Run GrowingNode::read(OrtKernelContext* context) const {
  const OrtApi& api = *settings_.ort.api;
  const auto& growing = *program_->growing();
  Run run;
  for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
    if (static_cast<std::int64_t>(i) == growing.length) {
      run.data.push_back(nullptr);
      run.dims.push_back({1});
      continue;
    }
    const OrtValue* value = nullptr;
    const void* data = nullptr;
    check(settings_.ort, api.KernelContext_GetInput(context, signature_.inputs[i].index, &value));
    if (value == nullptr) throw hipdnn_rt::InputError("input '" + signature_.inputs[i].name + "' is missing");
    check(settings_.ort, api.GetTensorData(value, &data));
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    check(settings_.ort, api.GetTensorTypeAndShape(value, &raw));
    const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
    std::size_t rank = 0;
    check(settings_.ort, api.GetDimensionsCount(raw, &rank));
    Shape dims(rank);
    if (rank > 0) check(settings_.ort, api.GetDimensions(raw, dims.data(), rank));
    if (rank != program_->inputs()[i].dims.size()) {
      throw hipdnn_rt::InputError("input '" + signature_.inputs[i].name + "': expected " + std::to_string(program_->inputs()[i].dims.size()) +
                                  " dims, got " + shown(dims));
    }
    run.data.push_back(static_cast<const std::byte*>(data));
    run.dims.push_back(std::move(dims));
  }
  check_caches(run);
  const std::int64_t given = run.dims[static_cast<std::size_t>(growing.caches.front().input)][kRowsAxis];
  std::int64_t total = -1;
  for (const auto& sized : growing.sized) {
    const auto input = static_cast<std::size_t>(sized.input);
    std::int64_t& dim = run.dims[input][static_cast<std::size_t>(sized.axis)];
    if (total >= 0 && dim != total) {
      throw hipdnn_rt::InputError("input '" + signature_.inputs[input].name + "': expected " + std::to_string(total) + " in dim " +
                                  std::to_string(sized.axis) + ", got " + std::to_string(dim));
    }
    total = dim;
    dim = given;
  }
  const std::vector<std::span<const std::int64_t>> dims(run.dims.begin(), run.dims.end());
  run.sizes = program_->sizes_of(dims);
  const std::int64_t fresh = program_->value_of(growing.added, run.sizes);
  run.is_growing = total < 0 || total == given + fresh;
  run.total = total < 0 ? given + fresh : total;
  run.before = run.total - fresh;
  if (!run.is_growing && (run.total > given || run.before < 0)) {
    throw hipdnn_rt::InputError("the length of '" + signature_.inputs[static_cast<std::size_t>(growing.sized.front().input)].name + "' is " +
                                std::to_string(total) + ": expected " + std::to_string(given + fresh) + " for caches of " +
                                std::to_string(given) + " rows and " + std::to_string(fresh) + " new, or at most " + std::to_string(given) +
                                " where they are buffers");
  }
  run.rows = run.is_growing ? std::max(kLeastRows, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * run.total)))) : given;
  return run;
}

void GrowingNode::check_caches(const Run& run) const {
  const auto& growing = *program_->growing();
  const Shape& first = run.dims[static_cast<std::size_t>(growing.caches.front().input)];
  for (const auto& cache : growing.caches) {
    const auto input = static_cast<std::size_t>(cache.input);
    if (run.dims[input][0] == first[0] && run.dims[input][kRowsAxis] == first[kRowsAxis]) continue;
    throw hipdnn_rt::InputError("input '" + signature_.inputs[input].name + "' is " + shown(run.dims[input]) + ": expected batch and rows of '" +
                                signature_.inputs[static_cast<std::size_t>(growing.caches.front().input)].name + "', " + shown(first));
  }
}

std::shared_ptr<NodeProgram> GrowingNode::program_for(const Run& run) {
  hipdnn_rt::Sizes sizes = run.sizes;
  sizes[static_cast<std::size_t>(program_->growing()->rows)] = run.rows;
  return programs_.get(sizes, [&] {
    return std::make_shared<NodeProgram>(settings_.ort, settings_.device, program_->at(sizes), signature_, settings_.sinks, constants_);
  });
}

std::unique_ptr<GrowingNode::Buffers> GrowingNode::take(const Run& run) {
  const auto& growing = *program_->growing();
  Shape dims = run.dims[static_cast<std::size_t>(growing.caches.front().input)];
  dims[kRowsAxis] = run.rows;
  {
    const std::lock_guard lock(mutex_);
    if (free_ && free_->dims == dims) return std::move(free_);
  }
  auto made = std::make_unique<Buffers>();
  made->dims = dims;
  for (const auto& cache : growing.caches) {
    const auto input = static_cast<std::size_t>(cache.input);
    Shape own = run.dims[input];
    own[kRowsAxis] = run.rows;
    const std::uint64_t bytes = static_cast<std::uint64_t>(volume(own)) * hipdnn_rt::info_of(program_->inputs()[input].dtype).bytes;
    made->arrays.push_back(make_aligned(bytes));
    std::memset(made->arrays.back().get(), 0, bytes);
  }
  return made;
}

void GrowingNode::give_back(std::unique_ptr<Buffers> buffers) {
  const std::lock_guard lock(mutex_);
  free_ = std::move(buffers);
}

void GrowingNode::run_on_buffers(OrtKernelContext* context, Run& run, NodeProgram& program) {
  const OrtApi& api = *settings_.ort.api;
  const auto& growing = *program_->growing();
  std::vector<AlignedArray> held;
  std::vector<hipdnn_rt::InputArray> inputs;
  std::vector<hipdnn_rt::OutputArray> outputs;
  struct CopyBack {
    std::byte* to;
    const std::byte* from;
    std::int64_t to_rows;
    std::int64_t from_rows;
    Shape dims;
    std::size_t element_bytes;
  };
  std::vector<CopyBack> copies;
  const auto argument_bytes = [](const hipdnn_rt::Argument& argument) { return hipdnn_rt::info_of(argument.dtype).bytes; };

  for (std::size_t i = 0; i < run.data.size(); ++i) {
    const hipdnn_rt::Argument& argument = program.program().inputs()[i];
    const std::byte* data = run.data[i];
    const auto sized = std::ranges::find(growing.sized, static_cast<std::int64_t>(i), [](const auto& entry) { return entry.input; });
    if (static_cast<std::int64_t>(i) == growing.length) {
      data = reinterpret_cast<const std::byte*>(&run.before);
    } else if (sized != growing.sized.end() && run.total != run.rows) {
      held.push_back(make_aligned(argument.bytes));
      auto* padded = static_cast<std::byte*>(held.back().get());
      std::memset(padded, 0, argument.bytes);
      copy_along(padded, run.rows, data, run.total, argument.dims, static_cast<std::size_t>(sized->axis), argument_bytes(argument));
      data = padded;
    }
    if (!is_aligned(data)) {
      held.push_back(make_aligned(argument.bytes));
      std::memcpy(held.back().get(), data, argument.bytes);
      data = static_cast<const std::byte*>(held.back().get());
    }
    inputs.push_back({data});
  }

  std::unique_ptr<Buffers> buffers = run.is_growing ? take(run) : nullptr;
  for (std::size_t i = 0; i < signature_.outputs.size(); ++i) {
    const hipdnn_rt::Argument& argument = program.program().outputs()[i];
    const auto cache = std::ranges::find(growing.caches, static_cast<std::int64_t>(i), [](const auto& entry) { return entry.output; });
    Shape dims = argument.dims;
    if (cache != growing.caches.end() && run.is_growing) dims[kRowsAxis] = run.total;
    OrtValue* value = nullptr;
    void* data = nullptr;
    check(settings_.ort, api.KernelContext_GetOutput(context, signature_.outputs[i].index, dims.data(), dims.size(), &value));
    check(settings_.ort, api.GetTensorMutableData(value, &data));
    auto* target = static_cast<std::byte*>(data);
    if (cache != growing.caches.end() && run.is_growing) {
      const auto input = static_cast<std::size_t>(cache->input);
      auto* buffer = static_cast<std::byte*>(buffers->arrays[static_cast<std::size_t>(cache - growing.caches.begin())].get());
      copy_along(buffer, run.rows, run.data[input], run.before, argument.dims, kRowsAxis, argument_bytes(argument));
      inputs[input] = {buffer};
      copies.push_back({target, buffer, run.total, run.rows, argument.dims, argument_bytes(argument)});
      target = buffer;
    } else if (!is_aligned(data)) {
      held.push_back(make_aligned(argument.bytes));
      copies.push_back({target, static_cast<const std::byte*>(held.back().get()), 1, 1, {1, 1, 1, static_cast<std::int64_t>(argument.bytes)}, 1});
      target = static_cast<std::byte*>(held.back().get());
    }
    outputs.push_back({target});
  }
  program.run(inputs, outputs);
  for (const CopyBack& copy : copies) copy_along(copy.to, copy.to_rows, copy.from, copy.from_rows, copy.dims, kRowsAxis, copy.element_bytes);
  if (buffers) give_back(std::move(buffers));
}

}  // namespace hipdnn_ep
