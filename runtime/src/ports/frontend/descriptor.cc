// Setting, reading and finalizing attributes by the table.
#include "descriptor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "names.h"
#include "status.h"

namespace hipdnn_port {
namespace {

bool is_kind(const Descriptor& descriptor, Refers kind) {
  switch (kind) {
    case Refers::input:
    case Refers::output: return descriptor.type() == HIPDNN_BACKEND_TENSOR_DESCRIPTOR;
    case Refers::operation: return descriptor.spec().is_operation;
    case Refers::graph: return descriptor.type() == HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
    case Refers::engine: return descriptor.type() == HIPDNN_BACKEND_ENGINE_DESCRIPTOR;
    case Refers::engine_config: return descriptor.type() == HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    case Refers::knob_choice: return descriptor.type() == HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
    case Refers::nothing: return false;
  }
  return false;
}

std::string kind_name(Refers kind) {
  switch (kind) {
    case Refers::input:
    case Refers::output: return "a tensor";
    case Refers::operation: return "an operation";
    case Refers::graph: return "an operation graph";
    case Refers::engine: return "an engine";
    case Refers::engine_config: return "an engine configuration";
    case Refers::knob_choice: return "a knob choice";
    case Refers::nothing: return "nothing";
  }
  return "nothing";
}

std::vector<std::shared_ptr<Descriptor>> read_descriptors(const AttributeSpec& row, std::int64_t count, const void* data) {
  const std::span handles(static_cast<const hipdnnBackendDescriptor_t*>(data), static_cast<std::size_t>(count));
  std::vector<std::shared_ptr<Descriptor>> descriptors;
  descriptors.reserve(handles.size());
  for (const hipdnnBackendDescriptor_t handle : handles) {
    if (handle == nullptr || handle->object == nullptr) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": element ", descriptors.size(), " is a null descriptor");
    }
    const Descriptor& target = *handle->object;
    if (!is_kind(target, row.refers)) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": expected ", kind_name(row.refers), ", got ",
           descriptor_name(target.type()));
    }
    if (!target.finalized()) {
      fail(HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED, attribute_name(row.name), ": ", descriptor_name(target.type()), " in element ",
           descriptors.size(), " is not finalized; finalize it before it is set");
    }
    descriptors.push_back(handle->object);
  }
  return descriptors;
}

void check_elements(const AttributeSpec& row, const std::vector<std::byte>& bytes) {
  if (row.type == HIPDNN_TYPE_HANDLE) {
    void* handle = nullptr;
    std::memcpy(&handle, bytes.data(), sizeof handle);
    if (handle == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, attribute_name(row.name), ": the handle is null");
  }
  if (!is_enumeration(row.type)) return;
  for (std::size_t offset = 0; offset < bytes.size(); offset += sizeof(std::int32_t)) {
    std::int32_t element = 0;
    std::memcpy(&element, bytes.data() + offset, sizeof element);
    if (!enumerator_name(row.type, element)) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": ", element, " is no value of ", type_name(row.type));
    }
  }
}

std::vector<std::byte> read_bytes(const AttributeSpec& row, std::int64_t count, const void* data) {
  const std::size_t bytes = attribute_element_bytes(row.type);
  if (static_cast<std::size_t>(count) > std::numeric_limits<std::size_t>::max() / bytes / 2) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": a count of ", count, " elements is too large");
  }
  const auto* begin = static_cast<const std::byte*>(data);
  std::vector<std::byte> copied(begin, begin + static_cast<std::size_t>(count) * bytes);
  check_elements(row, copied);
  return copied;
}

/// How many elements a reader sees: characters come with their terminator, bytes do not.
std::int64_t visible_count(const AttributeSpec& row, const Value& value) { return value.count + (row.is_text() ? 1 : 0); }

void write_descriptors(const Value& value, std::size_t count, void* data) {
  std::vector<std::unique_ptr<hipdnnBackendDescriptor>> handles;
  handles.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    handles.push_back(std::make_unique<hipdnnBackendDescriptor>(hipdnnBackendDescriptor{value.descriptors[i]}));
  }
  const std::span written(static_cast<hipdnnBackendDescriptor_t*>(data), count);
  for (std::size_t i = 0; i < count; ++i) written[i] = handles[i].release();
}

void write_elements(const AttributeSpec& row, const Value& value, std::size_t count, void* data) {
  if (row.type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) return write_descriptors(value, count, data);
  const std::size_t bytes = attribute_element_bytes(row.type);
  const std::size_t stored = std::min(count, static_cast<std::size_t>(value.count));
  if (stored > 0) std::memcpy(data, value.bytes.data(), stored * bytes);  // no bytes have no address
  if (row.is_text()) static_cast<char*>(data)[std::min(stored, count - 1)] = '\0';
}

/// Throws where the attribute is not read in this way.
void check_request(const AttributeSpec& row, std::int64_t requested, const void* data) {
  if (requested < 0) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": requested count ", requested, " is negative");
  if (row.reading != Reading::one) return;
  if (requested != 1) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(row.name), ": expected a requested count of 1, got ", requested);
  if (data == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, attribute_name(row.name), ": data is null");
}

}  // namespace

const AttributeSpec& Descriptor::require_row(int name, hipdnnBackendAttributeType_t type) const {
  const AttributeSpec* any = spec_.find(name);
  if (any == nullptr) fail(HIPDNN_STATUS_NOT_SUPPORTED, descriptor_name(spec_.type), " has no ", attribute_name(name));
  const AttributeSpec* row = spec_.find(name, type);
  if (row == nullptr) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": expected ", type_name(any->type), ", got ", type_name(type));
  return *row;
}

void Descriptor::set(int name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data) {
  if (finalized_) {
    fail(HIPDNN_STATUS_NOT_INITIALIZED, descriptor_name(spec_.type), " is finalized: ", attribute_name(name), " can no longer be set");
  }
  const AttributeSpec& row = require_row(name, type);
  if (row.need == Need::read_only) fail(HIPDNN_STATUS_NOT_SUPPORTED, attribute_name(name), " is read-only");
  const std::int64_t least = row.is_text() && row.need == Need::optional ? 0 : 1;
  if (count < least || (row.count == Count::scalar && count != 1)) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": expected ", row.count == Count::scalar ? "1 element" : text("at least ", least, " elements"),
         ", got a count of ", count);
  }
  if (data == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, attribute_name(name), ": data is null");

  Value fresh{.type = type, .count = count, .bytes = {}, .descriptors = {}};
  if (type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) {
    fresh.descriptors = read_descriptors(row, count, data);
  } else {
    fresh.bytes = read_bytes(row, count, data);
  }
  const auto present = values_.find(name);
  if (row.appends && present != values_.end()) {
    fresh.descriptors.insert(fresh.descriptors.begin(), present->second.descriptors.begin(), present->second.descriptors.end());
    fresh.count = static_cast<std::int64_t>(fresh.descriptors.size());
  }
  auto previous = values_.extract(name);
  values_.emplace(name, std::move(fresh));
  try {
    on_set(name);
  } catch (...) {
    values_.erase(name);
    values_.insert(std::move(previous));
    throw;
  }
}

void Descriptor::require_readable() const {
  if (finalized_) return;
  const hipdnnStatus_t status = status_of_early_get();
  if (status != HIPDNN_STATUS_SUCCESS) fail(status, descriptor_name(spec_.type), " is not finalized: finalize it before reading");
}

void Descriptor::get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const {
  require_readable();
  const AttributeSpec& row = require_row(name, type);
  const auto found = values_.find(name);
  if (found != values_.end() && found->second.type != type) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": holds ", type_name(found->second.type), ", asked for ", type_name(type));
  }
  check_request(row, requested, data);
  const Value unset{.type = type, .count = 0, .bytes = {}, .descriptors = {}};
  const Value& held = found == values_.end() ? unset : found->second;
  const std::int64_t available = visible_count(row, held);
  if (requested == 0 || data == nullptr) {
    require_argument(actual, "element count") = available;
    return;
  }
  if (row.reading == Reading::whole && requested < available) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), " has ", available, " elements, which are read at once; asked for ", requested);
  }
  const std::int64_t written = std::min(requested, available);
  if (written > 0) write_elements(row, held, static_cast<std::size_t>(written), data);
  if (actual != nullptr) *actual = written;
}

void Descriptor::finalize() {
  if (finalized_) fail(HIPDNN_STATUS_BAD_PARAM, descriptor_name(spec_.type), " is already finalized");
  for (const AttributeSpec& row : spec_.attributes) {
    if (row.need == Need::required && !has(row.name)) {
      fail(HIPDNN_STATUS_BAD_PARAM, descriptor_name(spec_.type), ": ", attribute_name(row.name), " (", type_name(row.type),
           ") must be set before finalize");
    }
  }
  on_finalize();
  finalized_ = true;
}

const Value& Descriptor::value(int name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) fail(HIPDNN_STATUS_INTERNAL_ERROR, descriptor_name(spec_.type), ": ", attribute_name(name), " is not set");
  return found->second;
}

}  // namespace hipdnn_port
