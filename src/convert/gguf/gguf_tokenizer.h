// A tokenizer as a GGUF file holds it, under the keys tokenizer.*: the tokens with their scores and
// kinds, and what llama.cpp does with a text before and after it divides it. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "text/tokenizer/sentencepiece_model.h"

namespace snug::convert {

// The kinds of a file's tokens have the names and the numbers of those of SentencePiece.
using GgufToken = text::SentencePieceModel::Piece;

// tokenizer.ggml.model: how words become tokens.
enum class GgufTokenizerKind : uint8_t {
  byte_level,     // "gpt2": merges of bytes
  sentencepiece,  // "llama": merges of characters, in descending order of the scores
  unigram,        // "t5": the division with the largest sum of scores
};

struct GgufTokenizer {
  GgufTokenizerKind kind = GgufTokenizerKind::byte_level;
  std::string pre{};  // byte_level_rules.h
  std::vector<GgufToken> tokens{};
  std::vector<std::string> merges{};  // of byte_level, "left right"
  // Of sentencepiece: the file lists the merges too ("gemma4"), and scores mean nothing.
  bool lists_merges = false;

  // bos, eos, eot, eom, unknown, seperator (spelled so), padding, mask: tokenizer.ggml.*_token_id.
  std::map<std::string, int32_t, std::less<>> ids{};
  // What the program puts around a text and before it, where the file says so.
  std::optional<bool> add_bos{};
  std::optional<bool> add_eos{};
  std::optional<bool> add_space_prefix{};
  std::optional<bool> remove_extra_whitespaces{};
  std::string charsmap{};  // bytes; of unigram

  std::map<std::string, std::string> chat_templates{};  // by name; "default"

  std::optional<int32_t> id(std::string_view name) const;
};

// The text that stands for a row without a token.
std::string hole_text(size_t id);

// Sets the keys of `tokenizer`.
void write_tokenizer_keys(const GgufTokenizer& tokenizer, formats::Metadata& metadata);

// Throws UserError, which names the key, for a file without a tokenizer, with one of a kind that
// Snug does not read, and for values that do not fit together.
GgufTokenizer read_tokenizer_keys(const formats::Metadata& metadata);

}  // namespace snug::convert
