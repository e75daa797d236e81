// Users' mistakes: each says what is wrong and what to do.
#include <fstream>

#include "base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "generate/evaluation/evaluate.h"
#include "generate/generate.h"
#include "generate/score.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

std::string generate_error(const std::string& model, std::vector<std::string> words) {
  return user_error_of([&] { generate::generate(golden_recipe(model, words), true); });
}
std::string score_error(const std::string& model, std::vector<std::string> words) {
  return user_error_of([&] { generate::score(golden_recipe(model, words), true); });
}
std::string evaluate_error(std::vector<std::string> words) {
  return user_error_of([&] { generate::evaluate(recipe_of(std::move(words)), true); });
}

std::string ids_of_length(size_t count) {
  std::string text = "ids=1";
  for (size_t i = 1; i < count; ++i) text += " 1";
  return text;
}

TEST(Errors, IdsOutsideTheVocabulary) {
  for (const auto& error :
       {generate_error("basic", {"ids=1 131"}), score_error("basic", {"ids=1 131"})}) {
    EXPECT_TRUE(contains(error, "ids"));
    EXPECT_TRUE(contains(error, "131 ids, 0 to 130"));
  }
  const formats::Recipe recipe = golden_recipe("basic");
  engine::Inference inference(recipe, runtime::open_model(recipe),
                              {.capacity = 8, .prefill_tokens = 8});
  engine::Engine engine(inference);
  const std::vector<engine::Request> wrong{{.prompt = {3, -1}, .max_new_tokens = 1}};
  EXPECT_TRUE(
      contains(user_error_of([&] { engine.answers(wrong); }), "token 2 of the prompt is -1"));
  const std::vector<engine::Request> empty{{.prompt = {}, .max_new_tokens = 1}};
  EXPECT_TRUE(contains(user_error_of([&] { engine.answers(empty); }), "empty"));
}

TEST(Errors, PromptsLongerThanTheModelsPositions) {
  EXPECT_TRUE(contains(generate_error("basic", {ids_of_length(256)}), "shorten the prompt to 255"));
  EXPECT_TRUE(contains(generate_error("basic", {ids_of_length(250), "max_new_tokens=7"}),
                       "use max_new_tokens=6"));
  EXPECT_TRUE(contains(score_error("basic", {ids_of_length(257)}), "257 tokens"));
  EXPECT_TRUE(contains(score_error("basic", {ids_of_length(257)}), "256 positions"));
}

TEST(Errors, AnAdapterOfAnotherModel) {
  const std::string adapter = "adapter=" + kGoldens + "lora_all_linear/adapter";
  EXPECT_TRUE(contains(generate_error("rope_linear", {"ids=1", adapter}), "adapter"));
  EXPECT_TRUE(contains(score_error("biases", {"ids=1 2", adapter}), "adapter"));
  EXPECT_TRUE(contains(score_error("basic", {"ids=1 2", "adapter=tests/no-such-folder"}),
                       "no-such-folder"));
}

// A folder in 4 bits is read as it is stored, or not at all.
TEST(Errors, AnotherStorageThanTheFolders) {
  const std::string folder = "model=" + kGoldens + "nf4/double";
  const auto error = [&](const std::string& word) {
    return user_error_of([&] {
      generate::generate(recipe_of({folder, "ids=1 2", "max_new_tokens=1", word}), true);
    });
  };
  EXPECT_TRUE(contains(error("load_in_4bit=false"), "stored in 4 bits"));
  EXPECT_TRUE(contains(error("double_quant=false"), "the folder is stored with true"));
}

TEST(Errors, AMissingTokenizer) {
  EXPECT_TRUE(contains(generate_error("basic", {"prompt=hello"}), "tokenizer.json"));
  EXPECT_TRUE(contains(score_error("basic", {"prompt=hello"}), "tokenizer.json"));
  EXPECT_TRUE(contains(
      user_error_of([] {
        generate::generate(recipe_of({"model=smollm2-135m", "init=random", "prompt=x"}), true);
      }),
      "without a tokenizer"));
}

TEST(Errors, NothingOrTooMuchToContinue) {
  EXPECT_TRUE(contains(generate_error("basic", {}), "prompt"));
  EXPECT_TRUE(contains(generate_error("basic", {"prompt=a", "ids=1"}), "one of the two"));
  EXPECT_TRUE(contains(score_error("basic", {}), "ids"));
  EXPECT_TRUE(contains(score_error("basic", {"prompt=a", "ids=1"}), "one of the two"));
  EXPECT_TRUE(
      contains(generate_error("basic", {"ids=1", "prompt_format=chat"}), "are taken as they are"));
}

TEST(Errors, ASingleTokenHasNothingToScore) {
  EXPECT_TRUE(contains(score_error("basic", {"ids=1"}), "at least 2"));
}

TEST(Errors, AChatTemplateThatIsNotKnown) {
  const std::string error = user_error_of([] {
    generate::generate(
        recipe_of({"model=examples/wordnet", "init=random", "prompt=x", "chat_template=nope"}),
        true);
  });
  EXPECT_TRUE(contains(error, "nope"));
  EXPECT_TRUE(contains(error, "chatml"));
}

TEST(Errors, APresetHasNoWeights) {
  EXPECT_TRUE(contains(user_error_of([] {
                         generate::score(recipe_of({"model=smollm2-135m", "ids=1 2"}), true);
                       }),
                       "without weights"));
}

TEST(Errors, DataThatHasNoQuestions) {
  const TemporaryFolder folder;
  const std::vector<std::string> words{"model=examples/wordnet", "init=random",
                                       "on_bad_record=error"};
  const auto with = [&](const std::filesystem::path& data) {
    std::vector<std::string> all = words;
    all.push_back("data=" + data.string());
    return evaluate_error(all);
  };
  EXPECT_TRUE(contains(evaluate_error(words), "data"));
  EXPECT_TRUE(contains(with(folder.write("empty.jsonl", "")), "no records"));
  const std::string text = with(folder.write("text.jsonl", "{\"text\": \"a\"}\n"));
  EXPECT_TRUE(contains(text, "text.jsonl:1"));
  EXPECT_TRUE(contains(text, "plain text"));
  const std::string late = with(folder.write(
      "late.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n{\"instruction\": \"c\"}\n"));
  EXPECT_TRUE(contains(late, "late.jsonl:2"));
  const std::string long_prompt = with(folder.write(
      "long.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n{\"instruction\": \"" +
                        std::string(4000, '0') + "\", \"output\": \"b\"}\n"));
  EXPECT_TRUE(contains(long_prompt, "long.jsonl:2"));
}

}  // namespace
}  // namespace snug::testing
