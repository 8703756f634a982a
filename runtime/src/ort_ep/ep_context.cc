#include "ep_context.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "atomic_file.h"
#include "device/error.h"
#include "graph_view.h"
#include "names.h"
#include "storage/mapped_file.h"
#include "storage/sha256.h"

namespace hipdnn_ep {
namespace {

/// An error that names the node already.
class RefusedContext : public hipdnn_rt::ProgramError {
 public:
  using ProgramError::ProgramError;
};

}  // namespace

void refuse_context(const std::string& node, const std::string& message) {
  throw RefusedContext("EPContext node '" + node + "': " + message);
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kDomain = "com.microsoft";
constexpr const char* kOperator = "EPContext";
constexpr std::size_t kContainerAlignment = 64;
constexpr std::size_t kShownPath = 200;
constexpr std::size_t kDigitsInName = 16;

std::string session_entry(const Ort& ort, const OrtSessionOptions* options, const char* key) {
  int is_there = 0;
  check(ort, ort.api->HasSessionConfigEntry(options, key, &is_there));
  if (is_there == 0) return "";
  std::size_t size = 0;
  check(ort, ort.api->GetSessionConfigEntry(options, key, nullptr, &size));
  std::string value(size, '\0');
  check(ort, ort.api->GetSessionConfigEntry(options, key, value.data(), &size));
  value.resize(std::strlen(value.c_str()));
  return value;
}

std::string describe_wrong_target(const std::string& theirs, const std::string& own) {
  return "compiled for target '" + theirs + "', this device runs '" + own + "'; compile the model again for this device";
}

/// "a=1;b=2" by key.
std::map<std::string, std::string> fields_of(const std::string& text) {
  std::map<std::string, std::string> fields;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string field = text.substr(begin, end - begin);
    const std::size_t equals = std::min(field.find('='), field.size());
    fields[field.substr(0, equals)] = equals < field.size() ? field.substr(equals + 1) : "";
    begin = end + 1;
  }
  return fields;
}

/// The file of a program, which has to lie in the folder of its model or below.
fs::path resolve(const std::string& node, const std::string& name, const std::string& model_path) {
  const fs::path path(name);
  const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
  if (name.empty() || path.is_absolute() || climbs) {
    refuse_context(node, "its program's path is '" + name.substr(0, kShownPath) + "': expected a relative path without '..', to a file beside the model");
  }
  if (model_path.empty()) {
    refuse_context(node, "its program lies in the file '" + name + "', but the model was loaded from memory: load it by its path, set the session's " +
                     "ep.context_file_path, or compile with the program embedded");
  }
  const fs::path file = fs::path(model_path).parent_path() / path;
  if (std::error_code error; !fs::exists(file, error)) {
    refuse_context(node, "its program, the file '" + file.string() + "', is not there: copy it beside the model, or compile with the program embedded");
  }
  return file;
}

/// A program from bytes that lie anywhere: copied to the alignment that a mapped file has.
ContextProgram parse_embedded(const std::string& bytes) {
  const std::shared_ptr<std::byte> memory(
      static_cast<std::byte*>(std::aligned_alloc(kContainerAlignment, (bytes.size() / kContainerAlignment + 1) * kContainerAlignment)),
      [](std::byte* pointer) { std::free(pointer); });
  if (!memory) throw std::bad_alloc();
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  const std::span<const std::byte> container(memory.get(), bytes.size());
  return {hipdnn_rt::DynamicProgram::parse_container(container, memory), container};
}

ContextProgram map_file(const std::string& path) {
  const auto file = std::make_shared<const hipdnn_rt::MappedFile>(path);
  return {hipdnn_rt::DynamicProgram::parse_file(file), file->bytes()};
}

/// Attributes under construction; released here, since ONNX Runtime copies them.
class Attributes {
 public:
  explicit Attributes(const Ort& ort) : ort_(ort) {}
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() {
    for (OrtOpAttr* attribute : attributes_) ort_.api->ReleaseOpAttr(attribute);
  }

  void text(const char* name, std::string_view value) { add(name, value.data(), value.size(), ORT_OP_ATTR_STRING); }
  void integer(const char* name, std::int64_t value) { add(name, &value, 1, ORT_OP_ATTR_INT); }
  std::vector<OrtOpAttr*>& all() { return attributes_; }

 private:
  void add(const char* name, const void* data, std::size_t length, OrtOpAttrType type) {
    if (length > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      throw hipdnn_rt::Error(std::string("attribute '") + name + "' has " + std::to_string(length) +
                             " bytes, more than a model can hold; compile with ep.context_embed_mode = 0");
    }
    OrtOpAttr* attribute = nullptr;
    check(ort_, ort_.api->CreateOpAttr(name, data, static_cast<int>(length), type, &attribute));
    attributes_.push_back(attribute);
  }

  Ort ort_;
  std::vector<OrtOpAttr*> attributes_;
};

/// The path of the compiled model: as given, or as ONNX Runtime derives it from the source.
fs::path compiled_model_path(const ContextSettings& settings, const std::string& source_path) {
  if (!settings.model_path.empty()) return settings.model_path;
  const fs::path source(source_path);
  return source.parent_path() / (source.stem().string() + "_ctx.onnx");
}

/// A name that no other program in the folder has: those of models and nodes alone differ in what file names should not have, or not at all.
std::string program_file_name(std::string name, std::span<const std::byte> container) {
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '-' && c != '.'; }, '_');
  hipdnn_rt::Sha256 digest;
  digest.update(container);
  return name + "_" + digest.hex_digest().substr(0, kDigitsInName) + ".hipdnn";
}

}  // namespace

ContextSettings read_context_settings(const Ort& ort, const OrtSessionOptions* options) {
  ContextSettings settings;
  settings.is_enabled = session_entry(ort, options, "ep.context_enable") == "1";
  settings.is_embedded = session_entry(ort, options, "ep.context_embed_mode") == "1";
  settings.model_path = session_entry(ort, options, "ep.context_file_path");
  settings.node_prefix = session_entry(ort, options, "ep.context_node_name_prefix");
  return settings;
}

bool is_own_context(const Ort& ort, const OrtNode* node) {
  return op_type_of(ort, node) == kOperator && domain_of(ort, node) == kDomain && text_attribute(ort, node, "source") == kEpName;
}

std::string compatibility_text(const std::string& library, const std::string& target) {
  return "hipdnn_mlir=" HIPDNN_MLIR_VERSION ";format=" + std::to_string(hipdnn_rt::kProgramFormat) + ";target=" + target + ";hipdnn=" + library;
}

Compatibility judge_compatibility(const std::string& text, const std::string& own_text, const hipdnn_rt::Device& device) {
  auto theirs = fields_of(text);
  auto own = fields_of(own_text);
  const auto format = theirs["format"];
  if (format.empty() || !std::all_of(format.begin(), format.end(), [](unsigned char c) { return std::isdigit(c); }) || format.size() > 9) {
    return {OrtCompiledModelCompatibility_EP_UNSUPPORTED, "its compatibility text '" + text + "' states no program format"};
  }
  if (format != own["format"]) {
    return {OrtCompiledModelCompatibility_EP_UNSUPPORTED,
            "program format " + format + " is not " + own["format"] + ", the one this library reads; compile the model again"};
  }
  if (theirs["target"] != own["target"] && !device.runs(theirs["target"])) {
    return {OrtCompiledModelCompatibility_EP_UNSUPPORTED, describe_wrong_target(theirs["target"], own["target"])};
  }
  const bool is_same = theirs["hipdnn_mlir"] == own["hipdnn_mlir"] && (theirs["hipdnn"] == own["hipdnn"] || theirs["hipdnn"] == kAnyLibrary);
  return {is_same ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL : OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION, ""};
}

ContextProgram read_context(const Ort& ort, const OrtNode* node, const std::string& model_path, const ContextSettings& settings,
                            const std::string& own_text, const hipdnn_rt::Device& device, bool allow_code) {
  const std::string name = name_of(ort, node);
  if (const auto text = text_attribute(ort, node, "ep_sdk_version")) {
    const Compatibility compatibility = judge_compatibility(*text, own_text, device);
    if (compatibility.verdict == OrtCompiledModelCompatibility_EP_UNSUPPORTED) refuse_context(name, compatibility.reason);
  }
  const std::optional<std::string> content = text_attribute(ort, node, "ep_cache_context");
  if (!content || content->empty()) refuse_context(name, "it has no program: attribute ep_cache_context is missing or empty; compile the model again");
  const std::int64_t mode = integer_attribute(ort, node, "embed_mode").value_or(1);
  if (mode != 0 && mode != 1) refuse_context(name, "its embed_mode is " + std::to_string(mode) + ": expected 0 or 1");
  ContextProgram found;
  try {
    found = mode == 1
                ? parse_embedded(*content)
                : map_file(resolve(name, *content, model_path.empty() ? settings.model_path : model_path).string());
  } catch (const RefusedContext&) {
    throw;
  } catch (const hipdnn_rt::ProgramError& error) {
    refuse_context(name, error.what());
  }
  if (const std::vector<std::string> code = found.program->code_kernels(); !allow_code && !code.empty()) {
    refuse_context(name, "its program holds code for a GPU, in kernel '" + code.front() + "', which is not allowed here (option allow_code): compile the model "
                         "yourself, or allow code if you would run a program of its author");
  }
  const std::string target = fields_of(own_text)["target"];
  if (found.program->target() != target && !device.runs(found.program->target())) refuse_context(name, describe_wrong_target(found.program->target(), target));
  return found;
}

OrtNode* make_context_node(const Ort& ort, const NodeSignature& signature, std::span<const std::byte> container, const ContextSettings& settings,
                           const std::string& source_path, const std::string& text) {
  Attributes attributes(ort);
  attributes.integer("main_context", 1);
  attributes.integer("embed_mode", settings.is_embedded ? 1 : 0);
  if (settings.is_embedded) {
    attributes.text("ep_cache_context", {reinterpret_cast<const char*>(container.data()), container.size()});
  } else {
    const fs::path model = compiled_model_path(settings, source_path);
    if (settings.model_path.empty() && source_path.empty()) {
      throw hipdnn_rt::Error("the compiled model's path is not known, so its programs cannot be put beside it: set ep.context_file_path, or " +
                             std::string("ep.context_embed_mode = 1"));
    }
    const std::string file = program_file_name(model.stem().string() + "_" + signature.node, container);
    write_atomically((model.parent_path() / file).string(), container);
    attributes.text("ep_cache_context", file);
  }
  attributes.text("source", kEpName);
  attributes.text("partition_name", signature.node);
  attributes.text("ep_sdk_version", text);
  const auto pointers = [](const std::vector<NodeValue>& values) {
    std::vector<const char*> found;
    for (const NodeValue& value : values) found.push_back(value.name.c_str());
    return found;
  };
  const std::vector<const char*> inputs = pointers(signature.inputs);
  const std::vector<const char*> outputs = pointers(signature.outputs);
  OrtNode* node = nullptr;
  check(ort, ort.editor->CreateNode(kOperator, kDomain, (settings.node_prefix + signature.node).c_str(), inputs.data(), inputs.size(),
                                    outputs.data(), outputs.size(), attributes.all().data(), attributes.all().size(), &node));
  return node;
}

}  // namespace hipdnn_ep
