// Lines for people who look for the reason of something that is no error.
#pragma once

#include <functional>
#include <string>

#include "hipdnn_backend.h"

namespace hipdnn_rt {

/// Takes a line, without a line feed at its end. Called from any thread, several at once; must not throw. Empty: nobody listens.
using Log = std::function<void(hipdnnSeverity_t severity, const std::string& line)>;

}  // namespace hipdnn_rt
