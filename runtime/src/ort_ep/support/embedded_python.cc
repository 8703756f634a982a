#include "support/embedded_python.h"

#include <dlfcn.h>

#include <cstddef>
#include <utility>

#include "support/compiler_error.h"

namespace hipdnn_ep {

/// Python's types as far as a caller that includes no header of Python needs them.
struct PyObject;
using PySsize = std::ptrdiff_t;

/// The functions of CPython's C API that are called; all belong to its limited API and so exist in every version.
struct PythonApi {
  int (*is_initialized)() = nullptr;
  int (*ensure_gil)() = nullptr;
  void (*release_gil)(int) = nullptr;
  void (*decrement)(PyObject*) = nullptr;
  PyObject* (*sys_get)(const char*) = nullptr;
  PyObject* (*import_module)(const char*) = nullptr;
  PyObject* (*get_attribute)(PyObject*, const char*) = nullptr;
  PyObject* (*call)(PyObject*, PyObject*) = nullptr;
  PyObject* (*to_text)(PyObject*) = nullptr;
  PyObject* (*text)(const char*, PySsize) = nullptr;
  PyObject* (*encode)(PyObject*) = nullptr;
  PyObject* (*bytes)(const char*, PySsize) = nullptr;
  int (*bytes_content)(PyObject*, char**, PySsize*) = nullptr;
  PyObject* (*integer)(long) = nullptr;
  PyObject* (*list)(PySsize) = nullptr;
  int (*list_set)(PyObject*, PySsize, PyObject*) = nullptr;
  int (*list_append)(PyObject*, PyObject*) = nullptr;
  PyObject* (*tuple)(PySsize) = nullptr;
  int (*tuple_set)(PyObject*, PySsize, PyObject*) = nullptr;
  int (*contains)(PyObject*, PyObject*) = nullptr;
  void (*fetch_error)(PyObject**, PyObject**, PyObject**) = nullptr;
  void (*normalize_error)(PyObject**, PyObject**, PyObject**) = nullptr;
  void (*clear_error)() = nullptr;

  bool is_complete = true;
};

namespace {

template <typename Function>
void load(PythonApi& api, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, symbol));
  if (function == nullptr) api.is_complete = false;
}

PythonApi load_api() {
  PythonApi api;
  load(api, api.is_initialized, "Py_IsInitialized");
  load(api, api.ensure_gil, "PyGILState_Ensure");
  load(api, api.release_gil, "PyGILState_Release");
  load(api, api.decrement, "Py_DecRef");
  load(api, api.sys_get, "PySys_GetObject");
  load(api, api.import_module, "PyImport_ImportModule");
  load(api, api.get_attribute, "PyObject_GetAttrString");
  load(api, api.call, "PyObject_CallObject");
  load(api, api.to_text, "PyObject_Str");
  load(api, api.text, "PyUnicode_DecodeFSDefaultAndSize");
  load(api, api.encode, "PyUnicode_EncodeFSDefault");
  load(api, api.bytes, "PyBytes_FromStringAndSize");
  load(api, api.bytes_content, "PyBytes_AsStringAndSize");
  load(api, api.integer, "PyLong_FromLong");
  load(api, api.list, "PyList_New");
  load(api, api.list_set, "PyList_SetItem");
  load(api, api.list_append, "PyList_Append");
  load(api, api.tuple, "PyTuple_New");
  load(api, api.tuple_set, "PyTuple_SetItem");
  load(api, api.contains, "PySequence_Contains");
  load(api, api.fetch_error, "PyErr_Fetch");
  load(api, api.normalize_error, "PyErr_NormalizeException");
  load(api, api.clear_error, "PyErr_Clear");
  return api;
}

/// The interpreter's lock, held for a scope.
class Gil {
 public:
  explicit Gil(const PythonApi& api) : api_(api), state_(api.ensure_gil()) {}
  ~Gil() { api_.release_gil(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  const PythonApi& api_;
  int state_;
};

/// A counted reference to a Python object. Lives only while the lock is held.
class Reference {
 public:
  Reference(const PythonApi& api, PyObject* object) : api_(api), object_(object) {}
  ~Reference() {
    if (object_ != nullptr) api_.decrement(object_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  PyObject* get() const { return object_; }
  /// Gives the count away to a function that takes it over.
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const PythonApi& api_;
  PyObject* object_;
};

/// Text of a str object in the file system's encoding, which is UTF-8 with stray bytes kept; empty where there is none.
std::string to_string(const PythonApi& api, PyObject* text) {
  if (text == nullptr) return {};
  const Reference encoded(api, api.encode(text));
  char* content = nullptr;
  PySsize size = 0;
  if (!encoded || api.bytes_content(encoded.get(), &content, &size) != 0) {
    api.clear_error();
    return {};
  }
  return {content, static_cast<std::size_t>(size)};
}

/// "ImportError: no module ..." of the exception that is set, which is cleared.
std::string take_exception(const PythonApi& api) {
  PyObject* raw_type = nullptr;
  PyObject* raw_value = nullptr;
  PyObject* raw_trace = nullptr;
  api.fetch_error(&raw_type, &raw_value, &raw_trace);
  api.normalize_error(&raw_type, &raw_value, &raw_trace);
  const Reference type(api, raw_type);
  const Reference value(api, raw_value);
  const Reference trace(api, raw_trace);
  if (!type || !value) return "an unknown exception";
  const Reference name(api, api.get_attribute(type.get(), "__name__"));
  const Reference text(api, api.to_text(value.get()));
  std::string message = to_string(api, name.get()) + ": " + to_string(api, text.get());
  api.clear_error();
  return message;
}

[[noreturn]] void fail(const PythonApi& api, CompilerError::Cause cause, const std::string& action, const std::string& remedy) {
  throw CompilerError(cause, "the compiler in this process " + action + ": " + take_exception(api) + "; " + remedy);
}

/// Modules that the host has stay the host's: the folder goes to the end of the list.
void add_to_search_path(const PythonApi& api, const std::string& folder) {
  PyObject* path = api.sys_get("path");
  const Reference entry(api, api.text(folder.data(), static_cast<PySsize>(folder.size())));
  if (path == nullptr || !entry || api.contains(path, entry.get()) != 0 || api.list_append(path, entry.get()) != 0) api.clear_error();
}

/// (bytes, [descriptor, ...])
PyObject* make_arguments(const PythonApi& api, std::string_view request, std::span<const int> descriptors) {
  Reference arguments(api, api.tuple(2));
  Reference bytes(api, api.bytes(request.data(), static_cast<PySsize>(request.size())));
  Reference list(api, api.list(static_cast<PySsize>(descriptors.size())));
  if (!arguments || !bytes || !list) return nullptr;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    PyObject* number = api.integer(descriptors[i]);
    if (number == nullptr || api.list_set(list.get(), static_cast<PySsize>(i), number) != 0) return nullptr;
  }
  api.tuple_set(arguments.get(), 0, bytes.release());
  api.tuple_set(arguments.get(), 1, list.release());
  return arguments.release();
}

}  // namespace

std::optional<EmbeddedPython> EmbeddedPython::find() {
  // An interpreter does not leave its process, but one may come later: look again until there is one.
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr) return std::nullopt;
  static const PythonApi api = load_api();
  if (!api.is_complete || api.is_initialized() == 0) return std::nullopt;
  return EmbeddedPython(api);
}

std::string EmbeddedPython::executable() const {
  const Gil gil(*api_);
  return to_string(*api_, api_->sys_get("executable"));
}

std::string EmbeddedPython::answer(const std::string& package_root, std::string_view request, std::span<const int> descriptors) const {
  constexpr const char* install = "install hipdnn-mlir in this Python, or set the option compiler to subprocess";
  const Gil gil(*api_);
  if (!package_root.empty()) add_to_search_path(*api_, package_root);
  const Reference module(*api_, api_->import_module("hipdnn_mlir.service.server"));
  if (!module) fail(*api_, CompilerError::Cause::unavailable, "cannot be imported", install);
  const Reference function(*api_, api_->get_attribute(module.get(), "answer"));
  if (!function) fail(*api_, CompilerError::Cause::unavailable, "cannot be called", install);
  const Reference arguments(*api_, make_arguments(*api_, request, descriptors));
  if (!arguments) fail(*api_, CompilerError::Cause::crashed, "cannot be called", "free some memory");
  const Reference reply(*api_, api_->call(function.get(), arguments.get()));
  char* content = nullptr;
  PySsize size = 0;
  if (!reply || api_->bytes_content(reply.get(), &content, &size) != 0) {
    fail(*api_, CompilerError::Cause::crashed, "failed", "set the option compiler to subprocess to keep such failures out of this process");
  }
  return {content, static_cast<std::size_t>(size)};
}

}  // namespace hipdnn_ep
