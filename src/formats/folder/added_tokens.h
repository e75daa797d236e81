// Tokens that a run adds to a tokenizer, written into the files of a folder, so that transformers
// and the tokenizers library read the same ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

struct NewToken {
  std::string content;
  int32_t id = 0;
};

// Adds the tokens, as special ones, to tokenizer.json of the folder and, as far as the files have
// such lists, to tokenizer_config.json (added_tokens_decoder) and added_tokens.json. Everything
// else in the files is kept; of tokenizer.json every byte. Throws UserError where the folder has no
// tokenizer.json, or that has no list of added tokens.
void write_added_tokens(const std::filesystem::path& folder, const std::vector<NewToken>& tokens);

}  // namespace snug::formats
