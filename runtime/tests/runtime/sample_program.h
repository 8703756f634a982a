// Small programs written by hand, for the runtime's tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "program/program.h"

namespace runtime_tests {

using Dims = std::vector<std::int64_t>;

/// A program's JSON and its constants.
struct Sample {
  nlohmann::json program;
  std::map<std::string, std::vector<float>> constants;

  /// The program as the loader sees one that is in memory.
  std::shared_ptr<const hipdnn_rt::Program> parse() const;
  /// The program file, its tensors in order of name, each padded to 64 bytes.
  std::vector<std::byte> container() const;
};

/// A file's bytes from its header and data, the header padded with spaces.
std::vector<std::byte> make_container(const std::string& header, const std::vector<std::byte>& data);

/// y = relu(x), one step.
Sample relu(const Dims& dims);

/// y = conv(x, w0): the first step of two_convolutions.
Sample one_convolution(std::int64_t channels, std::int64_t size);

/// y = relu(a + b), the sum in a temp.
Sample relu_of_sum(const Dims& dims);

/// y = conv(conv(x, w0), w1): 3x3, padding 1, dense C-order tensors, both convolutions of `channels` to `channels` and one executable.
/// With `is_shared` both steps use w0.
Sample two_convolutions(std::int64_t channels, std::int64_t size, bool is_shared);

/// y = 2 * x[indices], x of `rows` x `columns`: a gather into a temp, then an elementwise kernel. The indices are constants.
Sample doubled_rows(std::int64_t rows, std::int64_t columns, const std::vector<std::int32_t>& indices);

constexpr std::int64_t kRows = 4, kColumns = 3;

/// What doubled_rows of kRows x kColumns computes.
std::vector<float> doubled_rows_of(const std::vector<float>& x, const std::vector<std::int32_t>& indices);

/// A reference to an entry of a program's table of expressions.
nlohmann::json reference(int entry);

/// A list of one condition of a program.
nlohmann::json condition(const char* relation, nlohmann::json a, nlohmann::json b, const char* node);

/// A sample whose tensors are `batch` times `bytes` large: the given descriptors of all executables, all inputs, outputs and temps.
Sample with_dynamic_batch(Sample sample, std::int64_t bytes, const std::vector<std::string>& tensors);

constexpr std::int64_t kDynamicColumns = 4;

/// y = relu(x) of batch x 4.
Sample dynamic_relu();

/// y = relu(x) of dims a x 2 x b, with a program for each of a = 2, 4 and b = 3, 5.
Sample specialized_relu(const std::string& target = "host");

/// one_convolution of 2 channels and size 5, of any batch.
Sample dynamic_convolution();

/// y = relu(a + k), k of batch x 4 with `values` as elements.
Sample sum_with_computed(nlohmann::json values);

/// What two_convolutions computes for one image, in double.
std::vector<float> two_convolutions_reference(const Sample& sample, std::int64_t channels, std::int64_t size, const std::vector<float>& x);

/// `count` reproducible values in [-1, 1).
std::vector<float> random_values(std::size_t count, std::uint32_t seed);

}  // namespace runtime_tests
