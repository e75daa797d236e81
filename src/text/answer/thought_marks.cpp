#include "text/answer/thought_marks.h"

#include <algorithm>
#include <array>

namespace snug::text {
namespace {

constexpr std::array<ThoughtMarks, 4> kThoughtMarks = {{
    {"<think>", "</think>"},                     // Qwen3, DeepSeek-R1, SmolLM3, GLM
    {"[THINK]", "[/THINK]"},                     // Mistral
    {"<|START_THINKING|>", "<|END_THINKING|>"},  // Cohere
    {"<seed:think>", "</seed:think>"},           // Seed-OSS
}};

}  // namespace

const ThoughtMarks* find_thought_marks(std::string_view source, const Tokenizer& tokenizer) {
  const auto has = [&](const ThoughtMarks& marks) {
    return source.find(marks.close) != std::string_view::npos ||
           (tokenizer.id_of(marks.open) && tokenizer.id_of(marks.close));
  };
  const auto* const at = std::ranges::find_if(kThoughtMarks, has);
  return at == kThoughtMarks.end() ? nullptr : at;
}

ThoughtPlace thought_place(std::string_view prompt, const ThoughtMarks& marks) {
  prompt = prompt.substr(0, prompt.find_last_not_of(" \t\r\n") + 1);
  if (prompt.ends_with(marks.open)) return ThoughtPlace::within;
  return prompt.ends_with(marks.close) ? ThoughtPlace::after : ThoughtPlace::before;
}

}  // namespace snug::text
