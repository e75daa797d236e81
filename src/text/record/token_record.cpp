#include "text/record/token_record.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "base/error.h"

namespace snug::text {
namespace {

using nlohmann::json;
using Fail = TokenFail;

constexpr int64_t kLargestId = std::numeric_limits<int32_t>::max();

// The tokens [begin, end) that the mask shows.
struct Shown {
  size_t begin = 0;
  size_t end = 0;
};

Shown shown_by(NumberList& mask, size_t size, const Fail& fail) {
  if (mask.empty()) return {0, size};
  Shown shown{size, size};
  for (size_t i = 0; i < size; ++i) {
    const int64_t value = mask[i];
    if (value != 0 && value != 1)
      fail(fmt::format("attention_mask[{}] is {}; expected 0 or 1", i, value));
    if (value == 1 && shown.begin == size) shown.begin = i;
    if (value == 0 && shown.begin < size && shown.end == size) shown.end = i;
    if (value == 1 && shown.end < size)
      fail(fmt::format(
          "attention_mask hides token {} and shows token {}; it may hide padding before and after "
          "a document, not tokens within it",
          shown.end, i));
  }
  return shown;
}

void check_labels(NumberList& labels, NumberList& ids, Shown shown, const Fail& fail) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kUntrainedLabel) continue;
    if (i < shown.begin || i >= shown.end)
      fail(fmt::format("labels[{}] is {} where attention_mask is 0; expected {} there", i,
                       labels[i], kUntrainedLabel));
    if (labels[i] != ids[i])
      fail(fmt::format(
          "labels[{}] is {}, but input_ids[{}] is {}; expected the same id, or {} where "
          "nothing is learned (labels are not shifted)",
          i, labels[i], i, ids[i], kUntrainedLabel));
  }
}

// Packing of others shows in positions that start again; trained as one document, their documents
// would see each other.
void check_positions(NumberList& positions, Shown shown, const Fail& fail) {
  if (positions.empty()) return;
  for (size_t i = shown.begin; i < shown.end; ++i)
    if (positions[i] != static_cast<int64_t>(i - shown.begin))
      fail(
          fmt::format("position_ids[{}] is {}, expected {}; give each document as a record of its "
                      "own, they are packed into rows anyway",
                      i, positions[i], i - shown.begin));
}

constexpr size_t kLabels = 2;  // their place among the keys

// Lists with one entry for each token; labels may be apart.
void check_sizes(TokenLists& lists, const Fail& fail, bool has_encoder) {
  const size_t size = lists.lists[0].size();
  for (size_t i = 1; i < kTokenKeys.size(); ++i)
    if (lists.is_there[i] && lists.lists[i].size() != size && !(has_encoder && i == kLabels))
      fail(fmt::format("'{}' has {} entries, but input_ids {}; expected one for each token",
                       kTokenKeys[i], lists.lists[i].size(), size));
}

auto first_lists(TokenLists& lists) {
  auto& all = lists.lists;
  return std::tie(all[0], all[1], all[kLabels], all[3]);
}

// Whether all masks of targets say that a token is one.
bool is_shown_to_learn(TokenLists& lists, size_t token) {
  for (size_t i = kFirstMask; i < kTokenKeys.size(); ++i)
    if (lists.is_there[i] && lists.lists[i][token] == 0) return false;
  return true;
}

void refuse_masks(const TokenLists& lists, const Fail& fail) {
  for (size_t i = kFirstMask; i < kTokenKeys.size(); ++i)
    if (lists.is_there[i])
      fail(
          fmt::format("'{}' does not say what a decoder next to an encoder learns; give labels, "
                      "with {} where nothing is learned",
                      kTokenKeys[i], kUntrainedLabel));
}

void check_ids(NumberList& ids, const Fail& fail) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0) fail(fmt::format("input_ids[{}] is {}; expected ids from 0", i, ids[i]));
}

}  // namespace

int64_t checked_number(const json& item, const char* key, size_t index, const Fail& fail) {
  const bool is_mask = std::find(kTokenKeys.begin() + kFirstMask, kTokenKeys.end(),
                                 std::string_view(key)) != kTokenKeys.end();
  if (is_mask && (item.is_boolean() || item.is_number())) {
    const bool is_one = item.is_boolean() ? item.get<bool>() : item == 1;
    if (!is_one && item.is_number() && item != 0)
      fail(fmt::format("{}[{}] is {}; expected 0 or 1: a token is learned or it is not", key, index,
                       item.dump()));
    return is_one ? 1 : 0;
  }
  const bool is_huge =
      item.is_number_unsigned() && item.get<uint64_t>() > static_cast<uint64_t>(kLargestId);
  if (!item.is_number_integer() || is_huge)
    fail(fmt::format("{}[{}] is {}; expected an integer below 2^31", key, index,
                     item.dump(-1, ' ', false, json::error_handler_t::replace)));
  return item.get<int64_t>();
}

TokenLists token_lists(const json& record, const Fail& fail) {
  TokenLists result;
  for (size_t i = 0; i < kTokenKeys.size(); ++i) {
    const char* key = kTokenKeys[i];
    const auto found = record.find(key);
    if (found == record.end() || (i > 0 && found->is_null())) continue;
    if (!found->is_array())
      fail(fmt::format("expected the field '{}' to be a list of {}, found {}", key,
                       i == 0 ? "token ids" : "integers", found->type_name()));
    result.is_there[i] = true;
    for (const json& item : *found)
      result.lists[i].add(checked_number(item, key, result.lists[i].size(), fail));
  }
  return result;
}

TokenRecord read_token_lists(TokenLists& lists, size_t most, const Fail& fail) {
  check_sizes(lists, fail, false);
  const auto [ids, mask, labels, positions] = first_lists(lists);
  check_ids(ids, fail);
  const Shown shown = shown_by(mask, ids.size(), fail);
  check_labels(labels, ids, shown, fail);
  check_positions(positions, shown, fail);
  TokenRecord result;
  result.size = static_cast<int64_t>(shown.end - shown.begin);
  if (result.size < 2)
    fail(
        fmt::format("input_ids has {} tokens to train; a token is learned from those before it, so "
                    "expected at least 2",
                    result.size));
  for (size_t i = shown.begin; i < shown.end; ++i) {
    const bool is_target =
        (labels.empty() || labels[i] != kUntrainedLabel) && is_shown_to_learn(lists, i);
    if (is_target && i > shown.begin && result.first_target == 0)
      result.first_target = static_cast<int64_t>(i - shown.begin);
    result.largest = std::max(result.largest, static_cast<int32_t>(ids[i]));
    if (i - shown.begin >= most) continue;
    result.ids.push_back(static_cast<int32_t>(ids[i]));
    result.trained.push_back(is_target ? 1 : 0);
  }
  if (result.first_target == 0)
    fail(
        "no token is to be learned of it (labels of -100, masks of 0), so there is nothing to "
        "learn "
        "from it; remove the record");
  return result;
}

TokenPair read_token_pair(TokenLists& lists, const Fail& fail) {
  check_sizes(lists, fail, true);
  refuse_masks(lists, fail);
  const auto [ids, mask, labels, positions] = first_lists(lists);
  check_ids(ids, fail);
  const Shown shown = shown_by(mask, ids.size(), fail);
  check_positions(positions, shown, fail);
  TokenPair pair;
  for (size_t i = shown.begin; i < shown.end; ++i) {
    pair.encoder.ids.push_back(static_cast<int32_t>(ids[i]));
    pair.encoder.largest = std::max(pair.encoder.largest, pair.encoder.ids.back());
  }
  pair.encoder.size = static_cast<int64_t>(pair.encoder.ids.size());
  if (pair.encoder.ids.empty()) fail("input_ids has no token for the encoder to read");
  bool has_target = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 && labels[i] != kUntrainedLabel)
      fail(fmt::format("labels[{}] is {}; expected an id, or {} where nothing is learned", i,
                       labels[i], kUntrainedLabel));
    pair.labels.push_back(static_cast<int32_t>(labels[i]));
    has_target = has_target || labels[i] >= 0;
  }
  if (!has_target) fail("no label is a token: next to an encoder they are what is to be learned");
  return pair;
}

}  // namespace snug::text
