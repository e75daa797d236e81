#include "text/unwritten_counts.h"

#include <fmt/format.h>

namespace snug::text {

void UnwrittenCounts::add(const std::vector<Unwritten>& unwritten, int64_t record) {
  for (const Unwritten& one : unwritten) {
    const std::string what =
        one.message == 0
            ? fmt::format("'{}'", one.field)
            : fmt::format("{}'{}' of {} messages", one.is_beginning ? "the beginning of " : "",
                          one.field, one.role);
    Count& count = counts_[what];
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
  return text;
}

}  // namespace snug::text
