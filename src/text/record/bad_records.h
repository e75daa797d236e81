// The records of one file that cannot be learned from, by reason: reading goes on after them, so
// that one run names all, and leaves them out unless they are so many that something else must be
// wrong. Reasons are the same where only numbers in them differ; the length that they need is the
// one that all of them need. What is held is bounded, whatever the file. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/record_forms.h"
#include "text/record/record_error.h"

namespace snug::text {

// What load_dataset throws at the end of a file whose records must not be left out.
class BadRecordsError : public base::UserError {
 public:
  using base::UserError::UserError;
};

// How many records may be left out of a file.
struct SkipLimits {
  bool refuses_any = true;  // on_bad_record=error
  // The share of a file's records that may have faults of mapping; kMappingFaults always may. Of
  // faults of size it is kSizeShare, where that is more.
  double mapping_share = 0.01;
};
inline constexpr int64_t kMappingFaults = 3;
inline constexpr double kSizeShare = 0.5;
// From this share on the log warns of records that are left out.
inline constexpr double kWarnedShare = 0.01;

class BadRecords {
 public:
  void add(const RecordError& error);

  // Counts one of another form than the file's first one.
  void meet(base::RecordForm form) { ++forms_[form]; }

  int64_t count() const { return of(Fault::mapping) + of(Fault::size); }

  // A line for each reason, in the order of the file: the words about the first record, and how
  // many there are, with the lines of the first ones; numbered where there are several.
  std::string list() const;

  // Throws BadRecordsError, with the list and what to do, where a file of so many records has more
  // of these than the limits allow.
  void hold_against(const SkipLimits& limits, const std::string& path, int64_t records) const;

  // Throws BadRecordsError with the list, and `why` nothing goes on, for a file of so many records.
  [[noreturn]] void fail(const std::string& path, int64_t records, const std::string& why) const;

  // What the log says of a file of so many records, of which these are left out; empty for none.
  std::string told(const std::string& path, int64_t records) const;

 private:
  struct Reason {
    std::string key;
    std::string first;                     // the message, with file and line
    std::optional<NeededLength> needed{};  // of all of them, for the advice after it
    std::vector<int> lines{};
    int64_t count = 0;
  };

  std::string way_out(int64_t records) const;
  int64_t of(Fault fault) const { return counts_[static_cast<size_t>(fault)]; }

  std::vector<Reason> reasons_;
  std::array<int64_t, 2> counts_{};            // by Fault
  std::map<base::RecordForm, int64_t> forms_;  // that the first record is not of
  int64_t others_ = 0;                         // of more reasons than are told
};

}  // namespace snug::text
