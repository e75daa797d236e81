#include "text/record/field_meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/record/misread_form.h"
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
    {"loss",   "losses",   "weight",    "weights", "weighting", "mask",      "masks",
     "masked", "unmasked", "train",     "trained", "training",  "trainable", "untrained",
     "learn",  "learned",  "learnable", "noloss",  "untrain",   "supervise"});

// What stands next to such a word in the name of a mark: what it is about, and how it says so.
constexpr auto kWordsOfMarks = std::to_array<std::string_view>(
    {"token",     "tokens",  "message",  "messages",    "turn",       "turns",    "record",
     "sample",    "samples", "example",  "examples",    "row",        "instance", "label",
     "labels",    "target",  "targets",  "answer",      "answers",    "response", "responses",
     "assistant", "user",    "system",   "completion",  "prompt",     "input",    "inputs",
     "output",    "outputs", "chosen",   "rejected",    "text",       "content",  "span",
     "spans",     "range",   "ranges",   "detail",      "details",    "scale",    "factor",
     "coef",      "coeff",   "flag",     "importance",  "multiplier", "is",       "do",
     "does",      "to",      "be",       "should",      "can",        "use",      "no",
     "not",       "non",     "un",       "dont",        "only",       "skip",     "ignore",
     "ignored",   "exclude", "excluded", "include",     "included",   "compute",  "on",
     "in",        "for",     "from",     "of",          "per",        "with",     "out",
     "the",       "this",    "all",      "contributes", "keep",       "drop",     "last",
     "first",     "history"});

// The words of a name that says so whatever stands around them: my_loss_mask.
constexpr auto kMarkedThings = std::to_array<std::string_view>({"loss", "train", "training"});
constexpr auto kKindsOfMarks = std::to_array<std::string_view>(
    {"mask", "masks", "weight", "weights", "scale", "detail", "flag"});

constexpr auto kMedia =
    std::to_array<std::string_view>({"image", "images", "video", "videos", "audio", "audios"});

constexpr auto kPacked = std::to_array<std::string_view>(
    {"seq_lengths", "sequence_lengths", "seq_start_id", "seq_start_ids", "cu_seqlens",
     "document_ids", "segment_ids", "sequence_ids", "input_pos"});

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

template <size_t kCount>
bool has_word(std::string_view field, const std::array<std::string_view, kCount>& wanted) {
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_among(wanted, word); });
}

bool is_named_as_label(std::string_view field) {
  if (is_among(kRecordLabels, field)) return true;
  return (field.ends_with("_id") || field.starts_with("__")) && !has_word(field, kLearningWords) &&
         !is_named_as_order(field);
}

bool is_mark_of_words(const std::vector<std::string>& words) {
  const auto is_known = [](const std::string& word) {
    return word.empty() || is_among(kLearningWords, word) || is_among(kWordsOfMarks, word);
  };
  const auto are_a_mark = [](const std::string& thing, const std::string& kind) {
    return is_among(kMarkedThings, thing) && is_among(kKindsOfMarks, kind);
  };
  return std::all_of(words.begin(), words.end(), is_known) ||
         std::adjacent_find(words.begin(), words.end(), are_a_mark) != words.end();
}

// `has_tokens`: next to ids, what only begins like a mark is one as well.
bool may_say_what_is_learned(std::string_view field, bool has_tokens) {
  return !is_among(kRecordLabels, field) && has_word(field, kLearningWords) &&
         (has_tokens || is_mark_of_words(words_of(field)));
}

// What a text says that is written in place of a number, true or false, as tables of data have it;
// null for others.
nlohmann::json flag_in(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc() && stop == end && std::isfinite(number);
  return is_number ? nlohmann::json(number) : nlohmann::json();
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

// Whether a field next to tokens says which of them are learned: another list of targets, or where
// the prompt ends, in words of other tools (NeMo's answer_start_idx, prompt_len).
bool says_which_tokens(std::string_view field, const nlohmann::json& value) {
  constexpr auto kTargets =
      std::to_array<std::string_view>({"label", "labels", "target", "targets"});
  constexpr auto kParts = std::to_array<std::string_view>(
      {"prompt", "context", "source", "question", "instruction", "query", "answer", "response",
       "completion", "target", "label", "user", "assistant"});
  constexpr auto kPlaces = std::to_array<std::string_view>(
      {"len", "lens", "length", "lengths", "size", "tokens", "start", "begin", "end", "idx",
       "index", "pos", "position", "offset", "boundary"});
  if (has_numbers(value)) return has_word(field, kTargets) || field == "decoder_input_ids";
  return value.is_number() && has_word(field, kParts) && has_word(field, kPlaces);
}

// Whether one may mean that it, or something next to it, is hidden.
bool is_mask(std::string_view field) {
  constexpr auto kHiding = std::to_array<std::string_view>(
      {"no", "noloss", "not", "non", "dont", "only", "last", "first", "history", "skip", "ignore",
       "ignored", "exclude", "excluded", "drop"});
  const std::vector<std::string> words = words_of(field);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.find("mask") != std::string::npos || word.starts_with("un") ||
           is_among(kHiding, word);
  });
}

// What Parquet's numbers that JSON has not, NaN and infinity, stand in (source/parquet).
constexpr std::string_view kNoJsonNumber = "number";

bool is_flag(const nlohmann::json& value) {
  if (value.is_object()) return value.contains(kNoJsonNumber);
  if (!value.is_array()) return value.is_number() || value.is_boolean();
  return !value.empty() && std::none_of(value.begin(), value.end(),
                                        [](const auto& item) { return item.is_string(); });
}

bool is_flag(const jinja::Value& value) {
  using Kind = jinja::Value::Kind;
  if (value.is(Kind::dict)) return value.as_dict().find(kNoJsonNumber) != nullptr;
  if (!value.is(Kind::list)) return value.is_number();
  return !value.items().empty() &&
         std::none_of(value.items().begin(), value.items().end(),
                      [](const jinja::Value& item) { return item.is(Kind::text); });
}

}  // namespace

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

bool says_what_is_learned(std::string_view field, const nlohmann::json& value, bool has_tokens) {
  if (value.is_string()) {
    const nlohmann::json flag = flag_in(value.get<std::string>());
    return !flag.is_null() && says_what_is_learned(field, flag, has_tokens);
  }
  const bool is_usual = value.is_boolean() ? value.get<bool>() : value.is_number() && value == 1;
  return may_say_what_is_learned(field, has_tokens) && is_flag(value) &&
         !(is_usual && !is_mask(field));
}

bool says_what_is_learned(std::string_view field, const jinja::Value& value) {
  if (value.is(jinja::Value::Kind::text)) {
    const nlohmann::json flag = flag_in(value.as_text());
    return !flag.is_null() && says_what_is_learned(field, flag, false);
  }
  const bool is_usual = value.is_number() && value.as_real() == 1;
  return may_say_what_is_learned(field, false) && is_flag(value) && !(is_usual && !is_mask(field));
}

bool is_of_other_media(std::string_view field) { return is_among(kMedia, field); }

std::string why_refused(std::string_view field, const nlohmann::json& value, bool has_tokens) {
  const auto because = [&](std::string_view why) {
    return fmt::format("the field '{0}' {1}; ignore_fields={0} reads the records without it", field,
                       why);
  };
  if (says_what_is_learned(field, value, has_tokens))
    return because(fmt::format("({}) says what is to be learned, in a way that is not known here",
                               value.is_array() ? "a list" : value.dump()));
  if (has_tokens && says_which_tokens(field, value))
    return because("says which tokens are learned, in a way that is not known here; give 'labels'");
  if (is_of_other_media(field))
    return because("goes with the text, which is all that is read of a record");
  if (tells_packed_documents(field, value, has_tokens))
    return because(
        "tells documents apart that were packed into one; give each as a record of its own, "
        "they are packed into rows anyway");
  return "";
}

}  // namespace snug::text
