// A small test harness: named cases, checks that throw with their source line, and a runner that filters by name.
#pragma once

#include <cmath>
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

class Suite {
 public:
  void add(std::string name, std::function<void()> body) { cases_.push_back({std::move(name), std::move(body)}); }

  /// Runs the cases whose name contains `filter`. Returns the process's exit code: 0 only if a case ran and none failed.
  int run(std::string_view filter = "") const {
    int ran = 0;
    int failed = 0;
    for (const auto& [name, body] : cases_) {
      if (name.find(filter) == std::string::npos) continue;
      ++ran;
      try {
        body();
      } catch (const std::exception& error) {
        ++failed;
        std::printf("FAILED %s\n  %s\n", name.c_str(), error.what());
      }
    }
    std::printf("%d cases, %d failed\n", ran, failed);
    return ran > 0 && failed == 0 ? 0 : 1;
  }

 private:
  struct Case {
    std::string name;
    std::function<void()> body;
  };
  std::vector<Case> cases_;
};

}  // namespace check
