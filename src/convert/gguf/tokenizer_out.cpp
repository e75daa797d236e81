#include "convert/gguf/tokenizer_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "convert/gguf/byte_level_rules.h"
#include "convert/gguf/folder_tokenizer.h"
#include "convert/gguf/known_ends.h"
#include "convert/gguf/probe_texts.h"
#include "convert/gguf/tokenizer_document.h"
#include "text/chat/chat_settings.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {
namespace {

using text::Tokenizer;
using TokenizerNotes = std::vector<std::string>;

void take_special_ids(const Tokenizer& tokenizer, GgufTokenizer& result) {
  const auto rows = std::ssize(result.tokens);
  const auto take = [&](const char* name, std::optional<int32_t> id) {
    if (id && *id >= 0 && *id < rows) result.ids[name] = *id;
  };
  take("bos", tokenizer.bos_id());
  take("eos", tokenizer.eos_id());
  take("padding", tokenizer.pad_id());
  for (const auto& [name, token] : tokenizer.chat_settings().tokens) {
    if (name == "sep_token") take("seperator", tokenizer.id_of(token));
    if (name == "mask_token") take("mask", tokenizer.id_of(token));
    if (name == "unk_token" && !result.id("unknown")) take("unknown", tokenizer.id_of(token));
  }
}

// The first two ends of a turn that llama.cpp does not know by their text.
void take_turn_ends(const Tokenizer& tokenizer, GgufTokenizer& result, TokenizerNotes& notes) {
  size_t taken = 0;
  for (const int32_t id : tokenizer.stop_ids()) {
    const std::string& token = result.tokens[static_cast<size_t>(id)].text;
    if (id == tokenizer.eos_id() || is_known_end(token)) continue;
    if (taken < 2)
      result.ids[taken == 0 ? "eot" : "eom"] = id;
    else
      notes.push_back(fmt::format(
          "llama.cpp will not stop at '{}', since a GGUF file has room for three ends of a text; "
          "pass it as a stop text",
          token));
    ++taken;
  }
}

// BOS and EOS as the tokenizer puts them around a text, which is what training saw.
void take_surroundings(const Tokenizer& tokenizer, GgufTokenizer& result, TokenizerNotes& notes) {
  const auto take = [&](std::span<const int32_t> ids, const char* name, const char* place) {
    if (ids.empty()) return false;
    if (ids.size() == 1) result.ids[name] = ids[0];
    if (ids.size() == 1 && ids[0] < std::ssize(result.tokens)) return true;
    notes.push_back(
        fmt::format("the tokenizer puts {} tokens {} a text, of which llama.cpp can put one at "
                    "most; it puts none",
                    ids.size(), place));
    return false;
  };
  result.add_bos = take(tokenizer.ids_before(), "bos", "before");
  result.add_eos = take(tokenizer.ids_after(), "eos", "after");
}

void take_chat_templates(const Tokenizer& tokenizer, GgufTokenizer& result) {
  for (const auto& [name, source] : tokenizer.chat_settings().templates) {
    std::string plain = name;
    for (char& c : plain)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    result.chat_templates[plain] = source;
  }
}

std::optional<std::vector<int32_t>> ids_if_any(const Tokenizer& tokenizer, std::string_view text) {
  try {
    return tokenizer.encode(text, false);
  } catch (const base::UserError&) {
    return std::nullopt;  // a token without a row, or a character that no token has
  }
}

struct Difference {
  std::string text;
  std::vector<int32_t> own;
  std::vector<int32_t> theirs;
};

// The texts that two tokenizers encode in different ways.
template <typename Texts>
std::vector<Difference> differing_texts(const Tokenizer& own, const Tokenizer& theirs,
                                        const Texts& texts) {
  std::vector<Difference> found;
  for (const auto& text : texts) {
    const auto ids = ids_if_any(own, text);
    if (!ids) continue;
    const auto others = ids_if_any(theirs, text);
    if (ids != others)
      found.push_back({std::string(text), *ids, others.value_or(std::vector<int32_t>{})});
  }
  return found;
}

// A sentence with each of some added tokens, with and without spaces around it.
std::vector<std::string> texts_with_added(const GgufTokenizer& tokenizer) {
  constexpr size_t kMost = 16;
  std::vector<std::string> texts;
  for (const GgufToken& token : tokenizer.tokens) {
    if (token.kind != text::PieceKind::control && token.kind != text::PieceKind::user_defined)
      continue;
    texts.push_back(fmt::format("one{}two {} three", token.text, token.text));
    if (texts.size() == kMost) break;
  }
  return texts;
}

std::string shown_difference(const Difference& difference) {
  return fmt::format("{} becomes [{}] instead of [{}]", nlohmann::json(difference.text).dump(),
                     fmt::join(difference.theirs, ", "), fmt::join(difference.own, ", "));
}

// Encodes texts as llama.cpp does for what the file will say.
void compare_ids(const Tokenizer& tokenizer, const GgufTokenizer& result,
                 const std::filesystem::path& folder, TokenizerNotes& notes) {
  const Tokenizer theirs = Tokenizer::from_text(tokenizer_document(result, false).dump(), "",
                                                "the tokenizer of the GGUF file");
  const auto ordinary = differing_texts(tokenizer, theirs, kOrdinaryTexts);
  if (!ordinary.empty())
    throw base::UserError(
        fmt::format("llama.cpp has no tokenizer that does what this one does: of {} ordinary texts "
                    "{} would become other tokens, so that the model would not see what it learned "
                    "from; {}. An unusual normalizer or pre_tokenizer in tokenizer.json is the "
                    "cause",
                    kOrdinaryTexts.size(), ordinary.size(), shown_difference(ordinary.front())),
        {folder.string(), 0, 0});
  const auto rare = differing_texts(tokenizer, theirs, kProbeTexts);
  if (!rare.empty())
    notes.push_back(fmt::format(
        "llama.cpp divides {} of {} unusual texts in another way than the folder's tokenizer: {}",
        rare.size(), kProbeTexts.size(), shown_difference(rare.front())));
  const auto with_added = texts_with_added(result);
  const auto added = differing_texts(tokenizer, theirs, with_added);
  if (!added.empty())
    notes.push_back(
        fmt::format("next to added tokens llama.cpp divides {} of {} texts in another way: {}",
                    added.size(), with_added.size(), shown_difference(added.front())));
}

}  // namespace

std::vector<std::string> add_tokenizer(const std::filesystem::path& folder, int64_t vocab_size,
                                       formats::Metadata& metadata) {
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.string(), vocab_size);
  GgufTokenizer result = gguf_tokenizer(folder, tokenizer, vocab_size);
  TokenizerNotes notes;
  take_special_ids(tokenizer, result);
  take_turn_ends(tokenizer, result, notes);
  take_surroundings(tokenizer, result, notes);
  take_chat_templates(tokenizer, result);
  compare_ids(tokenizer, result, folder, notes);
  write_tokenizer_keys(result, metadata);
  return notes;
}

}  // namespace snug::convert
