// What the targets share: programs that are small enough are run on the host port.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "plan/device.h"
#include "program/program.h"

namespace fuzz {

/// Of memory, and of elements of a tensor: larger programs are loaded only.
constexpr std::uint64_t kRunLimit = 1 << 20;

std::shared_ptr<const hipdnn_rt::Device> host_device();

/// Load a program, and run it where it is small, on small numbers and on any bytes.
void run(const std::shared_ptr<const hipdnn_rt::Program>& program);

/// Run one member of a program's `executables` or `kernels` as the only step of a program, each operand with a buffer of its own.
void run_alone(std::string_view list, const nlohmann::json& member, std::span<const hipdnn_rt::Operand> operands);

}  // namespace fuzz
