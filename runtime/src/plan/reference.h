// What the results of an operation graph are, by a computation that has nothing to do with the library whose plans are judged by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plan/device.h"
#include "plan/plan_answers.h"
#include "program/program.h"

namespace hipdnn_rt {

/// Contents of operands by uid, in the type and with the strides of their tensors.
using OperandContents = std::map<std::int64_t, std::vector<std::byte>>;

/// Computes graphs on the host library, an operation at a time and with f32 in the place of 16-bit types: no fusion, no layout and no rounding of the
/// judged library's is in it. Safe to share between threads, which take turns.
class Reference {
 public:
  /// `host` is a device of the port "host".
  explicit Reference(std::shared_ptr<const Device> host) : host_(std::move(host)) {}

  /// Of the host library: what is compared with another one may come out otherwise.
  std::string version() const { return host_->library().version(); }
  /// The outputs of an executable in the order of its operands; 16-bit floats as f32. What a graph does not write, between rows, say, is bytes of
  /// 0xff. Throws NoPlanError where the host library has no engine for an operation, DeviceError where memory is short.
  std::vector<Answer> compute(const Executable& executable, const OperandContents& contents) const;

 private:
  std::shared_ptr<const Device> host_;
  /// One graph alone may take as much memory as a program's largest step.
  mutable std::mutex mutex_;
};

/// The largest distance of a right result from the reference, over the size of the element and of the whole result: as `worst_distance` tells it.
/// Follows from the coarsest type of the graph's tensors (TF32 for f32 where that is allowed), the number of operations that may round to it, and
/// the length of the longest sum, which any plan adds up in f32 and in an order of its own.
double tolerance_of(const Executable& executable, bool allows_tf32);

}  // namespace hipdnn_rt
