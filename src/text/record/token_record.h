// A record of the form tokens: a document that was tokenized elsewhere.
//   input_ids       the ids, at least two
//   labels          as transformers' models take them, not shifted: the id itself where it is a
//                   target, -100 where it is not; absent or null: every id is a target
//   attention_mask  1, or 0 at padding: what it hides before and after the document is left out
//   position_ids    accepted where they count from 0, as those of one document do
//   loss_mask, completion_mask, assistant_masks, assistant_mask
//                   1, or true, at a target, 0 where nothing is learned: a token is a target where
//                   all that are there, and the labels, say so
// For an encoder-decoder input_ids is what the encoder reads, and labels, of which there must be
// some, are what the decoder is to predict: as many as there are, -100 where nothing is learned;
// masks are refused.
// Nothing is added, no EOS either. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "text/record/number_list.h"

namespace snug::text {

inline constexpr std::array kTokenKeys = {"input_ids",       "attention_mask", "labels",
                                          "position_ids",    "loss_mask",      "completion_mask",
                                          "assistant_masks", "assistant_mask"};
inline constexpr size_t kFirstMask = 4;  // of kTokenKeys: it and those after it say what is learned

// The lists of a record, by kTokenKeys; empty where it has none or null, input_ids is always there.
struct TokenLists {
  std::array<NumberList, kTokenKeys.size()> lists;
  std::array<bool, kTokenKeys.size()> is_there{};
};

struct TokenRecord {
  std::vector<int32_t> ids;      // from 0 to 2^31 - 1; the first ones of the document
  std::vector<uint8_t> trained;  // one for each; the first is no target for want of a predecessor
  int64_t size = 0;              // tokens of the whole document
  int64_t first_target = 0;      // the first token that is one
  int32_t largest = 0;           // id of the whole document
};

// The record of an encoder-decoder. A label is an id, or kUntrainedLabel.
struct TokenPair {
  TokenRecord encoder;  // nothing of it is trained
  std::vector<int32_t> labels;
};

inline constexpr int32_t kUntrainedLabel = -100;

// Throws and does not return.
using TokenFail = std::function<void(const std::string&)>;

// An integer of a list, of a mask of targets also true or false; `fail` is called for one that is
// no id's size.
int64_t checked_number(const nlohmann::json& item, const char* key, size_t index,
                       const TokenFail& fail);

// The lists of a record with input_ids. `fail` is called for wrong types.
TokenLists token_lists(const nlohmann::json& record, const TokenFail& fail);

// Keeps the first `most` tokens. `fail` is called for lists of unequal length, a label that is
// another id, a mask with a hole, a label at what the mask hides, positions that start again, a
// mask of targets that is neither 0 nor 1, fewer than two tokens, and a record of which nothing is
// learned.
TokenRecord read_token_lists(TokenLists& lists, size_t most, const TokenFail& fail);

// `fail` is called for a mask with a hole or of another length than input_ids, positions that start
// again, no token, and no label that is one.
TokenPair read_token_pair(TokenLists& lists, const TokenFail& fail);

}  // namespace snug::text
