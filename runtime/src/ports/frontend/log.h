// The library's log: a level, standard error, and the user's callbacks.
#pragma once

#include <string>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// Any thread may call these. Messages go to standard error from the global level on (environment variable HIPDNN_LOG_LEVEL at first
/// use, else off) and to each of the user's callbacks from its own level on. Callbacks run on the logging thread in both modes.
void log(hipdnnSeverity_t severity, const std::string& message);
/// Whether a message of this severity would reach anyone; lets callers skip composing it.
bool is_logged(hipdnnSeverity_t severity);

void set_log_level(hipdnnSeverity_t severity);
hipdnnSeverity_t log_level();
/// A callback is known by itself and its user pointer; level OFF removes it. Threads that log at that moment may still be in it: what the
/// pointer leads to must outlive them.
void set_log_callback(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum, void* user);

}  // namespace hipdnn_port
