// Answers as text: where they end, and what is held back until that is known.
#include "engine/answer_text.h"

#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "generate/generate.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using engine::AnswerText;
using Json = nlohmann::json;

class AnswerTextTest : public ::testing::Test {
 protected:
  // The pieces that come out with each token, joined by |, and what was held back at the end.
  std::string pieces(const std::string& text, const std::vector<std::string>& stops) {
    engine::AnswerText answer(tokenizer_, {}, {.ids = {}, .texts = stops});
    std::string all;
    for (const int32_t id : tokenizer_.encode(text)) {
      all += answer.push(id) + "|";
      if (answer.has_ended()) break;
    }
    return all + answer.finish();
  }
  std::string whole(const std::string& text, const std::vector<std::string>& stops) {
    std::string joined = pieces(text, stops);
    std::erase(joined, '|');
    return joined;
  }

  text::Tokenizer tokenizer_ = text::Tokenizer::from_folder("examples/wordnet");
};

TEST_F(AnswerTextTest, IsCutBeforeTheFirstStopText) {
  EXPECT_EQ(whole("a dog is a dog", {}), "a dog is a dog");
  EXPECT_EQ(whole("a dog is a dog", {"cat"}), "a dog is a dog");
  EXPECT_EQ(whole("a dog is a dog", {"dog"}), "a ");
  EXPECT_EQ(whole("a dog is a dog", {"s a", "dog is"}), "a ");
  EXPECT_EQ(whole("one\n\ntwo", {"\n\n"}), "one");
  // The beginning of a stop text that does not come is printed in the end.
  EXPECT_EQ(whole("the end of User", {"User:"}), "the end of User");
  EXPECT_EQ(whole("aab", {"ab"}), "a");
}

TEST_F(AnswerTextTest, HoldsBackWhatMayBeginAStopText) {
  EXPECT_FALSE(contains(pieces("to be U", {"be User"}), "be U|"));
  EXPECT_TRUE(pieces("to be U", {"be User"}).ends_with("|be U"));
  EXPECT_EQ(pieces("to be", {}).back(), '|') << "without stop texts nothing is held back";
}

TEST_F(AnswerTextTest, EndsBeforeAnIdThatEndsIt) {
  const engine::Ids ids = tokenizer_.encode("a dog is a dog");
  const engine::AnswerEnd end{.ids = {ids[2]}, .texts = {}};
  EXPECT_EQ(engine::answer_text(tokenizer_, {}, ids, end),
            tokenizer_.decode(std::span(ids).first(2)));
}

formats::Recipe nonsense(std::vector<std::string> words) {
  words.insert(words.begin(), {"model=examples/wordnet", "init=random", "max_new_tokens=12",
                               "temperature=0", "prompt=The oregano is"});
  return recipe_of(std::move(words));
}

Json generated(const formats::Recipe& recipe) {
  const CapturedStream output(stdout);
  generate::generate(recipe, true);
  return Json::parse(output.text());
}

TEST(GenerateOptions, StopTextsEndTheAnswer) {
  const Json free = generated(nonsense({}));
  const auto text = free["text"].get<std::string>();
  ASSERT_GT(text.size(), 4U);
  formats::Recipe recipe = nonsense({});
  recipe.stop = {text.substr(2, 2)};
  const Json stopped = generated(recipe);
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(recipe.stop[0])));
  EXPECT_EQ(stopped["finish_reason"], "stop");
  EXPECT_LT(stopped["ids"].size(), free["ids"].size());
  const CapturedStream output(stdout);
  generate::generate(recipe, false);
  EXPECT_EQ(output.text(), stopped["text"].get<std::string>() + "\n");
}

TEST(GenerateOptions, RepetitionIsPenalized) {
  const Json free = generated(nonsense({}));
  const Json penalized = generated(nonsense({"repetition_penalty=1.5"}));
  EXPECT_NE(penalized["ids"], free["ids"]);
  EXPECT_EQ(generated(nonsense({"repetition_penalty=1"}))["ids"], free["ids"]);
}

// Each key reaches the sampler.
TEST(GenerateOptions, SamplingKeysAreObeyed) {
  const Json free = generated(nonsense({}));
  EXPECT_NE(generated(nonsense({"presence_penalty=-30"}))["ids"], free["ids"]);
  EXPECT_NE(generated(nonsense({"frequency_penalty=-30"}))["ids"], free["ids"]);
  EXPECT_EQ(generated(nonsense({"temperature=5", "min_p=1"}))["ids"], free["ids"]);
  EXPECT_NE(generated(nonsense({"temperature=5"}))["ids"], free["ids"]);
}

TEST(GenerateOptions, LogProbabilitiesComeWithTheTokens) {
  const Json free = generated(nonsense({}));
  EXPECT_FALSE(free.contains("logprobs"));
  const Json own = generated(nonsense({"logprobs=true"}));
  EXPECT_EQ(own["ids"], free["ids"]);
  EXPECT_EQ(own["logprobs"].size(), own["ids"].size());
  EXPECT_FALSE(own.contains("top_logprobs"));
  const Json likeliest = generated(nonsense({"top_logprobs=2"}));
  EXPECT_EQ(likeliest["logprobs"], own["logprobs"]);
  for (size_t i = 0; i < own["ids"].size(); ++i) {
    const Json& tokens = likeliest["top_logprobs"][i];
    ASSERT_EQ(tokens.size(), 2U);
    // Greedily, the likeliest is the one that was chosen.
    EXPECT_EQ(tokens[0]["id"], own["ids"][i]);
    EXPECT_EQ(tokens[0]["logprob"], own["logprobs"][i]);
    EXPECT_GE(tokens[0]["logprob"], tokens[1]["logprob"]);
    EXPECT_TRUE(tokens[0]["token"].is_string());
  }
  EXPECT_TRUE(contains(user_error_of([] { generate::generate(nonsense({"logprobs=0"}), false); }),
                       "'logprobs' is for programs: give --json"));
}

TEST(GenerateOptions, ASystemMessageComesBeforeThePrompt) {
  const auto tokens = [](std::vector<std::string> words) {
    words.insert(words.end(), {"prompt_format=chat", "chat_template=plain"});
    return generated(nonsense(std::move(words)))["prompt_tokens"].get<int64_t>();
  };
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  EXPECT_EQ(tokens({"system=Be kind."}) - tokens({}),
            static_cast<int64_t>(tokenizer.encode("Be kind.\n").size()));
  EXPECT_TRUE(contains(user_error_of([] { generated(nonsense({"system=x"})); }),
                       "prompt_format=chat next to it"));
  const TemporaryFolder folder;
  const auto silent = folder.write(
      "t.jinja", "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}");
  EXPECT_TRUE(contains(
      user_error_of([&] {
        generated(nonsense({"system=x", "prompt_format=chat", "chat_template=" + silent.string()}));
      }),
      "system"));
}

TEST(GenerateOptions, StopWantsATokenizer) {
  EXPECT_TRUE(contains(user_error_of([] {
                         generated(golden_recipe("basic", {"ids=5 6 7", "stop=x"}));
                       }),
                       "the model folder has no tokenizer"));
}

}  // namespace
}  // namespace snug::testing
