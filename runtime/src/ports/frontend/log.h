// The library's log: a level, standard error, and one callback of the user's.
#pragma once

#include <string>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// Any thread may call these. Messages go to standard error from the global level on (environment variable HIPDNN_LOG_LEVEL at first
/// use, else off) and to the user's callback from its own level on. The callback runs on the logging thread in both callback modes.
void log(hipdnnSeverity_t severity, const std::string& message);
/// Whether a message of this severity would reach anyone; lets callers skip composing it.
bool is_logged(hipdnnSeverity_t severity);

void set_log_level(hipdnnSeverity_t severity);
hipdnnSeverity_t log_level();
/// Level OFF removes the callback.
void set_log_callback(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum, void* user);

}  // namespace hipdnn_port
