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

}  // namespace

void BadRecords::add(const RecordError& error) {
  ++count_;
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

void BadRecords::fail(const std::string& path, int64_t records) const {
  const std::string advice =
      fmt::format("on_bad_record=skip leaves {} out", count_ == 1 ? "it" : "them");
  if (reasons_.size() == 1) throw BadRecordsError(list() + "; " + advice);
  throw BadRecordsError(fmt::format("{}: {} of {} records cannot be learned from; {}:\n{}", path,
                                    count_, records, advice, list()));
}

}  // namespace snug::text
