// Where a value stands in a program file, for messages: text is made of it when there is something to complain of.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "device/error.h"

namespace hipdnn_rt {

/// A member or element of another place, which must outlive it.
class Place {
 public:
  explicit Place(std::string_view name) : name_(name) {}
  Place(const Place& outer, std::string_view name) : outer_(&outer), name_(name) {}
  Place(const Place& outer, std::size_t index) : outer_(&outer), index_(index) {}

  /// "program.steps[3].operands[0]".
  std::string text() const {
    std::string text = outer_ == nullptr ? std::string() : outer_->text();
    if (name_.empty()) {
      text.append(1, '[').append(std::to_string(index_)).append(1, ']');
    } else {
      text.append(outer_ == nullptr ? "" : ".").append(name_);
    }
    return text;
  }

  /// Throw ProgramError: "<place>: <what is wrong>".
  [[noreturn]] void fail(const std::string& what) const { throw ProgramError(text() + ": " + what); }
  /// Throw ProgramError: "<place>: expected <expected>, got <got>".
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const { fail("expected " + expected + ", got " + got); }

 private:
  const Place* outer_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
};

}  // namespace hipdnn_rt
