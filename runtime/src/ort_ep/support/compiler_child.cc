#include "support/compiler_child.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace hipdnn_ep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kModule = "hipdnn_mlir.service.server";
/// What the compiler may take to end by itself after the socket closes, and to be seen dead after it stopped talking.
constexpr seconds kEndingTime(2);
/// How often a silent compiler is checked for being alive. Its end closes the socket, except where some other process holds a copy.
constexpr milliseconds kCheckInterval(500);
constexpr std::size_t kLengthBytes = 4;
constexpr std::uint32_t kReplyLimitBytes = 1U << 28;
// What hipdnn_mlir.service.server takes.
constexpr std::size_t kRequestLimitBytes = 64U << 20;
constexpr std::size_t kDescriptorLimit = 8;
constexpr std::size_t kLastOutputBytes = 2000;

/// This process's environment with `package_root` at the front of PYTHONPATH.
std::vector<std::string> environment_with(const std::string& package_root) {
  constexpr std::string_view variable = "PYTHONPATH=";
  std::vector<std::string> environment;
  std::string search_path = package_root;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with(variable)) {
      environment.emplace_back(text);
    } else if (const std::string_view value = text.substr(variable.size()); !value.empty()) {
      if (!search_path.empty()) search_path += ':';
      search_path += value;
    }
  }
  if (!search_path.empty()) environment.push_back(std::string(variable) + search_path);
  return environment;
}

std::array<hipdnn_rt::FileDescriptor, 2> connected_sockets() {
  std::array<int, 2> raw{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw.data()) != 0) {
    throw hipdnn_rt::Error("cannot create a socket for the compiler: " + std::system_category().message(errno));
  }
  return {hipdnn_rt::FileDescriptor(raw[0]), hipdnn_rt::FileDescriptor(raw[1])};
}

ChildProcess start(const std::string& python, const std::string& package_root, int channel, int output) {
  // Appending: the compiler goes on at the start after this process has emptied the file.
  if (fcntl(output, F_SETFL, O_APPEND) != 0) {
    throw hipdnn_rt::Error("cannot prepare the compiler's output file: " + std::system_category().message(errno));
  }
  return ChildProcess::start({.arguments = {python, "-P", "-m", kModule, std::to_string(ChildProcess::kChannel)},
                              .environment = environment_with(package_root),
                              .output = output,
                              .channel = channel});
}

/// The control part of a message that carries descriptors; empty for none.
std::vector<std::byte> control_data(std::span<const int> descriptors) {
  if (descriptors.empty()) return {};
  std::vector<std::byte> control(CMSG_SPACE(descriptors.size_bytes()));
  cmsghdr header{};
  header.cmsg_level = SOL_SOCKET;
  header.cmsg_type = SCM_RIGHTS;
  header.cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(control.data(), &header, sizeof header);
  std::memcpy(control.data() + CMSG_LEN(0), descriptors.data(), descriptors.size_bytes());
  return control;
}

/// Length and text of a request.
std::vector<std::byte> framed(std::string_view text) {
  if (text.size() > kRequestLimitBytes) {
    throw CompilerError(CompilerError::Cause::refused, "a request to the compiler has " + std::to_string(text.size()) + " bytes: at most " +
                                                           std::to_string(kRequestLimitBytes) + "; shorten the names in the model");
  }
  std::vector<std::byte> message(kLengthBytes + text.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) message[i] = static_cast<std::byte>(text.size() >> (8 * i));
  std::memcpy(message.data() + kLengthBytes, text.data(), text.size());
  return message;
}

bool is_reply(const nlohmann::json& value) {
  if (!value.is_object()) return false;
  const auto error = value.find("error");
  return value.contains("result") || (error != value.end() && error->is_object());
}

}  // namespace

CompilerChild::CompilerChild(const std::string& python, const std::string& package_root)
    : python_(python), output_("hipdnn-compiler-output"), process_([&] {
        auto [ours, theirs] = connected_sockets();
        socket_ = std::move(ours);
        return start(python, package_root, theirs.get(), output_.fd());
      }()) {}

CompilerChild::~CompilerChild() {
  socket_.reset();
  if (process_.is_own()) process_.stop(Clock::now() + kEndingTime);
}

nlohmann::json CompilerChild::exchange(std::string_view request, std::span<const int> descriptors, milliseconds limit) {
  const std::vector<std::byte> message = framed(request);
  if (descriptors.size() > kDescriptorLimit) {
    throw CompilerError(CompilerError::Cause::refused, "a request carries at most " + std::to_string(kDescriptorLimit) + " files");
  }
  is_in_step_ = false;
  const Deadline deadline{limit, Clock::now() + limit};
  send(message, descriptors, deadline);
  const std::string text = receive_text(deadline);
  nlohmann::json reply = nlohmann::json::parse(text, nullptr, false);
  if (!is_reply(reply)) fail_confused("a reply that is neither a result nor an error");
  // What was printed for a request that got its answer must not explain a later one's failure.
  output_.set_size(0);
  is_in_step_ = true;
  return reply;
}

void CompilerChild::send(std::span<const std::byte> message, std::span<const int> descriptors, const Deadline& deadline) {
  std::vector<std::byte> control = control_data(descriptors);
  while (!message.empty()) {
    iovec part{const_cast<std::byte*>(message.data()), message.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.empty() ? nullptr : control.data();
    header.msg_controllen = control.size();
    const ssize_t sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      message = message.subspan(static_cast<std::size_t>(sent));
      control.clear();
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT, deadline);
    } else if (errno != EINTR) {
      fail_dead();
    }
  }
}

std::string CompilerChild::receive_text(const Deadline& deadline) {
  std::array<char, kLengthBytes> prefix{};
  receive(prefix, deadline);
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes |= static_cast<std::uint32_t>(static_cast<unsigned char>(prefix[i])) << (8 * i);
  if (bytes > kReplyLimitBytes) fail_confused("a reply of " + std::to_string(bytes) + " bytes");
  std::string text(bytes, '\0');
  receive(text, deadline);
  return text;
}

void CompilerChild::receive(std::span<char> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t received = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received < 0 && errno == EAGAIN) {
      wait_for(POLLIN, deadline);
    } else if (received == 0 || errno != EINTR) {
      fail_dead();
    }
  }
}

void CompilerChild::wait_for(short events, const Deadline& deadline) {
  for (bool is_last_look = false;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline.end - Clock::now());
    const auto pause = is_last_look ? milliseconds(0) : std::clamp(left, milliseconds(0), kCheckInterval);
    pollfd watched{socket_.get(), events, 0};
    if (poll(&watched, 1, static_cast<int>(pause.count())) > 0) return;
    if (is_last_look) fail_dead();
    if (left <= milliseconds(0)) {
      fail(CompilerError::Cause::timed_out, "gave no answer within " + in_words(deadline.limit) + " and was stopped",
           "give it more time, or compile the model ahead of time");
    }
    // The last words of a process that has just ended may be waiting.
    is_last_look = process_.ending().has_value();
  }
}

void CompilerChild::fail(CompilerError::Cause cause, const std::string& ending, const std::string& remedy) {
  process_.stop(Clock::now());
  socket_.reset();
  const std::string output = last_output();
  CompilerError error(cause, "the compiler (" + python_ + ") " + ending + "; " + remedy + (output.empty() ? "" : "; it printed: " + output));
  error.set_detail(output);
  throw error;
}

void CompilerChild::fail_dead() {
  const std::string ending = process_.stop(Clock::now() + kEndingTime);
  fail(CompilerError::Cause::crashed, ending + " before it answered", "the next request starts a new one");
}

void CompilerChild::fail_confused(const std::string& reply) {
  fail(CompilerError::Cause::crashed, "sent " + reply + " and was stopped", "reinstall hipdnn-mlir there, or set the option python");
}

std::string CompilerChild::last_output() const {
  const std::uint64_t size = output_.size();
  const std::uint64_t begin = size - std::min<std::uint64_t>(size, kLastOutputBytes);
  std::string text(size - begin, '\0');
  const ssize_t got = pread(output_.fd(), text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  // A character cut in two, and the last line's end, are no part of the message.
  const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  text.erase(text.begin(), begin == 0 ? text.begin() : std::find_if_not(text.begin(), text.end(), is_continuation));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace hipdnn_ep
