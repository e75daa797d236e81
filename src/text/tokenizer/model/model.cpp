#include "text/tokenizer/model/model.h"

#include <utility>

#include "base/error.h"
#include "text/tokenizer/model/bpe.h"
#include "text/tokenizer/model/unigram.h"
#include "text/tokenizer/model/word_level.h"
#include "text/tokenizer/model/word_piece.h"
#include "text/tokenizer/tokenizer_file.h"

namespace snug::text {

void Model::require_short(std::string_view word) {
  if (word.size() > kMaxBytes)
    base::throw_user_error(
        "one word of {} bytes is too long to tokenize, more than the {} that one may have; split "
        "the text",
        word.size(), kMaxBytes);
}

std::unique_ptr<Model> read_model(const JsonNode& model, TokenizerFile& file) {
  switch (file.kind) {
    case ModelKind::unigram:
      return std::make_unique<Unigram>(model, std::move(file.vocabulary), std::move(file.scores));
    case ModelKind::word_piece:
      return std::make_unique<WordPiece>(model, std::move(file.vocabulary));
    case ModelKind::word_level:
      return std::make_unique<WordLevel>(model, std::move(file.vocabulary));
    case ModelKind::bpe:
      break;
  }
  return std::make_unique<Bpe>(model, std::move(file.vocabulary), file.merges);
}

}  // namespace snug::text
