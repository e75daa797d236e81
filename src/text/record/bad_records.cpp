#include "text/record/bad_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace snug::text {
namespace {

constexpr size_t kReasonsTold = 20;
constexpr size_t kLinesTold = 3;

bool is_of_number(char c) { return c >= '0' && c <= '9'; }

// The message with each number as one sign.
std::string without_numbers(const std::string& message) {
  std::string key;
  for (size_t i = 0; i < message.size(); ++i) {
    const bool goes_on = i > 0 && is_of_number(message[i - 1]);
    if (!is_of_number(message[i]))
      key += message[i];
    else if (!goes_on)
      key += '#';
  }
  return key;
}

// In three digits, of which none is rounded to all.
std::string percent(double share) {
  constexpr double kNearlyAll = 0.9995;
  if (share >= kNearlyAll && share < 1) return "more than 99.9 %";
  return fmt::format("{:.3g} %", 100 * share);
}

}  // namespace

void BadRecords::add(const RecordError& error) {
  ++counts_[static_cast<size_t>(error.fault())];
  const std::optional<NeededLength>& needed = error.needed();
  std::string key = without_numbers(error.message());
  if (needed && !needed->is_reachable()) key += "; no length mends it";
  auto reason = std::find_if(reasons_.begin(), reasons_.end(),
                             [&](const Reason& each) { return each.key == key; });
  if (reason == reasons_.end()) {
    if (reasons_.size() == kReasonsTold) {
      ++others_;
      return;
    }
    std::string first = error.what();
    if (needed) first.resize(first.rfind("; " + length_advice(*needed)));
    reason = reasons_.insert(reason,
                             {.key = std::move(key), .first = std::move(first), .needed = needed});
  }
  if (needed) reason->needed->add(*needed);
  ++reason->count;
  if (reason->lines.size() < kLinesTold) reason->lines.push_back(error.line());
}

std::string BadRecords::list() const {
  std::string list;
  for (size_t i = 0; i < reasons_.size(); ++i) {
    const Reason& reason = reasons_[i];
    if (i > 0) list += '\n';
    if (reasons_.size() > 1) list += fmt::format("({}) ", i + 1);
    list += reason.first;
    if (reason.needed) list += "; " + length_advice(*reason.needed, reason.count);
    if (reason.count == 1) continue;
    const bool is_cut = reason.count > static_cast<int64_t>(reason.lines.size());
    list += fmt::format(" ({} records, lines {}{})", reason.count, fmt::join(reason.lines, ", "),
                        is_cut ? ", ..." : "");
  }
  if (others_ > 0)
    list += fmt::format("\n{} more record{} for other reasons", others_, others_ == 1 ? "" : "s");
  return list;
}

void BadRecords::fail(const std::string& path, int64_t records, const std::string& why) const {
  if (reasons_.size() == 1 && others_ == 0) throw BadRecordsError(list() + "; " + why);
  throw BadRecordsError(fmt::format("{}: {} of {} records cannot be learned from; {}:\n{}", path,
                                    count(), records, why, list()));
}

void BadRecords::hold_against(const SkipLimits& limits, const std::string& path,
                              int64_t records) const {
  if (count() == 0) return;
  if (limits.refuses_any)
    fail(path, records,
         fmt::format("on_bad_record=skip leaves {} out", count() == 1 ? "it" : "them"));
  const auto share = [&](Fault fault) {
    return static_cast<double>(of(fault)) / static_cast<double>(std::max<int64_t>(1, records));
  };
  if (of(Fault::mapping) > kMappingFaults && share(Fault::mapping) > limits.mapping_share)
    fail(path, records,
         fmt::format("{} do not hold what is read of them, more than max_skipped={} allows, so "
                     "that records may be read in a wrong way; {}",
                     percent(share(Fault::mapping)), limits.mapping_share, way_out(records)));
  const double most = std::max(kSizeShare, limits.mapping_share);
  if (share(Fault::size) > most)
    fail(path, records,
         fmt::format("{} are empty or too long, so that most of the data would not be learned; "
                     "max_skipped=1 leaves them out",
                     percent(share(Fault::size))));
}

// Where most are of one other form, the first record is what is strange.
std::string BadRecords::way_out(int64_t records) const {
  for (const auto& [form, count] : forms_)
    if (2 * count > records)
      return fmt::format("{} of {} are of the form {}: data_format={} reads them", count, records,
                         base::word_of(form), base::word_of(form));
  return "max_skipped=1 leaves them out";
}

std::string BadRecords::told(const std::string& path, int64_t records) const {
  if (count() == 0) return "";
  const double share = static_cast<double>(count()) / static_cast<double>(records);
  return fmt::format("{}{}: {} of {} records ({}) {} left out:\n{}",
                     share > kWarnedShare ? "WARNING: " : "", path, count(), records,
                     percent(share), count() == 1 ? "is" : "are", list());
}

}  // namespace snug::text
