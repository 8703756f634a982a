#include "fused_node.h"

#include <algorithm>
#include <limits>
#include <thread>

namespace hipdnn_ep {
namespace {

/// Counts itself among a slot's readers.
class Reader {
 public:
  explicit Reader(std::atomic<int>& readers) : readers_(readers) { ++readers_; }
  ~Reader() { --readers_; }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  std::atomic<int>& readers_;
};

}  // namespace

FusedNode::FusedNode(const Ort& ort) : OrtNodeComputeInfo{}, ort_(ort) {
  ort_version_supported = ORT_API_VERSION;
  // The state is this object; ONNX Runtime passes it back to every run.
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
    *state = static_cast<FusedNode*>(self);
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) noexcept -> OrtStatus* {
    auto* node = static_cast<FusedNode*>(state);
    return guard(node->ort_, [&] { node->run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
}

DynamicNode::DynamicNode(const Ort& ort, std::shared_ptr<const ModelCompiler> compiler, ModelImage image, SessionDevice device,
                         NodeSignature signature, Profile* profile, std::size_t capacity)
    : FusedNode(ort),
      ort_(ort),
      compiler_(std::move(compiler)),
      image_(std::move(image)),
      device_(std::move(device)),
      signature_(std::move(signature)),
      profile_(profile),
      slots_(capacity) {}

DynamicNode::~DynamicNode() {
  for (Slot& slot : slots_) delete slot.entry.load();
}

void DynamicNode::run(OrtKernelContext* context) {
  const Sizes sizes = read_sizes(context);
  // More than once where other threads' new sizes drive these out before they are used.
  while (!run_known(context, sizes)) {
    const std::lock_guard lock(compiling_);
    const bool is_there = std::any_of(slots_.begin(), slots_.end(), [&](Slot& slot) {
      const Entry* entry = slot.entry.load();  // nothing is deleted while this thread holds the lock
      return entry != nullptr && entry->sizes == sizes;
    });
    if (!is_there) insert(compile(sizes));
  }
}

DynamicNode::Sizes DynamicNode::read_sizes(OrtKernelContext* context) const {
  Sizes sizes;
  for (std::size_t i = 0; i < signature_.inputs.size(); ++i) {
    const OrtValue* value = nullptr;
    check(ort_, ort_.api->KernelContext_GetInput(context, i, &value));
    if (value == nullptr) throw hipdnn_rt::InputError("input '" + signature_.inputs[i].name + "' is missing");
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    check(ort_, ort_.api->GetTensorTypeAndShape(value, &raw));
    const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, ort_.api->ReleaseTensorTypeAndShapeInfo);
    std::size_t rank = 0;
    check(ort_, ort_.api->GetDimensionsCount(raw, &rank));
    sizes.push_back(static_cast<std::int64_t>(rank));
    sizes.resize(sizes.size() + rank);
    if (rank > 0) check(ort_, ort_.api->GetDimensions(raw, sizes.data() + sizes.size() - rank, rank));
  }
  return sizes;
}

bool DynamicNode::run_known(OrtKernelContext* context, const Sizes& sizes) {
  for (Slot& slot : slots_) {
    if (slot.entry.load() == nullptr) continue;
    const Reader reader(slot.readers);
    // Loaded after the reader is counted: who takes the entry out sees either the reader or is seen here.
    Entry* entry = slot.entry.load();
    if (entry == nullptr || entry->sizes != sizes) continue;
    slot.last_use = ++clock_;
    entry->program->run(context);
    return true;
  }
  return false;
}

std::unique_ptr<DynamicNode::Entry> DynamicNode::compile(const Sizes& sizes) const {
  InputShapes shapes;
  auto position = sizes.begin();
  for (const NodeValue& input : signature_.inputs) {
    const auto rank = static_cast<std::ptrdiff_t>(*position++);
    shapes[input.name] = {position, position + rank};
    position += rank;
  }
  const CompiledModel compiled = compiler_->compile(image_, signature_.node, shapes);
  return std::make_unique<Entry>(Entry{sizes, std::make_unique<NodeProgram>(ort_, device_, compiled.program, signature_, profile_)});
}

void DynamicNode::insert(std::unique_ptr<Entry> entry) {
  const auto age = [](const Slot& slot) { return slot.entry.load() == nullptr ? 0 : slot.last_use.load(); };
  Slot& slot = *std::min_element(slots_.begin(), slots_.end(), [&](const Slot& a, const Slot& b) { return age(a) < age(b); });
  const std::unique_ptr<Entry> evicted(slot.entry.exchange(nullptr));
  while (slot.readers.load() > 0) std::this_thread::yield();
  slot.last_use = ++clock_;
  slot.entry = entry.release();
}

}  // namespace hipdnn_ep
