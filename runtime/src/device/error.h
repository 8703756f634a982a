// Failures as exceptions: what the runtime throws, and how a library's status becomes one.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

namespace hipdnn_rt {

struct HipApi;
struct HipdnnApi;

/// Base of everything the runtime throws on purpose. The message is one line: control characters, which may come from a hostile file,
/// become spaces.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string message);
};

/// The program file or text is broken, too new, or for another target. The message names the field.
class ProgramError : public Error {
 public:
  using Error::Error;
};

/// The program is compiled for another device than the one it was loaded on.
class WrongTargetError : public ProgramError {
 public:
  using ProgramError::ProgramError;
};

/// A call into HIP or hipDNN failed, or a library could not be opened.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A hipDNN function answered with this status.
class LibraryError : public DeviceError {
 public:
  LibraryError(const std::string& message, hipdnnStatus_t status) : DeviceError(message), status_(status) {}
  hipdnnStatus_t status() const { return status_; }
  /// Whether the library says of a graph that it has no plan for it, which another form of the graph may mend. Memory that is short, a device or
  /// a driver that fails, and calls in a wrong order are no refusals.
  bool is_refusal() const;

 private:
  hipdnnStatus_t status_;
};

/// The library has no plan for one graph: no engine takes it, or none of those that do builds one.
class NoPlanError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// A graph that the library has no plan for: name of the executable, its operations in one line, the steps that run it, the library's words.
struct RefusedPlan {
  std::string graph;
  std::string summary;
  std::string nodes;
  std::string reason;
};

/// The library refuses graphs of a program: all of them, so that the model can be compiled without.
class PlanRefusedError : public DeviceError {
 public:
  explicit PlanRefusedError(std::vector<RefusedPlan> refusals);
  const std::vector<RefusedPlan>& refusals() const { return refusals_; }

 private:
  std::vector<RefusedPlan> refusals_;
};

/// The caller's arrays do not match the program's inputs or outputs.
class InputError : public Error {
 public:
  using Error::Error;
};

/// Throw DeviceError, for hipDNN a LibraryError, with the library's words where `status` is a failure. `call` is the function, with what it was about in parentheses.
void check(const HipApi& api, hipError_t status, std::string_view call);
void check(const HipdnnApi& api, hipdnnStatus_t status, std::string_view call);

/// "HIP error 2: out of memory", in the library's own words.
std::string describe_failure(const HipApi& api, hipError_t status);

/// Why a module call failed, in the library's own words where it has some.
std::string describe_kernel_failure(const HipApi& api, hipError_t status);

/// The library's last error on this thread, which is cleared; empty where there is none.
std::string take_last_error(const HipdnnApi& api);

/// "HIPDNN_STATUS_NOT_SUPPORTED (8): the library's own last error on this thread", which is cleared.
std::string describe_failure(const HipdnnApi& api, hipdnnStatus_t status);

}  // namespace hipdnn_rt
