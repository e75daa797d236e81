#include "text/tokenizer/model/word_piece.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {

WordPiece::WordPiece(const JsonNode& model, Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  model.only_keys(
      {"type", "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
  unknown_ = vocabulary_.find(model.string("unk_token"));
  prefix_ = model.string("continuing_subword_prefix");
  most_characters_ = model.integer("max_input_chars_per_word");
  for (int32_t id = 0; id < vocabulary_.id_end(); ++id)
    longest_ = std::max(longest_, vocabulary_.token(id).size());
}

bool WordPiece::encode_known(std::string_view word, std::vector<int32_t>& ids) const {
  const auto characters = word.size() - static_cast<size_t>(std::count_if(word.begin(), word.end(),
                                                                          is_inside_character));
  if (static_cast<int64_t>(characters) > most_characters_) return false;
  std::string piece;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = std::min(word.size(), begin + longest_);
    int32_t id = -1;
    for (; end > begin; --end) {
      if (end < word.size() && is_inside_character(word[end])) continue;
      piece = begin > 0 ? prefix_ : "";
      piece += word.substr(begin, end - begin);
      id = vocabulary_.find(piece);
      if (id >= 0) break;
    }
    if (id < 0) return false;
    ids.push_back(id);
    begin = end;
  }
  return true;
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  if (encode_known(word, ids)) return;
  if (unknown_ < 0)
    base::throw_user_error("the tokenizer has no tokens for the word '{}' and no unknown token",
                           first_bytes(word, 100));
  ids.resize(before);
  ids.push_back(unknown_);
}

}  // namespace snug::text
