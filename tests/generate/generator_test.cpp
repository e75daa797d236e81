// Generating against repeated whole passes, across chunk boundaries and in batches.
#include <algorithm>

#include "formats/recipe/recipe.h"
#include "generate/score.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using engine::Generation;
using engine::GenerationOptions;
using engine::Generator;
using engine::Inference;

constexpr int64_t kNew = 6;
constexpr const char* kModel = "grouped_tied";

engine::GenerationOptions greedy() {
  return {.sampling = {}, .max_new_tokens = kNew, .stop_ids = {}};
}

// The token that the whole text so far makes likeliest, again and again.
engine::Ids repeated_argmax(const formats::Recipe& recipe, engine::Ids ids, int64_t count) {
  const auto total = static_cast<int64_t>(ids.size()) + count;
  engine::Inference inference(recipe, runtime::open_model(recipe), generate::score_shape(total));
  engine::Ids added;
  for (int64_t i = 0; i < count; ++i) {
    int32_t next = 0;
    generate::log_probabilities(
        inference, ids, [&](std::span<const float> logits) { next = engine::argmax(logits); });
    ids.push_back(next);
    added.push_back(next);
  }
  return added;
}

std::vector<engine::Generation> generate_all(const formats::Recipe& recipe,
                                             const std::vector<engine::Ids>& prompts,
                                             const engine::GenerationOptions& options,
                                             int64_t batch, int64_t chunk = 0) {
  plan::InferenceShape shape = engine::shape_for(prompts, options, batch);
  if (chunk > 0) shape.prefill_tokens = chunk;
  engine::Inference inference(recipe, runtime::open_model(recipe), shape);
  return engine::Generator(inference).run(prompts, options);
}

std::vector<engine::Ids> prompts_of(const std::vector<size_t>& lengths, int64_t vocab = 137) {
  std::vector<engine::Ids> prompts;
  for (const size_t length : lengths)
    prompts.push_back(random_ids(length, vocab, static_cast<unsigned>(100 + length)));
  return prompts;
}

TEST(Generator, GreedyIsArgmaxOfRepeatedWholePasses) {
  for (const char* model : {"basic", "grouped_tied", "head_dim"}) {
    const formats::Recipe recipe = golden_recipe(model);
    const std::vector<engine::Ids> prompts = prompts_of({5}, 113);
    EXPECT_EQ(generate_all(recipe, prompts, greedy(), 1).front().ids,
              repeated_argmax(recipe, prompts.front(), kNew))
        << model;
  }
}

TEST(Generator, ThroughAnAdapter) {
  const formats::Recipe recipe =
      golden_recipe(kModel, {"adapter=" + kGoldens + "lora_all_linear/adapter"});
  const std::vector<engine::Ids> prompts = prompts_of({7});
  const engine::Ids adapted = generate_all(recipe, prompts, greedy(), 1).front().ids;
  EXPECT_EQ(adapted, repeated_argmax(recipe, prompts.front(), kNew));
  EXPECT_NE(adapted, generate_all(golden_recipe(kModel), prompts, greedy(), 1).front().ids);
}

// A kernel may read such tensors while the one before it still runs.
TEST(Generator, DecodesWithWeightsThatNothingWrites) {
  engine::Inference inference(golden_recipe(kModel), runtime::open_model(golden_recipe(kModel)),
                              engine::shape_for(prompts_of({5}), greedy(), 1));
  const auto is_constant = [&](std::string_view name) {
    return inference.executor().tensor(program::ProgramName::decode, name).is_constant;
  };
  EXPECT_TRUE(is_constant("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_TRUE(is_constant("model.layers.1.mlp.down_proj.weight"));
  EXPECT_FALSE(is_constant("layers.0.key_cache"));
}

TEST(Generator, PromptsAtTheBoundariesOfChunks) {
  const formats::Recipe recipe = golden_recipe(kModel);
  constexpr int64_t kChunk = 8;
  for (const size_t length : {1, 7, 8, 9, 15, 16, 17}) {
    const std::vector<engine::Ids> prompts = prompts_of({length});
    EXPECT_EQ(generate_all(recipe, prompts, greedy(), 1, kChunk).front().ids,
              generate_all(recipe, prompts, greedy(), 1, 64).front().ids)
        << "a prompt of " << length;
  }
}

// Prompts share chunks and go on in the next one; a last group is smaller than the batch.
TEST(Generator, BatchesEqualSingleRuns) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({3, 11, 1, 26, 8, 2, 17});
  std::vector<engine::Ids> single;
  for (const engine::Ids& prompt : prompts)
    single.push_back(generate_all(recipe, {prompt}, greedy(), 1).front().ids);
  for (const int64_t batch : {2, 3, 7})
    for (const int64_t chunk : {4, 16, 512}) {
      const std::vector<engine::Generation> together =
          generate_all(recipe, prompts, greedy(), batch, chunk);
      for (size_t i = 0; i < prompts.size(); ++i)
        EXPECT_EQ(together[i].ids, single[i])
            << "prompt " << i << ", batch " << batch << ", chunk " << chunk;
    }
}

TEST(Generator, OneInferenceAnswersAgainAndAgain) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({12, 4});
  engine::Inference inference(recipe, runtime::open_model(recipe),
                              engine::shape_for(prompts, greedy(), 2));
  engine::Generator generator(inference);
  const auto first = generator.run(prompts, greedy());
  generator.run(std::vector<engine::Ids>{prompts[1]}, greedy());
  const auto again = generator.run(prompts, greedy());
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(first[i].ids, again[i].ids);
}

TEST(Generator, StopIdsEndASequenceAndOnlyThatOne) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({5, 9});
  const std::vector<engine::Generation> free = generate_all(recipe, prompts, greedy(), 2);
  engine::GenerationOptions options = greedy();
  const int32_t stop = free[0].ids[2];
  options.stop_ids = {stop};
  const std::vector<engine::Generation> stopped = generate_all(recipe, prompts, options, 2);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const engine::Ids& ids = free[i].ids;
    const auto end = std::find(ids.begin(), ids.end(), stop);
    EXPECT_EQ(stopped[i].stopped, end != ids.end());
    EXPECT_EQ(stopped[i].ids, engine::Ids(ids.begin(), end == ids.end() ? end : end + 1));
  }
  EXPECT_TRUE(stopped[0].stopped);
}

// In each step the likeliest of the penalized logits, as whole passes give them. Below 1 what was
// seen becomes likelier.
TEST(Generator, PenalizesPromptAndAnswer) {
  const formats::Recipe recipe = golden_recipe("basic");
  const std::vector<engine::Ids> prompts = prompts_of({5, 3}, 113);
  engine::GenerationOptions options = greedy();
  options.sampling.repetition_penalty = 0.1;
  const std::vector<engine::Generation> results = generate_all(recipe, prompts, options, 2);
  engine::Inference inference(recipe, runtime::open_model(recipe), generate::score_shape(5 + kNew));
  for (size_t i = 0; i < prompts.size(); ++i) {
    engine::Ids ids = prompts[i];
    for (int64_t step = 0; step < kNew; ++step) {
      std::vector<float> penalized;
      generate::log_probabilities(inference, ids, [&](std::span<const float> logits) {
        engine::penalize_repetition(logits, ids, 0.1, penalized);
      });
      ids.push_back(engine::argmax(penalized));
    }
    EXPECT_EQ(results[i].ids, engine::Ids(ids.end() - kNew, ids.end()));
  }
  EXPECT_NE(results[0].ids, generate_all(recipe, prompts, greedy(), 2)[0].ids);
}

TEST(Generator, MaxNewTokensAndStreaming) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({5, 9, 2});
  engine::GenerationOptions options = greedy();
  options.max_new_tokens = 1;
  for (const engine::Generation& generation : generate_all(recipe, prompts, options, 2)) {
    EXPECT_EQ(generation.ids.size(), 1U);
    EXPECT_FALSE(generation.stopped);
  }
  engine::Inference inference(recipe, runtime::open_model(recipe),
                              engine::shape_for(prompts, greedy(), 2));
  std::vector<engine::Ids> streamed(prompts.size());
  const auto results =
      engine::Generator(inference).run(prompts, greedy(), [&](int64_t prompt, int32_t id) {
        streamed[static_cast<size_t>(prompt)].push_back(id);
        return false;
      });
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(streamed[i], results[i].ids);
  // Who takes the tokens may end an answer.
  const auto ended = engine::Generator(inference).run(
      prompts, greedy(), [](int64_t prompt, int32_t) { return prompt == 1; });
  EXPECT_EQ(ended[1].ids.size(), 1U);
  EXPECT_TRUE(ended[1].stopped);
  EXPECT_EQ(ended[0].ids, results[0].ids);
}

// What the program looks for, and what the host finds in whole rows of logits.
TEST(Generator, TokensAreTheSameByCandidatesAndByWholeRows) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({3, 11, 4});
  for (const auto& [temperature, top_k, top_p] :
       {std::tuple{0.0, int64_t{0}, 1.0}, {2.0, int64_t{1}, 1.0}, {1.5, int64_t{50}, 0.95}}) {
    engine::GenerationOptions options = greedy();
    options.sampling = {.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 3};
    plan::InferenceShape shape = engine::shape_for(prompts, options, 2);
    EXPECT_EQ(shape.candidates, std::max<int64_t>(top_k, 1));
    const auto by_candidates = generate_all(recipe, prompts, options, 2);
    shape.candidates = 0;
    engine::Inference inference(recipe, runtime::open_model(recipe), shape);
    const auto by_rows = engine::Generator(inference).run(prompts, options);
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(by_candidates[i].ids, by_rows[i].ids);
  }
}

TEST(Generator, SamplingDependsOnTheSeedAndNotOnTheBatch) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<engine::Ids> prompts = prompts_of({3, 11, 4, 8});
  engine::GenerationOptions options = greedy();
  options.sampling = {.temperature = 1.5, .top_k = 50, .top_p = 0.95, .seed = 3};
  const auto all = generate_all(recipe, prompts, options, 4);
  const auto one_by_one = generate_all(recipe, prompts, options, 1);
  options.sampling.seed = 4;
  const auto other = generate_all(recipe, prompts, options, 4);
  bool differs = false;
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(all[i].ids, one_by_one[i].ids);
    differs = differs || all[i].ids != other[i].ids;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace snug::testing
