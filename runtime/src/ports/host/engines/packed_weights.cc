#include "packed_weights.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "onednn_memory.h"
#include "packed_memory.h"

namespace hipdnn_port::onednn {
namespace {

/// One order of a constant; `mutex` is held while it is made.
struct Packed {
  dnnl::memory::desc stored;
  dnnl::memory::desc wanted;
  std::mutex mutex;
  std::weak_ptr<void> bytes;
};

class Registry {
 public:
  std::shared_ptr<Packed> find(const void* from, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Packed>>& forms = by_source_[from];
    for (const std::shared_ptr<Packed>& form : forms) {
      if (form->stored == stored && form->wanted == wanted) return form;
    }
    auto made = std::make_shared<Packed>();
    made->stored = stored;
    made->wanted = wanted;
    forms.push_back(made);
    if (++inserted_ % kSweepEvery == 0) sweep();
    return made;
  }

 private:
  static constexpr std::size_t kSweepEvery = 256;

  /// Drop what no plan holds any more and nobody is making.
  void sweep() {
    for (auto entry = by_source_.begin(); entry != by_source_.end();) {
      std::erase_if(entry->second, [](const auto& form) { return form.use_count() == 1 && form->bytes.expired(); });
      entry = entry->second.empty() ? by_source_.erase(entry) : std::next(entry);
    }
  }

  std::mutex mutex_;
  std::map<const void*, std::vector<std::shared_ptr<Packed>>> by_source_;
  std::size_t inserted_ = 0;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::shared_ptr<void> packed_weights(const void* from, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted) {
  const std::shared_ptr<Packed> form = registry().find(from, stored, wanted);
  const std::lock_guard lock(form->mutex);
  if (std::shared_ptr<void> known = form->bytes.lock()) return known;
  // Owned apart: the memory's own owner is the block it lies in, which lives on with the weights beside these.
  const auto owner = std::make_shared<const std::shared_ptr<void>>(packed_memory(wanted.get_size()));
  const std::shared_ptr<void> bytes(owner, owner->get());
  // oneDNN takes a mutable pointer for a source it only reads.
  dnnl::memory source(stored, cpu_engine(), const_cast<void*>(from));
  dnnl::memory target(wanted, cpu_engine(), bytes.get());
  dnnl::stream stream(cpu_engine());
  dnnl::reorder(source, target).execute(stream, source, target);
  form->bytes = bytes;
  return bytes;
}

}  // namespace hipdnn_port::onednn
