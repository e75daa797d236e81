// Counts what a chat template leaves out of a file's records, to be reported to the user. Memory is
// bounded. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "text/chat/unwritten.h"

namespace snug::text {

class UnwrittenCounts {
 public:
  void add(const std::vector<Unwritten>& unwritten, int64_t record);

  // "the chat template does not write 'tools' in 3 records (the first is 2)"; empty if everything
  // is written.
  std::string text() const;

 private:
  struct Count {
    int64_t records = 0;
    int64_t first = 0;  // number of the first such record
    int64_t last = 0;
  };
  std::map<std::string, Count> counts_;  // by description: "'content' of system messages"
  Count others_;                         // those beyond the number that is reported
};

}  // namespace snug::text
