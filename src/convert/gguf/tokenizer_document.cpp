#include "convert/gguf/tokenizer_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "convert/gguf/byte_level_rules.h"
#include "convert/gguf/missing_rule.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/sentencepiece_merges.h"

namespace snug::convert {
namespace {

using nlohmann::json;
using text::PieceKind;

constexpr const char* kSpaceMark = "\u2581";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";  // for messages

json named_sequence(const char* key, json steps) {
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

json replace_text(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

json metaspace_step(const char* scheme) {
  return {{"type", "Metaspace"},
          {"replacement", kSpaceMark},
          {"prepend_scheme", scheme},
          {"split", true}};
}

bool is_hole(const GgufToken& token, size_t id) {
  return token.kind == PieceKind::unused && token.text == hole_text(id);
}

// The tokens that are found in a text before it is divided.
json added_tokens_of(const GgufTokenizer& tokenizer) {
  json added = json::array();
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    const GgufToken& token = tokenizer.tokens[id];
    const bool is_special = token.kind == PieceKind::control || token.kind == PieceKind::unknown;
    if ((!is_special && token.kind != PieceKind::user_defined) || token.text.empty()) continue;
    added.push_back({{"id", id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", is_special}});
  }
  return added;
}

json token_ids(const GgufTokenizer& tokenizer) {
  json ids = json::object();
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    const GgufToken& token = tokenizer.tokens[id];
    if (is_hole(token, id)) continue;
    const auto [place, is_new] = ids.emplace(token.text, id);
    if (!is_new)
      base::throw_user_error("{}: '{}' stands there twice, with the ids {} and {}", kTokensKey,
                             token.text, place->get<size_t>(), id);
  }
  return ids;
}

json listed_merges(const GgufTokenizer& tokenizer) {
  json merges = json::array();
  for (const std::string& merge : tokenizer.merges) {
    // The first part may be a space.
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos || space + 1 == merge.size())
      base::throw_user_error("tokenizer.ggml.merges: '{}' is not two tokens with a space between",
                             merge);
    merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  return merges;
}

const ByteLevelRule& rule_of(const GgufTokenizer& tokenizer) {
  if (const ByteLevelRule* rule = find_byte_level_rule(tokenizer.pre)) return *rule;
  base::throw_user_error(
      "tokenizer.ggml.pre: {}, so that it is not known how the tokenizer divides texts; take a "
      "newer file of the model, or write the name of the rule into this one, as in "
      "'gguf-new-metadata "
      "--pre-tokenizer llama-bpe FILE NEW_FILE' (of PyPI's gguf)",
      lacks_rule(tokenizer)
          ? "the file does not say it, and its ids are those of no tokenizer that is known"
          : fmt::format("Snug does not know '{}'", tokenizer.pre));
}

json byte_level_document(const GgufTokenizer& tokenizer, bool composes) {
  const ByteLevelRule& rule = rule_of(tokenizer);
  json normalizer;
  if (composes && rule.composes) normalizer = {{"type", "NFC"}};
  return {{"normalizer", normalizer},
          {"pre_tokenizer", base::parse_json(rule.pre_tokenizer, "the table of rules")},
          {"decoder",
           {{"type", "ByteLevel"},
            {"add_prefix_space", true},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", rule.ignores_merges},
            {"vocab", token_ids(tokenizer)},
            {"merges", listed_merges(tokenizer)}}}};
}

json sentencepiece_document(const GgufTokenizer& tokenizer) {
  const bool has_prefix = tokenizer.add_space_prefix.value_or(!tokenizer.lists_merges);
  json normalizers = json::array();
  if (has_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  normalizers.push_back(replace_text(" ", kSpaceMark));
  const bool has_bytes = std::ranges::any_of(
      tokenizer.tokens, [](const GgufToken& token) { return token.kind == PieceKind::byte; });
  json decoders = json::array({replace_text(kSpaceMark, " ")});
  if (has_bytes) decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (has_prefix)
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  json merges = tokenizer.lists_merges ? listed_merges(tokenizer)
                                       : text::merges_of_pieces(tokenizer.tokens, true, kTokensKey);
  json unknown;
  if (const auto id = tokenizer.id("unknown"))
    unknown = tokenizer.tokens[static_cast<size_t>(*id)].text;
  return {{"normalizer", named_sequence("normalizers", std::move(normalizers))},
          {"pre_tokenizer", nullptr},
          {"decoder", named_sequence("decoders", std::move(decoders))},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unknown},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", true},
            {"byte_fallback", has_bytes},
            {"ignore_merges", false},
            {"vocab", token_ids(tokenizer)},
            {"merges", std::move(merges)}}}};
}

json unigram_document(const GgufTokenizer& tokenizer) {
  size_t count = tokenizer.tokens.size();
  while (count > 0 && is_hole(tokenizer.tokens[count - 1], count - 1)) --count;
  json pieces = json::array();
  bool has_bytes = false;
  for (size_t id = 0; id < count; ++id) {
    const GgufToken& token = tokenizer.tokens[id];
    const bool is_added = token.kind != PieceKind::normal && token.kind != PieceKind::byte;
    has_bytes |= token.kind == PieceKind::byte;
    pieces.push_back({token.text, is_added ? 0.0 : static_cast<double>(token.score)});
  }
  const auto unknown = tokenizer.id("unknown");
  if (!unknown) base::throw_user_error("tokenizer.ggml.unknown_token_id: missing");
  json normalizer;
  if (!tokenizer.charsmap.empty())
    normalizer = {{"type", "Precompiled"},
                  {"precompiled_charsmap", text::to_base64(tokenizer.charsmap)}};
  const char* scheme = tokenizer.add_space_prefix.value_or(true) ? "always" : "never";
  json dividers = json::array();
  if (tokenizer.remove_extra_whitespaces.value_or(false))
    dividers.push_back({{"type", "WhitespaceSplit"}});
  dividers.push_back(metaspace_step(scheme));
  return {{"normalizer", normalizer},
          {"pre_tokenizer", named_sequence("pretokenizers", std::move(dividers))},
          {"decoder", metaspace_step(scheme)},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", *unknown},
            {"vocab", std::move(pieces)},
            {"byte_fallback", has_bytes}}}};
}

// BOS before a text and EOS after it, as far as they are there.
json post_processor_of(const GgufTokenizer& tokenizer) {
  json single = json::array();
  json pair = json::array();
  json tokens = json::object();
  const auto put = [&](const char* name, bool is_added, int type) {
    const auto id = tokenizer.id(name);
    if (!id || !is_added) return;
    const std::string& token = tokenizer.tokens[static_cast<size_t>(*id)].text;
    tokens[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    if (type == 0) single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    pair.push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
  };
  put("bos", adds_bos(tokenizer), 0);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put("eos", adds_eos(tokenizer), 0);
  put("bos", adds_bos(tokenizer), 1);
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  put("eos", adds_eos(tokenizer), 1);
  if (tokens.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(tokens)}};
}

}  // namespace

bool adds_bos(const GgufTokenizer& tokenizer) {
  if (tokenizer.add_bos) return *tokenizer.add_bos;
  if (tokenizer.kind != GgufTokenizerKind::byte_level)
    return tokenizer.kind == GgufTokenizerKind::sentencepiece;
  const ByteLevelRule* rule = find_byte_level_rule(tokenizer.pre);
  return rule != nullptr && rule->adds_bos;
}

bool adds_eos(const GgufTokenizer& tokenizer) {
  return tokenizer.add_eos.value_or(tokenizer.kind == GgufTokenizerKind::unigram);
}

json tokenizer_document(const GgufTokenizer& tokenizer, bool composes) {
  json document;
  switch (tokenizer.kind) {
    case GgufTokenizerKind::byte_level:
      document = byte_level_document(tokenizer, composes);
      break;
    case GgufTokenizerKind::sentencepiece:
      document = sentencepiece_document(tokenizer);
      break;
    case GgufTokenizerKind::unigram:
      document = unigram_document(tokenizer);
      break;
  }
  document["version"] = "1.0";
  document["truncation"] = nullptr;
  document["padding"] = nullptr;
  document["added_tokens"] = added_tokens_of(tokenizer);
  document["post_processor"] = post_processor_of(tokenizer);
  return document;
}

}  // namespace snug::convert
