#include "text/record/field_meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/unicode/blank.h"

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

// Lists of numbers next to tokens are of packed documents, too, whose names have a word of each:
// what is packed, and what is said of its place.
constexpr auto kDocumentWords = std::to_array<std::string_view>(
    {"seq",     "seqs",     "sequence", "sequences", "doc",     "docs",     "document", "documents",
     "segment", "segments", "sample",   "samples",   "example", "examples", "pack",     "packs",
     "packed",  "packing",  "chunk",    "chunks",    "cu",      "record",   "records"});
constexpr auto kPlaceWords = std::to_array<std::string_view>(
    {"id",     "ids",     "idx",    "index",   "indices", "indexes",  "length",     "lengths",
     "len",    "lens",    "size",   "sizes",   "start",   "starts",   "end",        "ends",
     "offset", "offsets", "bounds", "seqlens", "seqlen",  "boundary", "boundaries", "lst"});
constexpr auto kLengths = std::to_array<std::string_view>(
    {"length", "lengths", "num_tokens", "seqlen", "seqlens", "lens"});

// What tokenizers write next to ids for models that have a use for it.
constexpr auto kTokenLabels =
    std::to_array<std::string_view>({"token_type_ids", "special_tokens_mask"});

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

template <size_t kCount>
bool has_word(std::string_view field, const std::array<std::string_view, kCount>& wanted) {
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_among(wanted, word); });
}

bool is_named_as_label(std::string_view field) {
  if (is_among(kRecordLabels, field)) return true;
  return (field.ends_with("_id") || field.starts_with("__")) && !has_word(field, kLearningWords);
}

bool may_say_what_is_learned(std::string_view field) {
  return !is_among(kRecordLabels, field) && has_word(field, kLearningWords);
}

// Records of the parts that are held out may stand in one file with the others: test, validation.
bool is_split_to_learn(std::string_view split) { return split.starts_with("train"); }

bool has_numbers(const nlohmann::json& value) {
  return value.is_array() && std::any_of(value.begin(), value.end(), [](const auto& item) {
           return item.is_number() || item.is_boolean() || item.is_array();
         });
}

bool has_numbers(const jinja::Value& value) {
  using Kind = jinja::Value::Kind;
  return value.is(Kind::list) &&
         std::any_of(value.items().begin(), value.items().end(), [](const jinja::Value& item) {
           return item.is_number() || item.is(Kind::list);
         });
}

bool tells_packed_documents(std::string_view field, const nlohmann::json& value, bool has_tokens) {
  if (is_among(kPacked, field)) return true;
  if (!has_tokens || !has_numbers(value)) return false;
  return is_among(kLengths, field) ||
         (has_word(field, kDocumentWords) && has_word(field, kPlaceWords));
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

bool is_label_of_record(std::string_view field, const nlohmann::json& value) {
  if (field == "split") return value.is_string() && is_split_to_learn(value.get<std::string>());
  return is_among(kTokenLabels, field) || (is_named_as_label(field) && !has_numbers(value));
}

bool is_label_of_record(std::string_view field, const jinja::Value& value) {
  if (field == "split")
    return value.is(jinja::Value::Kind::text) && is_split_to_learn(value.as_text());
  return is_among(kTokenLabels, field) || (is_named_as_label(field) && !has_numbers(value));
}

bool says_nothing(const nlohmann::json& value) {
  if (value.is_string()) return is_blank(value.get_ref<const std::string&>());
  return value.is_null() || (value.is_structured() && value.empty());
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

std::string why_refused(std::string_view field, const nlohmann::json& value, bool has_tokens) {
  const auto because = [&](std::string_view why) {
    return fmt::format("the field '{0}' {1}; ignore_fields={0} reads the records without it", field,
                       why);
  };
  if (says_what_is_learned(field, value))
    return because(fmt::format("({}) says what is to be learned, in a way that is not known here",
                               value.is_array() ? "a list" : value.dump()));
  if (is_of_other_media(field))
    return because("goes with the text, which is all that is read of a record");
  if (tells_packed_documents(field, value, has_tokens))
    return because(
        "tells documents apart that were packed into one; give each as a record of its own, "
        "they are packed into rows anyway");
  return "";
}

}  // namespace snug::text
