#include "text/tokenizer/sentencepiece_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/sentencepiece_merges.h"
#include "text/tokenizer/sentencepiece_model.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using nlohmann::json;
using Pieces = std::vector<SentencePieceModel::Piece>;

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581, which stands for a space

json added_token(size_t id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

json sequence(const char* key, json steps) {
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

json replacement(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

json metaspace(const char* scheme, bool split) {
  return {
      {"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", scheme}, {"split", split}};
}

std::string text_or(const json& config, const char* key, const std::string& fallback) {
  if (!config.is_object() || !config.contains(key)) return fallback;
  const json& value = config[key];
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return value.is_string() ? value.get<std::string>() : fallback;
}

bool flag_or(const json& config, const char* key, bool fallback) {
  const bool is_given = config.is_object() && config.contains(key) && config[key].is_boolean();
  return is_given ? config[key].get<bool>() : fallback;
}

json bpe(const SentencePieceModel& model, bool by_score, const std::string& file) {
  json vocab = json::object();
  for (size_t id = 0; id < model.pieces.size(); ++id) vocab[model.pieces[id].text] = id;
  return {{"type", "BPE"},
          {"unk_token", by_score ? json(model.unknown) : json(nullptr)},
          {"fuse_unk", true},
          {"byte_fallback", by_score ? model.byte_fallback : true},
          {"vocab", std::move(vocab)},
          {"merges", merges_of_pieces(model.pieces, by_score, file)}};
}

json added_pieces(const Pieces& pieces, bool with_user_defined) {
  json added = json::array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const PieceKind kind = pieces[id].kind;
    const bool is_special = kind == PieceKind::control || kind == PieceKind::unknown;
    if (is_special || (with_user_defined && kind == PieceKind::user_defined))
      added.push_back(added_token(id, pieces[id].text, is_special));
  }
  return added;
}

// The post-processor with BOS before a text and EOS after it, as far as the config asks for them.
json around(const Pieces& pieces, const std::vector<std::string>& before,
            const std::vector<std::string>& after, const std::string& file) {
  json single = json::array();
  json tokens = json::object();
  const auto put = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto found = std::find_if(pieces.begin(), pieces.end(),
                                      [&](const auto& piece) { return piece.text == name; });
      if (found == pieces.end())
        throw base::UserError(
            fmt::format("there is no piece '{}', which tokenizer_config.json puts around a text",
                        name),
            {file, 0, 0});
      single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
      tokens[name] = {{"id", name}, {"ids", {found - pieces.begin()}}, {"tokens", {name}}};
    }
  };
  put(before);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(after);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", tokens}};
}

json decoders(bool byte_fallback, bool has_prefix) {
  json steps = json::array({replacement("String", kMark, " ")});
  if (byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  if (has_prefix || byte_fallback) steps.push_back({{"type", "Fuse"}});
  if (has_prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return sequence("decoders", steps);
}

json llama(const SentencePieceModel& model, const json& config, const std::string& file) {
  const bool is_legacy = flag_or(config, "legacy", false);
  return {{"normalizer", nullptr},
          {"pre_tokenizer", metaspace(is_legacy ? "always" : "first", false)},
          {"decoder", decoders(true, true)},
          {"added_tokens", added_pieces(model.pieces, true)},
          {"model", bpe(model, false, file)}};
}

// A pattern that matches any of the user-defined pieces, longer ones first; empty if there are
// none.
std::string user_defined_pattern(const Pieces& pieces) {
  std::vector<std::string> texts;
  for (const auto& piece : pieces)
    if (piece.kind == PieceKind::user_defined) texts.push_back(piece.text);
  std::stable_sort(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) {
    return inner_places(a).size() > inner_places(b).size();
  });
  std::string pattern;
  for (const std::string& text : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text) {
      if (std::string_view("()[]{}?*+|^$\\.").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

// Encodes as SentencePiece itself does, which is transformers' fallback. A user-defined piece is a
// token of its own wherever it occurs, and no merge crosses its ends.
json general(const SentencePieceModel& model, const json& config, const std::string& file) {
  const bool is_legacy = flag_or(config, "legacy", true);
  json steps = json::array();
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  if (model.remove_extra_whitespaces) {
    steps.push_back(replacement("Regex", "\\A +| +\\z", ""));
    steps.push_back(replacement("Regex", " {2,}", " "));
  }
  if (model.escape_whitespaces) steps.push_back(replacement("String", " ", kMark));
  const std::string twice = std::string(kMark) + kMark;
  if (model.add_dummy_prefix && is_legacy)
    steps.push_back(replacement("Regex", (std::string("\\A") + kMark).c_str(), twice.c_str()));
  json result = {{"normalizer", sequence("normalizers", steps)},
                 {"pre_tokenizer", nullptr},
                 {"decoder", decoders(model.byte_fallback, model.add_dummy_prefix)},
                 {"added_tokens", added_pieces(model.pieces, false)},
                 {"model", bpe(model, true, file)}};
  json dividers = json::array();
  if (model.add_dummy_prefix) dividers.push_back(metaspace(is_legacy ? "always" : "first", false));
  if (const std::string pattern = user_defined_pattern(model.pieces); !pattern.empty()) {
    dividers.push_back({{"type", "Split"},
                        {"pattern", {{"Regex", pattern}}},
                        {"behavior", "Isolated"},
                        {"invert", false}});
    result["model"]["ignore_merges"] = true;
  }
  if (dividers.size() == 1) result["pre_tokenizer"] = dividers[0];
  if (dividers.size() > 1) result["pre_tokenizer"] = sequence("pretokenizers", dividers);
  return result;
}

json t5(SentencePieceModel& model, const json& config, const std::string& file) {
  const bool has_count = config.is_object() && config.contains("extra_ids") &&
                         config["extra_ids"].is_number_unsigned();
  const size_t extra = has_count ? config["extra_ids"].get<size_t>() : 100;
  if (extra > 10'000) throw base::UserError("'extra_ids' is too large", {file, 0, 0});
  json added = added_pieces(model.pieces, true);
  for (size_t i = extra; i-- > 0;) {
    const std::string name = fmt::format("<extra_id_{}>", i);
    added.push_back(added_token(model.pieces.size(), name, true));
    model.pieces.push_back({name, 0, PieceKind::control});
  }
  const bool has_pad = model.pieces[0].kind == PieceKind::control;
  if (!has_pad || model.pieces.size() < 3 || model.pieces[2].kind != PieceKind::unknown)
    throw base::UserError("expected the pieces of T5: padding, end of text, unknown", {file, 0, 0});
  json vocab = json::array();
  for (const auto& piece : model.pieces)
    vocab.push_back({piece.text, fmt::format("{}", static_cast<double>(piece.score))});
  json normalizer;
  if (!model.charsmap.empty())
    normalizer = {{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}};
  return {{"normalizer", normalizer},
          {"pre_tokenizer",
           sequence("pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("always", true)})},
          {"decoder", metaspace("always", true)},
          {"added_tokens", added},
          {"model",
           {{"type", "Unigram"},
            {"unk_id", 2},
            {"vocab", std::move(vocab)},
            {"byte_fallback", false}}}};
}

// Refuses settings that would add tokens which the model file does not have, or change the flags of
// its tokens.
void refuse_more_tokens(const json& config, const Pieces& pieces, const std::string& file) {
  if (!config.is_object()) return;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const std::string name = text_or(config, key, "");
    const bool is_piece = std::any_of(pieces.begin(), pieces.end(),
                                      [&](const auto& piece) { return piece.text == name; });
    if (!name.empty() && !is_piece)
      throw base::UserError(
          fmt::format("tokenizer_config.json names the {} '{}', which is no piece; let "
                      "transformers write a tokenizer.json",
                      key, name),
          {file, 0, 0});
  }
  for (const char* key : {"added_tokens_decoder", "additional_special_tokens"})
    if (config.contains(key) && !config[key].empty())
      throw base::UserError(
          fmt::format("'{}' of tokenizer_config.json is not supported next to a SentencePiece "
                      "model; let transformers write a tokenizer.json",
                      key),
          {file, 0, 0});
}

}  // namespace

std::string find_sentencepiece(const std::string& folder) {
  for (const char* name : {"/tokenizer.model", "/spiece.model"}) {
    std::error_code error;
    if (std::filesystem::exists(folder + name, error)) return folder + name;
  }
  return "";
}

std::string find_tokenizer_file(const std::string& folder) {
  const std::string json_file = folder + "/tokenizer.json";
  std::error_code error;
  return std::filesystem::exists(json_file, error) ? json_file : find_sentencepiece(folder);
}

json sentencepiece_tokenizer(const std::string& file, const json& config,
                             const std::string& family) {
  std::string bytes;
  read_text_file(file, bytes);
  SentencePieceModel model = parse_sentencepiece(bytes, file);
  std::string name = text_or(config, "tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const bool is_t5 = name == "T5Tokenizer" || (name.empty() && (family == "t5" || family == "mt5"));
  const bool is_llama = name == "LlamaTokenizer" && (family.empty() || family == "llama");
  const bool is_general = (name == "LlamaTokenizer" || name.empty()) &&
                          (family == "llama" || family == "mistral" || family == "phi3");
  if (!is_t5 && ((!is_llama && !is_general) || !model.is_bpe))
    throw base::UserError(
        fmt::format(
            "the SentencePiece model of a '{}' (model_type '{}') is not supported; Snug reads "
            "those of LlamaTokenizer and T5Tokenizer. Let transformers write a tokenizer.json "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(...))",
            name, family),
        {file, 0, 0});
  json document;
  if (is_t5) {
    refuse_more_tokens(config, model.pieces, file);
    document = t5(model, config, file);
    document["post_processor"] = around(model.pieces, {}, {"</s>"}, file);
    return document;
  }
  refuse_more_tokens(config, model.pieces, file);
  document = is_llama ? llama(model, config, file) : general(model, config, file);
  std::vector<std::string> before;
  std::vector<std::string> after;
  if (flag_or(config, "add_bos_token", false)) before = {text_or(config, "bos_token", "<s>")};
  if (flag_or(config, "add_eos_token", false)) after = {text_or(config, "eos_token", "</s>")};
  document["post_processor"] = around(model.pieces, before, after, file);
  return document;
}

}  // namespace snug::text
