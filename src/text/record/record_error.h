// A mistake in one record, with its place: reading can go on with the next one (bad_records.h),
// which no other UserError allows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug::text {

class RecordError : public base::UserError {
 public:
  // `message` says which record it is, `line` where it begins.
  RecordError(const std::string& message, const std::string& path, int line)
      : base::UserError(message, {path, line, 0}), message_(message), line_(line) {}

  // The message "record NUMBER: WHAT".
  RecordError(int64_t number, std::string_view what, const std::string& path, int line)
      : RecordError(fmt::format("record {}: {}", number, what), path, line) {}

  const std::string& message() const { return message_; }  // without the place
  int line() const { return line_; }

 private:
  std::string message_;
  int line_;
};

}  // namespace snug::text
