// The provider's options, read from texts by the rows of the table (options.json).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "options_table.h"
#include "ort.h"
#include "support/compiler_service.h"

namespace hipdnn_ep {

using Options = hipdnn_rt::ProviderOptions;

/// The options a session was given, by key without prefix.
std::map<std::string, std::string> given_options(const Ort& ort, const OrtSessionOptions* options);

/// Throws hipdnn_rt::InputError for an unknown key, a value outside the table, or an option without effect beside the others; the message lists
/// what is valid.
Options parse_options(const std::map<std::string, std::string>& given);

/// Throws hipdnn_rt::InputError for an option that has no effect on a device of this kind, or for this target.
void check_effects(const Options& options, bool is_gpu, std::string_view target);

CompilerOptions compiler_options(const Options& options);

/// 0 where nothing is kept.
std::uint64_t cache_limit_bytes(const Options& options);

}  // namespace hipdnn_ep
