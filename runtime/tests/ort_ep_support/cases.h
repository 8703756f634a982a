// Registration of the cases, one function per file.
#pragma once

#include "../check.h"
#include "fixtures.h"

namespace support_tests {

void add_sha256_cases(check::Suite& suite);
void add_memory_file_cases(check::Suite& suite);
void add_disk_cache_cases(check::Suite& suite);
void add_interpreter_cases(check::Suite& suite);
void add_service_cases(check::Suite& suite, const Tools& tools);
void add_process_cases(check::Suite& suite, const Tools& tools);

}  // namespace support_tests
