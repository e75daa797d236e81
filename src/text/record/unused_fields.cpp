#include "text/record/unused_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace snug::text {
namespace {

constexpr size_t kFieldsTold = 40;

std::string records(int64_t count) {
  return fmt::format("{} record{}", count, count == 1 ? "" : "s");
}

}  // namespace

void UnusedFields::add(const std::vector<std::string>& fields) {
  for (auto field = fields.begin(); field != fields.end(); ++field) {
    if (std::find(fields.begin(), field, *field) != field) continue;
    const auto found = std::find_if(counts_.begin(), counts_.end(),
                                    [&](const auto& each) { return each.first == *field; });
    if (found != counts_.end())
      ++found->second;
    else if (counts_.size() < kFieldsTold)
      counts_.emplace_back(*field, 1);
    else
      ++others_;
  }
}

std::string UnusedFields::list() const {
  std::string list;
  for (const auto& [field, count] : counts_)
    list += fmt::format("{}'{}' ({})", list.empty() ? "" : ", ", field, records(count));
  if (others_ > 0) list += fmt::format(", and others ({} more)", others_);
  return list;
}

std::vector<std::string> IgnoredFields::unmet(const std::vector<std::string>& asked) const {
  std::vector<std::string> names;
  for (const std::string& name : asked)
    if (!met_.contains(name)) names.push_back(name);
  return names;
}

std::string unmet_text(const std::vector<std::string>& unmet) {
  if (unmet.empty()) return "";
  return fmt::format("no record has '{}', which ignore_fields names", fmt::join(unmet, "' or '"));
}

}  // namespace snug::text
