#include "text/tokenizer/tokenizer_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/chat/folder_stop_ids.h"
#include "text/tokenizer/model/growth.h"
#include "text/tokenizer/steps/pattern.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// Limited because a text is compared with the added tokens at every position.
constexpr size_t kMaxAddedBytes = 1024;

AddedToken read_added_token(const JsonNode& node) {
  node.only_keys(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"});
  AddedToken token;
  token.content = node.string("content");
  token.special = node.boolean_or("special", false);
  token.normalized = node.boolean_or("normalized", !token.special);
  token.single_word = node.boolean_or("single_word", false);
  token.lstrip = node.boolean_or("lstrip", false);
  token.rstrip = node.boolean_or("rstrip", false);
  return token;
}

// A token is given as its text or as an object with its content.
std::optional<std::string> token_name(const JsonNode& config, std::string_view key) {
  if (!config.has(key)) return std::nullopt;
  const nlohmann::json& value = config.value().at(std::string(key));
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return config.object(key).string("content");
  config.fail(
      fmt::format("expected '{}' to be one token, a text or an object with 'content', found {}; "
                  "where several tokens end a text, name one here and list the ids of all as "
                  "eos_token_id in generation_config.json",
                  key, value.type_name()));
}

// The component itself, or the components of a Sequence.
std::vector<JsonNode> steps_of(const JsonNode& node, std::string_view key) {
  if (node.string("type") != "Sequence") return {node};
  std::vector<JsonNode> steps;
  for (const JsonNode& step : node.array(key))
    for (const JsonNode& inner : steps_of(step, key)) steps.push_back(inner);
  return steps;
}

// Refuses a Replace that inserts text at the very beginning, before ByteLevel: the library then
// duplicates the inserted text, or fails.
void refuse_insertion_before_bytes(const JsonNode& document) {
  if (!document.has("normalizer") || !document.has("pre_tokenizer")) return;
  const std::vector<JsonNode> dividers =
      steps_of(document.object("pre_tokenizer"), "pretokenizers");
  if (std::none_of(dividers.begin(), dividers.end(),
                   [](const JsonNode& step) { return step.string("type") == "ByteLevel"; }))
    return;
  for (const JsonNode& step : steps_of(document.object("normalizer"), "normalizers"))
    if (step.string("type") == "Replace" && !step.string("content").empty() &&
        read_pattern(step).may_match_nothing())
      step.fail(
          "a Replace whose pattern may match nothing is not supported before the pre-tokenizer "
          "ByteLevel");
}

// What the pre-tokenizer leaves of an open word the model may yet encode in spans.
void take_spans(const Model& model, Words& words) {
  if (!words.is_open) return;
  Words::Word& word = words.list.back();
  const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
  const size_t begin = model.last_span(text);
  words.done += begin;
  word.end = word.begin + begin;
  word.origin = std::min(word.origin, begin);
  words.is_open = false;
}

}  // namespace

int32_t Tokenizer::Parts::id_of(const std::string& token) const {
  const auto added = added_ids.find(token);
  return added != added_ids.end() ? added->second : model->vocabulary().find(token);
}

// The id that the Hugging Face library assigns: the model's own, or else the next free one.
int32_t Tokenizer::Parts::next_added_id(const std::string& content) const {
  const int32_t known = id_of(content);
  if (known >= 0) return known;
  return std::max(static_cast<int32_t>(model->vocabulary().count()), added_end_);
}

void Tokenizer::Parts::add_token(const JsonNode& where, AddedToken token, int64_t declared_id) {
  if (token.content.empty()) where.fail("an added token is empty");
  if (token.content.size() > kMaxAddedBytes)
    where.fail(fmt::format("an added token has {} bytes; expected at most {}", token.content.size(),
                           kMaxAddedBytes));
  if (added_ids.contains(token.content))
    where.fail(fmt::format("the added token '{}' stands there twice", token.content));
  token.id = next_added_id(token.content);
  if (token.id != declared_id)
    where.fail(
        fmt::format("the added token '{}' is declared with the id {}, but its place in the "
                    "vocabulary gives it {}; one of the two files was edited",
                    token.content, declared_id, token.id));
  keep(std::move(token));
}

void Tokenizer::Parts::keep(AddedToken token) {
  added_ids[token.content] = token.id;
  added_order_.push_back(token.id);
  added_end_ = std::max(added_end_, token.id + 1);
  added_by_id[token.id] = std::move(token);
}

void Tokenizer::Parts::add_new_token(const std::string& content) {
  if (content.empty() || content.size() > kMaxAddedBytes)
    base::throw_user_error("added_tokens: a token has {} bytes; expected 1 to {}", content.size(),
                           kMaxAddedBytes);
  if (added_ids.contains(content)) return;
  new_ids.push_back(next_added_id(content));
  keep({.content = content, .id = new_ids.back(), .special = true});
}

void Tokenizer::Parts::require_rows_of_new() const {
  if (new_ids.empty() || *std::ranges::max_element(new_ids) < rows) return;
  const auto missing = std::ranges::find_if(new_ids, [&](int32_t id) { return id >= rows; });
  base::throw_user_error(
      "added_tokens: '{}' would have the id {}, but the model has rows for {} ids (vocab_size in "
      "config.json), and the tokenizer has tokens for all of them; give the model more rows "
      "(transformers: model.resize_token_embeddings({}), then save_pretrained), or choose a "
      "chat_template whose tokens are there",
      added_by_id.at(*missing).content, *missing, rows, added_end_);
}

void Tokenizer::Parts::normalize(std::string& text) const {
  if (normalizer) normalizer->apply(text, most_bytes_from(text.size()));
}

size_t Tokenizer::Parts::normalize_from(std::string& text, bool at_text_start) const {
  if (!at_text_start || text.empty() || !pre_tokenizer || !pre_tokenizer->asks_origin()) {
    normalize(text);
    return 0;
  }
  size_t origin = code_point_at(text, 0).size;
  if (normalizer) normalizer->apply_from(text, most_bytes_from(text.size()), origin);
  return origin;
}

void Tokenizer::Parts::normalize_rest(std::string& text) const {
  if (normalizer) normalizer->apply_rest(text, most_bytes_from(text.size()));
}

size_t Tokenizer::Parts::encode_words(std::string_view text, WordPlace place,
                                      std::vector<int32_t>& ids) const {
  Words words;
  size_t bytes = place.window_bytes;
  size_t done = 0;
  while (done < text.size()) {
    const std::string_view window = first_bytes(text.substr(done), bytes);
    const bool is_last = done + window.size() == text.size();
    words.buffer.assign(window);
    const size_t origin = place.origin - std::min(place.origin, done);
    words.list.assign(1, {0, window.size(), std::min(origin, window.size())});
    words.is_open = place.is_open || !is_last;
    words.splits_at_marks = model->splits_at_marker();
    words.done = 0;
    words.most = most_bytes_from(window.size());
    const bool was_open = words.is_open;
    if (pre_tokenizer) pre_tokenizer->apply(words);
    take_spans(*model, words);
    const std::string_view buffer = words.buffer;
    for (const Words::Word& word : words.list)
      model->encode(buffer.substr(word.begin, word.end - word.begin), ids);
    const size_t taken = was_open ? words.done : window.size();
    if (taken == 0 && window.size() > Model::kMaxBytes)
      base::throw_user_error(
          "the tokenizer finds no place in {} bytes of text where tokens certainly end; split the "
          "text",
          window.size());
    if (taken == 0 && is_last) break;  // open: what follows decides
    bytes = taken == 0 ? 2 * bytes : place.window_bytes;
    done += taken;
  }
  return done;
}

void Tokenizer::Parts::read(const JsonNode& document) {
  document.only_keys({"version", "truncation", "padding", "added_tokens", "normalizer",
                      "pre_tokenizer", "post_processor", "decoder", "model"});
  if (document.has("normalizer")) normalizer = read_normalizer(document.object("normalizer"));
  if (document.has("pre_tokenizer"))
    pre_tokenizer = read_pre_tokenizer(document.object("pre_tokenizer"));
  refuse_insertion_before_bytes(document);
  if (document.has("decoder")) decoder = read_decoder(document.object("decoder"));
  if (document.has("post_processor"))
    post_processor = read_post_processor(document.object("post_processor"));
  if (!document.has("added_tokens")) return;
  for (const JsonNode& node : document.array("added_tokens"))
    add_token(node, read_added_token(node), node.integer("id"));
}

void Tokenizer::Parts::read_declared_tokens(const JsonNode& config) {
  if (!config.has("added_tokens_decoder")) return;
  const JsonNode declared = config.object("added_tokens_decoder");
  std::map<int64_t, std::string> by_id;
  for (const auto& item : declared.value().items()) {
    const std::string& key = item.key();
    if (key.empty() || key.size() > 8 || key.find_first_not_of("0123456789") != std::string::npos)
      declared.fail("expected token ids as keys, found '" + key + "'");
    by_id[std::stol(key)] = key;
  }
  for (const auto& [id, key] : by_id) {
    const JsonNode node = declared.object(key);
    const AddedToken token = read_added_token(node);
    if (added_ids.contains(token.content)) continue;
    add_token(node, token, id);
  }
}

void Tokenizer::Parts::index_added_tokens(const std::string& file) {
  std::vector<AddedPattern> original;
  std::vector<AddedPattern> normalized;
  std::unordered_map<std::string, std::string> content_of;
  for (const int32_t id : added_order_) {
    const AddedToken& token = added_by_id.at(id);
    std::string pattern = token.content;
    if (!token.normalized) {
      original.push_back({std::move(pattern), token});
      continue;
    }
    normalize(pattern);
    if (pattern.empty())
      throw base::UserError(
          fmt::format("the added token '{}' is not supported: the normalizer leaves nothing of it",
                      token.content),
          {file, 0, 0});
    const auto [known, is_new] = content_of.emplace(pattern, token.content);
    if (!is_new)
      throw base::UserError(
          fmt::format("the added tokens '{}' and '{}' are not supported together: both stand for "
                      "'{}' in normalized text",
                      known->second, token.content, pattern),
          {file, 0, 0});
    normalized.push_back({std::move(pattern), token});
  }
  in_original = AddedTokenFinder(std::move(original));
  in_normalized = AddedTokenFinder(std::move(normalized));
}

void Tokenizer::Parts::read_token_names(const JsonNode& config) {
  const auto take = [&](std::string_view key, std::optional<int32_t>& id) {
    if (id) return;
    const auto name = token_name(config, key);
    if (!name) return;
    const int32_t found = id_of(*name);
    if (found >= 0) id = found;
  };
  take("bos_token", special.bos);
  take("eos_token", special.eos);
  take("pad_token", special.pad);
}

void Tokenizer::Parts::read_token_ids(const JsonNode& config) {
  const auto take = [&](std::string_view key, std::optional<int32_t>& id) {
    const auto ids = listed_ids(config, key);
    if (!id && !ids.empty()) id = ids.front();
    return ids;
  };
  take("bos_token_id", special.bos);
  take("pad_token_id", special.pad);
  const auto ends = take("eos_token_id", special.eos);
  if (!special.stop.empty()) return;  // an earlier file has named stop ids
  for (const int32_t id : ends)
    if (std::find(special.stop.begin(), special.stop.end(), id) == special.stop.end())
      special.stop.push_back(id);
}

void Tokenizer::Parts::complete_stop_ids() {
  if (!special.eos) return;
  std::erase(special.stop, *special.eos);
  special.stop.insert(special.stop.begin(), *special.eos);
}

void Tokenizer::Parts::limit_rows(int64_t count) {
  rows = count;
  if (special.pad && *special.pad >= rows) special.pad.reset();
  std::erase_if(special.stop, [&](int32_t id) { return id >= rows; });
}

}  // namespace snug::text
