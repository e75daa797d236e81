// Answers that follow a regular expression: against PCRE2, which finds matches in another way.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/python_pattern.h"
#include "text/grammar/pattern_grammar.h"
#include "text/grammar/token_mask.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// Every byte, and longer tokens that cross the borders of characters, classes and repetitions.
std::shared_ptr<const TokenTrie> some_tokens() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* more : {"ab",   "abab",     "abc",  "yes",      "no", "12",   "2026",  "-1",
                           "-12-", " a",       "a b",  "\n\n",     "é",  "\xC3", "\xA9t", "été",
                           "日本", "\x97\xA5", "🙂", "\x9F\x99", "A1", "aa",   "aaaa",  "ba"})
    bytes.emplace_back(more);
  bytes.emplace_back();  // a special token
  return std::make_shared<const TokenTrie>(std::move(bytes));
}

std::vector<int32_t> ids_of(std::span<const uint64_t> mask) {
  std::vector<int32_t> ids;
  for (size_t word = 0; word < mask.size(); ++word)
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1)
      ids.push_back(static_cast<int32_t>(word * 64) + std::countr_zero(bits));
  return ids;
}

std::shared_ptr<TokenGrammar> grammar_of(const std::string& expression,
                                         size_t max_bytes = TokenGrammar::kMaxBytes) {
  return std::make_shared<TokenGrammar>(regex_grammar(expression), some_tokens(), max_bytes);
}

// A random answer of whole length; longer ones end at the first place where they may.
std::string random_answer(const std::shared_ptr<TokenGrammar>& grammar, std::mt19937& random) {
  TokenMask mask(grammar);
  for (int step = 0; step < 400 && mask.may_go_on(); ++step) {
    if (mask.may_end() && (step > 30 || random() % 8 == 0)) break;
    const std::vector<int32_t> ids = ids_of(mask.allowed());
    EXPECT_FALSE(ids.empty());
    if (ids.empty()) break;
    mask.accept(ids[random() % ids.size()]);
  }
  EXPECT_TRUE(mask.may_end());
  return mask.bytes();
}

bool fits(const ByteGrammar& grammar, const std::string& text) {
  ByteAutomaton automaton(grammar);
  ByteAutomaton::State state = automaton.start();
  for (const char byte : text) {
    state = automaton.next(state, static_cast<uint8_t>(byte));
    if (state == ByteAutomaton::kDead) return false;
  }
  return automaton.may_end(state);
}

// Whether the answer may be made of any tokens that spell it, chosen at random.
bool is_acceptable(const std::shared_ptr<TokenGrammar>& grammar, const std::string& text,
                   std::mt19937& random) {
  TokenMask mask(grammar);
  while (mask.bytes().size() < text.size()) {
    std::vector<int32_t> fitting;
    for (const int32_t id : ids_of(mask.allowed()))
      if (text.compare(mask.bytes().size(), grammar->tokens().bytes_of(id).size(),
                       grammar->tokens().bytes_of(id)) == 0)
        fitting.push_back(id);
    if (fitting.empty()) return false;
    mask.accept(fitting[random() % fitting.size()]);
  }
  return mask.may_end();
}

const char* const kExpressions[] = {"yes|no|abab",
                                    "[a-c]{2,4}(-[0-9]{1,2})?",
                                    "(ab|aba|b)*",
                                    "((a|b)*c?){2}x*",
                                    "[0-9]{4}-[0-9][0-9]",
                                    R"([^a0-9]{2} [x-z0-9]*)",
                                    R"([\t ]?[^\t ]{1,3} )",
                                    ".{1,3}\\n?",
                                    "(?i)[a-c]+é?",
                                    "^(?:a|b)+$",
                                    "[^a-z\\n]{2}",
                                    "日[本-語]?|🙂+",
                                    "(?P<name>a{,2})b*?c??",
                                    R"([\]\-x^]+\.A)",
                                    "|a",
                                    "a{2}{",
                                    "a*?b{1,2}?"};

TEST(PatternGrammar, RandomAnswersMatchTheExpression) {
  std::mt19937 random(1);
  for (const std::string expression : kExpressions) {
    const auto grammar = grammar_of(expression);
    const base::PythonPattern oracle(expression, base::PythonPattern::Where::whole);
    for (int i = 0; i < 20; ++i) {
      const std::string answer = random_answer(grammar, random);
      ASSERT_EQ(find_invalid_utf8(answer), std::string::npos) << expression;
      EXPECT_TRUE(oracle.matches(answer)) << expression << " and " << answer;
      EXPECT_TRUE(is_acceptable(grammar, answer, random)) << expression << " and " << answer;
    }
  }
}

// Answers to one expression, and texts that differ little from them, against every other one.
TEST(PatternGrammar, TextsFitAsTheyMatch) {
  std::mt19937 random(2);
  std::vector<std::string> texts;
  for (const std::string expression : kExpressions) {
    const auto grammar = grammar_of(expression);
    for (int i = 0; i < 4; ++i) {
      std::string text = random_answer(grammar, random);
      texts.push_back(text);
      if (text.empty()) continue;
      text[random() % text.size()] = "ab1-cZ\n"[random() % 7];
      if (find_invalid_utf8(text) == std::string::npos) texts.push_back(text);
    }
  }
  for (const std::string expression : kExpressions) {
    const ByteGrammar grammar = regex_grammar(expression);
    const base::PythonPattern oracle(expression, base::PythonPattern::Where::whole);
    for (const std::string& text : texts)
      EXPECT_EQ(fits(grammar, text), oracle.matches(text)) << expression << " and " << text;
  }
}

// Where states and masks take more than they may, they are forgotten and found again.
TEST(PatternGrammar, MasksDoNotDependOnWhatIsKept) {
  const std::string expression = R"(.*a\w{20}(\d|é)+)";
  const auto kept = grammar_of(expression);
  const auto forgetful = grammar_of(expression, 4000);
  std::mt19937 random(3);
  TokenMask one(kept);
  TokenMask other(forgetful);
  TokenMask between(forgetful);  // whose states are forgotten meanwhile
  for (int step = 0; step < 40; ++step) {
    const std::vector<int32_t> ids = ids_of(one.allowed());
    ASSERT_EQ(ids, ids_of(other.allowed())) << step;
    ASSERT_EQ(one.may_end(), other.may_end());
    const int32_t id = ids[random() % ids.size()];
    one.accept(id);
    other.accept(id);
    if (step % 7 == 0) between.accept(ids_of(between.allowed()).front());
  }
  EXPECT_EQ(one.bytes(), other.bytes());
}

TEST(PatternGrammar, BytesThatAreNoTokensAreNeverNeeded) {
  std::vector<std::string> bytes;
  for (char letter = 'a'; letter <= 'c'; ++letter) bytes.emplace_back(1, letter);
  bytes.emplace_back("cx");  // after which only what is no token could come
  const auto tokens = std::make_shared<const TokenTrie>(std::move(bytes));
  const auto grammar = std::make_shared<TokenGrammar>(regex_grammar("ab?|c(xy)?"), tokens);
  TokenMask mask(grammar);
  EXPECT_EQ(ids_of(mask.allowed()), (std::vector<int32_t>{0, 2}));
  EXPECT_THROW(TokenGrammar(regex_grammar("xy"), tokens), base::UserError);
}

void expect_refused(const std::string& expression, const std::string& why) {
  try {
    regex_grammar(expression);
    ADD_FAILURE() << expression << " is taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(PatternGrammar, WhatHasNoAutomatonIsRefusedByName) {
  expect_refused("ab(?=c)", "a lookahead at byte 2");
  expect_refused("(?<!a)b", "a lookbehind at byte 0");
  expect_refused(R"((a)\1)", "a back reference at byte 3");
  expect_refused(R"(a\b)", "a border of words at byte 1");
  expect_refused("a++", "a possessive repetition at byte 2");
  expect_refused("(?>a)", "an atomic group at byte 0");
  expect_refused("a**", "a repetition of a repetition at byte 2");
  expect_refused("a$b", "an anchor in the middle");
  expect_refused("(a|b", "a '(' that is not closed at byte 0");
  expect_refused("a)", "a ')' that closes nothing at byte 1");
  expect_refused("x[a", "a '[' that is not closed at byte 1");
  expect_refused("[b-a]", "a range that is none at byte 1");
  expect_refused(R"([^\s\S])", "a class of no characters at byte 0");
  expect_refused("(?m)^a", "the flag m");
  expect_refused(R"(\q)", "the escape '\\q' at byte 0");
  expect_refused(R"(\p{Greek})", "the category 'Greek'");
  expect_refused("a{3,2}", "a repetition whose most is below its least at byte 1");
}

// Whatever is asked for, time and memory are bounded.
TEST(PatternGrammar, WhatIsTooLargeIsRefused) {
  for (const char* expression : {"xa{1000000}", "a{0,999999999}", "((a{1000}){1000}){1000}",
                                 "((((){9999}){9999}){9999})", "(((a?){500}){500}){500}"})
    expect_refused(expression, "an automaton of more than");
  expect_refused(std::string(100000, '('), "a group within so many others");
  expect_refused("a{99999999999999999999}", "a repetition of so many times");
  EXPECT_TRUE(fits(regex_grammar("((a*)*)*"), "aaa"));
}

TEST(PatternGrammar, ManyAlternativesOfOneBeginning) {
  // Each level doubles the ways to read a text.
  std::string expression = "a";
  for (int i = 0; i < 40; ++i) expression = "(" + expression + "|a*a)*";
  EXPECT_TRUE(fits(regex_grammar(expression), std::string(200, 'a')));
}

TEST(PatternGrammar, RandomExpressionsAreReadOrRefused) {
  std::mt19937 random(4);
  const std::string alphabet = "ab\\[](){}|*+?.^$-,:=<>!Pdwsxu019\n\xC3\xA9";
  for (int i = 0; i < 3000; ++i) {
    std::string expression;
    for (size_t j = random() % 12; j > 0; --j) expression += alphabet[random() % alphabet.size()];
    try {
      regex_grammar(expression);
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace
}  // namespace snug::text
