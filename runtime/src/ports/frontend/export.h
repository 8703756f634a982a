// Marks the functions this library exports; everything else stays hidden.
#pragma once

#define HIPDNN_PORT_EXPORT __attribute__((visibility("default")))
