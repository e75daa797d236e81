#include "text/tokenizer/model/word_level.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {

WordLevel::WordLevel(const JsonNode& model, Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  model.only_keys({"type", "vocab", "unk_token"});
  unknown_ = vocabulary_.find(model.string("unk_token"));
}

void WordLevel::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  const int32_t id = vocabulary_.find(word);
  if (id < 0 && unknown_ < 0)
    base::throw_user_error("the tokenizer has neither the word '{}' nor an unknown token",
                           first_bytes(word, 100));
  ids.push_back(id < 0 ? unknown_ : id);
}

}  // namespace snug::text
