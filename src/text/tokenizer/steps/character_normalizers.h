// Normalizers that process a text character by character: what BERT's tokenizers and
// SentencePiece's "nmt" rules remove and replace. Immutable; any thread.
#pragma once

#include <memory>

#include "text/record/json_node.h"
#include "text/tokenizer/steps/normalizer.h"

namespace snug::text {

// Removes marks (the M categories).
std::unique_ptr<Normalizer> make_strip_accents();

// Removes control characters, and replaces other white space by spaces.
std::unique_ptr<Normalizer> make_nmt();

// {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}
std::unique_ptr<Normalizer> read_bert_normalizer(const JsonNode& node);

// Applies a canonical or compatibility form, given by utf8proc's options.
void apply_unicode_form(std::string& text, int options);

// Replaces each character by its full lower case.
void apply_lowercase(std::string& text);

}  // namespace snug::text
