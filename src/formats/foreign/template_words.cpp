#include "formats/foreign/template_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace snug::formats {
namespace {

// Letters and digits of the names that chat_template has a built-in template for
// (text/chat/chat_forms.h).
constexpr auto kBuiltInNames = std::to_array<std::string_view>(
    {"chatml",      "qwen",         "qwen2",           "qwen25",
     "qwen3",       "phi4",         "llama2",          "llama3",
     "llama31",     "llama33",      "mistral",         "mistralv1",
     "mistralv2",   "mistralv3",    "mistralv3tekken", "mistralv7tekken",
     "mistralnemo", "mistralsmall", "gemma",           "gemma2",
     "gemma3",      "commandr",     "cohere",          "deepseekv3",
     "deepseek3",   "deepseekv25",  "zephyr",          "phi",
     "phi3",        "phi35"});

// What names of models' templates begin with.
constexpr auto kFamilies = std::to_array<std::string_view>(
    {"aya",       "baichuan", "bailing",  "chatglm", "codegemma", "codegeex",  "cohere",
     "deepseek",  "ernie",    "exaone",   "falcon",  "gemma",     "glm",       "gpt",
     "granite",   "hunyuan",  "intern",   "keye",    "kimi",      "lfm",       "ling",
     "llama",     "longcat",  "mimo",     "minicpm", "minimax",   "ministral", "mistral",
     "moonlight", "moss",     "nanbeige", "olmo",    "phi",       "qwen",      "qwq",
     "ring",      "seed",     "skywork",  "smollm",  "solar",     "telechat",  "xverse",
     "yi",        "youtu",    "yuan"});

}  // namespace

bool is_template_of_model(std::string_view name) {
  std::string word;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::ranges::find(kBuiltInNames, word) != kBuiltInNames.end()) return false;
  return std::ranges::any_of(kFamilies,
                             [&](std::string_view family) { return word.starts_with(family); });
}

}  // namespace snug::formats
