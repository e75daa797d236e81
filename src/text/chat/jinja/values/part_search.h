// Where a part stands in a text: one place after the other, without overlaps, from the left or from
// the right. All places together take time in proportion to the text, whatever the part. Both must
// outlive it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace snug::text::jinja {

class PartSearch {
 public:
  PartSearch(std::string_view text, std::string_view part, bool from_right);

  // The byte at which the next one begins; npos where there is none. An empty part is found where
  // the search stands, again and again.
  size_t next();

 private:
  std::string_view text_;
  std::string_view part_;
  bool from_right_;
  size_t at_ = 0;  // how far the search has come; from the right in the reversed text
  std::string reversed_text_;
  std::string reversed_part_;
};

}  // namespace snug::text::jinja
