// Calls nobody should make: any attribute on any descriptor, in any order, gets a status and nothing else.
#include <array>
#include <vector>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

constexpr std::array<hipdnnBackendAttributeType_t, 6> tried_types{HIPDNN_TYPE_INT64, HIPDNN_TYPE_BACKEND_DESCRIPTOR, HIPDNN_TYPE_CHAR,
                                                                  HIPDNN_TYPE_HANDLE, HIPDNN_TYPE_DATA_TYPE, HIPDNN_TYPE_BOOLEAN};

/// Every attribute of the ABI is one of these, and most of these are none.
std::vector<int> tried_attributes() {
  std::vector<int> names{9000001, 9000002};  // the extension's
  for (const int first : {60000, 60100, 60200, 60300, 60400}) names.insert(names.end(), {first, first + 1, first + 2, first + 3, first + 4});
  for (int group = 100; group <= 3700; group += 100) {
    for (int offset = 0; offset < 45; ++offset) names.push_back(group + offset);
  }
  return names;
}

bool is_status(hipdnnStatus_t status) { return status >= HIPDNN_STATUS_SUCCESS && status <= HIPDNN_STATUS_VERSION_MISMATCH; }

/// Sets and reads one attribute as every tried type, with zeros for data: zeros are null handles and descriptors.
void try_attribute(const Descriptor& target, int name) {
  const std::array<std::int64_t, 4> zeros{};
  std::array<std::int64_t, 4> room{};
  for (const hipdnnBackendAttributeType_t type : tried_types) {
    std::int64_t actual = 0;
    check::that(is_status(target.set(name, type, 1, zeros.data())), "a status from set");
    check::that(is_status(target.get(name, type, 0, &actual, nullptr)), "a status from get");
    check::that(is_status(target.get(name, type, 1, &actual, room.data())), "a status from get");
    if (type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) check::equal(room[0], 0, "no descriptor was made of nothing");
  }
}

void test_any_attribute_on_any_descriptor_gets_a_status(const Library& library) {
  for (int type = 0; type <= HIPDNN_BACKEND_OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT + 3; ++type) {
    hipdnnBackendDescriptor_t raw = nullptr;
    const hipdnnStatus_t created = library.create_descriptor(static_cast<hipdnnBackendDescriptorType_t>(type), &raw);
    check::equal(created == HIPDNN_STATUS_SUCCESS, raw != nullptr, "descriptor type " + std::to_string(type));
    if (raw == nullptr) continue;
    const Descriptor target(library, raw);
    for (const int name : tried_attributes()) try_attribute(target, name);
    check::that(is_status(target.try_finalize()), "a status from finalize");
  }
}

void test_finalize_twice_is_refused(const Library& library) {
  const Descriptor made = tensor(library, 1, {2});
  check::equal(made.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
}

void test_refused_set_keeps_the_value_before(const Library& library) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1})
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, {2})
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, {1})
      .integers(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {32});
  const std::int64_t odd = 3;
  check::equal(made.set(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, 1, &odd), HIPDNN_STATUS_BAD_PARAM);
  made.finalize();
  check::equal(made.read_integers(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT), Dims{32});
}

}  // namespace

void add_host_robustness_cases(check::Suite& suite, const Library& library) {
  suite.add("host robustness: any attribute on any descriptor gets a status",
            [&] { test_any_attribute_on_any_descriptor_gets_a_status(library); });
  suite.add("host robustness: finalize twice is refused", [&] { test_finalize_twice_is_refused(library); });
  suite.add("host robustness: refused set keeps the value before", [&] { test_refused_set_keeps_the_value_before(library); });
}

}  // namespace abi
