// One valid set of attributes for every operation of the ABI.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "library.h"
#include "models.h"

namespace abi {

/// Dims of the tensors an attribute refers to.
using Tensors = std::vector<Dims>;

struct Integers {
  hipdnnBackendAttributeType_t type;
  std::vector<std::int64_t> values;
};

struct SampleAttribute {
  int name;
  std::variant<Tensors, Integers, float, std::string> value;
  bool is_required = true;
  /// False for one without which AMD's backend finalizes the operation, and the host's library does not: what is meant then is not said.
  bool is_portable = true;
};

struct OperationSample {
  std::string name;
  hipdnnBackendDescriptorType_t type;
  hipdnnOperationType_ext_t operation;
  std::vector<SampleAttribute> attributes;
  /// False for what the reference leaves open: which attributes of the operation are required.
  bool is_portable = true;
};

std::vector<OperationSample> operation_samples();

/// An unfinalized operation with the sample's attributes but the one named `without`; the tensors it made are kept alive by it.
Descriptor make_operation(const Library& library, const OperationSample& sample, int without = -1);

}  // namespace abi
