#include "plan/descriptor.h"

#include "device/error.h"

namespace hipdnn_rt {
namespace {

hipdnnBackendDescriptor_t create_raw(const Library& library, hipdnnBackendDescriptorType_t type) {
  hipdnnBackendDescriptor_t raw = nullptr;
  check(library.hipdnn(), library.hipdnn().create_descriptor(type, &raw),
        "hipdnnBackendCreateDescriptor(type " + std::to_string(static_cast<int>(type)) + ")");
  return raw;
}

std::string call_name(const char* function, hipdnnBackendAttributeName_t name, const std::string& what) {
  return std::string(function) + "(" + what + ", attribute " + std::to_string(static_cast<int>(name)) + ")";
}

void set_attribute(Descriptor& descriptor, const AttributeSpec& attribute, const std::vector<Descriptor>& earlier, hipdnnHandle_t handle,
                   const std::string& what) {
  if (attribute.type == HIPDNN_TYPE_HANDLE) {
    descriptor.set(attribute.name, attribute.type, 1, &handle, what);
  } else if (attribute.type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::vector<hipdnnBackendDescriptor_t> raw;
    for (const std::uint32_t index : attribute.references) raw.push_back(earlier.at(index).get());
    descriptor.set(attribute.name, attribute.type, attribute.count, raw.data(), what);
  } else {
    descriptor.set(attribute.name, attribute.type, attribute.count, attribute.bytes.data(), what);
  }
}

}  // namespace

Descriptor::Descriptor(const std::shared_ptr<const Library>& library, hipdnnBackendDescriptorType_t type)
    : Owned(library, create_raw(*library, type)) {}

hipdnnStatus_t Descriptor::try_set(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::int64_t count,
                                   const void* data) {
  return library().hipdnn().set_attribute(get(), name, type, count, data);
}

void Descriptor::set(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data,
                     const std::string& what) {
  const hipdnnStatus_t status = try_set(name, type, count, data);
  if (status != HIPDNN_STATUS_SUCCESS) check(library().hipdnn(), status, call_name("hipdnnBackendSetAttribute", name, what));
}

void Descriptor::set_descriptor(hipdnnBackendAttributeName_t name, const Descriptor& value, const std::string& what) {
  const hipdnnBackendDescriptor_t raw = value.get();
  set(name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw, what);
}

hipdnnStatus_t Descriptor::try_finalize() { return library().hipdnn().finalize(get()); }

void Descriptor::finalize(const std::string& what) {
  const hipdnnStatus_t status = try_finalize();
  if (status != HIPDNN_STATUS_SUCCESS) check(library().hipdnn(), status, "hipdnnBackendFinalize(" + what + ")");
}

std::int64_t Descriptor::get_int64(hipdnnBackendAttributeName_t name, const std::string& what) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  check(library().hipdnn(), library().hipdnn().get_attribute(get(), name, HIPDNN_TYPE_INT64, 1, &count, &value),
        call_name("hipdnnBackendGetAttribute", name, what));
  return value;
}

std::int64_t Descriptor::get_count(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, const std::string& what) const {
  std::int64_t count = 0;
  check(library().hipdnn(), library().hipdnn().get_attribute(get(), name, type, 0, &count, nullptr),
        call_name("hipdnnBackendGetAttribute", name, what));
  return count;
}

Descriptor Descriptor::get_descriptor(hipdnnBackendAttributeName_t name, const std::string& what) const {
  hipdnnBackendDescriptor_t raw = nullptr;
  std::int64_t count = 0;
  check(library().hipdnn(), library().hipdnn().get_attribute(get(), name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        call_name("hipdnnBackendGetAttribute", name, what));
  return {shared_library(), raw};
}

std::vector<Descriptor> build_descriptors(const std::shared_ptr<const Library>& library, hipdnnHandle_t handle,
                                          std::span<const DescriptorSpec> specs, const std::string& executable) {
  std::vector<Descriptor> built;
  built.reserve(specs.size());
  for (const DescriptorSpec& spec : specs) {
    const std::string what = executable + ", descriptor " + std::to_string(built.size());
    Descriptor descriptor(library, spec.type);
    for (const AttributeSpec& attribute : spec.attributes) set_attribute(descriptor, attribute, built, handle, what);
    descriptor.finalize(what);
    built.push_back(std::move(descriptor));
  }
  return built;
}

}  // namespace hipdnn_rt
