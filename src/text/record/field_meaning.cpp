#include "text/record/field_meaning.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace snug::text {
namespace {

template <size_t kCount>
bool is_among(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr auto kRecordLabels = std::to_array<std::string_view>({"id",
                                                                "_id",
                                                                "idx",
                                                                "index",
                                                                "uuid",
                                                                "guid",
                                                                "key",
                                                                "hash",
                                                                "url",
                                                                "source",
                                                                "origin",
                                                                "dataset",
                                                                "data_source",
                                                                "meta",
                                                                "metadata",
                                                                "license",
                                                                "lang",
                                                                "language",
                                                                "timestamp",
                                                                "date",
                                                                "split",
                                                                "parallel_tool_calls",
                                                                "created_at",
                                                                "token_type_ids",
                                                                "length",
                                                                "num_tokens",
                                                                "special_tokens_mask"});

constexpr auto kLearningWords = std::to_array<std::string_view>(
    {"loss", "losses", "weight", "weights", "weighting", "mask", "masks", "masked", "unmasked",
     "train", "trained", "training", "trainable", "untrained", "learn", "learned"});

constexpr auto kMedia =
    std::to_array<std::string_view>({"image", "images", "video", "videos", "audio", "audios"});

constexpr auto kPacked = std::to_array<std::string_view>(
    {"seq_lengths", "sequence_lengths", "seq_start_id", "seq_start_ids", "cu_seqlens",
     "document_ids", "segment_ids", "sequence_ids"});

// The words of loss_mask and lossMask, in lower case.
std::vector<std::string> words_of(std::string_view field) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < field.size(); ++i) {
    const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    const char c = field[i];
    const bool is_border = c == '_' || c == '-' || c == '.' || c == ' ';
    if (is_border || (is_upper(c) && i > 0 && !is_upper(field[i - 1]))) words.emplace_back();
    if (!is_border) words.back() += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

// Whether one may mean that it is hidden.
bool is_mask(std::string_view field) {
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("mask") != std::string::npos || word.starts_with("un") || word == "no";
  });
}

bool is_flag(const nlohmann::json& value) {
  if (!value.is_array()) return value.is_number() || value.is_boolean();
  return !value.empty() && std::none_of(value.begin(), value.end(),
                                        [](const auto& item) { return item.is_string(); });
}

bool is_flag(const jinja::Value& value) {
  using Kind = jinja::Value::Kind;
  if (!value.is(Kind::list)) return value.is_number();
  return !value.items().empty() &&
         std::none_of(value.items().begin(), value.items().end(),
                      [](const jinja::Value& item) { return item.is(Kind::text); });
}

}  // namespace

bool is_label_of_record(std::string_view field) {
  return is_among(kRecordLabels, field) || field.ends_with("_id") || field.starts_with("__");
}

bool may_say_what_is_learned(std::string_view field) {
  if (is_label_of_record(field)) return false;
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return is_among(kLearningWords, word); });
}

bool says_what_is_learned(std::string_view field, const nlohmann::json& value) {
  const bool is_usual = value.is_boolean() ? value.get<bool>() : value.is_number() && value == 1;
  return may_say_what_is_learned(field) && is_flag(value) && !(is_usual && !is_mask(field));
}

bool says_what_is_learned(std::string_view field, const jinja::Value& value) {
  const bool is_usual = value.is_number() && value.as_real() == 1;
  return may_say_what_is_learned(field) && is_flag(value) && !(is_usual && !is_mask(field));
}

bool is_of_other_media(std::string_view field) { return is_among(kMedia, field); }

bool tells_packed_documents(std::string_view field) { return is_among(kPacked, field); }

}  // namespace snug::text
