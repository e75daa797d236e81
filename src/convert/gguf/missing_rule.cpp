#include "convert/gguf/missing_rule.h"

#include <nlohmann/json.hpp>

#include "convert/gguf/byte_level_rules.h"
#include "convert/gguf/tokenizer_document.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {

bool lacks_rule(const GgufTokenizer& tokenizer) {
  return tokenizer.kind == GgufTokenizerKind::byte_level &&
         (tokenizer.pre.empty() || tokenizer.pre == "default");
}

std::string rule_by_ids(GgufTokenizer tokenizer) {
  for (const ByteLevelRule& rule : byte_level_rules()) {
    tokenizer.pre = rule.names.front();
    const std::string document = tokenizer_document(tokenizer, true).dump();
    const auto made = text::Tokenizer::from_text(document, "{}", "the tokenizer of the GGUF file");
    const std::string name(name_of_fingerprint(made.encode(kFingerprintText)));
    if (!name.empty() && find_byte_level_rule(name) == &rule) return name;
  }
  return "";
}

}  // namespace snug::convert
