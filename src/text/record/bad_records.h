// The records of one file that cannot be learned from, by reason: reading goes on after them, so
// that one run tells of all. Reasons are the same where only numbers in them differ; the
// length that they need is that of all. What is held
// is bounded, whatever the file. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/record/record_error.h"

namespace snug::text {

// What load_dataset throws at the end of a file with such records.
class BadRecordsError : public base::UserError {
 public:
  using base::UserError::UserError;
};

class BadRecords {
 public:
  void add(const RecordError& error);

  int64_t count() const { return count_; }

  // A line for each reason, in the order of the file: the words about the first record, and how
  // many there are, with the lines of the first ones; numbered where there are several.
  std::string list() const;

  // Throws BadRecordsError with the list, and what to do, for a file of so many records: one line
  // where there is one reason. Requires one of them at least.
  [[noreturn]] void fail(const std::string& path, int64_t records) const;

 private:
  struct Reason {
    std::string key;
    std::string first;                     // the message, with file and line
    std::optional<NeededLength> needed{};  // of all of them, for the advice after it
    std::vector<int> lines{};
    int64_t count = 0;
  };

  std::vector<Reason> reasons_;
  int64_t count_ = 0;
  int64_t others_ = 0;  // of more reasons than are told
};

}  // namespace snug::text
