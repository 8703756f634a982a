// How kernels of modules are launched.
#pragma once

#include "check.h"

void add_launch_cases(check::Suite& suite);
