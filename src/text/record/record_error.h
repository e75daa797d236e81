// A mistake in one record, with its place: reading can go on with the next one (bad_records.h),
// which no other UserError allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/row/length_advice.h"

namespace snug::text {

class RecordError : public base::UserError {
 public:
  // `message` says which record it is, `line` where it begins.
  RecordError(const std::string& message, const std::string& path, int line)
      : base::UserError(message, {path, line, 0}), message_(message), line_(line) {}

  // The message "record NUMBER: WHAT".
  RecordError(int64_t number, std::string_view what, const std::string& path, int line)
      : RecordError(fmt::format("record {}: {}", number, what), path, line) {}

  // One that another length mends: the advice about it comes after `what`.
  RecordError(int64_t number, std::string_view what, const std::string& path, int line,
              const NeededLength& needed)
      : RecordError(number, fmt::format("{}; {}", what, length_advice(needed)), path, line) {
    message_ = fmt::format("record {}: {}", number, what);
    needed_ = needed;
  }

  const std::string& message() const { return message_; }  // without the place and that advice
  int line() const { return line_; }
  const std::optional<NeededLength>& needed() const { return needed_; }

 private:
  std::string message_;
  int line_;
  std::optional<NeededLength> needed_{};
};

}  // namespace snug::text
