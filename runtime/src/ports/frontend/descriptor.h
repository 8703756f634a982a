// A backend descriptor: typed attribute values under the rules of its table row set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph.h"
#include "hipdnn_backend.h"
#include "spec.h"

namespace hipdnn_port {

class Descriptor;

/// The value of one attribute: raw elements, or the descriptors it shares ownership of.
struct Value {
  hipdnnBackendAttributeType_t type;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<Descriptor>> descriptors;
};

/// Shared by every handle and descriptor that refers to it. Setting and finalizing need one thread at a time; a finalized descriptor
/// is immutable and may be read by any number of threads.
class Descriptor : public std::enable_shared_from_this<Descriptor> {
 public:
  explicit Descriptor(const DescriptorSpec& spec) : spec_(spec) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  virtual ~Descriptor() = default;

  hipdnnBackendDescriptorType_t type() const { return spec_.type; }
  const DescriptorSpec& spec() const { return spec_; }
  bool finalized() const { return finalized_; }

  void set(int name, hipdnnBackendAttributeType_t type, std::int64_t count, const void* data);
  virtual void get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const;
  void finalize();

  bool has(int name) const { return values_.contains(name); }
  /// The value under `name`; an internal error where it is not set.
  const Value& value(int name) const;
  /// Elements widened to 64 bits: INT64, INT32, BOOLEAN and enumerations.
  std::vector<std::int64_t> integers(int name) const;
  std::int64_t integer(int name) const { return integers(name).at(0); }
  std::int64_t integer_or(int name, std::int64_t otherwise) const { return has(name) ? integer(name) : otherwise; }
  /// Elements of FLOAT and DOUBLE attributes.
  std::vector<double> reals(int name) const;
  /// Characters of a CHAR attribute; empty where unset.
  std::string string(int name) const;
  /// Elements of VOID_PTR and HANDLE attributes.
  std::vector<void*> pointers(int name) const;
  /// The single descriptor under `name`.
  template <class T>
  std::shared_ptr<T> descriptor(int name) const {
    return std::dynamic_pointer_cast<T>(value(name).descriptors.at(0));
  }

 protected:
  /// A value was just set; throwing takes it back.
  virtual void on_set(int /*name*/) {}
  /// All required attributes are there: check the whole and compute what read-only attributes show.
  virtual void on_finalize() {}
  /// What get answers before finalize; SUCCESS lets it read what is set.
  virtual hipdnnStatus_t status_of_early_get() const { return HIPDNN_STATUS_NOT_INITIALIZED; }

  void require_readable() const;
  const AttributeSpec& require_row(int name, hipdnnBackendAttributeType_t type) const;
  void store_integers(int name, hipdnnBackendAttributeType_t type, const std::vector<std::int64_t>& elements);
  void store_string(int name, const std::string& characters);
  void store_float(int name, float element);
  void store_descriptor(int name, std::shared_ptr<Descriptor> descriptor) { store_descriptors(name, {std::move(descriptor)}); }
  void store_descriptors(int name, std::vector<std::shared_ptr<Descriptor>> descriptors);
  /// For a descriptor that is made whole, by other means than its attributes.
  void finish() { finalized_ = true; }

 private:
  const DescriptorSpec& spec_;
  std::map<int, Value> values_;
  bool finalized_ = false;
};

/// An unfinalized descriptor of that type; NOT_SUPPORTED where the library has none.
std::shared_ptr<Descriptor> make_descriptor(hipdnnBackendDescriptorType_t type);

/// The attribute's value as engines see it.
AttributeValue attribute_value(const Descriptor& descriptor, int name);

}  // namespace hipdnn_port

/// What a caller of the C API holds: one share in a descriptor.
struct hipdnnBackendDescriptor {
  std::shared_ptr<hipdnn_port::Descriptor> object;
};
