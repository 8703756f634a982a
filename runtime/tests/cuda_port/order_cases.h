// What is kept behind what.
#pragma once

#include "check.h"

void add_order_cases(check::Suite& suite);
