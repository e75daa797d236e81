// How byte-level tokenizers divide a text into words before they merge bytes. llama.cpp has these
// rules built in, under the names of tokenizer.ggml.pre; a tokenizer.json spells them out. One
// table serves both directions. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/steps/pre_tokenizer.h"

namespace snug::convert {

struct ByteLevelRule {
  // Those of tokenizer.ggml.pre with this rule and these settings, the most usual one first.
  std::vector<std::string_view> names{};
  // "pre_tokenizer" of a tokenizer.json, as text.
  std::string pre_tokenizer{};
  // A word that is a token is one, whether merges lead to it or not.
  bool ignores_merges = false;
  // llama.cpp puts BOS before a text unless tokenizer.ggml.add_bos_token says otherwise.
  bool adds_bos = false;
  // The models of these names compose characters first (NFC), which llama.cpp leaves out.
  bool composes = false;
};

// The whole table.
const std::vector<ByteLevelRule>& byte_level_rules();

// Null for a name that is not in the table.
const ByteLevelRule* find_byte_level_rule(std::string_view name);

// Whether the rule divides texts as `own` does; compared on probe_texts.h.
bool divides_alike(const text::PreTokenizer& own, const ByteLevelRule& rule);

// The rule that divides texts as `own` does, preferably with the same `ignores_merges`; null if
// there is none.
const ByteLevelRule* matching_byte_level_rule(const text::PreTokenizer& own, bool ignores_merges);

// The name that llama.cpp's converter gives to the tokenizer with these ids for
// kFingerprintText; empty for ids that it does not know.
std::string_view name_of_fingerprint(const std::vector<int32_t>& ids);
extern const std::string_view kFingerprintText;

}  // namespace snug::convert
