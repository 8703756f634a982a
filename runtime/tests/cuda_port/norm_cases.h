// Norms in cuDNN's terms.
#pragma once

#include "check.h"

void add_norm_cases(check::Suite& suite);
