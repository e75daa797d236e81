#include "generate/evaluation/text_match.h"

#include <string_view>

#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {

std::string MatchRules::reduced(std::string text) const {
  constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  for (const base::PythonPattern& pattern : ignored) text = pattern.replace_all(text, "");
  if (ignores_case) text = text::jinja::lower(text);
  std::erase_if(text, [&](char c) {
    const bool is_number = c >= '0' && c <= '9';
    return (ignores_punctuation && kPunctuation.find(c) != std::string_view::npos) ||
           (ignores_numbers && is_number);
  });
  return text;
}

}  // namespace snug::generate
