#include "convert/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::convert {
namespace {

using formats::Metadata;
using text::PieceKind;

constexpr const char* kTokenizerPrefix = "tokenizer.ggml.";

constexpr auto kKindNames = std::to_array<std::pair<GgufTokenizerKind, std::string_view>>({
    {GgufTokenizerKind::byte_level, "gpt2"},
    {GgufTokenizerKind::sentencepiece, "llama"},
    {GgufTokenizerKind::unigram, "t5"},
});

// What llama.cpp calls a tokenizer of SentencePiece's kind whose merges are listed.
constexpr const char* kListedMerges = "gemma4";

constexpr auto kIdNames = std::to_array<const char*>(
    {"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask"});

[[noreturn]] void fail_tokenizer_key(std::string_view key, std::string_view problem) {
  base::throw_user_error("{}{}: {}", kTokenizerPrefix, key, problem);
}

template <typename Type>
constexpr bool kIsNumberList = false;
template <typename Element>
constexpr bool kIsNumberList<std::vector<Element>> =
    std::is_arithmetic_v<Element> && !std::is_same_v<Element, bool>;

// The typed values of a file's keys, whatever type of integer it chose.
class TokenizerKeys {
 public:
  explicit TokenizerKeys(const Metadata& metadata) : metadata_(metadata) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::string text(std::string_view key, std::string fallback = "") const {
    const auto* value = find(key);
    if (value == nullptr) return fallback;
    if (const auto* text = std::get_if<std::string>(value)) return valid(key, *text);
    fail_tokenizer_key(key, "expected a text");
  }

  std::optional<bool> flag(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(value)) return *flag;
    fail_tokenizer_key(key, "expected true or false");
  }

  std::optional<int64_t> integer(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return std::nullopt;
    return std::visit(
        [&](const auto& number) -> int64_t {
          using Type = std::remove_cvref_t<decltype(number)>;
          if constexpr (std::is_integral_v<Type> && !std::is_same_v<Type, bool>)
            return static_cast<int64_t>(number);
          else
            fail_tokenizer_key(key, "expected an integer");
        },
        *value);
  }

  std::vector<std::string> texts(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return {};
    const auto* list = std::get_if<std::vector<std::string>>(value);
    if (list == nullptr) fail_tokenizer_key(key, "expected a list of texts");
    for (const std::string& one : *list) valid(key, one);
    return *list;
  }

  // A list of numbers of any type.
  template <typename Result>
  std::vector<Result> numbers(std::string_view key) const {
    const auto* value = find(key);
    if (value == nullptr) return {};
    return std::visit(
        [&](const auto& list) -> std::vector<Result> {
          using Type = std::remove_cvref_t<decltype(list)>;
          if constexpr (kIsNumberList<Type>) {
            std::vector<Result> result;
            result.reserve(list.size());
            for (const auto number : list) result.push_back(static_cast<Result>(number));
            return result;
          } else {
            fail_tokenizer_key(key, "expected a list of numbers");
          }
        },
        *value);
  }

 private:
  const formats::MetadataValue* find(std::string_view key) const {
    return metadata_.find(kTokenizerPrefix + std::string(key));
  }

  static const std::string& valid(std::string_view key, const std::string& text) {
    if (text::find_invalid_utf8(text) != std::string::npos)
      fail_tokenizer_key(
          key,
          "a text is not valid UTF-8; the file is damaged, or no tokenizer of a language "
          "model");
    return text;
  }

  const Metadata& metadata_;
};

std::vector<GgufToken> read_tokens(const TokenizerKeys& keys) {
  std::vector<std::string> texts = keys.texts("tokens");
  if (texts.empty())
    fail_tokenizer_key("tokens",
                       "the file has no tokenizer; take it from the folder of the original model");
  const auto scores = keys.numbers<float>("scores");
  const auto kinds = keys.numbers<int64_t>("token_type");
  if (!scores.empty() && scores.size() != texts.size())
    fail_tokenizer_key("scores",
                       fmt::format("{} scores for {} tokens", scores.size(), texts.size()));
  if (!kinds.empty() && kinds.size() != texts.size())
    fail_tokenizer_key("token_type",
                       fmt::format("{} types for {} tokens", kinds.size(), texts.size()));
  std::vector<GgufToken> tokens(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    tokens[id].text = std::move(texts[id]);
    if (!scores.empty()) tokens[id].score = scores[id];
    if (!std::isfinite(tokens[id].score))
      fail_tokenizer_key("scores", fmt::format("the score of the token {} is not finite", id));
    // 0 is "undefined".
    if (kinds.empty() || kinds[id] == 0) continue;
    if (kinds[id] < 0 || kinds[id] > static_cast<int64_t>(PieceKind::byte))
      fail_tokenizer_key("token_type",
                         fmt::format("the token {} has the type {}; known are 1 to {}", id,
                                     kinds[id], static_cast<int>(PieceKind::byte)));
    tokens[id].kind = static_cast<PieceKind>(kinds[id]);
  }
  return tokens;
}

GgufTokenizerKind read_kind(const TokenizerKeys& keys) {
  const std::string name = keys.text("model");
  for (const auto& [kind, known] : kKindNames)
    if (known == name) return kind;
  if (name == kListedMerges) return GgufTokenizerKind::sentencepiece;
  if (name.empty() || name == "none" || name == "no_vocab")
    fail_tokenizer_key("model",
                       "the file has no tokenizer; take it from the folder of the original model");
  fail_tokenizer_key(
      "model",
      fmt::format("tokenizers of the kind '{}' are not supported; known are gpt2, llama, "
                  "gemma4 and t5. Take the tokenizer from the folder of the original model",
                  name));
}

void read_chat_templates(const Metadata& metadata, GgufTokenizer& tokenizer) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  for (const auto& [key, value] : metadata.pairs()) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || !key.starts_with(kKey)) continue;
    const std::string name = key.substr(kKey.size());
    if (text::find_invalid_utf8(*text) != std::string::npos)
      base::throw_user_error("{}: the template is not valid UTF-8", key);
    if (name.empty()) tokenizer.chat_templates["default"] = *text;
    if (name.size() > 1 && name[0] == '.') tokenizer.chat_templates[name.substr(1)] = *text;
  }
}

}  // namespace

std::optional<int32_t> GgufTokenizer::id(std::string_view name) const {
  const auto found = ids.find(name);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::string hole_text(size_t id) { return fmt::format("[PAD{}]", id); }

void write_tokenizer_keys(const GgufTokenizer& tokenizer, Metadata& metadata) {
  const auto set = [&](const std::string& key, formats::MetadataValue value) {
    metadata.set(kTokenizerPrefix + key, std::move(value));
  };
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int32_t> kinds;
  for (const GgufToken& token : tokenizer.tokens) {
    texts.push_back(token.text);
    scores.push_back(token.score);
    kinds.push_back(static_cast<int32_t>(token.kind));
  }
  for (const auto& [kind, name] : kKindNames)
    if (kind == tokenizer.kind) set("model", std::string(name));
  set("pre", tokenizer.pre);
  set("tokens", std::move(texts));
  if (tokenizer.kind != GgufTokenizerKind::byte_level) set("scores", std::move(scores));
  set("token_type", std::move(kinds));
  if (tokenizer.kind == GgufTokenizerKind::byte_level) set("merges", tokenizer.merges);
  for (const char* name : kIdNames)
    if (const auto id = tokenizer.id(name))
      set(fmt::format("{}_token_id", name), static_cast<uint32_t>(*id));
  if (tokenizer.add_bos) set("add_bos_token", *tokenizer.add_bos);
  if (tokenizer.add_eos) set("add_eos_token", *tokenizer.add_eos);
  if (tokenizer.add_space_prefix) set("add_space_prefix", *tokenizer.add_space_prefix);
  if (tokenizer.remove_extra_whitespaces)
    set("remove_extra_whitespaces", *tokenizer.remove_extra_whitespaces);
  if (!tokenizer.charsmap.empty())
    set("precompiled_charsmap",
        std::vector<uint8_t>(tokenizer.charsmap.begin(), tokenizer.charsmap.end()));
  std::vector<std::string> names;
  for (const auto& [name, source] : tokenizer.chat_templates) {
    const bool is_default = name == "default";
    metadata.set(is_default ? "tokenizer.chat_template" : "tokenizer.chat_template." + name,
                 source);
    if (!is_default) names.push_back(name);
  }
  if (!names.empty()) metadata.set("tokenizer.chat_templates", std::move(names));
}

GgufTokenizer read_tokenizer_keys(const Metadata& metadata) {
  const TokenizerKeys keys(metadata);
  GgufTokenizer tokenizer;
  tokenizer.kind = read_kind(keys);
  tokenizer.pre = keys.text("pre");
  tokenizer.tokens = read_tokens(keys);
  tokenizer.merges = keys.texts("merges");
  tokenizer.lists_merges = keys.text("model") == kListedMerges;
  if (tokenizer.lists_merges && tokenizer.merges.empty())
    fail_tokenizer_key("merges", "missing; a tokenizer of the kind 'gemma4' lists its merges");
  for (const char* name : kIdNames) {
    const std::string key = fmt::format("{}_token_id", name);
    const auto id = keys.integer(key);
    // Some files name an id that no token has, for "none"; llama.cpp ignores it, too.
    if (!id || *id < 0 || *id >= std::ssize(tokenizer.tokens)) continue;
    tokenizer.ids[name] = static_cast<int32_t>(*id);
  }
  tokenizer.add_bos = keys.flag("add_bos_token");
  tokenizer.add_eos = keys.flag("add_eos_token");
  tokenizer.add_space_prefix = keys.flag("add_space_prefix");
  tokenizer.remove_extra_whitespaces = keys.flag("remove_extra_whitespaces");
  for (const int32_t byte : keys.numbers<int32_t>("precompiled_charsmap"))
    tokenizer.charsmap += static_cast<char>(byte);
  read_chat_templates(metadata, tokenizer);
  return tokenizer;
}

}  // namespace snug::convert
