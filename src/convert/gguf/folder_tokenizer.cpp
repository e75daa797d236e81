// Stages: read tokenizer.json again, for what a tokenizer no longer knows (merges, scores); choose
// the kind; list the tokens; give them scores; choose the rule that divides texts; and take over
// the ids of special tokens and what stands around a text.
#include "convert/gguf/folder_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "convert/gguf/byte_level_rules.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/sentencepiece_folder.h"
#include "text/tokenizer/sentencepiece_merges.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace snug::convert {
namespace {

using nlohmann::json;
using text::PieceKind;

constexpr const char* kSpaceSign = "\u2581";
// Scores without meaning, as llama.cpp's converter writes them.
constexpr float kAddedScore = -1000;
constexpr float kHoleScore = -10000;

struct TokenizerSource {
  std::string path{};  // for messages
  text::TokenizerFile file{};
  json document{};  // without the vocabulary and the merges
  const text::Tokenizer& tokenizer;
  // The model file, next to tokenizer.json or in its place.
  std::optional<text::SentencePieceModel> pieces{};
};

// The model file of a folder; nothing for one that has another form (Llama 3's has that of
// tiktoken), unless tokenizer.json is made of it.
std::optional<text::SentencePieceModel> read_model_file(const std::string& folder, bool is_needed) {
  const std::string path = text::find_sentencepiece(folder);
  std::string bytes;
  if (path.empty() || !text::read_text_file(path, bytes)) return std::nullopt;
  try {
    return text::parse_sentencepiece(bytes, path);
  } catch (const base::UserError&) {
    if (is_needed) throw;
    return std::nullopt;
  }
}

TokenizerSource read_source(const std::string& folder, const text::Tokenizer& tokenizer) {
  TokenizerSource source{.tokenizer = tokenizer};
  const std::string text = text::Tokenizer::json_of_folder(folder, source.path);
  source.document = text::parse_tokenizer_file(text, source.path, source.file);
  source.pieces = read_model_file(folder, !source.path.ends_with("tokenizer.json"));
  return source;
}

// Whether a step of this type is in a component of the document, which may be a Sequence.
const json* find_step(const json& component, std::string_view type) {
  if (!component.is_object()) return nullptr;
  if (component.value("type", "") == type) return &component;
  for (const char* key : {"normalizers", "pretokenizers", "decoders", "processors"}) {
    if (!component.contains(key)) continue;
    for (const json& step : component[key])
      if (const json* found = find_step(step, type)) return found;
  }
  return nullptr;
}

const json* find_step(const TokenizerSource& source, std::string_view component,
                      std::string_view type) {
  const auto found = source.document.find(component);
  return found == source.document.end() ? nullptr : find_step(*found, type);
}

GgufTokenizerKind tokenizer_kind(const TokenizerSource& source) {
  const bool has_bytes = find_step(source, "pre_tokenizer", "ByteLevel") != nullptr ||
                         find_step(source, "decoder", "ByteLevel") != nullptr;
  const json& model = source.document["model"];
  const bool has_marks = !model.value("continuing_subword_prefix", json()).empty() &&
                         model["continuing_subword_prefix"] != "";
  switch (source.file.kind) {
    case text::ModelKind::unigram:
      return GgufTokenizerKind::unigram;
    case text::ModelKind::bpe:
      if (!has_marks)
        return has_bytes ? GgufTokenizerKind::byte_level : GgufTokenizerKind::sentencepiece;
      [[fallthrough]];
    default:
      throw base::UserError(
          "a GGUF file has no form for this tokenizer: llama.cpp runs language models with "
          "byte-level BPE, SentencePiece's BPE and Unigram, not WordPiece, WordLevel or BPE with "
          "marks of continuing words",
          {source.path, 0, 0});
  }
}

// Tokens that models' authors forgot to declare as special.
bool looks_special(std::string_view token) {
  const auto is_between = [&](std::string_view begin, std::string_view end) {
    return token.size() > begin.size() + end.size() && token.starts_with(begin) &&
           token.ends_with(end);
  };
  return token == "<pad>" || token == "<mask>" || token == "<2mass>" || token == "[@BOS@]" ||
         is_between("<|", "|>") || is_between("<\uff5c", "\uff5c>") || is_between("<unused", ">");
}

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">") &&
         token.substr(3, 2).find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
}

std::optional<int32_t> unknown_id(const TokenizerSource& source) {
  const json& model = source.document["model"];
  const json id = model.value("unk_id", json());
  if (id.is_number_integer()) return id.get<int32_t>();
  const json name = model.value("unk_token", json());
  return name.is_string() ? source.tokenizer.id_of(name.get<std::string>()) : std::nullopt;
}

// An added token, as the program finds it in a text: its spaces are no longer marks.
std::string without_marks(std::string_view token) {
  const std::string_view mark = kSpaceSign;
  std::string text;
  for (size_t at = 0; at < token.size();) {
    const bool is_mark = token.substr(at).starts_with(mark);
    text += is_mark ? ' ' : token[at];
    at += is_mark ? mark.size() : 1;
  }
  return text;
}

PieceKind added_kind(const TokenizerSource& source, int32_t id, std::string_view token) {
  return source.tokenizer.is_special(id) || looks_special(token) ? PieceKind::control
                                                                 : PieceKind::user_defined;
}

// Whether a token has more than one character.
bool is_merged(const std::string& token) { return !text::inner_places(token).empty(); }

std::vector<GgufToken> list_tokens(const TokenizerSource& source, GgufTokenizerKind kind,
                                   int64_t rows) {
  const auto unknown = unknown_id(source);
  std::vector<GgufToken> tokens(static_cast<size_t>(rows));
  for (int32_t id = 0; id < rows; ++id) {
    GgufToken& token = tokens[static_cast<size_t>(id)];
    const auto text = source.tokenizer.token_of(id);
    if (!text) {
      token = {hole_text(static_cast<size_t>(id)), kHoleScore, PieceKind::unused};
      continue;
    }
    token.text = *text;
    if (kind != GgufTokenizerKind::byte_level && id == unknown) {
      token.kind = PieceKind::unknown;
    } else if (source.tokenizer.is_added(id)) {
      token.kind = added_kind(source, id, token.text);
      token.score = kAddedScore;
    } else if (kind != GgufTokenizerKind::byte_level && is_byte_token(token.text)) {
      token.kind = PieceKind::byte;
    }
  }
  return tokens;
}

// llama.cpp stops at a file in which two tokens have the same text.
void make_distinct(std::vector<GgufToken>& tokens, const std::string& path) {
  std::unordered_set<std::string_view> texts;
  for (const GgufToken& token : tokens)
    if (token.kind != PieceKind::user_defined && token.kind != PieceKind::unused)
      texts.insert(token.text);
  for (GgufToken& token : tokens) {
    if (token.kind == PieceKind::user_defined) {
      const std::string plain = without_marks(token.text);
      if (!texts.contains(plain)) token.text = plain;
    } else if (token.kind == PieceKind::unused) {
      while (texts.contains(token.text)) token.text += '_';
    } else {
      continue;
    }
    if (!texts.insert(token.text).second)
      throw base::UserError(
          fmt::format("the token '{}' is there twice, which llama.cpp refuses", token.text),
          {path, 0, 0});
  }
}

// The kinds that tokenizer.json does not show: pieces without a use, and those that are found in a
// text before it is divided.
void take_piece_kinds(const std::vector<GgufToken>& pieces, std::vector<GgufToken>& tokens) {
  for (size_t id = 0; id < std::min(pieces.size(), tokens.size()); ++id) {
    const PieceKind kind = pieces[id].kind;
    if (pieces[id].text == tokens[id].text && tokens[id].kind == PieceKind::normal &&
        (kind == PieceKind::unused || kind == PieceKind::user_defined))
      tokens[id].kind = kind;
  }
}

// The scores of a model file in place of ranks, if they order the tokens as the ranks do. They do
// not always: transformers merges in the order of ids where a folder of Llama 2 has a model file
// alone, and so does Snug.
void take_piece_scores(const std::vector<GgufToken>& pieces, std::vector<GgufToken>& tokens) {
  std::vector<size_t> by_rank;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].kind != PieceKind::normal) continue;
    if (id >= pieces.size() || pieces[id].text != tokens[id].text) return;
    if (is_merged(tokens[id].text)) by_rank.push_back(id);
  }
  std::ranges::sort(by_rank, std::greater{}, [&](size_t id) { return tokens[id].score; });
  const auto score = [&](size_t id) { return pieces[id].score; };
  if (!std::ranges::is_sorted(by_rank, std::greater{}, score)) return;
  for (size_t id = 0; id < std::min(pieces.size(), tokens.size()); ++id)
    if (pieces[id].text == tokens[id].text) tokens[id].score = pieces[id].score;
}

// llama.cpp ends the program at a character that neither a token nor tokens of its bytes stand for.
void require_bytes(const std::vector<GgufToken>& tokens, const std::string& path) {
  std::unordered_set<std::string_view> texts;
  for (const GgufToken& token : tokens) texts.insert(token.text);
  int missing = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_character =
        byte < 0x80 && texts.contains(std::string(1, static_cast<char>(byte)));
    if (!is_character && !texts.contains(fmt::format("<0x{:02X}>", byte))) ++missing;
  }
  if (missing > 0)
    throw base::UserError(
        fmt::format(
            "the tokenizer has no tokens for {} of the 256 bytes (<0x00> to <0xFF>, "
            "SentencePiece's byte_fallback), and llama.cpp ends at the first character that "
            "no token stands for; such a model can be run by transformers alone",
            missing),
        {path, 0, 0});
}

// Scores in descending order of the merges, as a model file has them: the tokens that merges make
// in the order in which they are first made, then the others by id.
void rank_by_merges(const std::vector<text::MergeRule>& merges, std::vector<GgufToken>& tokens) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id)
    if (tokens[id].kind == PieceKind::normal) ids.emplace(tokens[id].text, id);
  std::vector<bool> has_rank(tokens.size());
  float rank = 0;
  const auto give = [&](size_t id) {
    if (has_rank[id]) return;
    has_rank[id] = true;
    tokens[id].score = -rank++;
  };
  for (const auto& [left, right] : merges)
    if (const auto found = ids.find(left + right); found != ids.end()) give(found->second);
  for (size_t id = 0; id < tokens.size(); ++id)
    if (tokens[id].kind == PieceKind::normal) give(id);
}

// Merges of and into tokens that the model has rows for.
std::vector<std::string> list_merges(const TokenizerSource& source,
                                     const std::vector<GgufToken>& tokens) {
  const text::Vocabulary& vocabulary = source.tokenizer.parts().model->vocabulary();
  const auto has_row = [&](const std::string& token) {
    const int32_t id = vocabulary.find(token);
    return id >= 0 && id < std::ssize(tokens);
  };
  std::vector<std::string> merges;
  merges.reserve(source.file.merges.size());
  for (const auto& [left, right] : source.file.merges)
    if (has_row(left) && has_row(right) && has_row(left + right))
      merges.push_back(left + " " + right);
  return merges;
}

// What tokenizer.json asks for, in a few words.
std::string shown_component(const json& component) {
  std::string text = component.dump();
  constexpr size_t kMostBytes = 300;
  if (text.size() > kMostBytes) text = text.substr(0, kMostBytes) + "...";
  return text;
}

// The name by the ids of a fixed text, as the converter finds it; but that text does not show
// everything, so that a rule which divides texts as the tokenizer does takes precedence.
std::string pre_tokenizer_name(const TokenizerSource& source) {
  const std::string known(name_of_fingerprint(source.tokenizer.encode(kFingerprintText)));
  const auto& own = source.tokenizer.parts().pre_tokenizer;
  if (!known.empty() && own && divides_alike(*own, *find_byte_level_rule(known))) return known;
  const bool ignores_merges = source.document["model"].value("ignore_merges", false);
  const ByteLevelRule* rule = own ? matching_byte_level_rule(*own, ignores_merges) : nullptr;
  if (rule != nullptr) return std::string(rule->names.front());
  if (!known.empty()) return known;
  throw base::UserError(
      fmt::format("llama.cpp has no rule that divides texts into words as this pre_tokenizer does: "
                  "{}. Its rules are built in, for the tokenizers of published models; a model "
                  "with another one needs a change of llama.cpp first",
                  shown_component(source.document.value("pre_tokenizer", json()))),
      {source.path, 0, 0});
}

// Whether a space is put before a text.
bool has_space_prefix(const TokenizerSource& source) {
  if (find_step(source, "normalizer", "Prepend") != nullptr) return true;
  const json* metaspace = find_step(source, "pre_tokenizer", "Metaspace");
  if (metaspace == nullptr) return false;
  return metaspace->value("prepend_scheme", "always") != "never" &&
         metaspace->value("add_prefix_space", true);
}

bool removes_spaces(const TokenizerSource& source) {
  if (find_step(source, "pre_tokenizer", "WhitespaceSplit") != nullptr) return true;
  if (source.pieces) return source.pieces->remove_extra_whitespaces;
  const json* replace = find_step(source, "normalizer", "Replace");
  return replace != nullptr && replace->value("pattern", json()).value("Regex", "") == " {2,}";
}

void take_text_settings(const TokenizerSource& source, GgufTokenizer& result) {
  if (result.kind == GgufTokenizerKind::byte_level) return;
  result.add_space_prefix = has_space_prefix(source);
  if (result.kind != GgufTokenizerKind::unigram) return;
  result.remove_extra_whitespaces = removes_spaces(source);
  if (const json* step = find_step(source, "normalizer", "Precompiled"))
    result.charsmap = text::from_base64(step->value("precompiled_charsmap", "")).value_or("");
}

}  // namespace

bool has_tokenizer(const std::filesystem::path& folder) {
  return !folder.empty() && !text::find_tokenizer_file(folder.string()).empty();
}

GgufTokenizer gguf_tokenizer(const std::filesystem::path& folder, const text::Tokenizer& tokenizer,
                             int64_t rows) {
  const TokenizerSource source = read_source(folder.string(), tokenizer);
  GgufTokenizer result{.kind = tokenizer_kind(source)};
  result.tokens = list_tokens(source, result.kind, rows);
  switch (result.kind) {
    case GgufTokenizerKind::byte_level:
      result.pre = pre_tokenizer_name(source);
      result.merges = list_merges(source, result.tokens);
      break;
    case GgufTokenizerKind::sentencepiece:
      result.pre = "default";
      if (source.pieces) take_piece_kinds(source.pieces->pieces, result.tokens);
      rank_by_merges(source.file.merges, result.tokens);
      if (source.pieces) take_piece_scores(source.pieces->pieces, result.tokens);
      require_bytes(result.tokens, source.path);
      break;
    case GgufTokenizerKind::unigram:
      result.pre = "default";
      for (size_t id = 0; id < std::min(source.file.scores.size(), result.tokens.size()); ++id)
        result.tokens[id].score = static_cast<float>(source.file.scores[id]);
      break;
  }
  make_distinct(result.tokens, source.path);
  take_text_settings(source, result);
  if (const auto id = unknown_id(source); id && *id < rows) result.ids["unknown"] = *id;
  return result;
}

}  // namespace snug::convert
