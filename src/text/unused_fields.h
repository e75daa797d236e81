// Fields of a file's records that say something which is not used, each with the number of records
// that have it. What is held is bounded. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace snug::text {

class UnusedFields {
 public:
  // Those of a record, each as often as it stands in it.
  void add(const std::vector<std::string>& fields);

  // "'score' (2 records), 'x' (1 record)", in the order of the file; empty where there are none.
  std::string list() const;

 private:
  std::vector<std::pair<std::string, int64_t>> counts_;
  int64_t others_ = 0;  // of more fields than are told
};

}  // namespace snug::text
