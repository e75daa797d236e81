// Finds the occurrences of a part in a text one by one, without overlaps, from the left or from the
// right. Finding all of them takes time proportional to the text's length, whatever the part. Both
// must outlive the object.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace snug::text::jinja {

class PartSearch {
 public:
  PartSearch(std::string_view text, std::string_view part, bool from_right);

  // The byte at which the next occurrence begins; npos if there is none. An empty part is always
  // found at the current position.
  size_t next();

 private:
  std::string_view text_;
  std::string_view part_;
  bool from_right_;
  size_t at_ = 0;  // current position; from the right, in the reversed text
  std::string reversed_text_;
  std::string reversed_part_;
};

}  // namespace snug::text::jinja
