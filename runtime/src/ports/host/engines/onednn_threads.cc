#include "onednn_threads.h"

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.h>

#include "../threads/thread_team.h"

namespace hipdnn_port::onednn {

namespace {

using SetThreads = void (*)(int);

/// omp_set_num_threads of the OpenMP library that oneDNN was linked with. It counts where that library was in the process's global
/// scope already and so came before this library's own threads; elsewhere nobody listens to it.
SetThreads linked_setter() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&dnnl_engine_create), &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<SetThreads>(dlsym(library, "omp_set_num_threads"));
}

}  // namespace

void set_threads(int count) {
  static const SetThreads set_linked = linked_setter();
  set_default_parts(count);
  if (set_linked != nullptr) set_linked(count);
}

int threads() { return default_parts(); }

}  // namespace hipdnn_port::onednn
