// hipDNN backend descriptors: a move-only handle, and the generic builder that turns a program's descriptor list into handles.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/owned.h"
#include "program/descriptor_spec.h"

namespace hipdnn_rt {

struct DescriptorTraits {
  static void destroy(const Library& library, hipdnnBackendDescriptor_t raw) { library.hipdnn().destroy_descriptor(raw); }
};

/// An attribute of this project's extensions as the ABI's functions take it. Their values lie outside the C enum, which is a 32-bit int all the same.
inline hipdnnBackendAttributeName_t extension_attribute(hipdnnMlirExtension_t name) {
  return std::bit_cast<hipdnnBackendAttributeName_t>(static_cast<std::uint32_t>(name));
}

/// A backend descriptor. Built by one thread; a finalized one may be used from several.
class Descriptor : public Owned<hipdnnBackendDescriptor_t, DescriptorTraits> {
 public:
  Descriptor() = default;
  Descriptor(const std::shared_ptr<const Library>& library, hipdnnBackendDescriptorType_t type);
  /// Take over a handle that the library created.
  Descriptor(const std::shared_ptr<const Library>& library, hipdnnBackendDescriptor_t raw) : Owned(library, raw) {}

  /// Set an attribute; `what` is the context named in a DeviceError.
  void set(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data,
           const std::string& what);
  /// The same, answering the status instead of throwing.
  hipdnnStatus_t try_set(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data);
  void set_descriptor(hipdnnBackendAttributeName_t name, const Descriptor& value, const std::string& what);
  void finalize(const std::string& what);
  hipdnnStatus_t try_finalize();

  std::int64_t get_int64(hipdnnBackendAttributeName_t name, const std::string& what) const;
  /// Number of elements the attribute has.
  std::int64_t get_count(hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, const std::string& what) const;
  /// A new handle to the descriptor stored under `name`.
  Descriptor get_descriptor(hipdnnBackendAttributeName_t name, const std::string& what) const;
};

/// Create, set and finalize every descriptor of the list in order; the last one is the operation graph.
/// References must point backwards (the loader has checked). Throws DeviceError naming the descriptor and attribute refused.
std::vector<Descriptor> build_descriptors(const std::shared_ptr<const Library>& library, hipdnnHandle_t handle,
                                          std::span<const DescriptorSpec> specs, const std::string& executable);

}  // namespace hipdnn_rt
