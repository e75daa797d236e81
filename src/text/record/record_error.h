// A record that cannot be learned from, with its place and reason: reading goes on with the next
// one (bad_records.h), which no other UserError allows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug::text {

enum class Fault : uint8_t {
  mapping,  // a field is missing, has another type or says something unknown: many records may
  size,     // nothing is left to learn of this record, which is empty or too long
};

class RecordError : public base::UserError {
 public:
  // `message` says which record it is, `line` where it begins.
  RecordError(const std::string& message, const std::string& path, int line,
              Fault fault = Fault::mapping)
      : base::UserError(message, {path, line, 0}), message_(message), line_(line), fault_(fault) {}

  // The message "record NUMBER: WHAT".
  RecordError(int64_t number, std::string_view what, const std::string& path, int line,
              Fault fault = Fault::mapping)
      : RecordError(fmt::format("record {}: {}", number, what), path, line, fault) {}

  const std::string& message() const { return message_; }  // without the place
  int line() const { return line_; }
  Fault fault() const { return fault_; }

 private:
  std::string message_;
  int line_;
  Fault fault_;
};

}  // namespace snug::text
