#include "convert/gguf/known_ends.h"

#include <algorithm>
#include <array>

namespace snug::convert {

bool is_known_end(std::string_view token) {
  constexpr auto kEnds = std::to_array<std::string_view>(
      {"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
       "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
       "<|end_of_text|>", "<end_of_utterance>", "<eos>",
       "<\uff5cend\u2581of\u2581sentence\uff5c>"});
  return std::ranges::find(kEnds, token) != kEnds.end();
}

}  // namespace snug::convert
