// Sets of characters as sorted ranges of code points, with the classes that Python's regular
// expressions know for texts. Surrogates are in no set. Values; any thread.
#pragma once

#include <string_view>
#include <vector>

namespace snug::text {

struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;  // belongs to the range
  auto operator<=>(const CodePointRange&) const = default;
};

class CodePointSet {
 public:
  CodePointSet() = default;
  CodePointSet(char32_t first, char32_t last) { add(first, last); }

  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  // All characters that are not in the set.
  CodePointSet complement() const;
  CodePointSet without(const CodePointSet& other) const;
  bool contains(char32_t value) const;
  bool empty() const { return ranges_.empty(); }
  // In ascending order, with a gap between any two.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

// The classes \d, \w and \s of Python's `re` for texts; with `ascii` those of its flag a.
CodePointSet digit_characters(bool ascii);
CodePointSet word_characters(bool ascii);
CodePointSet space_characters(bool ascii);

// The characters of a general category of Unicode ("Lu") or of a group of them ("L"); empty for a
// name that is neither.
CodePointSet characters_of_category(std::string_view name);

// With the other cases of its characters.
CodePointSet with_other_cases(const CodePointSet& set);

}  // namespace snug::text
