#include "text/chat/answer_ends.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "text/unicode/blank.h"

namespace snug::text {
namespace {

bool is_blank_token(const Tokenizer& tokenizer, int32_t id) {
  return is_blank(tokenizer.decode(std::array{id}, false));
}

}  // namespace

void AnswerEnds::add(const Document& document, const Tokenizer& tokenizer) {
  const auto& trained = document.trained;
  const auto end = trained.end();
  for (auto at = std::find(trained.begin(), end, 1); at != end;) {
    const auto stop = std::find(at, end, 0);
    add_stretch(
        std::span(document.ids)
            .subspan(static_cast<size_t>(at - trained.begin()), static_cast<size_t>(stop - at)),
        tokenizer);
    at = std::find(stop, end, 1);
  }
}

// Of the added tokens at the end of the stretch, only the last one counts as an end. The others do
// not count as inner tokens either: an answer may end with the end of a call, and a conversation
// with EOS after its last turn's end.
void AnswerEnds::add_stretch(std::span<const int32_t> ids, const Tokenizer& tokenizer) {
  while (!ids.empty() && !tokenizer.is_added(ids.back()) && is_blank_token(tokenizer, ids.back()))
    ids = ids.first(ids.size() - 1);
  if (ids.empty() || !tokenizer.is_added(ids.back())) return;
  ends_.insert(ids.back());
  while (!ids.empty() && (tokenizer.is_added(ids.back()) || is_blank_token(tokenizer, ids.back())))
    ids = ids.first(ids.size() - 1);
  for (const int32_t id : ids)
    if (tokenizer.is_added(id)) within_.insert(id);
}

void AnswerEnds::add(const AnswerEnds& other) {
  ends_.insert(other.ends_.begin(), other.ends_.end());
  within_.insert(other.within_.begin(), other.within_.end());
}

std::vector<int32_t> AnswerEnds::ids() const {
  std::vector<int32_t> ids;
  std::ranges::set_difference(ends_, within_, std::back_inserter(ids));
  return ids;
}

}  // namespace snug::text
