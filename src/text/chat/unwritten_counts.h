// What a chat template leaves out of the records of a file, for users to be told. What is held is
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

  // "the chat template does not write 'tools' in 3 records (the first is 2)"; empty where it writes
  // everything.
  std::string text() const;

 private:
  struct Count {
    int64_t records = 0;
    int64_t first = 0;  // the record
    int64_t last = 0;
  };
  std::map<std::string, Count> counts_;  // by what it is: "'content' of system messages"
  Count others_;                         // of more than are told
};

}  // namespace snug::text
