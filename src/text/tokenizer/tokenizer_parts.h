// What a Tokenizer is made of, how the files of a folder become it, and the steps of a text to ids.
// Inside text/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/chat/chat_settings.h"
#include "text/record/json_node.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/model/model.h"
#include "text/tokenizer/steps/decoder.h"
#include "text/tokenizer/steps/normalizer.h"
#include "text/tokenizer/steps/post_processor.h"
#include "text/tokenizer/steps/pre_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct SpecialIds {
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::optional<int32_t> pad;
  std::vector<int32_t> stop;
};

// Where normalized text stands that is encoded in windows: however long it is, the words of one
// window are held.
struct WordPlace {
  size_t origin = 0;  // bytes at its beginning that come from the text's first character
  bool is_open = false;
  // A word takes 24 bytes, and up to 40 more while text is divided; a window of nothing but words
  // of one byte so takes 1 MiB in a thread. Usual text has words of five bytes.
  size_t window_bytes = size_t{16} << 10;
};

struct Tokenizer::Parts {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null: a text is one word
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;  // may be null: tokens are joined by spaces
  PostProcessor post_processor;

  std::unordered_map<int32_t, AddedToken> added_by_id;
  std::unordered_map<std::string, int32_t> added_ids;
  AddedTokenFinder in_original;    // tokens searched for before normalization
  AddedTokenFinder in_normalized;  // and after it
  std::vector<int32_t> new_ids;    // of the tokens that were added anew

  SpecialIds special;
  int64_t rows = kAnyRows;  // ids from here on have no row in the model's table
  ChatSettings chat;

  // The id of an added token or a token of the model, or -1.
  int32_t id_of(const std::string& token) const;

  // Applies the normalizer, if there is one.
  void normalize(std::string& text) const;
  // Normalizes the text. If the pre-tokenizer asks for it and `text` is the beginning of the
  // original text, returns how many leading bytes come from that text's first character.
  size_t normalize_from(std::string& text, bool at_text_start) const;
  // Normalizes a piece of a text that follows another piece (Normalizer::apply_rest).
  void normalize_rest(std::string& text) const;
  // Appends the ids of normalized text, which holds no added token, and returns how much of it was
  // encoded: all of it, or where it is open, since more text follows, as much as does not depend on
  // what follows. A window ends where the pre-tokenizer certainly divides (pre_tokenizer.h), so
  // that the ids are those of the whole. Throws UserError for a word that is too long.
  size_t encode_words(std::string_view text, WordPlace place, std::vector<int32_t>& ids) const;

  // Reads the document of tokenizer.json without the parts that parsing took out of it (see
  // tokenizer_file.h).
  void read(const JsonNode& document);

  // Adds the tokens that tokenizer_config.json declares and tokenizer.json does not.
  void read_declared_tokens(const JsonNode& config);

  // Adds a special token, unless it is added already: as the id of the vocabulary where that has
  // it, else after all others.
  void add_new_token(const std::string& content);
  // Throws UserError where the model lacks rows for them.
  void require_rows_of_new() const;

  // Makes the finders after all added tokens are known. Throws UserError that names `file` for two
  // tokens with the same text, between which the library chooses inconsistently.
  void index_added_tokens(const std::string& file);

  // Takes BOS, EOS and padding, as far as they are unknown, from a file that names tokens.
  void read_token_names(const JsonNode& config);

  // Takes them from a file that has ids (generation_config.json, config.json).
  void read_token_ids(const JsonNode& config);

  // Puts EOS first among the stop ids, if it is known.
  void complete_stop_ids();

  // Limits ids to the rows of the model's table: ids without a row are not used for padding or as
  // ends.
  void limit_rows(int64_t count);

 private:
  void add_token(const JsonNode& where, AddedToken token, int64_t declared_id);
  void keep(AddedToken token);
  int32_t next_added_id(const std::string& content) const;
  std::vector<int32_t> added_order_;
  int32_t added_end_ = 0;  // largest id of an added token + 1
};

}  // namespace snug::text
