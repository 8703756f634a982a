// The time of every step of a session's programs, summed over its runs.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "execute/loaded_program.h"

namespace hipdnn_ep {

/// Safe to use from several threads.
class Profile {
 public:
  /// Add one run of `node`: microseconds of each step.
  void record(const std::string& node, const hipdnn_rt::LoadedProgram& program, const std::vector<double>& elapsed_us);

  /// Write everything as JSON, atomically. Throws hipdnn_rt::Error where the file cannot be written.
  void write(const std::string& path) const;

 private:
  struct StepTimes {
    std::string name;
    std::string summary;
    std::string engine;
    double total_us = 0;
    double least_us = 0;
  };
  struct NodeTimes {
    std::uint64_t runs = 0;
    std::vector<StepTimes> steps;
  };

  mutable std::mutex mutex_;
  /// By node, then by the sizes of its inputs, since a node with varying sizes has several programs.
  std::map<std::string, std::map<std::string, NodeTimes>> nodes_;
};

}  // namespace hipdnn_ep
