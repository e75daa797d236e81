// The tokens that end what is learned, by the documents that templates make.
#include "text/chat/answer_ends.h"

#include <gtest/gtest.h>

#include "text/chat/chat_template.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;

class AnswerEndsTest : public testing::Test {
 protected:
  AnswerEndsTest() {
    tiny_.added = {"<s>", "</s>", "<end>", "<call>", "</call>", "<think>"};  // 256, 257, ...
  }

  // Of a text in which what stands between | is learned.
  Ids ends_of(const std::vector<std::string>& texts) const {
    const Tokenizer tokenizer = tiny_.make();
    AnswerEnds all;
    for (const std::string& text : texts) {
      std::vector<Part> parts;
      bool is_answer = false;
      for (size_t at = 0; at <= text.size(); is_answer = !is_answer) {
        const size_t end = std::min(text.find('|', at), text.size());
        parts.push_back({text.substr(at, end - at), -1, is_answer});
        at = end + 1;
      }
      AnswerEnds one;
      one.add(tokenize_parts(tokenizer, parts, SpecialTokens::none), tokenizer);
      all.add(one);
    }
    return all.ids();
  }

  TinyTokenizer tiny_;
};

TEST_F(AnswerEndsTest, IsTheLastTokenOfEachStretch) {
  EXPECT_EQ(ends_of({"q|a<end>|q|b</s>|"}), (Ids{257, 258}));
  EXPECT_EQ(ends_of({"q|a<end>|\nq|b<end>\n |"}), (Ids{258}));
  EXPECT_EQ(ends_of({"q|a<end>|", "q|a</s>"}), (Ids{257, 258}));
}

TEST_F(AnswerEndsTest, OrdinaryTextEndsNothing) {
  EXPECT_EQ(ends_of({"q|a|q|b\n|", "<end>|a|<end>"}), Ids{});
}

// The end of a call before that of the turn, and EOS after the last turn's end.
TEST_F(AnswerEndsTest, TokensBeforeTheLastAreNone) {
  EXPECT_EQ(ends_of({"q|<call>x</call>\n<end>|"}), (Ids{258}));
  EXPECT_EQ(ends_of({"q|a<end>|q|b<end>\n</s>|"}), (Ids{257, 258}));
}

// What answers go on after does not end them: a thought's end that one record was cut at.
TEST_F(AnswerEndsTest, WhatStandsWithinAnAnswerEndsNone) {
  EXPECT_EQ(ends_of({"q|so<think>a<end>|", "q|so<think>|"}), (Ids{258}));
}

}  // namespace
}  // namespace snug::text
