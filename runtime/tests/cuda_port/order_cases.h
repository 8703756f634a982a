// Which kernels wait for the one in front, and what is kept behind what.
#pragma once

#include "check.h"

void add_order_cases(check::Suite& suite);
