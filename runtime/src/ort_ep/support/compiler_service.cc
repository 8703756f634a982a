#include "support/compiler_service.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "support/compiler_child.h"
#include "support/embedded_python.h"

namespace hipdnn_ep {
namespace {

using std::chrono::milliseconds;
using Cause = CompilerError::Cause;

/// For a compiler to say who it is: a Python start from a slow disk, no compilation.
constexpr milliseconds kHelloLimit(60'000);
/// Keeps sums with the clock's present time from overflowing.
constexpr milliseconds kLongestLimit = std::chrono::hours(24 * 365);

constexpr std::string_view kHello = R"({"action": "hello"})";

milliseconds limit_of(const CompilerOptions& options) { return std::clamp(options.timeout, milliseconds(0), kLongestLimit); }

std::string to_text(const nlohmann::json& request) {
  try {
    return request.dump();
  } catch (const nlohmann::json::exception&) {
    throw CompilerError(Cause::refused, "a name or path in the model or the options is not UTF-8 text: rename it");
  }
}

std::string member_text(const nlohmann::json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

/// The result in a reply. Throws CompilerError for an error, or for neither.
nlohmann::json take_result(nlohmann::json reply, const std::string& who) {
  if (const auto result = reply.find("result"); result != reply.end()) return std::move(*result);
  const auto error = reply.find("error");
  if (error == reply.end() || !error->is_object()) {
    throw CompilerError(Cause::crashed, "the compiler (" + who + ") replied with neither a result nor an error; reinstall hipdnn-mlir");
  }
  std::string message = member_text(*error, "message");
  if (message.empty()) message = "the compiler gave no reason";
  const std::string kind = member_text(*error, "kind");
  if (kind == "MissingToolError") throw CompilerError(Cause::unavailable, message);
  throw CompilerError::refused(message, kind, member_text(*error, "detail"));
}

void check_version(const nlohmann::json& compiler, const std::string& who) {
  const std::string version = compiler.is_object() ? member_text(compiler, "version") : std::string();
  if (version == library_version()) return;
  const std::string expected(library_version());
  throw CompilerError(Cause::unavailable, who + " has hipdnn_mlir " + (version.empty() ? "of an unknown version" : version) +
                                              ", this library needs " + expected + ": pip install hipdnn-mlir==" + expected +
                                              " there, or set the option python");
}

/// What a process that ended at its first request was missing, told from what it printed.
CompilerError explain_start(const CompilerError& error, const std::string& python) {
  const std::string& output = error.detail();
  const auto printed = [&](const char* text) { return output.find(text) != std::string::npos; };
  if (printed("No module named hipdnn_mlir") || printed("No module named 'hipdnn_mlir'")) {
    return {Cause::unavailable, python + " has no hipdnn_mlir: pip install hipdnn-mlir there, or set the option python"};
  }
  if (printed("nknown option: -P") || printed("nknown option -P")) {
    return {Cause::unavailable, python + " is older than Python 3.11: set the option python to a newer one with hipdnn-mlir"};
  }
  return error;
}

/// A lock with a time limit, for long holding.
class Turn {
 public:
  bool take(milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (!free_.wait_for(lock, limit, [&] { return !is_taken_; })) return false;
    is_taken_ = true;
    return true;
  }
  void give_back() {
    {
      const std::lock_guard lock(mutex_);
      is_taken_ = false;
    }
    free_.notify_one();
  }
  /// Never waits, not even for a thread that a fork has taken away.
  bool is_known_free() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && !is_taken_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool is_taken_ = false;
};

/// One interpreter and, while it runs, its compiler. Functions are safe to call from several threads.
class Worker {
 public:
  Worker(std::string python, std::string package_root) : python_(std::move(python)), package_root_(std::move(package_root)) {}

  /// Starts the compiler where it does not run.
  void start(milliseconds limit) {
    const Hold hold(*this, limit);
    start();
  }

  nlohmann::json request(std::string_view request, std::span<const int> descriptors, milliseconds limit) {
    const Hold hold(*this, limit);
    start();
    return take_result(child_->exchange(request, descriptors, limit), python_);
  }

  /// In a forked process: closes this process's copy of the socket, so that the compiler still notices its owner's end.
  void abandon() {
    if (turn_.is_known_free()) child_.reset();
  }

 private:
  class Hold {
   public:
    Hold(Worker& worker, milliseconds limit) : worker_(worker) {
      if (worker.turn_.take(limit)) return;
      throw CompilerError(Cause::timed_out, "the compiler (" + worker.python_ + ") was busy with other models for " +
                                                in_words(limit) + "; give it more time, or compile the model ahead of time");
    }
    ~Hold() { worker_.turn_.give_back(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Worker& worker_;
  };

  void start() {
    if (child_ && child_->is_alive()) return;
    child_.reset();
    auto child = started();
    nlohmann::json compiler;
    try {
      compiler = take_result(child->exchange(kHello, {}, kHelloLimit), python_);
    } catch (const CompilerError& error) {
      throw explain_start(error, python_);
    }
    check_version(compiler, python_);
    child_ = std::move(child);
  }

  std::unique_ptr<CompilerChild> started() const {
    try {
      return std::make_unique<CompilerChild>(python_, package_root_);
    } catch (const hipdnn_rt::Error& error) {
      throw CompilerError(Cause::crashed, std::string("the compiler does not run: ") + error.what() + "; see ulimit -u and ulimit -n");
    }
  }

  const std::string python_;
  const std::string package_root_;
  Turn turn_;
  // Of the thread whose turn it is.
  std::unique_ptr<CompilerChild> child_;
};

nlohmann::json request_in_process(const EmbeddedPython& python, const std::string& package_root, std::string_view request,
                                  std::span<const int> descriptors) {
  const std::string who = "in this process";
  nlohmann::json reply = nlohmann::json::parse(python.answer(package_root, request, descriptors), nullptr, false);
  if (!reply.is_object()) throw CompilerError(Cause::crashed, "the compiler (" + who + ") sent a reply that is no JSON object");
  return take_result(std::move(reply), who);
}

EmbeddedPython require_embedded() {
  if (const auto python = EmbeddedPython::find()) return *python;
  throw CompilerError(Cause::unavailable, "no Python runs in this process: set the option compiler to subprocess or auto");
}

Interpreter choose_interpreter(const CompilerOptions& options, const std::string& package_root) {
  const auto embedded = options.python.empty() ? EmbeddedPython::find() : std::nullopt;
  return find_interpreter(options.python, embedded ? embedded->executable() : std::string(), package_root);
}

/// What makes two options ask the same compiler.
using Key = std::pair<CompilerMode, std::string>;

}  // namespace

/// What the service knows in one process.
struct CompilerService::State {
  explicit State(std::string root) : package_root(std::move(root)) {}

  std::optional<Availability> find(const Key& key) {
    const std::lock_guard lock(mutex);
    const auto found = known.find(key);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }
  void remember(const Key& key, const Availability& availability) {
    const std::lock_guard lock(mutex);
    known.insert_or_assign(key, availability);
  }
  std::shared_ptr<Worker> worker(const std::string& python) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Worker>& found = workers[python];
    if (!found) found = std::make_shared<Worker>(python, package_root);
    return found;
  }
  /// In a forked process: gives up what belongs to the owner's. The object itself stays allocated, because a thread that the fork has taken
  /// away may hold its locks for ever.
  void abandon() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (const auto& [python, worker] : workers) worker->abandon();
  }

  const pid_t process = getpid();
  const std::string package_root;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Worker>> workers;
  std::map<Key, Availability> known;
};

std::string_view library_version() { return HIPDNN_MLIR_VERSION; }

CompilerService::CompilerService(std::string package_root) : package_root_(std::move(package_root)), state_(new State(package_root_)) {}

CompilerService::~CompilerService() {
  State* const state = state_.load();
  if (state->process == getpid()) {
    delete state;
  } else {
    state->abandon();
  }
}

CompilerService::State& CompilerService::state() {
  State* current = state_.load();
  if (current->process == getpid()) return *current;
  auto fresh = std::make_unique<State>(package_root_);
  // Another thread of the forked process may have been first.
  if (!state_.compare_exchange_strong(current, fresh.get())) return *current;
  current->abandon();
  return *fresh.release();
}

Availability CompilerService::availability(const CompilerOptions& options) {
  const Key key{options.mode, options.python};
  State& state = this->state();
  if (const auto known = state.find(key)) return *known;
  Availability found;
  bool is_final = true;
  try {
    found = ask(options);
  } catch (const CompilerError& error) {
    found.description = error.what();
    is_final = error.cause() == Cause::unavailable || error.cause() == Cause::refused;
  } catch (const hipdnn_rt::Error& error) {
    found.description = error.what();
    is_final = false;
  }
  if (is_final) state.remember(key, found);
  return found;
}

Availability CompilerService::ask(const CompilerOptions& options) {
  if (options.mode == CompilerMode::none) return {CompilerMode::none, "the option compiler is none"};
  if (options.mode == CompilerMode::inprocess) {
    check_version(request_in_process(require_embedded(), package_root_, kHello, {}), "this process's Python");
    return {CompilerMode::inprocess, "inprocess"};
  }
  const Interpreter python = choose_interpreter(options, package_root_);
  if (python.path.empty()) return {CompilerMode::none, python.reason};
  state().worker(python.path)->start(limit_of(options));
  return {CompilerMode::subprocess, "subprocess " + python.path};
}

nlohmann::json CompilerService::request(const CompilerOptions& options, const nlohmann::json& request, std::span<const int> descriptors) {
  const std::string text = to_text(request);
  if (options.mode == CompilerMode::none) throw CompilerError(Cause::unavailable, "there is no compiler: the option compiler is none");
  if (options.mode == CompilerMode::inprocess) {
    if (const Availability found = availability(options); !found.is_available()) throw CompilerError(Cause::unavailable, found.description);
    return request_in_process(require_embedded(), package_root_, text, descriptors);
  }
  const Interpreter python = choose_interpreter(options, package_root_);
  if (python.path.empty()) throw CompilerError(Cause::unavailable, python.reason);
  return state().worker(python.path)->request(text, descriptors, limit_of(options));
}

}  // namespace hipdnn_ep
