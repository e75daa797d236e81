#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/model/growth.h"
#include "text/tokenizer/sentencepiece_folder.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/tokenizer_parts.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using nlohmann::json;

// A small JSON file of the folder; null if it does not exist.
json small_file(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  std::string text;
  if (!read_text_file(path, text)) return nullptr;
  json document = base::parse_json(text, path);
  if (!document.is_object()) throw base::UserError("expected a JSON object", {path, 0, 0});
  return document;
}

// Applies an adapter's folder, whose settings replace the model's.
void read_over(Tokenizer::Parts& parts, const std::string& adapter) {
  ChatSettings own;
  const json config = small_file(adapter, "tokenizer_config.json");
  if (!config.is_null()) {
    const JsonNode names(config, adapter + "/tokenizer_config.json");
    own.read_config(names);
    const SpecialIds before = std::exchange(parts.special, {});
    parts.read_token_names(names);
    if (!parts.special.bos) parts.special.bos = before.bos;
    if (!parts.special.eos) parts.special.eos = before.eos;
    if (!parts.special.pad) parts.special.pad = before.pad;
  }
  own.read_files(adapter);
  parts.chat.override_by(own);
  const json ids = small_file(adapter, "generation_config.json");
  if (!ids.is_null()) parts.read_token_ids({ids, adapter + "/generation_config.json"});
}

}  // namespace

bool has_other_tokenizer(const std::filesystem::path& adapter, const std::filesystem::path& model) {
  if (adapter.empty()) return false;
  const auto size = [](const std::filesystem::path& folder) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(folder / "tokenizer.json", error);
    return error ? std::uintmax_t{0} : bytes;
  };
  return size(adapter) > 0 && size(adapter) != size(model);
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer::Parts> Tokenizer::read_parts(const Source& source,
                                                        std::span<const std::string> added) {
  const auto& [tokenizer_json, config, name] = source;
  auto parts = std::make_unique<Parts>();
  {
    TokenizerFile file;
    const json document = parse_tokenizer_file(tokenizer_json, name, file);
    const JsonNode root(document, name);
    parts->model = read_model(root.object("model"), file);
    parts->read(root);
  }
  if (!config.empty()) {
    const std::string config_name = name + " (tokenizer_config.json)";
    const json document = base::parse_json(config, config_name);
    const JsonNode root(document, config_name);
    parts->read_declared_tokens(root);
    parts->read_token_names(root);
    parts->chat.read_config(root);
  }
  for (const std::string& content : added) parts->add_new_token(content);
  parts->index_added_tokens(name);
  return parts;
}

Tokenizer Tokenizer::from_text(std::string_view tokenizer_json, std::string_view config,
                               const std::string& name, int64_t rows) {
  auto parts = read_parts({tokenizer_json, config, name});
  parts->complete_stop_ids();
  parts->limit_rows(rows);
  return Tokenizer(std::move(parts));
}

std::string Tokenizer::json_of_folder(const std::string& folder, std::string& path) {
  path = folder + "/tokenizer.json";
  std::string text;
  if (read_text_file(path, text)) return text;
  const std::string model = find_sentencepiece(folder);
  if (model.empty())
    throw base::UserError(
        "no such file; a model folder needs a tokenizer.json (transformers writes one with "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...)) or a SentencePiece model",
        {path, 0, 0});
  path = model;
  const json config = small_file(folder, "config.json");
  const bool has_family =
      config.is_object() && config.contains("model_type") && config["model_type"].is_string();
  return sentencepiece_tokenizer(model, small_file(folder, "tokenizer_config.json"),
                                 has_family ? config["model_type"].get<std::string>() : "")
      .dump();
}

Tokenizer Tokenizer::from_folder(const std::string& folder, int64_t rows,
                                 const std::string& adapter, std::span<const std::string> added) {
  std::string path;
  const std::string text = json_of_folder(folder, path);
  std::string config;
  if (read_text_file(folder + "/tokenizer_config.json", config) && config.empty())
    throw base::UserError("the file is empty; download it again",
                          {folder + "/tokenizer_config.json", 0, 0});
  auto parts = read_parts({text, config, path}, added);
  const json names = small_file(folder, "special_tokens_map.json");
  if (!names.is_null()) {
    const JsonNode map(names, folder + "/special_tokens_map.json");
    parts->read_token_names(map);
    parts->chat.read_token_map(map);
  }
  parts->chat.read_files(folder);
  if (!adapter.empty()) read_over(*parts, adapter);
  for (const char* name : {"generation_config.json", "config.json"}) {
    const json ids = small_file(folder, name);
    if (!ids.is_null()) parts->read_token_ids({ids, folder + "/" + name});
  }
  parts->complete_stop_ids();
  parts->limit_rows(rows);
  parts->require_rows_of_new();
  return Tokenizer(std::move(parts));
}

std::vector<TextSpan> Tokenizer::split_added_tokens(std::string_view text) const {
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos)
    base::throw_user_error("the text is not valid UTF-8 at byte {} of {}; save it as UTF-8",
                           invalid, text.size());
  return parts_->in_original.find(text);
}

void Tokenizer::encode_ordinary(std::string_view text, bool at_text_start,
                                std::vector<int32_t>& ids) const {
  std::string normalized(text);
  const size_t origin = parts_->normalize_from(normalized, at_text_start);
  for (const TextSpan& span : parts_->in_normalized.find(normalized)) {
    if (span.id >= 0) {
      ids.push_back(span.id);
    } else {
      const auto words = std::string_view(normalized).substr(span.begin, span.end - span.begin);
      parts_->encode_words(words, {.origin = origin - std::min(origin, span.begin)}, ids);
    }
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<int32_t> ids;
  const PostProcessor& post = parts_->post_processor;
  if (add_special_tokens) ids = post.before;
  for (const TextSpan& span : split_added_tokens(text)) {
    if (span.id >= 0) {
      ids.push_back(span.id);
    } else {
      encode_ordinary(text.substr(span.begin, span.end - span.begin), span.begin == 0, ids);
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), post.after.begin(), post.after.end());
  require_rows(ids);
  return ids;
}

void Tokenizer::require_rows(std::span<const int32_t> ids) const {
  for (const int32_t id : ids)
    if (id >= parts_->rows)
      base::throw_user_error(
          "the text has the token '{}' with the id {}, but the model has rows for {} ids, 0 to {} "
          "(vocab_size in config.json); leave that token out of the text, or give the model a row "
          "for it (transformers: model.resize_token_embeddings({}), then save_pretrained)",
          token_of(id).value_or(""), id, parts_->rows, parts_->rows - 1, vocabulary_size());
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    const auto token = token_of(id);
    if (token && !(skip_special_tokens && is_special(id))) tokens.emplace_back(*token);
  }
  if (parts_->decoder) {
    size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    parts_->decoder->apply(tokens, most_bytes_from(bytes));
  }
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!parts_->decoder && i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

std::span<const int32_t> Tokenizer::ids_before() const { return parts_->post_processor.before; }
std::span<const int32_t> Tokenizer::ids_after() const { return parts_->post_processor.after; }

int32_t Tokenizer::vocabulary_size() const {
  int32_t end = parts_->model->vocabulary().id_end();
  for (const auto& [id, token] : parts_->added_by_id) end = std::max(end, id + 1);
  return end;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const int32_t id = parts_->id_of(std::string(token));
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> Tokenizer::token_of(int32_t id) const {
  const auto added = parts_->added_by_id.find(id);
  if (added != parts_->added_by_id.end()) return added->second.content;
  const Vocabulary& vocabulary = parts_->model->vocabulary();
  return vocabulary.contains(id) ? std::optional(vocabulary.token(id)) : std::nullopt;
}

std::optional<std::string> Tokenizer::bytes_of(int32_t id) const {
  const auto token = token_of(id);
  if (!token || is_special(id) || id >= parts_->rows || !parts_->decoder) return std::nullopt;
  std::string bytes(*token);
  bool is_fused = false;
  const bool is_known = parts_->decoder->add(bytes, is_fused) == Decoder::Added::bytes;
  return is_known ? std::optional(std::move(bytes)) : std::nullopt;
}

bool Tokenizer::is_special(int32_t id) const {
  const auto added = parts_->added_by_id.find(id);
  return added != parts_->added_by_id.end() && added->second.special;
}

void Tokenizer::show_special(std::string_view token) {
  const auto id = parts_->added_ids.find(std::string(token));
  if (id != parts_->added_ids.end()) parts_->added_by_id.at(id->second).special = false;
}

bool Tokenizer::is_added(int32_t id) const { return parts_->added_by_id.contains(id); }
std::span<const int32_t> Tokenizer::new_ids() const { return parts_->new_ids; }

std::optional<int32_t> Tokenizer::bos_id() const { return parts_->special.bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return parts_->special.eos; }
std::optional<int32_t> Tokenizer::pad_id() const { return parts_->special.pad; }
std::span<const int32_t> Tokenizer::stop_ids() const { return parts_->special.stop; }
const ChatSettings& Tokenizer::chat_settings() const { return parts_->chat; }

int64_t Tokenizer::host_bytes() const {
  return parts_->model->host_bytes() + static_cast<int64_t>(sizeof(Parts));
}

}  // namespace snug::text
