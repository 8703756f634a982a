// Shape checks of operations that slide a window: convolutions and resampling.
#include <cstdint>
#include <vector>

#include "names.h"
#include "operation_descriptor.h"
#include "status.h"
#include "validate.h"

namespace hipdnn_port {
namespace {

constexpr std::size_t batch_and_channel = 2;
constexpr std::int64_t largest_extent = std::int64_t{1} << 40;  // of any one dim or window; keeps the arithmetic below free of overflow

struct Window {
  std::vector<std::int64_t> pre, post, stride, dilation, size;
};

std::vector<std::int64_t> read_spatial(const OperationDescriptor& operation, int name, std::size_t spatial, std::int64_t least) {
  std::vector<std::int64_t> values = operation.integers(name);
  if (values.size() != spatial) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " needs one value per spatial dim (", spatial, "), got ",
         show(values));
  }
  for (const std::int64_t value : values) {
    if (value < least || value > largest_extent) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " = ", show(values), ", each must be at least ", least);
    }
  }
  return values;
}

/// Throws unless both have the same rank of 3 to 5 (batch, channel, one to three spatial dims).
void check_ranks(const OperationDescriptor& operation, const Tensor& first, const Tensor& second) {
  if (first.rank() < 3 || first.rank() > 5) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": expected rank 3 to 5, got ", describe(first));
  }
  if (first.rank() != second.rank()) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", describe(first), " and ", describe(second), " differ in rank");
  }
}

void check_output_extent(const OperationDescriptor& operation, const Window& window, const Tensor& in, const Tensor& out) {
  for (std::size_t i = 0; i < window.size.size(); ++i) {
    const std::int64_t size = in.dims[batch_and_channel + i];
    std::int64_t reach = 0;
    if (size > largest_extent || __builtin_mul_overflow(window.dilation[i], window.size[i] - 1, &reach) || reach > largest_extent) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": spatial dim ", i, " is too large");
    }
    const std::int64_t room = size + window.pre[i] + window.post[i] - reach - 1;
    const std::int64_t expected = room < 0 ? 0 : room / window.stride[i] + 1;
    if (out.dims[batch_and_channel + i] != expected) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": spatial dim ", i, " of ", describe(out), " must be ", expected, " for input ",
           describe(in), ", window ", window.size[i], ", stride ", window.stride[i], ", dilation ", window.dilation[i], ", padding ",
           window.pre[i], " + ", window.post[i]);
    }
  }
}

/// Checks y = convolution(x, w); the three may be given as any of a convolution's directions.
void check_convolution(const OperationDescriptor& operation, const Tensor& x, const Tensor& w, const Tensor& y) {
  check_ranks(operation, x, w);
  check_ranks(operation, x, y);
  const auto spatial = static_cast<std::size_t>(x.rank()) - batch_and_channel;
  const std::int64_t group_channels = w.dims[1];
  if (x.dims[1] % group_channels != 0) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": channels of ", describe(x), " must be a multiple of dim 1 of the filter ", describe(w));
  }
  const std::int64_t groups = x.dims[1] / group_channels;
  if (w.dims[0] % groups != 0) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": dim 0 of the filter ", describe(w), " must be a multiple of the ", groups, " groups");
  }
  if (y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", describe(y), " must begin with [", x.dims[0], ", ", w.dims[0], "]");
  }
  const Window window{.pre = read_spatial(operation, HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial, 0),
                      .post = read_spatial(operation, HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial, 0),
                      .stride = read_spatial(operation, HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial, 1),
                      .dilation = read_spatial(operation, HIPDNN_ATTR_CONVOLUTION_DILATIONS, spatial, 1),
                      .size = {w.dims.begin() + batch_and_channel, w.dims.end()}};
  check_output_extent(operation, window, x, y);
}

}  // namespace

void validate_convolution_forward(const OperationDescriptor& operation) {
  check_convolution(operation, operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
}

void validate_convolution_backward_data(const OperationDescriptor& operation) {
  check_convolution(operation, operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
}

void validate_convolution_backward_filter(const OperationDescriptor& operation) {
  check_convolution(operation, operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                    operation.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
}

void validate_resample(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  const Tensor& y = operation.tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  check_ranks(operation, x, y);
  if (y.dims[0] != x.dims[0] || y.dims[1] != x.dims[1]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", describe(y), " must keep batch and channels of ", describe(x));
  }
  const auto spatial = static_cast<std::size_t>(x.rank()) - batch_and_channel;
  const Window window{.pre = read_spatial(operation, HIPDNN_ATTR_RESAMPLE_PRE_PADDINGS, spatial, 0),
                      .post = read_spatial(operation, HIPDNN_ATTR_RESAMPLE_POST_PADDINGS, spatial, 0),
                      .stride = read_spatial(operation, HIPDNN_ATTR_RESAMPLE_STRIDES, spatial, 1),
                      .dilation = std::vector<std::int64_t>(spatial, 1),
                      .size = read_spatial(operation, HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS, spatial, 1)};
  check_output_extent(operation, window, x, y);

  const Tensor* index = operation.find_tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC);
  const int flag = HIPDNN_ATTR_RESAMPLE_GENERATE_INDEX_EXT;
  const bool wanted = operation.has(flag) && operation.integer(flag) != 0;
  if (wanted != (index != nullptr)) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": an index tensor must be given exactly when indices are generated");
  }
  if (index != nullptr && operation.integer(HIPDNN_ATTR_RESAMPLE_MODE) != HIPDNN_RESAMPLE_MAXPOOL) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": only max pooling generates indices");
  }
  if (index != nullptr && index->dims != y.dims) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": index ", describe(*index), " must have the dims of ", describe(y));
  }
}

}  // namespace hipdnn_port
