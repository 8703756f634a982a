// Controls of a port whose streams work on threads of their own, as a GPU's do: tests stop a stream where they want it.
#pragma once

#include "hip_runtime_abi.h"

extern "C" {

/// Let `stream` begin `tasks` more tasks (executions, copies, event records and waits), then hold it until it is given more.
/// Without a call a stream is never held.
using deferred_allow_t = void (*)(hipStream_t stream, int tasks);
void deferred_allow(hipStream_t stream, int tasks);

/// No limit any more.
using deferred_release_t = void (*)(hipStream_t stream);
void deferred_release(hipStream_t stream);

/// Have `stream` belong to another device than the first.
using deferred_move_t = void (*)(hipStream_t stream, int device);
void deferred_move(hipStream_t stream, int device);

/// Let `successes` more calls of hipdnnBackendExecute succeed and the one after them fail, whatever the stream.
using deferred_fail_after_t = void (*)(int successes);
void deferred_fail_after(int successes);

/// Lose the device: what it has begun ends, and nothing that is queued by now runs.
using deferred_lose_t = void (*)();
void deferred_lose();

/// How many graphs have been made and launched since the last call.
using deferred_count_graphs_t = void (*)(int* made, int* launched);
void deferred_count_graphs(int* made, int* launched);

/// How many kernels have been launched as ones that wait themselves since the last call.
using deferred_count_waiting_kernels_t = int (*)();
int deferred_count_waiting_kernels();
}
