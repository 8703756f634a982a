// The rules of operation descriptors, for each operation of the ABI.
#include "cases.h"
#include "operation_samples.h"

namespace abi {
namespace {

void expect_tensors(const Descriptor& made, int name, const Tensors& expected) {
  const auto read = made.read_descriptors(name);
  check::equal(read.size(), expected.size());
  for (std::size_t i = 0; i < read.size(); ++i) check::equal(read[i].read_integers(HIPDNN_ATTR_TENSOR_DIMENSIONS), expected[i]);
}

void expect_integers(const Descriptor& made, int name, const Integers& expected) {
  if (expected.type == HIPDNN_TYPE_INT64) {
    check::equal(made.read_integers(name), expected.values);
    return;
  }
  std::int64_t actual = 0;
  if (expected.type == HIPDNN_TYPE_BOOLEAN) {
    bool flag = expected.values.at(0) == 0;
    check::equal(made.get(name, expected.type, 1, &actual, &flag), HIPDNN_STATUS_SUCCESS);
    check::equal(flag ? 1 : 0, expected.values.at(0));
    return;
  }
  std::int32_t value = -1;
  check::equal(made.get(name, expected.type, 1, &actual, &value), HIPDNN_STATUS_SUCCESS);
  check::equal(value, expected.values.at(0));
}

void test_attributes_are_read_back(const Library& library, const OperationSample& sample) {
  Descriptor made = make_operation(library, sample);
  made.finalize();
  for (const SampleAttribute& attribute : sample.attributes) {
    if (const auto* tensors = std::get_if<Tensors>(&attribute.value)) expect_tensors(made, attribute.name, *tensors);
    if (const auto* integers = std::get_if<Integers>(&attribute.value)) expect_integers(made, attribute.name, *integers);
    if (const auto* real = std::get_if<float>(&attribute.value)) {
      float value = 0;
      std::int64_t actual = 0;
      check::equal(made.get(attribute.name, HIPDNN_TYPE_FLOAT, 1, &actual, &value), HIPDNN_STATUS_SUCCESS);
      check::equal(value, *real);
    }
    if (const auto* characters = std::get_if<std::string>(&attribute.value)) {
      check::equal(made.read_characters(attribute.name), *characters + '\0');
    }
  }
  check::equal(made.read_characters(HIPDNN_ATTR_OPERATION_NAME_EXT), sample.name + '\0');
}

void test_operation_type_is_told(const Library& library, const OperationSample& sample) {
  Descriptor made = make_operation(library, sample);
  made.finalize();
  std::int64_t actual = 0;
  hipdnnOperationType_ext_t type{};
  check::equal(made.get(HIPDNN_ATTR_OPERATION_TYPE_EXT, HIPDNN_TYPE_OPERATION_TYPE_EXT, 1, &actual, &type), HIPDNN_STATUS_SUCCESS);
  check::equal(type, sample.operation);
}

void test_finalize_needs_each_required_attribute(const Library& library, const OperationSample& sample, bool is_portable) {
  for (const SampleAttribute& attribute : sample.attributes) {
    if (attribute.is_portable != is_portable && sample.is_portable) continue;
    const hipdnnStatus_t status = make_operation(library, sample, attribute.name).try_finalize();
    const std::string what = "finalize without attribute " + std::to_string(attribute.name);
    if (attribute.is_required) {
      check::that(status != HIPDNN_STATUS_SUCCESS, what);
    } else {
      check::equal(status, HIPDNN_STATUS_SUCCESS, what);
    }
  }
}

void test_state_is_enforced(const Library& library, const OperationSample& sample) {
  Descriptor made = make_operation(library, sample);
  std::int64_t actual = 0;
  check::equal(made.get(HIPDNN_ATTR_OPERATION_NAME_EXT, HIPDNN_TYPE_CHAR, 0, &actual, nullptr), HIPDNN_STATUS_NOT_INITIALIZED);
  made.finalize();
  check::equal(made.set(HIPDNN_ATTR_OPERATION_NAME_EXT, HIPDNN_TYPE_CHAR, 1, "n"), HIPDNN_STATUS_NOT_INITIALIZED);
}

void test_operand_must_be_a_finalized_tensor(const Library& library, const OperationSample& sample) {
  const Descriptor made(library, sample.type);
  const Descriptor unfinished(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  hipdnnBackendDescriptor_t raw = unfinished.get();
  const int name = sample.attributes.at(0).name;
  check::equal(made.set(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw), HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  Descriptor knob(library, HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  knob.characters(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, "k").integers(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {1}).finalize();
  raw = knob.get();
  check::equal(made.set(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw), HIPDNN_STATUS_BAD_PARAM);
  raw = nullptr;
  const hipdnnStatus_t status = made.set(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);  // which one differs between versions
  check::that(status == HIPDNN_STATUS_BAD_PARAM || status == HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "an operand that is null");
}

}  // namespace

void add_operation_cases(check::Suite& suite, const Library& library) {
  for (const OperationSample& sample : operation_samples()) {
    const std::string prefix = "operation: " + sample.name + ": ";
    suite.add(prefix + "attributes are read back", [&library, sample] { test_attributes_are_read_back(library, sample); });
    suite.add(prefix + "state is enforced", [&library, sample] { test_state_is_enforced(library, sample); });
    suite.add(prefix + "operand must be a finalized tensor", [&library, sample] { test_operand_must_be_a_finalized_tensor(library, sample); });
    if (sample.is_portable) {
      suite.add(prefix + "finalize needs each required attribute",
                [&library, sample] { test_finalize_needs_each_required_attribute(library, sample, true); });
    }
  }
}

void add_host_operation_cases(check::Suite& suite, const Library& library) {
  for (const OperationSample& sample : operation_samples()) {
    const std::string prefix = "host operation: " + sample.name + ": ";
    suite.add(prefix + "operation type is told", [&library, sample] { test_operation_type_is_told(library, sample); });
    suite.add(prefix + "finalize needs what the host's library needs",
              [&library, sample] { test_finalize_needs_each_required_attribute(library, sample, false); });
  }
}

}  // namespace abi
