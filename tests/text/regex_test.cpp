#include "text/regex/regex.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "golden_files.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<Range> ranges;
  Regex(pattern).find_all(text, ranges);
  std::vector<std::string> result;
  for (const Range& range : ranges)
    result.push_back(text.substr(range.begin, range.end - range.begin));
  return result;
}

using Strings = std::vector<std::string>;

TEST(Regex, FindsWhatOnigurumaFinds) {
  EXPECT_EQ(matches("\\s+(?!\\S)|\\s+", "a  b \n"), (Strings{" ", " ", " \n"}));
  EXPECT_EQ(matches("(?i:'s|'t)", "it's IT'S \xC5\xBF '\xC5\xBF"),
            (Strings{"'s", "'S", "'\xC5\xBF"}));
  EXPECT_EQ(matches("\\p{N}{1,3}", "12345"), (Strings{"123", "45"}));
  EXPECT_EQ(matches("\\p{N}{,2}", "123"), (Strings{"12", "3"}));
  EXPECT_EQ(matches("[\\r\\n/]+", "a/\r\nb"), (Strings{"/\r\n"}));
  EXPECT_EQ(matches("\\h+", "xyz0fG"), (Strings{"0f"}));
  EXPECT_EQ(matches("^b$", "a\nb\nc"), (Strings{"b"}));
  EXPECT_EQ(matches("\\u4e2d|\\x41|\\x{1F600}", "A\xE4\xB8\xAD\xF0\x9F\x98\x80"),
            (Strings{"A", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80"}));
  EXPECT_EQ(matches("x*", "axxb"), (Strings{"", "xx", ""}));
  EXPECT_EQ(matches("(?=[A-Z])", "fooBarBaz"), (Strings{"", ""}));
  EXPECT_EQ(matches("x*", ""), (Strings{}));
}

TEST(Regex, ClassesHaveTheirMembersInOniguruma) {
  // The Mongolian vowel separator is no white space, the next line control is.
  EXPECT_EQ(matches("\\s", "\xE1\xA0\x8E\xC2\x85\xE3\x80\x80"),
            (Strings{"\xC2\x85", "\xE3\x80\x80"}));
  // Superscript two is a word character, but not within brackets; circled three is none, a
  // combining accent is one.
  const std::string words = "\xC2\xB2 \xE2\x91\xA2 e\xCC\x81_1";
  EXPECT_EQ(matches("\\w+", words), (Strings{"\xC2\xB2", "e\xCC\x81_1"}));
  EXPECT_EQ(matches("[\\w]+", words), (Strings{"e\xCC\x81_1"}));
  EXPECT_EQ(matches("[^\\w\\s]", words), (Strings{"\xC2\xB2", "\xE2\x91\xA2"}));
  // The ideographic comma is of no script, though it is used in Han.
  EXPECT_EQ(matches("\\p{Han}+", "\xE4\xB8\xAD\xE3\x80\x81"), (Strings{"\xE4\xB8\xAD"}));
  EXPECT_EQ(matches("\\p{^L}+|\\p{lu}", "aB-"), (Strings{"B", "-"}));
  EXPECT_EQ(matches("\\W+", "a b"), (Strings{" "}));
}

// `text` with a mark in place of every match.
std::string marked(const std::string& pattern, const std::string& text) {
  std::vector<Range> ranges;
  Regex(pattern).find_all(text, ranges);
  std::string result;
  size_t done = 0;
  for (const Range& range : ranges) {
    result += text.substr(done, range.begin - done) + "\xE2\x90\x84";
    done = range.end;
  }
  return result + text.substr(done);
}

bool is_refused(const std::string& pattern) {
  return !message_of<std::invalid_argument>([&] { Regex{pattern}; }).empty();
}

TEST(Regex, MatchesWhatTheLibraryMatches) {
  const auto golden = json_of(kGoldens + "regexes.json");
  size_t refused = 0;
  for (const auto& matches : golden["matches"]) {
    const auto pattern = matches[0].get<std::string>();
    if (is_refused(pattern)) {
      ++refused;
      continue;
    }
    for (size_t i = 0; i < golden["texts"].size(); ++i) {
      const std::string result = marked(pattern, golden["texts"][i].get<std::string>());
      EXPECT_EQ(hash_of(result).substr(8), matches[1][i].get<std::string>())
          << pattern << " gives " << result;
    }
  }
  // Random ones ask for what is not taken where case is ignored.
  EXPECT_LT(refused * 25, golden["matches"].size());
}

TEST(Regex, ClassesNestAndIntersect) {
  // BLOOM's: the bracket within the class is a class.
  const std::string bloom =
      " ?[^(\\s|[.,!?\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94\xD8\x8C])"
      "]+";
  EXPECT_EQ(matches(bloom, "Hi there,(x|y)! [a] b\xE3\x80\x82"),
            (Strings{"Hi", " there", "x", "y", " [a]", " b"}));
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "banana&"), (Strings{"b", "n", "n"}));
  EXPECT_EQ(matches("[^a-z&&[aeiou]]+", "banana&"), (Strings{"b", "n", "n", "&"}));
  EXPECT_EQ(matches("[a[^b-z]]+", "abc-"), (Strings{"a", "-"}));
  // Hyphens and brackets that stand for themselves.
  EXPECT_EQ(matches("[]a-]+", "[a]-b"), (Strings{"a]-"}));
  EXPECT_EQ(matches("[a-c-e]+", "abcde-"), (Strings{"abc", "e-"}));
  EXPECT_EQ(matches("[\\W]+", "a, \xC2\xB2"), (Strings{", \xC2\xB2"}));
  EXPECT_EQ(matches("\\d{1,3}(?=(?:\\d{3})*\\b)", "1234567 x1"), (Strings{"1", "234", "567", "1"}));
}

TEST(Regex, LiteralIsTakenAsItStands) {
  std::vector<Range> ranges;
  Regex::literal("a.b|").find_all("axb| a.b| \\", ranges);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].begin, 5U);
  Regex::literal(std::string_view("\0\\E", 3)).find_all(std::string_view("x\0\\E", 4), ranges);
  ASSERT_EQ(ranges.size(), 1U);
}

TEST(Regex, RefusesWhatTheEnginesReadDifferently) {
  for (const char* pattern : {"(a)\\1",
                              "(?m:a)",
                              "(?<name>a)",
                              "a(?i)b",
                              "\\p{N}{1,3}+",
                              "\\X",
                              "\\G",
                              "\\xff",
                              "{",
                              "a{x}",
                              "[",
                              "[]",
                              "[^]",
                              "[a[]",
                              "[a",
                              "[\\",
                              "[\\1]",
                              "[\\d-z]",
                              "[a-\\d]",
                              "[a-[bc]]",
                              "[z-a]",
                              "[[:nonsense:]]",
                              "[[:alpha:]-z]",
                              "\\",
                              "\\pL",
                              "\\u12",
                              "\\p{Nonsense}",
                              "(?i:\xC3\x9F)",
                              "(?i:[\xC3\x9F])",
                              "(?i:\\u00df)",
                              "(?i:Ss)",
                              "(?i:s{2})",
                              "(?i)fl",
                              "(?i:\\p{Lu})",
                              "(?i:[a[^b]])",
                              "(?i:[a-z&&[^b]])",
                              "(?i:[\\W])",
                              "(?i:[[:alpha:]])",
                              "(?i:s\\x73)"})
    EXPECT_TRUE(is_refused(pattern)) << pattern;
  EXPECT_EQ(matches("(?i:s)s|\xC3\x9F", "Ss\xC3\x9F"), (Strings{"Ss", "\xC3\x9F"}));
  EXPECT_NE(message_of<std::invalid_argument>([] { Regex{"a("}; }).find("does not compile"),
            std::string::npos);
  const std::string deep(50'000, '(');
  EXPECT_LT(message_of<std::invalid_argument>([&] { Regex{deep}; }).size(), 300U);
  const std::string nested(50'000, '[');
  EXPECT_LT(message_of<std::invalid_argument>([&] { Regex{nested}; }).size(), 400U);
}

TEST(Regex, LongRunsTakeLinearTime) {
  const std::string spaces(2'000'000, ' ');
  EXPECT_EQ(matches("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", spaces + "x").size(), 2U);
}

}  // namespace
}  // namespace snug::text
