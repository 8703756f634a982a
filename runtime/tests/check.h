// A small test harness: named cases, checks that throw with their source line, and a runner that filters by name.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace check {

using Location = std::source_location;

class Failure : public std::runtime_error {
 public:
  Failure(const std::string& message, const Location& at)
      : std::runtime_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " + message) {}
};

/// Thrown where what a case is about is optional, and is absent or refused by the rules: neither passed nor failed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Text of a value for messages; enumerators as numbers.
template <class T>
std::string show(const T& value) {
  std::ostringstream stream;
  if constexpr (std::is_enum_v<T>) {
    stream << static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (requires { stream << value; }) {
    stream << value;
  } else {
    stream << "{";
    for (const auto& element : value) stream << show(element) << " ";
    stream << "}";
  }
  return stream.str();
}

inline void that(bool holds, std::string_view what, const Location& at = Location::current()) {
  if (!holds) throw Failure(std::string(what), at);
}

template <class Got, class Expected>
void equal(const Got& got, const Expected& expected, std::string_view what = "", const Location& at = Location::current()) {
  if (!(got == expected)) throw Failure(std::string(what) + " got " + show(got) + ", expected " + show(expected), at);
}

inline void near(double got, double expected, double tolerance, std::string_view what = "", const Location& at = Location::current()) {
  if (!(std::abs(got - expected) <= tolerance)) throw Failure(std::string(what) + " got " + show(got) + ", expected " + show(expected), at);
}

inline void contains(std::string_view text, std::string_view part, const Location& at = Location::current()) {
  if (text.find(part) != std::string_view::npos) return;
  std::ostringstream message;
  message << "'" << text << "' does not contain '" << part << "'";
  throw Failure(message.str(), at);
}

/// How far a run of a suite has come. Plain data: it may lie in memory that two processes share.
struct Progress {
  std::size_t next = 0;  ///< the first case that has not been begun
  int ran = 0;
  int failed = 0;
  int refused = 0;
  bool is_in_case = false;        ///< `name` has begun and has not ended
  bool is_finished = false;       ///< no case is left
  std::array<char, 160> name{};   ///< the case that was begun last, cut to fit
};

class Suite {
 public:
  void add(std::string name, std::function<void()> body) { cases_.push_back({std::move(name), std::move(body)}); }

  /// Runs the cases from `progress.next` on whose name contains `filter`; prints those that fail or are refused as they end.
  void run(std::string_view filter, Progress& progress) const {
    while (progress.next < cases_.size()) {
      const auto& [name, body] = cases_[progress.next++];
      if (name.find(filter) == std::string::npos) continue;
      ++progress.ran;
      std::snprintf(progress.name.data(), progress.name.size(), "%s", name.c_str());
      progress.is_in_case = true;
      try {
        body();
      } catch (const Refused& refusal) {
        ++progress.refused;
        print("REFUSED", name.c_str(), refusal.what());
      } catch (const std::exception& error) {
        ++progress.failed;
        print("FAILED", name.c_str(), error.what());
      }
      progress.is_in_case = false;
    }
    progress.is_finished = true;
  }

  /// What became of a case, and indented why; written at once, so that a crash later on does not take it along.
  static void print(const char* status, const char* name, const std::string& message) {
    std::printf("%s %s\n", status, name);
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) std::printf("  %s\n", line.c_str());
    std::fflush(stdout);
  }

  /// Prints the counts and returns the process's exit code: 0 only if a case ran and none failed.
  static int finish(const Progress& progress) {
    std::printf("%d cases, %d failed, %d refused\n", progress.ran, progress.failed, progress.refused);
    return progress.ran > 0 && progress.failed == 0 ? 0 : 1;
  }

  /// Runs the cases whose name contains `filter` in this process; returns its exit code.
  int run(std::string_view filter = "") const {
    Progress progress{};
    run(filter, progress);
    return finish(progress);
  }

 private:
  struct Case {
    std::string name;
    std::function<void()> body;
  };
  std::vector<Case> cases_;
};

}  // namespace check
