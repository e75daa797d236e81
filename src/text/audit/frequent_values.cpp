#include "text/audit/frequent_values.h"

#include <algorithm>

namespace snug::text {

void FrequentValues::add(uint64_t value, int64_t document) {
  ++size_;
  Entry* free = nullptr;
  for (Entry& entry : entries_) {
    if (entry.count > 0 && entry.value == value) {
      ++entry.count;
      return;
    }
    if (entry.count == 0) free = &entry;
  }
  if (free != nullptr) {
    *free = {value, 1, document};
    return;
  }
  for (Entry& entry : entries_) --entry.count;
}

FrequentValues::Entry FrequentValues::most() const {
  return *std::ranges::max_element(entries_, {}, &Entry::count);
}

}  // namespace snug::text
