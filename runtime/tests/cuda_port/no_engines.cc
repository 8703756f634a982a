// What the front of the backend API needs of a port, for a program that only builds graphs.
#include "frontend/engine.h"

namespace hipdnn_port {

std::string_view library_name() { return "none"; }

const char* library_version() { return "0.0.0.0"; }

bool uses_constants() { return false; }

std::shared_ptr<void> make_vendor_handle() { return nullptr; }

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> none;
  return none;
}

std::vector<Proposal> rank(const Graph&, const PlanOptions&, std::string&) { return {}; }

}  // namespace hipdnn_port
