// A record that cannot be learned from, with its place and reason: reading goes on with the next
// one (bad_records.h), which no other UserError allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/row/length_advice.h"

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

  // One that another length mends: the advice about it comes after `what`.
  RecordError(int64_t number, std::string_view what, const std::string& path, int line,
              const NeededLength& needed)
      : RecordError(number, fmt::format("{}; {}", what, length_advice(needed)), path, line,
                    Fault::size) {
    message_ = fmt::format("record {}: {}", number, what);
    needed_ = needed;
  }

  const std::string& message() const { return message_; }  // without the place and that advice
  int line() const { return line_; }
  Fault fault() const { return fault_; }
  const std::optional<NeededLength>& needed() const { return needed_; }

 private:
  std::string message_;
  int line_;
  Fault fault_;
  std::optional<NeededLength> needed_{};
};

}  // namespace snug::text
