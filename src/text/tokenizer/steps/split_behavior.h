// What happens to the delimiters when text is split at them: the "behavior" of Split and
// Punctuation in a tokenizer.json.
#pragma once

#include <vector>

#include "text/record/json_node.h"
#include "text/regex/regex.h"

namespace snug::text {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// Reads the key "behavior" of a component; throws UserError for an unknown one.
SplitBehavior read_split_behavior(const JsonNode& component);

// Divides [0, size) at `matches` (ascending, disjoint; an empty match divides, too) and stores the
// parts that are not empty in `parts`. With `invert` the gaps between the matches are the
// delimiters.
//   "ab-cd-" split at "-": isolated gives ab - cd -, merged_with_previous ab- cd-,
//   merged_with_next ab -cd -, removed ab cd.
struct SplitRule {
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
};
void split_at(const std::vector<Range>& matches, size_t size, SplitRule rule,
              std::vector<Range>& parts);

}  // namespace snug::text
