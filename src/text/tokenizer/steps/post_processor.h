// The post-processor of a tokenizer.json, as far as one text goes: which ids stand before and
// after it. A plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

struct PostProcessor {
  std::vector<int32_t> before;  // such as BOS
  std::vector<int32_t> after;   // such as EOS
  bool adds = false;            // it puts tokens around a text, or would
  bool is_in_pieces = false;    // it leaves the tokens that it added apart from the text
};

// Sequence, TemplateProcessing, ByteLevel (which adds nothing), BertProcessing and
// RobertaProcessing. Throws UserError that names any other.
PostProcessor read_post_processor(const JsonNode& node);

}  // namespace snug::text
