#include "text/tokenizer/steps/split_behavior.h"

#include <algorithm>
#include <string>

namespace snug::text {
namespace {

struct SplitPart {
  Range range;
  bool is_delimiter = false;
};

std::vector<SplitPart> all_parts(const std::vector<Range>& matches, size_t size, bool invert) {
  std::vector<SplitPart> parts;
  parts.reserve(matches.size() * 2 + 1);
  size_t done = 0;
  for (const Range& match : matches) {
    if (match.begin > done) parts.push_back({{done, match.begin}, invert});
    parts.push_back({match, !invert});
    done = match.end;
  }
  if (done < size) parts.push_back({{done, size}, invert});
  return parts;
}

// Adjacent parts of the same type (delimiter or not) are joined.
void join_contiguous(const std::vector<SplitPart>& all, std::vector<Range>& parts) {
  bool previous = false;
  for (const SplitPart& part : all) {
    if (part.is_delimiter == previous && !parts.empty()) {
      parts.back().end = part.range.end;
    } else {
      parts.push_back(part.range);
    }
    previous = part.is_delimiter;
  }
}

// A delimiter is joined to the part before it, unless that is a delimiter too.
void join_previous(const std::vector<SplitPart>& all, std::vector<Range>& parts) {
  bool previous = false;
  for (const SplitPart& part : all) {
    if (part.is_delimiter && !previous && !parts.empty()) {
      parts.back().end = part.range.end;
    } else {
      parts.push_back(part.range);
    }
    previous = part.is_delimiter;
  }
}

// A delimiter is joined to the part after it, unless that is a delimiter too.
void join_next(const std::vector<SplitPart>& all, std::vector<Range>& parts) {
  bool following = false;
  for (auto part = all.rbegin(); part != all.rend(); ++part) {
    if (part->is_delimiter && !following && !parts.empty()) {
      parts.back().begin = part->range.begin;
    } else {
      parts.push_back(part->range);
    }
    following = part->is_delimiter;
  }
  std::reverse(parts.begin(), parts.end());
}

void join(const std::vector<SplitPart>& all, SplitBehavior behavior, std::vector<Range>& parts) {
  switch (behavior) {
    case SplitBehavior::contiguous:
      return join_contiguous(all, parts);
    case SplitBehavior::merged_with_previous:
      return join_previous(all, parts);
    case SplitBehavior::merged_with_next:
      return join_next(all, parts);
    case SplitBehavior::isolated:
    case SplitBehavior::removed:
      for (const SplitPart& part : all)
        if (behavior == SplitBehavior::isolated || !part.is_delimiter) parts.push_back(part.range);
  }
}

}  // namespace

SplitBehavior read_split_behavior(const JsonNode& component) {
  const std::string name = component.string("behavior");
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  component.fail("the behavior '" + name + "' is not known");
}

void split_at(const std::vector<Range>& matches, size_t size, SplitRule rule,
              std::vector<Range>& parts) {
  parts.clear();
  join(all_parts(matches, size, rule.invert), rule.behavior, parts);
  std::erase_if(parts, [](const Range& part) { return part.begin == part.end; });
}

}  // namespace snug::text
