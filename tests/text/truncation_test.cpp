// What records that are longer than max_length lose.
#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/kept_end.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::Truncation;
using base::UserError;
using testing::contains;

// A token for each character, and one for each role.
Document letters(const Conversation& conversation) {
  Document document;
  for (const Message& message : conversation.messages) {
    const bool is_learned = message.is_assistant() && message.is_learned();
    for (const char c : message.role().substr(0, 1) + message.content()) {
      document.ids.push_back(c);
      document.trained.push_back(is_learned ? 1 : 0);
    }
  }
  return document;
}

std::string text_of(const Document& document) {
  return std::string(document.ids.begin(), document.ids.end());
}

Conversation conversation(const std::vector<std::pair<std::string, std::string>>& messages) {
  Conversation made;
  for (const auto& [role, text] : messages) made.messages.emplace_back(role, text);
  return made;
}

TEST(KeptEnd, IsOfWholeTurnsAndTheSystemText) {
  const Conversation four = conversation({{"system", "S"},
                                          {"user", "1"},
                                          {"assistant", "one"},
                                          {"user", "2"},
                                          {"assistant", "two"},
                                          {"tool", "t"},
                                          {"assistant", "too"},
                                          {"user", "3"},
                                          {"assistant", "three"}});
  const auto kept = [&](int64_t most) {
    return text_of(without_oldest_turns(four, most, letters));
  };
  EXPECT_EQ(kept(24), "sSu2atwottatoou3athree");
  EXPECT_EQ(kept(22), "sSu2atwottatoou3athree");
  EXPECT_EQ(kept(21), "sSu3athree");
  EXPECT_EQ(kept(3), "sSu3athree");  // the last turn stays
  const Conversation two_settings = conversation({{"system", "S"},
                                                  {"developer", "D"},
                                                  {"user", "1"},
                                                  {"assistant", "one"},
                                                  {"user", "2"},
                                                  {"assistant", "two"}});
  EXPECT_EQ(text_of(without_oldest_turns(two_settings, 10, letters)), "sSdDu2atwo");
}

TEST(KeptEnd, IsFoundAmongManyTurns) {
  Conversation many;
  for (int i = 0; i < 200; ++i) {
    many.messages.emplace_back("user", std::string(static_cast<size_t>(i % 7), 'q'));
    many.messages.emplace_back("assistant", std::string(static_cast<size_t>(i % 5 + 1), 'a'));
  }
  int tokenized = 0;
  const auto tokenize = [&](const Conversation& each) {
    ++tokenized;
    return letters(each);
  };
  const Document kept = without_oldest_turns(many, 100, tokenize);
  EXPECT_LE(kept.ids.size(), 100U);
  EXPECT_GT(kept.ids.size(), 80U);  // no more turns than have to go
  EXPECT_LE(tokenized, 10);
}

// A turn whose answer is not learned is no end to keep alone.
TEST(KeptEnd, HoldsSomethingThatIsLearned) {
  Conversation two = conversation(
      {{"user", "1"}, {"assistant", "one"}, {"user", "2"}, {"assistant", "two"}, {"user", "3"}});
  EXPECT_EQ(text_of(without_oldest_turns(two, 2, letters)), "u2atwou3");
  two.messages[3].set_learned(false);
  EXPECT_EQ(text_of(without_oldest_turns(two, 2, letters)), "u1aoneu2atwou3");
}

TEST(KeptEnd, OfAPromptIsWhatStandsBeforeTheAnswer) {
  const Document document{{9, 1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 1, 1}};
  EXPECT_EQ(without_prompt_begin(document, 5, -1).ids, (std::vector<int32_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(without_prompt_begin(document, 5, 9).ids, (std::vector<int32_t>{9, 3, 4, 5, 6}));
  EXPECT_EQ(without_prompt_begin(document, 5, 9).trained, (std::vector<uint8_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(without_prompt_begin(document, 3, -1).ids, (std::vector<int32_t>{4, 5, 6}));
  // An answer that does not fit is cut at its end, later, and keeps its prompt.
  EXPECT_EQ(without_prompt_begin(document, 2, -1).ids, document.ids);
  EXPECT_EQ(without_prompt_begin(document, 9, 9).ids, document.ids);
}

class Truncated : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, Truncation truncation,
               std::optional<RecordForm> form = std::nullopt) {
    const DatasetOptions options{.max_length = 12,
                                 .chat_template = chat_template_,
                                 .form = form,
                                 .skips = {.refuses_any = false},
                                 .truncation = truncation,
                                 .positions = 512};
    return load_dataset(folder_.write("data.jsonl", contents), tokenizer_, options);
  }
  std::string text_of(const Dataset& data, int64_t document) {
    std::vector<int32_t> words(static_cast<size_t>(data.documents.length(document)));
    data.documents.read(document, words);
    for (int32_t& word : words) word = DocumentStore::id_of(word);
    return tokenizer_.decode(words, false);
  }
  testing::TemporaryFolder folder_;
  std::string chat_template_;
  Tokenizer tokenizer_ = TinyTokenizer{}.make();
};

TEST_F(Truncated, RecordsAreCountedWithWhatTheyLose) {
  const std::string fits = "{\"prompt\": \"a\", \"completion\": \"b\"}\n";
  const std::string is_long = "{\"prompt\": \"0123456789012345\", \"completion\": \"bcd\"}\n";
  EXPECT_TRUE(contains(load(fits + is_long, Truncation::end).audit.bad_told, "cuts it away"));
  const Dataset kept = load(fits + is_long, Truncation::keep_end);
  EXPECT_EQ(kept.audit.bad, 0);
  EXPECT_EQ(kept.audit.truncated, 1);
  EXPECT_EQ(kept.audit.cut_tokens, kept.audit.longest - 12);
  EXPECT_EQ(kept.documents.length(1), 12);
  EXPECT_EQ(kept.documents.targets(1), kept.documents.targets(0) + 2);
  const Dataset dropped = load(fits + is_long, Truncation::drop);
  EXPECT_EQ(dropped.documents.size(), 1);
  EXPECT_TRUE(contains(dropped.audit.bad_told, "truncation=drop leaves out"));
  EXPECT_TRUE(contains(dropped.audit.bad_told, "which holds all of it"));
}

TEST_F(Truncated, TextsAreLearnedWhole) {
  for (const Truncation truncation : {Truncation::keep_end, Truncation::drop}) {
    const std::string message =
        message_of<UserError>([&] { load(R"({"text": "0123456789012345"})", truncation); });
    EXPECT_TRUE(contains(message, "texts are learned whole")) << message;
  }
}

// A token for each byte, one for <s> and for </s>.
TEST_F(Truncated, OfAPairTheBeginningOfThePromptGoes) {
  const std::string pair = R"({"prompt": "0123456789", "chosen": "yes", "rejected": "nope!"})";
  const Dataset kept = load(pair, Truncation::keep_end, RecordForm::preference);
  EXPECT_EQ(text_of(kept, 0), "456789yes</s>");
  EXPECT_EQ(text_of(kept, 1), "456789nope!</s>");
  EXPECT_EQ(kept.audit.truncated, 2);
  EXPECT_EQ(kept.audit.cut_tokens, 8);
  // An answer that is too long by itself keeps its prompt.
  const std::string is_long =
      R"({"prompt": "012", "chosen": "abcdefghijklmnopq", "rejected": "nope!"})";
  EXPECT_EQ(text_of(load(is_long, Truncation::keep_end, RecordForm::preference), 0),
            "012abcdefghi");
}

TEST_F(Truncated, OfAnswersWithLabelsTheBeginningOfThePromptGoes) {
  const std::string answer = R"({"prompt": "0123456789", "completion": "yes", "label": true})";
  const Dataset kept = load(answer + "\n" + answer, Truncation::keep_end, RecordForm::unpaired);
  EXPECT_EQ(text_of(kept, 0), "23456789yes</s>");
}

// Both conversations keep the same turns.
TEST_F(Truncated, OfAPairOfConversationsTheOldestTurnsGo) {
  const std::string pair =
      R"({"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "123456"},)"
      R"({"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],)"
      R"("chosen": [{"role": "assistant", "content": "d"}],)"
      R"("rejected": [{"role": "assistant", "content": "ef"}]})";
  const std::string source =
      "{% for m in messages %}{{ m.role[0] }}{{ m.content }}</s>{% endfor %}"
      "{% if add_generation_prompt %}a{% endif %}";
  chat_template_ = folder_.write("template.jinja", source).string();
  const Dataset kept = load(pair, Truncation::keep_end, RecordForm::preference);
  EXPECT_EQ(text_of(kept, 0), "ss</s>uc</s>ad</s>");
  EXPECT_EQ(text_of(kept, 1), "ss</s>uc</s>aef</s>");
  EXPECT_EQ(kept.documents.targets(0), 2);
  EXPECT_EQ(kept.audit.truncated, 2);
}

TEST_F(Truncated, TokensHaveNoEndToKeep) {
  const std::string message = message_of<UserError>(
      [&] { load(R"({"input_ids": [1, 2, 3]})", Truncation::keep_end, RecordForm::tokens); });
  EXPECT_TRUE(contains(message, "these records are of the form tokens")) << message;
}

}  // namespace
}  // namespace snug::text
