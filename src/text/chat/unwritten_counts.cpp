#include "text/chat/unwritten_counts.h"

#include <fmt/format.h>

namespace snug::text {
namespace {

constexpr size_t kMostTold = 40;

}  // namespace

void UnwrittenCounts::add(const std::vector<Unwritten>& unwritten, int64_t record) {
  for (const Unwritten& one : unwritten) {
    const std::string what = one.message == 0
                                 ? fmt::format("'{}'", one.field)
                                 : fmt::format("{}{}'{}' of {} messages", one.extent,
                                               one.extent.empty() ? "" : " ", one.field, one.role);
    // The number is limited, since a file may have any number of variables' names.
    const bool is_told = counts_.size() < kMostTold || counts_.contains(what);
    Count& count = is_told ? counts_[what] : others_;
    if (count.records == 0) count.first = record;
    if (count.last != record) ++count.records;
    count.last = record;
  }
}

std::string UnwrittenCounts::text() const {
  std::string text;
  for (const auto& [what, count] : counts_)
    text += fmt::format("{}{} in {} record{} (the first is {})",
                        text.empty() ? "the chat template does not write " : ", ", what,
                        count.records, count.records == 1 ? "" : "s", count.first);
  if (others_.records > 0) text += fmt::format(", and others in {} records", others_.records);
  return text;
}

}  // namespace snug::text
