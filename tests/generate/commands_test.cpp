// The verbs from recipe to printed JSON.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "generate/decoding_profile.h"
#include "generate/generate.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::testing {
namespace {

using Json = nlohmann::json;

template <typename Verb>
std::string output_of(Verb verb, const formats::Recipe& recipe, bool json) {
  const CapturedStream output(stdout);
  EXPECT_EQ(verb(recipe, json), 0);
  return output.text();
}

// The example's tokenizer and shape, with random weights: what it says is nonsense, always the
// same.
formats::Recipe example(std::vector<std::string> words) {
  words.insert(words.begin(), {"model=examples/wordnet", "init=random", "max_new_tokens=12"});
  return recipe_of(std::move(words));
}

TEST(Generate, PrintsTheContinuation) {
  const formats::Recipe recipe = example({"prompt=The oregano is", "temperature=0"});
  const Json result = Json::parse(output_of(generate::generate, recipe, true));
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  EXPECT_EQ(result["prompt_tokens"], tokenizer.encode("The oregano is").size());
  EXPECT_EQ(result["new_tokens"], result["ids"].size());
  EXPECT_GT(result["tokens_per_second"], 0);
  EXPECT_GT(result["device"]["peak_bytes"], 0);
  EXPECT_EQ(output_of(generate::generate, recipe, false), result["text"].get<std::string>() + "\n");
}

// Of phi3_long the border lies at 16 positions.
TEST(Generate, SaysWhereLongropeChangesItsFactors) {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.end(), {"temperature=0", "backend=reference"});
    const CapturedStream console(stderr);
    output_of(generate::generate, golden_recipe("phi3_long", std::move(words)), true);
    return console.text();
  };
  const std::string crossing = said({"ids=5 6 7", "max_new_tokens=15"});
  EXPECT_TRUE(contains(crossing, "longrope: 3 tokens of prompt and up to 15 new ones")) << crossing;
  EXPECT_TRUE(contains(crossing, "max_new_tokens=14 stays")) << crossing;
  EXPECT_FALSE(contains(said({"ids=5 6 7", "max_new_tokens=14"}), "longrope"));
  EXPECT_FALSE(
      contains(said({"ids=5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3", "max_new_tokens=6"}), "longrope"));
}

// Every operation of the program that decodes has its line, and the tokens are those of generate.
TEST(BenchDecode, TimesATokenAndItsOperations) {
  const formats::Recipe recipe = golden_recipe(
      "basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=6", "backend=reference"});
  const Json result = Json::parse(output_of(generate::profile_decoding, recipe, true));
  EXPECT_EQ(result["prompt_tokens"], 3);
  EXPECT_EQ(result["new_tokens"], 6);
  EXPECT_NEAR(result["tokens_per_second"].get<double>(), 5 / result["decode_seconds"].get<double>(),
              1e-6);
  double operations = 0;
  for (const Json& line : result["operations"]) {
    EXPECT_GT(line["seconds"], 0) << line;
    operations += line["count"].get<double>();
  }
  EXPECT_GT(operations, 20);
  EXPECT_NE(output_of(generate::profile_decoding, recipe, false).find("a token takes"),
            std::string::npos);
}

// Timed one by one they take about as long as together. Other programs may take the processor in
// one measurement or the other, so the best of some counts.
TEST(BenchDecode, OperationsTogetherTakeAboutAsLongAsAToken) {
  const formats::Recipe recipe = golden_recipe(
      "basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=6", "backend=reference"});
  double least_ratio = 1e30;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Json result = Json::parse(output_of(generate::profile_decoding, recipe, true));
    double seconds = 0;
    for (const Json& line : result["operations"]) seconds += line["seconds"].get<double>();
    least_ratio = std::min(least_ratio, seconds * result["tokens_per_second"].get<double>());
  }
  EXPECT_LT(least_ratio, 3);
}

TEST(BenchDecode, CountsTheTokensOfAllSequences) {
  const formats::Recipe recipe = golden_recipe(
      "basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=6", "batch=3", "backend=reference"});
  const Json result = Json::parse(output_of(generate::profile_decoding, recipe, true));
  EXPECT_EQ(result["sequences"], 3);
  EXPECT_NEAR(result["tokens_per_second"].get<double>(),
              15 / result["decode_seconds"].get<double>(), 1e-6);
  EXPECT_NE(output_of(generate::profile_decoding, recipe, false).find("a token of each of 3"),
            std::string::npos);
}

TEST(BenchDecode, WantsIdsAndTwoTokens) {
  EXPECT_THROW(generate::profile_decoding(example({"prompt=The"}), true), base::UserError);
  EXPECT_THROW(generate::profile_decoding(example({"ids=5 6", "max_new_tokens=1"}), true),
               base::UserError);
}

TEST(Generate, FormsOfThePromptDiffer) {
  std::vector<int64_t> tokens;
  for (const char* form : {"raw", "alpaca", "chat"}) {
    const formats::Recipe recipe =
        example({"prompt=Say it.", "temperature=0", std::string("prompt_format=") + form,
                 "chat_template=plain"});
    tokens.push_back(Json::parse(output_of(generate::generate, recipe, true))["prompt_tokens"]);
  }
  EXPECT_LT(tokens[0], tokens[2]);
  EXPECT_LT(tokens[2], tokens[1]);
}

TEST(Generate, IdsNeedNoTokenizer) {
  const formats::Recipe recipe = golden_recipe(
      "basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=4", "backend=reference"});
  const Json result = Json::parse(output_of(generate::generate, recipe, true));
  EXPECT_TRUE(result["text"].is_null());
  EXPECT_EQ(result["prompt_tokens"], 3);
  EXPECT_EQ(result["ids"].size(), 4U);
  EXPECT_EQ(result["finish_reason"], "length");
  const formats::Recipe cpu =
      golden_recipe("basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=4"});
  EXPECT_EQ(Json::parse(output_of(generate::generate, cpu, true))["ids"], result["ids"]);
}

// Without a tokenizer the folder's generation_config.json says what ends a text.
TEST(Generate, IdsEndWhereTheFolderSays) {
  const std::vector<std::string> words{"ids=5 6 7", "temperature=0", "max_new_tokens=4"};
  const engine::Ids ids =
      Json::parse(output_of(generate::generate, golden_recipe("basic", words), true))["ids"];
  const TemporaryFolder folder;
  const std::filesystem::path model = kGoldens + "basic/model";
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(model / name, folder / name);
  std::ofstream(folder / "generation_config.json") << Json{{"eos_token_id", {130, ids[2]}}};
  formats::Recipe recipe = golden_recipe("basic", words);
  recipe.model = folder.path().string();
  const Json result = Json::parse(output_of(generate::generate, recipe, true));
  const auto first = std::ranges::find(ids, ids[2]);
  EXPECT_EQ(result["ids"], Json(engine::Ids(ids.begin(), first + 1)));
  EXPECT_EQ(result["finish_reason"], "stop");
}

TEST(Generate, TheDefaultOfMaxNewTokensEndsAtTheLastPosition) {
  std::string ids = "ids=1";
  for (int i = 1; i < 250; ++i) ids += " 1";
  const Json result =
      Json::parse(output_of(generate::generate, golden_recipe("basic", {ids}), true));
  EXPECT_EQ(result["ids"].size(), 6U);
}

TEST(Score, PrintsLogProbabilitiesAndWritesLogits) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "logits.safetensors";
  const formats::Recipe recipe =
      golden_recipe("basic", {"ids=1 5 9", "logits_out=" + path.string()});
  const Json result = Json::parse(output_of(generate::score, recipe, true));
  ASSERT_EQ(result["logprobs"].size(), 2U);
  EXPECT_EQ(result["ids"], Json({1, 5, 9}));
  const formats::SafetensorsFile file(path);
  EXPECT_EQ(file.at("logits").dtype, base::DType::f32);
  EXPECT_EQ(file.at("logits").shape, (std::vector<int64_t>{3, 131}));
  const auto logits = golden_values<float>(file, "logits");
  EXPECT_DOUBLE_EQ(engine::log_probability(std::span(logits).first(131), 5),
                   result["logprobs"][0].get<double>());
  EXPECT_DOUBLE_EQ(engine::log_probability(std::span(logits).subspan(131, 131), 9),
                   result["logprobs"][1].get<double>());
  EXPECT_NEAR(result["loss"].get<double>(),
              -(result["logprobs"][0].get<double>() + result["logprobs"][1].get<double>()) / 2,
              1e-12);
}

// A text longer than a chunk scores as in one piece.
TEST(Score, ChunksAgree) {
  const formats::Recipe recipe = golden_recipe("rope_llama3");
  const engine::Ids ids = random_ids(600, 29, 5);
  plan::InferenceShape shape = generate::score_shape(600);
  EXPECT_LT(shape.prefill_tokens, 600);
  engine::Inference chunks(recipe, runtime::open_model(recipe), shape);
  shape.prefill_tokens = 600;
  engine::Inference whole(recipe, runtime::open_model(recipe), shape);
  const auto a = generate::log_probabilities(chunks, ids);
  const auto b = generate::log_probabilities(whole, ids);
  ASSERT_EQ(a.size(), 599U);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(Score, Bf16ComputesCloseToFp32WhereTheProcessorHasIt) {
  const auto logprobs = [](const char* dtype) {
    const formats::Recipe recipe =
        golden_recipe("head_dim", {"ids=1 5 9 30 2 8", std::string("compute_dtype=") + dtype});
    return Json::parse(output_of(generate::score, recipe, true))["logprobs"]
        .get<std::vector<double>>();
  };
  const auto fp32 = logprobs("fp32");
  const auto automatic = logprobs("auto");
  for (size_t i = 0; i < fp32.size(); ++i) EXPECT_NEAR(automatic[i], fp32[i], 0.05);
}

}  // namespace
}  // namespace snug::testing
