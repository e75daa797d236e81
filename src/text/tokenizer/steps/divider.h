// Divides words (pre_tokenizer.h) at matches. A text that is given in pieces is divided only as far
// as that is certain. One list of words, one thread.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "text/tokenizer/steps/pre_tokenizer.h"
#include "text/tokenizer/steps/split_behavior.h"

namespace snug::text {

// Divides words at the matches that `find` reports. find(text, is_open, matches) fills in ranges
// within a word's text. For an open word it lists only certain matches, and returns the first place
// at which an uncertain match may begin.
template <typename Find>
class Divider {
 public:
  Divider(Words& words, SplitRule rule, const Find& find)
      : words_(words), rule_(rule), find_(find) {}

  void divide() {
    std::vector<Words::Word> before;
    before.swap(words_.list);
    words_.list.reserve(before.size());
    const size_t closed = before.size() - (words_.is_open ? 1 : 0);
    for (size_t i = 0; i < closed; ++i) divide(before[i]);
    if (words_.is_open) divide_open(before.back());
  }

 private:
  std::string_view text_of(const Words::Word& word) const {
    return std::string_view(words_.buffer).substr(word.begin, word.end - word.begin);
  }

  void add(const Words::Word& word, const Range& part) {
    const size_t origin = word.origin - std::min(word.origin, part.begin);
    words_.list.push_back(
        {word.begin + part.begin, word.begin + part.end, std::min(origin, part.end - part.begin)});
  }

  void divide(const Words::Word& word) {
    const std::string_view text = text_of(word);
    find_(text, false, matches_);
    if (matches_.empty() && !rule_.invert) return words_.list.push_back(word);
    split_at(matches_, text.size(), rule_, parts_);
    for (const Range& part : parts_) add(word, part);
  }

  // All parts up to the last certain match are certain, except a part that may be joined with what
  // follows. No certain match begins in the text after that match, so it stays open, and dividing
  // can begin again anywhere within it, since matches do not look back (Regex::looks_back).
  // Dividing cannot begin within a match; so no step after this one may divide an open word that
  // contains one.
  void divide_open(const Words::Word& word) {
    const size_t certain = find_(text_of(word), true, matches_);
    const size_t matched = matches_.empty() ? 0 : matches_.back().end;
    const bool has_rest = certain > matched;
    split_at(matches_, std::max(certain, matched), rule_, parts_);
    Range open{std::max(certain, matched), std::max(certain, matched)};
    const bool is_dropped = rule_.behavior == SplitBehavior::removed && rule_.invert == has_rest;
    const bool holds_match = !matches_.empty() && (has_rest ? joins_rest() : joins_match());
    if (!parts_.empty() && !is_dropped && (has_rest || holds_match)) {
      open = parts_.back();
      parts_.pop_back();
    }
    for (const Range& part : parts_) add(word, part);
    words_.done += open.begin;
    words_.is_open = has_rest && !holds_match && open.begin < open.end;
    if (words_.is_open) add(word, open);
  }

  // Whether a match and the text after it form one part.
  bool joins_rest() const {
    return rule_.behavior ==
           (rule_.invert ? SplitBehavior::merged_with_previous : SplitBehavior::merged_with_next);
  }
  // Whether a match at the end of the certain text may be joined with what follows.
  bool joins_match() const { return joins_rest() || rule_.behavior == SplitBehavior::contiguous; }

  Words& words_;
  SplitRule rule_;
  const Find& find_;
  std::vector<Range> matches_;
  std::vector<Range> parts_;
};

template <typename Find>
void divide(Words& words, SplitRule rule, const Find& find) {
  Divider<Find>(words, rule, find).divide();
}

}  // namespace snug::text
