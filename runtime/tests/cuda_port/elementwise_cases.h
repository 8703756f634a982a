#pragma once

#include "check.h"

void add_elementwise_cases(check::Suite& suite);
