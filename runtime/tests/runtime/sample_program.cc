#include "sample_program.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <functional>
#include <numeric>
#include <random>

#include "hipdnn_backend.h"
#include "program/dynamic_program.h"

namespace runtime_tests {
namespace {

using nlohmann::json;

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

std::int64_t bytes_of(const Dims& dims) { return 4 * std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()); }

json attribute(int name, int type, json value) { return json::array({name, type, std::move(value)}); }

json references(int name, std::vector<int> indices) { return attribute(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, std::move(indices)); }

json integers(int name, Dims values) { return attribute(name, HIPDNN_TYPE_INT64, std::move(values)); }

json float_type(int name) { return attribute(name, HIPDNN_TYPE_DATA_TYPE, {HIPDNN_DATA_FLOAT}); }

json tensor(int uid, const Dims& dims) {
  return json::array({HIPDNN_BACKEND_TENSOR_DESCRIPTOR,
                      json::array({integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {uid}), float_type(HIPDNN_ATTR_TENSOR_DATA_TYPE),
                                   integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, dims), integers(HIPDNN_ATTR_TENSOR_STRIDES, dense_strides(dims)),
                                   attribute(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, HIPDNN_TYPE_BOOLEAN, json::array({false}))})});
}

json graph(int operation) {
  return json::array({HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                      json::array({references(HIPDNN_ATTR_OPERATIONGRAPH_OPS, {operation}),
                                   float_type(HIPDNN_ATTR_OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT),
                                   float_type(HIPDNN_ATTR_OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT),
                                   float_type(HIPDNN_ATTR_OPERATIONGRAPH_IO_DATA_TYPE_EXT),
                                   attribute(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, HIPDNN_TYPE_HANDLE, nullptr)})});
}

json executable(const std::string& name, std::size_t inputs, json descriptors) {
  json operands = json::array();
  for (std::size_t i = 0; i <= inputs; ++i) operands.push_back({{"uid", i + 1}, {"role", i == inputs ? "out" : "in"}});
  return {{"name", name}, {"summary", name}, {"operands", std::move(operands)}, {"descriptors", std::move(descriptors)}};
}

json pointwise(const std::string& name, hipdnnPointwiseMode_t mode, std::size_t inputs, const Dims& dims) {
  json descriptors = json::array();
  for (std::size_t i = 0; i <= inputs; ++i) descriptors.push_back(tensor(static_cast<int>(i) + 1, dims));
  json attributes = json::array({references(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {0}),
                                 references(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {static_cast<int>(inputs)}),
                                 attribute(HIPDNN_ATTR_POINTWISE_MODE, HIPDNN_TYPE_POINTWISE_MODE, json::array({mode})),
                                 float_type(HIPDNN_ATTR_POINTWISE_MATH_PREC)});
  if (inputs == 2) attributes.push_back(references(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT, {1}));
  descriptors.push_back(json::array({HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, std::move(attributes)}));
  descriptors.push_back(graph(static_cast<int>(inputs) + 1));
  return executable(name, inputs, std::move(descriptors));
}

json convolution(const Dims& x, const Dims& w) {
  json attributes = json::array(
      {references(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, {0}), references(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, {1}),
       references(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, {2}), integers(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {1, 1}),
       integers(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, {1, 1}), integers(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {1, 1}),
       integers(HIPDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1}),
       attribute(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_TYPE_CONVOLUTION_MODE, json::array({HIPDNN_CROSS_CORRELATION})),
       float_type(HIPDNN_ATTR_CONVOLUTION_COMP_TYPE)});
  return executable("conv", 2,
                    json::array({tensor(1, x), tensor(2, w), tensor(3, x),
                                 json::array({HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, std::move(attributes)}), graph(3)}));
}

json argument(const std::string& name, const Dims& dims, int buffer) {
  return {{"name", name}, {"dtype", "f32"}, {"dims", dims}, {"buffer", buffer}};
}

json buffer(const char* kind, std::int64_t bytes) { return {{"kind", kind}, {"bytes", bytes}}; }

json execute(int executable_index, const std::string& name, const std::vector<int>& buffers) {
  json operands = json::array();
  for (const int index : buffers) operands.push_back({{"buffer", index}, {"offset", 0}});
  return {{"kind", "execute"}, {"executable", executable_index}, {"name", name}, {"operands", std::move(operands)}};
}

}  // namespace

std::shared_ptr<const hipdnn_rt::Program> Sample::parse() const {
  const auto owner = std::make_shared<std::map<std::string, std::vector<float>>>(constants);
  hipdnn_rt::Tensors tensors;
  for (const auto& [name, values] : *owner) tensors[name] = std::as_bytes(std::span(values));
  return hipdnn_rt::DynamicProgram::parse(program.dump(), tensors, owner)->at({});
}

std::vector<std::byte> Sample::container() const {
  json header = {{"__metadata__", {{"hipdnn_program", program.dump()}}}};
  std::vector<std::byte> data;
  const auto append = [&](const std::string& name, const char* dtype, std::size_t elements, std::span<const std::byte> bytes) {
    header[name] = {{"dtype", dtype}, {"shape", {elements}}, {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data.insert(data.end(), bytes.begin(), bytes.end());
  };
  for (const auto& [name, values] : constants) {
    append(name, "F32", values.size(), std::as_bytes(std::span(values)));
    const std::vector<std::byte> padding((64 - data.size() % 64) % 64);
    if (!padding.empty()) append("__pad." + name, "U8", padding.size(), padding);
  }
  return make_container(header.dump(), data);
}

std::vector<std::byte> make_container(const std::string& header, const std::vector<std::byte>& data) {
  const std::string padded = header + std::string((64 - (header.size() + 8) % 64) % 64, ' ');
  std::vector<std::byte> bytes(8 + padded.size() + data.size());
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(padded.size() >> (8 * i));
  std::memcpy(&bytes[8], padded.data(), padded.size());
  std::copy(data.begin(), data.end(), bytes.begin() + static_cast<std::ptrdiff_t>(8 + padded.size()));
  return bytes;
}

Sample relu(const Dims& dims) {
  const std::int64_t bytes = bytes_of(dims);
  return {{{"format", 1},
           {"target", "host"},
           {"inputs", {argument("x", dims, 0)}},
           {"outputs", {argument("y", dims, 1)}},
           {"constants", json::array()},
           {"buffers", {buffer("input", bytes), buffer("output", bytes)}},
           {"executables", {pointwise("relu", HIPDNN_POINTWISE_RELU_FWD, 1, dims)}},
           {"kernels", json::array()},
           {"steps", {execute(0, "relu", {0, 1})}}},
          {}};
}

Sample one_convolution(std::int64_t channels, std::int64_t size) {
  const Dims x{1, channels, size, size};
  const Dims w{channels, channels, 3, 3};
  return {{{"format", 1},
           {"target", "host"},
           {"inputs", {argument("x", x, 0)}},
           {"outputs", {argument("y", x, 1)}},
           {"constants", {{{"tensor", "w0"}, {"buffer", 2}}}},
           {"buffers", {buffer("input", bytes_of(x)), buffer("output", bytes_of(x)), buffer("constant", bytes_of(w))}},
           {"executables", {convolution(x, w)}},
           {"kernels", json::array()},
           {"steps", {execute(0, "conv", {0, 2, 1})}}},
          {{"w0", random_values(static_cast<std::size_t>(bytes_of(w) / 4), 1)}}};
}

Sample relu_of_sum(const Dims& dims) {
  const std::int64_t bytes = bytes_of(dims);
  return {{{"format", 1},
           {"target", "host"},
           {"inputs", {argument("a", dims, 0), argument("b", dims, 1)}},
           {"outputs", {argument("y", dims, 3)}},
           {"constants", json::array()},
           {"buffers", {buffer("input", bytes), buffer("input", bytes), buffer("temp", bytes), buffer("output", bytes)}},
           {"executables", {pointwise("add", HIPDNN_POINTWISE_ADD, 2, dims), pointwise("relu", HIPDNN_POINTWISE_RELU_FWD, 1, dims)}},
           {"kernels", json::array()},
           {"steps", {execute(0, "add", {0, 1, 2}), execute(1, "relu", {2, 3})}}},
          {}};
}

Sample two_convolutions(std::int64_t channels, std::int64_t size, bool is_shared) {
  const Dims x{1, channels, size, size};
  const Dims w{channels, channels, 3, 3};
  const auto elements = static_cast<std::size_t>(bytes_of(w) / 4);
  Sample sample{{{"format", 1},
                 {"target", "host"},
                 {"inputs", {argument("x", x, 0)}},
                 {"outputs", {argument("y", x, 2)}},
                 {"constants", {{{"tensor", "w0"}, {"buffer", 3}}}},
                 {"buffers", {buffer("input", bytes_of(x)), buffer("temp", bytes_of(x)), buffer("output", bytes_of(x)),
                              buffer("constant", bytes_of(w))}},
                 {"executables", {convolution(x, w)}},
                 {"kernels", json::array()},
                 {"steps", {execute(0, "first", {0, 3, 1}), execute(0, "second", {1, is_shared ? 3 : 4, 2})}}},
                {{"w0", random_values(elements, 1)}}};
  if (!is_shared) {
    sample.program["constants"].push_back({{"tensor", "w1"}, {"buffer", 4}});
    sample.program["buffers"].push_back(buffer("constant", bytes_of(w)));
    sample.constants["w1"] = random_values(elements, 2);
  }
  return sample;
}

Sample doubled_rows(std::int64_t rows, std::int64_t columns, const std::vector<std::int32_t>& indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const Dims x{rows, columns}, y{count, columns};
  const auto dense = [](const char* role, const char* dtype, const Dims& dims) {
    return json{{"role", role}, {"dtype", dtype}, {"dims", dims}, {"strides", dense_strides(dims)}};
  };
  const auto kernel = [](const char* function, json tensors, json attributes) {
    return json{{"name", std::string("k_") + function}, {"function", function}, {"tensors", std::move(tensors)}, {"attributes", std::move(attributes)}};
  };
  const json doubling = json::array({json::array({"load", 0}), json::array({"add", 0, 0}), json::array({"store", 1, 1})});
  const auto launch = [](int kernel_index, const std::string& name, const std::vector<int>& buffers) {
    json step = execute(0, name, buffers);
    step.erase("executable");
    step["kind"] = "launch";
    step["kernel"] = kernel_index;
    return step;
  };
  std::vector<float> stored;
  for (const std::int32_t index : indices) stored.push_back(std::bit_cast<float>(index));
  return {{{"format", 1},
           {"target", "host"},
           {"inputs", {argument("x", x, 0)}},
           {"outputs", {argument("y", y, 3)}},
           {"constants", {{{"tensor", "indices"}, {"buffer", 1}}}},
           {"buffers", {buffer("input", bytes_of(x)), buffer("constant", 4 * count), buffer("temp", bytes_of(y)),
                        buffer("output", bytes_of(y))}},
           {"executables", json::array()},
           {"kernels", {kernel("gather", {dense("in", "f32", x), dense("in", "i32", {count}), dense("out", "f32", y)}, {{"axis", 0}}),
                        kernel("elementwise", {dense("in", "f32", y), dense("out", "f32", y)}, {{"code", doubling}})}},
           {"steps", {launch(0, "rows", {0, 1, 2}), launch(1, "double", {2, 3})}}},
          {{"indices", stored}}};
}

json reference(int entry) { return {{"expr", entry}}; }

json condition(const char* relation, json a, json b, const char* node) {
  return json::array({{{"relation", relation}, {"a", std::move(a)}, {"b", std::move(b)}, {"node", node}}});
}

Sample with_dynamic_batch(Sample sample, std::int64_t bytes, const std::vector<std::string>& tensors) {
  json& program = sample.program;
  program["symbols"] = {"batch"};
  program["expressions"] = json::array({json::array({"symbol", 0}), json::array({"*", reference(0), bytes})});
  for (const char* list : {"inputs", "outputs"}) {
    for (json& argument : program[list]) argument["dims"][0] = reference(0);
  }
  for (json& buffer : program["buffers"]) {
    if (buffer["kind"] != "constant") buffer["bytes"] = reference(1);
  }
  for (json& executable : program["executables"]) {
    for (const std::string& tensor : tensors) executable[json::json_pointer("/descriptors/" + tensor + "/1/2/2/0")] = reference(0);
  }
  return sample;
}

Sample dynamic_relu() { return with_dynamic_batch(relu({1, kDynamicColumns}), 4 * kDynamicColumns, {"0", "1"}); }

namespace {

json dynamic_argument(const char* name) { return {{"name", name}, {"dtype", "f32"}, {"dims", json::array({reference(0), 2, reference(1)})}, {"buffer", -1}}; }

}  // namespace

Sample specialized_relu(const std::string& target) {
  Sample sample = relu({1, 1});
  json& whole = sample.program;
  whole = {{"format", 1},
           {"target", target},
           {"symbols", {"a", "b"}},
           {"expressions", json::array({json::array({"symbol", 0}), json::array({"symbol", 1})})},
           {"buckets", {{2, 4}, {3, 5}}},
           {"inputs", json::array({dynamic_argument("x")})},
           {"outputs", json::array({dynamic_argument("y")})},
           {"constants", json::array()},
           {"buffers", json::array()},
           {"executables", json::array()},
           {"kernels", json::array()},
           {"steps", json::array()},
           {"specializations", json::array()}};
  for (const std::int64_t a : {2, 4}) {
    for (const std::int64_t b : {3, 5}) {
      json one = relu({a, 2, b}).program;
      whole["executables"].push_back(one["executables"][0]);
      one["executables"] = {whole["executables"].size() - 1};
      one["sizes"] = {a, b};
      one.erase("format");
      one.erase("target");
      whole["specializations"].push_back(one);
    }
  }
  return sample;
}

Sample dynamic_convolution() { return with_dynamic_batch(one_convolution(2, 5), 2 * 5 * 5 * 4, {"0", "2"}); }

Sample sum_with_computed(json values) {
  Sample sample = with_dynamic_batch(relu_of_sum({1, kDynamicColumns}), 4 * kDynamicColumns, {"0", "1"});
  json& program = sample.program;
  program["inputs"].erase(1);
  program["buffers"][1]["kind"] = "constant";
  program["executables"][0][json::json_pointer("/descriptors/2/1/2/2/0")] = reference(0);
  program["constants"] = {
      {{"tensor", "k"}, {"buffer", 1}, {"dtype", "f32"}, {"dims", {reference(0), kDynamicColumns}}, {"values", std::move(values)}}};
  return sample;
}

std::vector<float> doubled_rows_of(const std::vector<float>& x, const std::vector<std::int32_t>& indices) {
  std::vector<float> y;
  for (const std::int32_t index : indices) {
    const auto row = static_cast<std::ptrdiff_t>(index < 0 ? index + kRows : index) * kColumns;
    std::transform(x.begin() + row, x.begin() + row + kColumns, std::back_inserter(y), [](float value) { return 2 * value; });
  }
  return y;
}

std::vector<float> two_convolutions_reference(const Sample& sample, std::int64_t channels, std::int64_t size, const std::vector<float>& x) {
  const auto convolve = [&](const std::vector<double>& input, const std::vector<float>& w) {
    std::vector<double> output(input.size(), 0.0);
    const auto pixel = [&](std::int64_t c, std::int64_t i, std::int64_t j) { return static_cast<std::size_t>((c * size + i) * size + j); };
    for (std::int64_t k = 0; k < channels; ++k)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t r = 0; r < 9; ++r)
          for (std::int64_t i = 0; i < size; ++i)
            for (std::int64_t j = 0; j < size; ++j) {
              const std::int64_t row = i + r / 3 - 1, column = j + r % 3 - 1;
              if (row < 0 || row >= size || column < 0 || column >= size) continue;
              output[pixel(k, i, j)] += input[pixel(c, row, column)] * static_cast<double>(w[static_cast<std::size_t>((k * channels + c) * 9 + r)]);
            }
    return output;
  };
  const std::vector<float>& w0 = sample.constants.at("w0");
  const bool is_shared = !sample.constants.contains("w1");
  const std::vector<double> y = convolve(convolve({x.begin(), x.end()}, w0), is_shared ? w0 : sample.constants.at("w1"));
  return {y.begin(), y.end()};
}

std::vector<float> random_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(generator() % 2048) / 1024.0F - 1.0F;
  return values;
}

}  // namespace runtime_tests
