// A folder that has a SentencePiece model and no tokenizer.json: the tokenizer.json that
// transformers 5 makes of it, whose rules depend on the class of the tokenizer and the family of
// the model. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace snug::text {

// `config` is tokenizer_config.json and `family` the "model_type" of config.json; null and empty
// where there is none. Throws UserError for a class or family whose rules are not known here.
nlohmann::json sentencepiece_tokenizer(const std::string& model_file, const nlohmann::json& config,
                                       const std::string& family);

// The model file of a folder, tokenizer.model or spiece.model, or empty where it has none.
std::string find_sentencepiece(const std::string& folder);

}  // namespace snug::text
