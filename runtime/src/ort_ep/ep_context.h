// EPContext nodes: compiled programs inside ONNX models, written and read back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "node_program.h"
#include "ort.h"
#include "plan/device.h"
#include "program/dynamic_program.h"

namespace hipdnn_ep {

/// The session's wishes about compiled models, as ONNX Runtime's session entries state them.
struct ContextSettings {
  bool is_enabled = false;
  bool is_embedded = false;
  /// Path of the model that ONNX Runtime writes; empty where the session does not say.
  std::string model_path;
  std::string node_prefix;
};

ContextSettings read_context_settings(const Ort& ort, const OrtSessionOptions* options);

/// Whether a node is an EPContext node of this provider.
bool is_own_context(const Ort& ort, const OrtNode* node);

/// What made a program and where it runs, `library` being the hipDNN library's version:
/// "hipdnn_mlir=0.1.0;format=1;target=host;hipdnn=1.2.3".
std::string compatibility_text(const std::string& library, const std::string& target);
/// As `library` in it: compiled where the target's library was not at hand.
inline constexpr const char* kAnyLibrary = "any";

/// What ONNX Runtime should do with a compiled model whose compatibility text is `text`, in a session whose own is `own_text` on `device`; the
/// reason where it is refused.
struct Compatibility {
  OrtCompiledModelCompatibility verdict;
  std::string reason;
};
Compatibility judge_compatibility(const std::string& text, const std::string& own_text, const hipdnn_rt::Device& device);

/// A program that does not fit its EPContext node, with the node's name before the message.
[[noreturn]] void refuse_context(const std::string& node, const std::string& message);

/// The program of an EPContext node. `model_path` is the file of the model that has the node, empty where it came from memory; `settings`
/// may name one instead. Throws ProgramError, naming the node, for a broken program, one of a newer format or for another target, one that
/// holds code for a GPU without `allow_code`, and for a path that leaves the model's folder (links in that folder are followed).
struct ContextProgram {
  std::shared_ptr<const hipdnn_rt::DynamicProgram> program;
  std::span<const std::byte> container;
};
ContextProgram read_context(const Ort& ort, const OrtNode* node, const std::string& model_path, const ContextSettings& settings,
                            const std::string& own_text, const hipdnn_rt::Device& device, bool allow_code);

/// A new EPContext node that has a program, or, where programs go to files, its name; the file is written here, beside the model that
/// ONNX Runtime is going to write. `source_path` is the model's own file, `text` the program's compatibility text. The caller owns the node until it hands it to ONNX Runtime.
OrtNode* make_context_node(const Ort& ort, const NodeSignature& signature, std::span<const std::byte> container, const ContextSettings& settings,
                           const std::string& source_path, const std::string& text);

}  // namespace hipdnn_ep
