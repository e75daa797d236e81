// A model that is open for a chat.
#include "generate/chat/chat_model.h"
#include "base/error.h"
#include "base/temporary_folder.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

formats::Recipe chat_recipe(std::vector<std::string> words) {
  words.insert(words.begin(),
               {"model=examples/wordnet", "init=random", "chat_template=plain", "temperature=0"});
  return recipe_of(std::move(words));
}

const text::Conversation kQuestion{.messages = {{"user", "What is twine?"}}};

TEST(ChatModel, AnswersAgainAndAgain) {
  int64_t tokens = 0;
  generate::ChatModel model(chat_recipe({"max_new_tokens=6", "max_length=100"}),
                            [] { return false; });
  std::string streamed;
  const auto take = [&](const std::string& text) { streamed += text; };
  const generate::ChatReply first = model.answer(kQuestion, take);
  EXPECT_EQ(streamed, first.text);
  EXPECT_EQ(first.new_tokens, 6);
  EXPECT_EQ(first.finish, engine::Finish::length);
  tokens = first.prompt_tokens;
  EXPECT_EQ(model.answer(kQuestion, take).text, first.text);
  EXPECT_GT(model.memory().planned_bytes, 0);
  EXPECT_EQ(model.context(), 100);
  // An answer may fill what is left of the context, and no more.
  generate::ChatModel narrow(chat_recipe({"max_length=" + std::to_string(tokens + 3)}),
                             [] { return false; });
  EXPECT_EQ(narrow.answer(kQuestion, take).new_tokens, 3);
  text::Conversation longer = kQuestion;
  longer.messages.emplace_back("assistant", first.text);
  longer.messages.emplace_back("user", "And what is a rope, then?");
  const generate::ChatReply none = narrow.answer(longer, take);
  EXPECT_FALSE(none.fits);
  EXPECT_GT(none.prompt_tokens, tokens);
  EXPECT_THROW(narrow.use_adapter("runs/missing"), base::UserError);
  EXPECT_EQ(narrow.answer(kQuestion, take).new_tokens, 3);
}

// A turn reads what is new since the one before it: whole pages of that are known.
TEST(ChatModel, ATurnReadsOnlyWhatIsNew) {
  generate::ChatModel model(chat_recipe({"max_new_tokens=40", "max_length=500"}),
                            [] { return false; });
  const auto answer = [&](const text::Conversation& conversation) {
    return model.answer(conversation, [](const std::string&) {});
  };
  text::Conversation conversation{
      .messages = {{"user",
                    "Tell me all that you know about ropes and twine, and then about the "
                    "knots with which sailors tie them to one another, please. Then tell "
                    "me what sisal is, how hemp is grown, who makes cables of steel, and "
                    "why a rope that is wet becomes shorter than it was, if it does."}}};
  const generate::ChatReply first = answer(conversation);
  EXPECT_EQ(first.read_tokens, first.prompt_tokens);
  const generate::ChatReply again = answer(conversation);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.read_tokens, first.prompt_tokens - (first.prompt_tokens - 1) / 64 * 64);
  conversation.messages.emplace_back("assistant", first.text);
  conversation.messages.emplace_back("user", "And what is oregano?");
  const generate::ChatReply next = answer(conversation);
  EXPECT_LE(next.read_tokens, next.prompt_tokens - 64);
  generate::ChatModel fresh(chat_recipe({"max_new_tokens=40", "max_length=500"}),
                            [] { return false; });
  EXPECT_EQ(next.text, fresh.answer(conversation, [](const std::string&) {}).text);
}

TEST(ChatModel, StopsBetweenTokens) {
  int asked = 0;
  generate::ChatModel model(chat_recipe({"max_length=200"}), [&] { return ++asked == 4; });
  const generate::ChatReply reply = model.answer(kQuestion, [](const std::string&) {});
  EXPECT_EQ(reply.finish, engine::Finish::cancelled);
  EXPECT_LT(reply.new_tokens, 6);
  EXPECT_EQ(model.answer(kQuestion, [](const std::string&) {}).prompt_tokens, reply.prompt_tokens);
}

TEST(ChatModel, WithoutATemplateSaysWhatElseThereIs) {
  const auto recipe = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"model=examples/wordnet", "init=random", "max_new_tokens=4"});
    return recipe_of(std::move(words));
  };
  try {
    generate::ChatModel(recipe({}), [] { return false; });
    ADD_FAILURE() << "there is no template";
  } catch (const base::UserError& error) {
    EXPECT_TRUE(contains(error.what(), "prompt_format=raw")) << error.what();
  }
  generate::ChatModel raw(recipe({"prompt_format=raw"}), [] { return false; });
  EXPECT_FALSE(raw.takes_conversations());
  EXPECT_EQ(raw.answer(kQuestion, [](const std::string&) {}).new_tokens, 4);
  EXPECT_NE(raw.why_no_system("Be brief."), "");
  EXPECT_THROW(generate::ChatModel(recipe({"prompt_format=raw", "system=a"}), [] { return false; }),
               base::UserError);
}

}  // namespace
}  // namespace snug::testing
