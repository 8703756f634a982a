// Threads for data-parallel work that stay quick when they have the machine to themselves and do no harm when they do not.
#pragma once

namespace hipdnn_port {

/// Work cut into `count` parts: `function(data)` is called once for each, with part_number() telling which.
/// All parts of a region may wait for each other (team_barrier), so every part gets a thread of its own where it needs one.
using PartFunction = void (*)(void* data);

/// Starts a region on the calling thread, which must run part 0 itself and then call finish_region. Parts no other thread has taken
/// by then run on the calling thread too: nobody waits for a thread that the system has not scheduled. Regions may nest; an inner
/// one has one part. Never allocates after the threads exist; thread-safe; regions of several callers share the threads. Throws
/// std::system_error, before anything of the region is run, where the system gives too few threads.
void start_region(PartFunction function, void* data, int count);
void finish_region();
/// Both, with part 0 between them.
void run_region(PartFunction function, void* data, int count);

/// Part of the innermost region the calling thread works on, 0 outside of regions.
int part_number();
/// Parts of that region, 1 outside of regions.
int part_count();
/// True inside a region of more than one part.
bool in_region();
/// Returns when all parts of the region have called it.
void team_barrier();

/// Parts a region of the calling thread has where nobody says how many; the CPUs of the process until set.
int default_parts();
void set_default_parts(int count);

}  // namespace hipdnn_port
