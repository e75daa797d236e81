// Reads tokenizer.json: the vocabulary and the merges, which are most of it, directly into their
// tables, and the rest as a small JSON document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/model/bpe.h"
#include "text/tokenizer/model/vocabulary.h"

namespace snug::text {

enum class ModelKind { bpe, unigram, word_piece, word_level };

struct TokenizerFile {
  ModelKind kind = ModelKind::bpe;
  Vocabulary vocabulary;
  std::vector<MergeRule> merges;  // of BPE
  std::vector<double> scores;     // of Unigram, by id
};

// Fills `file`, and returns the document without "model.vocab" and "model.merges". Throws UserError
// with line and column if `text` is not JSON, and for a type of model that is not supported.
nlohmann::json parse_tokenizer_file(std::string_view text, const std::string& name,
                                    TokenizerFile& file);

// Reads the whole file; returns false if it does not exist. Throws UserError if it cannot be read.
bool read_text_file(const std::string& path, std::string& text);

}  // namespace snug::text
