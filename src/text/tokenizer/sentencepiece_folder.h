// Converts a SentencePiece model, in a folder without a tokenizer.json, to the tokenizer.json that
// transformers 5 makes from it. The rules depend on the class of the tokenizer and the family of
// the model. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace snug::text {

// `config`: tokenizer_config.json, or null; `family`: the "model_type" of config.json, or empty.
// Throws UserError for a class or family whose rules are not known here.
nlohmann::json sentencepiece_tokenizer(const std::string& model_file, const nlohmann::json& config,
                                       const std::string& family);

// The model file of a folder, tokenizer.model or spiece.model; empty if it has none.
std::string find_sentencepiece(const std::string& folder);

// The file that the tokenizer of a folder is read from: tokenizer.json, or else the model file;
// empty if it has none.
std::string find_tokenizer_file(const std::string& folder);

}  // namespace snug::text
