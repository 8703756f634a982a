// The rules of attributes, on the tensor descriptor.
#include <array>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

constexpr auto int64 = HIPDNN_TYPE_INT64;

void test_attributes_are_read_back_when_finalized(const Library& library) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {7})
      .characters(HIPDNN_ATTR_TENSOR_NAME_EXT, "activations")
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_HALF)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, {2, 3, 4, 5})
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, {60, 1, 15, 3})
      .flag(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, true)
      .finalize();
  check::equal(made.read_integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID), Dims{7});
  check::equal(made.read_integers(HIPDNN_ATTR_TENSOR_DIMENSIONS), Dims{2, 3, 4, 5});
  check::equal(made.read_integers(HIPDNN_ATTR_TENSOR_STRIDES), Dims{60, 1, 15, 3});
  check::equal(made.read_characters(HIPDNN_ATTR_TENSOR_NAME_EXT), std::string("activations\0", 12), "with its terminator");
  hipdnnDataType_t type{};
  std::int64_t actual = 0;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE, 1, &actual, &type), HIPDNN_STATUS_SUCCESS);
  check::equal(type, HIPDNN_DATA_HALF);
  bool is_virtual = false;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, HIPDNN_TYPE_BOOLEAN, 1, &actual, &is_virtual), HIPDNN_STATUS_SUCCESS);
  check::that(is_virtual, "is virtual");
}

void test_count_is_answered_when_no_data_is_asked_for(const Library& library) {
  const Descriptor made = tensor(library, 1, {2, 3, 4});
  std::array<std::int64_t, 3> dims{-1, -1, -1};
  std::int64_t actual = -1;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_DIMENSIONS, int64, 0, &actual, dims.data()), HIPDNN_STATUS_SUCCESS);
  check::equal(actual, 3);
  check::equal(dims[0], -1, "data is untouched");
  actual = -1;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_DIMENSIONS, int64, 3, &actual, nullptr), HIPDNN_STATUS_SUCCESS);
  check::equal(actual, 3);
}

void test_unset_number_reads_as_no_elements_and_unset_text_as_an_empty_one(const Library& library) {
  const Descriptor in = tensor(library, 1, {2});
  const Descriptor out = tensor(library, 2, {2});
  const Descriptor relu = std::move(pointwise(library, HIPDNN_POINTWISE_RELU_FWD, {&in}, out).finalize());
  check::equal(relu.count(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, HIPDNN_TYPE_FLOAT), 0);
  check::equal(in.read_characters(HIPDNN_ATTR_TENSOR_NAME_EXT), std::string(1, '\0'), "the terminator is counted");
}

void test_wrong_type_or_count_is_bad_param(const Library& library) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<std::int64_t, 2> two{1, 2};
  check::equal(made.set(HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_FLOAT, 2, two.data()), HIPDNN_STATUS_BAD_PARAM);
  check::equal(made.set(HIPDNN_ATTR_TENSOR_DIMENSIONS, int64, 0, two.data()), HIPDNN_STATUS_BAD_PARAM);
  check::equal(made.set(HIPDNN_ATTR_TENSOR_DIMENSIONS, int64, -1, two.data()), HIPDNN_STATUS_BAD_PARAM);
  check::equal(made.set(HIPDNN_ATTR_TENSOR_UNIQUE_ID, int64, 2, two.data()), HIPDNN_STATUS_BAD_PARAM);
  check::equal(made.set(HIPDNN_ATTR_TENSOR_UNIQUE_ID, int64, 1, nullptr), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

void test_unknown_attribute_is_not_supported(const Library& library) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t value = 1;
  check::equal(made.set(HIPDNN_ATTR_POINTWISE_AXIS, int64, 1, &value), HIPDNN_STATUS_NOT_SUPPORTED);
  const Descriptor complete = tensor(library, 1, {2});
  std::int64_t actual = 0;
  check::equal(complete.get(HIPDNN_ATTR_POINTWISE_AXIS, int64, 0, &actual, nullptr), HIPDNN_STATUS_NOT_SUPPORTED);
}

void test_set_is_refused_when_finalized(const Library& library) {
  const Descriptor made = tensor(library, 1, {2});
  const std::int64_t value = 5;
  check::equal(made.set(HIPDNN_ATTR_TENSOR_UNIQUE_ID, int64, 1, &value), HIPDNN_STATUS_NOT_INITIALIZED);
  check::equal(made.read_integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID), Dims{1});
}

void test_get_is_refused_when_not_finalized(const Library& library) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1});
  std::int64_t actual = 0;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_UNIQUE_ID, int64, 0, &actual, nullptr), HIPDNN_STATUS_NOT_INITIALIZED);
}

/// Finalizes a tensor of these dims and strides, without the data type if `untyped`.
hipdnnStatus_t finalize_status(const Library& library, const Dims& dims, const Dims& strides, bool untyped = false) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1});
  if (!untyped) made.data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT);
  if (!dims.empty()) made.integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, dims);
  if (!strides.empty()) made.integers(HIPDNN_ATTR_TENSOR_STRIDES, strides);
  return made.try_finalize();
}

void test_finalize_needs_dims_strides_and_type(const Library& library) {
  check::equal(finalize_status(library, {2, 3}, {3, 1}), HIPDNN_STATUS_SUCCESS);
  check::that(finalize_status(library, {}, {3, 1}) != HIPDNN_STATUS_SUCCESS, "without dims");
  check::that(finalize_status(library, {2, 3}, {}) != HIPDNN_STATUS_SUCCESS, "without strides");
  check::that(finalize_status(library, {2, 3}, {1}) != HIPDNN_STATUS_SUCCESS, "ranks differ");
  check::that(finalize_status(library, {2, 3}, {3, 1}, true) != HIPDNN_STATUS_SUCCESS, "without data type");
}

void test_baked_value_is_read_back(const Library& library) {
  const Descriptor made = baked(library, 3, 2.5F);
  std::int64_t actual = 0;
  bool is_by_value = false;
  check::equal(made.get(HIPDNN_ATTR_TENSOR_IS_BY_VALUE, HIPDNN_TYPE_BOOLEAN, 1, &actual, &is_by_value), HIPDNN_STATUS_SUCCESS);
  check::that(is_by_value, "a baked value is by value");
  bool unbaked = true;
  check::equal(tensor(library, 1, {2}).get(HIPDNN_ATTR_TENSOR_IS_BY_VALUE, HIPDNN_TYPE_BOOLEAN, 1, &actual, &unbaked), HIPDNN_STATUS_SUCCESS);
  check::that(!unbaked, "a plain tensor is not");
}

}  // namespace

void add_tensor_cases(check::Suite& suite, const Library& library) {
  suite.add("tensor: attributes are read back when finalized", [&] { test_attributes_are_read_back_when_finalized(library); });
  suite.add("tensor: count is answered when no data is asked for", [&] { test_count_is_answered_when_no_data_is_asked_for(library); });
  suite.add("tensor: unset number reads as no elements and unset text as an empty one",
            [&] { test_unset_number_reads_as_no_elements_and_unset_text_as_an_empty_one(library); });
  suite.add("tensor: wrong type or count is bad param", [&] { test_wrong_type_or_count_is_bad_param(library); });
  suite.add("tensor: unknown attribute is not supported", [&] { test_unknown_attribute_is_not_supported(library); });
  suite.add("tensor: set is refused when finalized", [&] { test_set_is_refused_when_finalized(library); });
  suite.add("tensor: get is refused when not finalized", [&] { test_get_is_refused_when_not_finalized(library); });
  suite.add("tensor: finalize needs dims, strides and type", [&] { test_finalize_needs_dims_strides_and_type(library); });
  suite.add("tensor: baked value is read back", [&] { test_baked_value_is_read_back(library); });
}

}  // namespace abi
