#include "formats/foreign/template_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"

namespace snug::formats {
namespace {

// What a name begins with, and the template of text/chat/chat_forms.h that writes the same; empty:
// none does.
constexpr auto kForms = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"qwen", "chatml"},
    {"chatml", "chatml"},
    {"yi", "chatml"},
    {"hermes", "chatml"},
    {"internlm2", "chatml"},
    {"smollm", "chatml"},
    {"llama3", "llama-3"},
    {"llama-3", "llama-3"},
    {"llama2", "llama-2"},
    {"llama-2", "llama-2"},
    {"zephyr", "zephyr"},
    {"phi4", ""},
    {"phi", "phi-3"},
});

// Words around a prompt that are no model's own.
constexpr auto kWordsAround = std::to_array<std::string_view>(
    {"default", "empty", "fewshot", "vanilla", "alpaca", "vicuna", "dummy", "none",
     "default_generation", "chatml_de", "belle", "ziya", "openchat", "default-generation"});

}  // namespace

std::string chat_template_for(std::string_view name) {
  const std::string word = base::lower_case(name);
  if (std::ranges::find(kWordsAround, word) != kWordsAround.end())
    base::throw_user_error(
        "is '{}', which is no model's own template: leave it out for the model's own, or say "
        "chat_template: NAME or FILE",
        name);
  const auto* const known =
      std::ranges::find_if(kForms, [&](const auto& each) { return word.starts_with(each.first); });
  if (known == kForms.end() || known->second.empty()) return "tokenizer_default";
  return fmt::format("tokenizer_default_fallback_{}", known->second);
}

}  // namespace snug::formats
