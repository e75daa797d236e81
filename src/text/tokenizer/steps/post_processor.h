// The post-processor of a tokenizer.json for a single text: the ids that it adds before and after
// the text. A plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

struct PostProcessor {
  std::vector<int32_t> before;  // such as BOS
  std::vector<int32_t> after;   // such as EOS
  // Whether it adds tokens around a text, or would add some.
  bool adds = false;
  // Whether the tokens that it adds are kept in pieces separate from the text.
  bool is_in_pieces = false;
};

// Supports Sequence, TemplateProcessing, ByteLevel (which adds nothing), BertProcessing and
// RobertaProcessing. Throws UserError that names any other.
PostProcessor read_post_processor(const JsonNode& node);

}  // namespace snug::text
