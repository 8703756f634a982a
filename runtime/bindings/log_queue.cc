#include "log_queue.h"

#include <iterator>
#include <new>
#include <utility>

namespace hipdnn_rt::bindings {
namespace {

thread_local bool is_mute = false;

}  // namespace

LogQueue::Mute::Mute() { is_mute = true; }
LogQueue::Mute::~Mute() { is_mute = false; }

LogQueue& LogQueue::instance() {
  static LogQueue& queue = *new LogQueue;
  return queue;
}

void LogQueue::add(hipdnnSeverity_t severity, const char* source, std::string text) noexcept {
  if (is_mute) return;
  try {
    const std::lock_guard lock(mutex_);
    if (lines_.size() < kMost) lines_.push_back({severity, source, std::move(text)});
  } catch (const std::bad_alloc&) {  // a line of a log is not worth a failure
  }
}

std::vector<LogLine> LogQueue::take() {
  std::deque<LogLine> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(lines_);
  }
  return {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())};
}

}  // namespace hipdnn_rt::bindings
