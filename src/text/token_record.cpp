#include "text/token_record.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"

namespace snug::text {
namespace {

using nlohmann::json;
using Fail = std::function<void(const std::string&)>;

constexpr int64_t kUntrained = -100;
constexpr int64_t kLargestId = std::numeric_limits<int32_t>::max();

// The list `key` with one number for each of `size` tokens; empty where the record has none.
std::vector<int64_t> integers(const json& record, const char* key, size_t size, const Fail& fail) {
  const auto found = record.find(key);
  if (found == record.end() || found->is_null()) return {};
  if (!found->is_array())
    fail(fmt::format("expected the field '{}' to be a list of integers, found {}", key,
                     found->type_name()));
  if (found->size() != size)
    fail(fmt::format("'{}' has {} entries, but input_ids {}; expected one for each token", key,
                     found->size(), size));
  std::vector<int64_t> values;
  values.reserve(size);
  for (const json& item : *found) {
    const bool is_huge =
        item.is_number_unsigned() && item.get<uint64_t>() > static_cast<uint64_t>(kLargestId);
    if (!item.is_number_integer() || is_huge)
      fail(fmt::format("{}[{}] is {}; expected an integer below 2^31", key, values.size(),
                       item.dump(-1, ' ', false, json::error_handler_t::replace)));
    values.push_back(item.get<int64_t>());
  }
  return values;
}

// The tokens [begin, end) that the mask shows.
struct Shown {
  size_t begin = 0;
  size_t end = 0;
};

Shown shown_by(std::span<const int64_t> mask, size_t size, const Fail& fail) {
  if (mask.empty()) return {0, size};
  for (size_t i = 0; i < size; ++i)
    if (mask[i] != 0 && mask[i] != 1)
      fail(fmt::format("attention_mask[{}] is {}; expected 0 or 1", i, mask[i]));
  const auto begin = std::find(mask.begin(), mask.end(), 1);
  const auto end = std::find(begin, mask.end(), 0);
  const auto again = std::find(end, mask.end(), 1);
  if (again != mask.end())
    fail(fmt::format(
        "attention_mask hides token {} and shows token {}; it may hide padding before and after a "
        "document, not tokens within it",
        end - mask.begin(), again - mask.begin()));
  return {static_cast<size_t>(begin - mask.begin()), static_cast<size_t>(end - mask.begin())};
}

void check_labels(std::span<const int64_t> labels, std::span<const int64_t> ids, Shown shown,
                  const Fail& fail) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kUntrained) continue;
    if (i < shown.begin || i >= shown.end)
      fail(fmt::format("labels[{}] is {} where attention_mask is 0; expected {} there", i,
                       labels[i], kUntrained));
    if (labels[i] != ids[i])
      fail(fmt::format(
          "labels[{}] is {}, but input_ids[{}] is {}; expected the same id, or {} where "
          "nothing is learned (labels are not shifted)",
          i, labels[i], i, ids[i], kUntrained));
  }
}

// Packing of others shows in positions that start again; trained as one document, their documents
// would see each other.
void check_positions(std::span<const int64_t> positions, Shown shown, const Fail& fail) {
  if (positions.empty()) return;
  for (size_t i = shown.begin; i < shown.end; ++i)
    if (positions[i] != static_cast<int64_t>(i - shown.begin))
      fail(
          fmt::format("position_ids[{}] is {}, expected {}; give each document as a record of its "
                      "own, they are packed into rows anyway",
                      i, positions[i], i - shown.begin));
}

}  // namespace

TokenRecord parse_token_record(const json& record, const Fail& fail) {
  const json& list = record.at("input_ids");
  if (!list.is_array())
    fail(fmt::format("expected the field 'input_ids' to be a list of token ids, found {}",
                     list.type_name()));
  const size_t size = list.size();
  const std::vector<int64_t> ids = integers(record, "input_ids", size, fail);
  const auto negative =
      std::find_if(ids.begin(), ids.end(), [](int64_t id) { return id < 0; }) - ids.begin();
  if (static_cast<size_t>(negative) < size)
    fail(fmt::format("input_ids[{}] is {}; expected ids from 0", negative,
                     ids[static_cast<size_t>(negative)]));
  const Shown shown = shown_by(integers(record, "attention_mask", size, fail), size, fail);
  const std::vector<int64_t> labels = integers(record, "labels", size, fail);
  check_labels(labels, ids, shown, fail);
  check_positions(integers(record, "position_ids", size, fail), shown, fail);
  TokenRecord result;
  for (size_t i = shown.begin; i < shown.end; ++i) {
    result.ids.push_back(static_cast<int32_t>(ids[i]));
    result.trained.push_back(labels.empty() || labels[i] != kUntrained ? 1 : 0);
  }
  if (result.ids.size() < 2)
    fail(
        fmt::format("input_ids has {} tokens to train; a token is learned from those before it, so "
                    "expected at least 2",
                    result.ids.size()));
  if (std::find(result.trained.begin() + 1, result.trained.end(), 1) == result.trained.end())
    fail("no label is a token, so there is nothing to learn from it; remove the record");
  return result;
}

}  // namespace snug::text
