// Marks the functions this library exports; everything else stays hidden.
#pragma once

#define HIPDNN_HOST_EXPORT __attribute__((visibility("default")))
