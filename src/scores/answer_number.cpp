#include "scores/answer_number.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/python_pattern.h"

namespace snug::scores {
namespace {

using base::PythonPattern;

// Digits with commas between thousands, or without; a minus sign belongs to a number where neither
// a word nor another number ends before it.
constexpr const char* kNumber =
    R"((?:(?<![0-9A-Za-z_)\]}])([-−])\$?)?)"
    R"(((?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![0-9])\.[0-9]+))"
    R"((?:[eE]([-+]?[0-9]{1,3})(?![0-9A-Za-z_.]))?(?: ?/ ?([0-9]+(?:\.[0-9]+)?))?)";
// Of LaTeX's fractions numerators and denominators that are plain numbers count.
constexpr const char* kFraction =
    R"((?:(?<![0-9A-Za-z_)\]}])([-−]) ?)?\\[dt]?frac ?\{ ?([-−]?[0-9]+(?:\.[0-9]+)?) ?\} ?\{ ?([0-9]+(?:\.[0-9]+)?) ?\})";

std::optional<double> value_of(std::string text) {
  std::erase(text, ',');
  if (text.starts_with('.')) text.insert(text.begin(), '0');
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> quotient_of(const std::string& numerator, const std::string& denominator) {
  const auto above = value_of(numerator);
  const auto below = denominator.empty() ? std::optional(1.0) : value_of(denominator);
  if (!above || !below || *below == 0) return std::nullopt;
  return *above / *below;
}

// Groups: number's sign, digits, exponent, denominator; fraction's sign, numerator, denominator.
std::optional<double> number_of(const PythonPattern::Match& match) {
  const bool is_fraction = match[2].empty();
  std::string numerator = is_fraction ? match[6] : match[2];
  bool is_negative = !match[is_fraction ? 5 : 1].empty();
  constexpr std::string_view kMinus = "−";
  for (const std::string_view minus : {std::string_view("-"), kMinus})
    if (numerator.starts_with(minus)) {
      numerator.erase(0, minus.size());
      is_negative = !is_negative;
    }
  std::string exponent = match[3];
  if (exponent.starts_with('+')) exponent.erase(0, 1);
  if (!exponent.empty()) numerator += "e" + exponent;
  const auto value = quotient_of(numerator, is_fraction ? match[7] : match[4]);
  if (!value) return std::nullopt;
  return is_negative ? -*value : *value;
}

std::optional<double> last_number(std::string_view text) {
  static const PythonPattern kPattern(std::string(kNumber) + "|" + kFraction);
  std::optional<double> last;
  for (const PythonPattern::Match& match : kPattern.find_all(text))
    if (const auto value = number_of(match)) last = value;
  return last;
}

// The last line that is "#### " and a number; empty where there is none.
std::string marked_line(std::string_view text) {
  static const PythonPattern kMarked(
      R"((?m)^ *#### *([-−]?\$?[-−]?[0-9.,]*[0-9][0-9.,/]* ?%?) *\r?$)");
  const auto matches = kMarked.find_all(text);
  return matches.empty() ? std::string() : matches.back()[1];
}

// What stands within the braces of the last \boxed; empty where they are not closed.
std::string_view boxed_part(std::string_view text) {
  constexpr std::string_view kBoxed = "\\boxed{";
  const size_t found = text.rfind(kBoxed);
  if (found == std::string_view::npos) return {};
  const std::string_view inner = text.substr(found + kBoxed.size());
  int depth = 1;
  for (size_t at = 0; at < inner.size(); ++at) {
    if (inner[at] == '{') ++depth;
    if (inner[at] == '}' && --depth == 0) return inner.substr(0, at);
  }
  return {};
}

// LaTeX's ways to write a comma and a space within a number, and a dollar or per cent sign.
std::string without_latex(std::string_view text) {
  static const PythonPattern kComma(R"((?<=[0-9])(?:\{,\}|\\!,|,\\!)(?=[0-9]{3}))");
  static const PythonPattern kSign(R"(\\(?=[$%]))");
  return kSign.replace_all(kComma.replace_all(text, ","), "");
}

}  // namespace

std::optional<double> answer_number(std::string_view text) {
  const std::string plain = without_latex(text);
  if (const std::string marked = marked_line(plain); !marked.empty()) return last_number(marked);
  if (const std::string_view boxed = boxed_part(plain); !boxed.empty()) return last_number(boxed);
  return last_number(plain);
}

double number_score(std::string_view answer, std::string_view reference) {
  const auto said = answer_number(answer);
  return said && said == answer_number(reference) ? 1 : 0;
}

}  // namespace snug::scores
