// `snug chat` in a pipe: answers alone go to standard output, without codes for a terminal.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"

namespace snug::cli {
namespace {

std::vector<std::string> chat_words(const std::string& more) {
  return words_of(
      "chat model=examples/wordnet chat_template=plain temperature=0 max_new_tokens=4 " + more);
}

TEST(ChatVerb, APipeHasALineOfAnswersForEachLine) {
  const BinaryRun run = run_snug(chat_words("--json"), "What is twine?\r\n\n/exit\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  std::istringstream stream(run.out);
  std::vector<nlohmann::json> answers;
  for (std::string line; std::getline(stream, line);)
    answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1]["index"], 1);
  EXPECT_EQ(answers[1]["new_tokens"], 4);
  const BinaryRun plain = run_snug(chat_words(""), "What is twine?");
  EXPECT_EQ(plain.out, answers[0]["text"].get<std::string>() + "\n");
  EXPECT_EQ(plain.out.find('\x1b'), std::string::npos);
}

TEST(ChatVerb, WhatCannotBeAnsweredEndsIt) {
  const BinaryRun full = run_snug(chat_words("max_length=16"), "What is twine?\nAnd a rope?\n");
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_NE(full.err.find("and the context 16"), std::string::npos) << full.err;
  const BinaryRun bytes = run_snug(chat_words(""), "\xff\n");
  EXPECT_EQ(bytes.exit_code, 2);
  EXPECT_NE(bytes.err.find("line 1 is not valid UTF-8"), std::string::npos) << bytes.err;
  const BinaryRun key = run_snug(chat_words("prompts=a.jsonl"));
  EXPECT_NE(key.err.find("means nothing to snug chat"), std::string::npos) << key.err;
}

}  // namespace
}  // namespace snug::cli
