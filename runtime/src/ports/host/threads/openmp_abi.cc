// The OpenMP entry points that oneDNN calls, on this library's own threads.
//
// oneDNN's packages are built on libgomp, whose threads either spin (and starve each other when another process wants a CPU) or sleep
// after every loop (and wake up late). In this library's copy of oneDNN the functions have names of their own, with an H as first letter
// (private_onednn.py): no OpenMP library of the process takes their place, nor they that of its functions.
#include "thread_team.h"

#define HIPDNN_HOST_OPENMP __attribute__((visibility("default")))

using hipdnn_port::PartFunction;

namespace {

/// A loop that the calling thread runs its share of, between GOMP_loop_static_start and _end_nowait.
struct StaticLoop {
  long first = 0;
  long last = 0;
  long step = 1;
  long chunk = 0;
  long next_chunk = 0;
};

StaticLoop& loop() {
  thread_local StaticLoop mine;
  return mine;
}

/// The calling part's next piece of `l` in iterations [*from, *to), or false where there is none.
bool next_piece(StaticLoop& l, long* from, long* to) {
  const long total = l.step > 0 ? (l.last - l.first + l.step - 1) / l.step : (l.first - l.last - l.step - 1) / -l.step;
  const long parts = hipdnn_port::part_count();
  const long part = hipdnn_port::part_number();
  const long chunk = l.chunk > 0 ? l.chunk : (total + parts - 1) / parts;
  const long begin = (l.next_chunk * parts + part) * chunk;
  if (total <= 0 || begin >= total) return false;
  const long end = begin + chunk < total ? begin + chunk : total;
  ++l.next_chunk;
  *from = l.first + begin * l.step;
  *to = l.first + end * l.step;
  return true;
}

int parts_of(unsigned count) { return count == 0 ? hipdnn_port::default_parts() : static_cast<int>(count); }

}  // namespace

extern "C" {

HIPDNN_HOST_OPENMP void HOMP_parallel_start(PartFunction function, void* data, unsigned count) {
  hipdnn_port::start_region(function, data, parts_of(count));
}

HIPDNN_HOST_OPENMP void HOMP_parallel_end() { hipdnn_port::finish_region(); }

HIPDNN_HOST_OPENMP void HOMP_parallel(PartFunction function, void* data, unsigned count, unsigned) {
  hipdnn_port::run_region(function, data, parts_of(count));
}

HIPDNN_HOST_OPENMP void HOMP_barrier() { hipdnn_port::team_barrier(); }

HIPDNN_HOST_OPENMP bool HOMP_loop_static_next(long* from, long* to) { return next_piece(loop(), from, to); }

HIPDNN_HOST_OPENMP bool HOMP_loop_static_start(long first, long last, long step, long chunk, long* from, long* to) {
  loop() = {first, last, step, chunk, 0};
  return next_piece(loop(), from, to);
}

HIPDNN_HOST_OPENMP void HOMP_loop_end_nowait() {}

HIPDNN_HOST_OPENMP int Hmp_get_max_threads() { return hipdnn_port::default_parts(); }
HIPDNN_HOST_OPENMP void Hmp_set_num_threads(int count) { hipdnn_port::set_default_parts(count); }
HIPDNN_HOST_OPENMP int Hmp_get_num_threads() { return hipdnn_port::part_count(); }
HIPDNN_HOST_OPENMP int Hmp_get_thread_num() { return hipdnn_port::part_number(); }
HIPDNN_HOST_OPENMP int Hmp_in_parallel() { return hipdnn_port::in_region() ? 1 : 0; }

}  // extern "C"
