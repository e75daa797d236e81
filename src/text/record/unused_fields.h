// Fields of a file's records that say something which is not used, each with the number of records
// that have it. What is held is bounded. One thread.
#pragma once

#include <cstdint>
#include <set>
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

// Which of the fields that a user asks to ignore some record has. One thread.
class IgnoredFields {
 public:
  void add(const std::vector<std::string>& met) { met_.insert(met.begin(), met.end()); }

  // Of `asked` those that no record has, which may be mistyped.
  std::vector<std::string> unmet(const std::vector<std::string>& asked) const;

 private:
  std::set<std::string> met_;
};

// "no record has 'x', 'y', which ignore_fields names"; empty where there are none.
std::string unmet_text(const std::vector<std::string>& unmet);

}  // namespace snug::text
