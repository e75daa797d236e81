// A record of the form tokens: a document that was tokenized elsewhere.
//   input_ids       the ids, at least two
//   labels          as transformers' models take them: the id itself where it is a target, -100
//   where
//                   it is not, not shifted; absent or null: every id is a target
//   attention_mask  1, or 0 at padding: what it hides before and after the document is left out
//   position_ids    accepted where they count from 0, as those of one document do
// Nothing is added, no EOS either. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace snug::text {

struct TokenRecord {
  std::vector<int32_t> ids;  // from 0 to 2^31 - 1
  std::vector<uint8_t>
      trained;  // one for each id; the first is no target for want of a predecessor
};

// Requires a record with input_ids. `fail` throws and does not return; it is called for wrong
// types, lists of unequal length, a label that is another id, a mask with a hole, a label at what
// the mask hides, positions that start again, fewer than two tokens, and a record of which nothing
// is learned.
TokenRecord parse_token_record(const nlohmann::json& record,
                               const std::function<void(const std::string&)>& fail);

}  // namespace snug::text
