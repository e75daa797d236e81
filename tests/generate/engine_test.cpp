// Generating against repeated whole passes, across chunk boundaries and in batches.
#include <algorithm>

#include "engine/penalties.h"
#include "formats/recipe/recipe.h"
#include "generate/score.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::Finish;
using engine::Inference;
using engine::Request;

constexpr int64_t kNew = 6;
constexpr const char* kModel = "grouped_tied";

// Greedy requests for these prompts.
std::vector<Request> requests_of(const std::vector<engine::Ids>& prompts) {
  std::vector<Request> requests;
  for (const engine::Ids& prompt : prompts)
    requests.push_back({.prompt = prompt,
                        .max_new_tokens = kNew,
                        .sample = static_cast<int64_t>(requests.size())});
  return requests;
}

std::vector<Request> with_sampling(std::vector<Request> requests,
                                   const engine::SamplingOptions& sampling) {
  for (Request& request : requests) request.sampling = sampling;
  return requests;
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

plan::InferenceShape shape_of(const formats::Recipe& recipe, const std::vector<Request>& requests,
                              int64_t batch) {
  return engine::shape_for(requests, batch, runtime::open_model(recipe).config);
}

std::vector<Answer> answers_of(const formats::Recipe& recipe, const std::vector<Request>& requests,
                               int64_t batch, int64_t chunk = 0) {
  plan::InferenceShape shape = shape_of(recipe, requests, batch);
  if (chunk > 0) shape.prefill_tokens = chunk;
  Inference inference(recipe, runtime::open_model(recipe), shape);
  return engine::Engine(inference).answers(requests);
}

engine::Ids answer_of(const formats::Recipe& recipe, const Request& request, int64_t chunk = 0) {
  return answers_of(recipe, {request}, 1, chunk).front().ids;
}

std::vector<Request> random_requests(const std::vector<size_t>& lengths, int64_t vocab = 137) {
  std::vector<engine::Ids> prompts;
  for (const size_t length : lengths)
    prompts.push_back(random_ids(length, vocab, static_cast<unsigned>(100 + length)));
  return requests_of(prompts);
}

TEST(Engine, GreedyIsArgmaxOfRepeatedWholePasses) {
  for (const char* model : {"basic", "grouped_tied", "head_dim"}) {
    const formats::Recipe recipe = golden_recipe(model);
    const Request request = random_requests({5}, 53).front();
    EXPECT_EQ(answer_of(recipe, request), repeated_argmax(recipe, request.prompt, kNew)) << model;
  }
}

TEST(Engine, ThroughAnAdapter) {
  const formats::Recipe recipe =
      golden_recipe(kModel, {"adapter=" + kGoldens + "lora_all_linear/adapter"});
  const Request request = random_requests({7}).front();
  const engine::Ids adapted = answer_of(recipe, request);
  EXPECT_EQ(adapted, repeated_argmax(recipe, request.prompt, kNew));
  EXPECT_NE(adapted, answer_of(golden_recipe(kModel), request));
}

// A kernel may read such tensors while the one before it still runs.
TEST(Engine, DecodesWithWeightsThatNothingWrites) {
  const formats::Recipe recipe = golden_recipe(kModel);
  Inference inference(recipe, runtime::open_model(recipe),
                      shape_of(recipe, random_requests({5}), 1));
  const auto is_constant = [&](std::string_view name) {
    return inference.executor().tensor(program::ProgramName::decode, name).is_constant;
  };
  EXPECT_TRUE(is_constant("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_TRUE(is_constant("model.layers.1.mlp.down_proj.weight"));
  EXPECT_FALSE(is_constant("layers.0.key_cache"));
}

TEST(Engine, PromptsAtTheBoundariesOfChunks) {
  const formats::Recipe recipe = golden_recipe(kModel);
  constexpr int64_t kChunk = 8;
  for (const size_t length : {1, 7, 8, 9, 15, 16, 17}) {
    const Request request = random_requests({length}).front();
    EXPECT_EQ(answer_of(recipe, request, kChunk), answer_of(recipe, request, 64))
        << "a prompt of " << length;
  }
}

// Prompts share chunks and go on in the next one, and there are more of them than places.
TEST(Engine, BatchesEqualSingleRuns) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<Request> requests = random_requests({3, 11, 1, 26, 8, 2, 17});
  std::vector<engine::Ids> single;
  for (const Request& request : requests) single.push_back(answer_of(recipe, request));
  for (const int64_t batch : {2, 3, 7})
    for (const int64_t chunk : {4, 16, 512}) {
      const std::vector<Answer> together = answers_of(recipe, requests, batch, chunk);
      for (size_t i = 0; i < requests.size(); ++i)
        EXPECT_EQ(together[i].ids, single[i])
            << "prompt " << i << ", batch " << batch << ", chunk " << chunk;
    }
}

TEST(Engine, OneInferenceAnswersAgainAndAgain) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<Request> requests = random_requests({12, 4});
  Inference inference(recipe, runtime::open_model(recipe), shape_of(recipe, requests, 2));
  engine::Engine engine(inference);
  const std::vector<Answer> first = engine.answers(requests);
  engine.answers(std::span(requests).last(1));
  const std::vector<Answer> again = engine.answers(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(first[i].ids, again[i].ids);
}

TEST(Engine, StopIdsEndASequenceAndOnlyThatOne) {
  const formats::Recipe recipe = golden_recipe(kModel);
  std::vector<Request> requests = random_requests({5, 9});
  const std::vector<Answer> free = answers_of(recipe, requests, 2);
  const int32_t stop = free[0].ids[2];
  for (Request& request : requests) request.end.ids = {stop};
  const std::vector<Answer> stopped = answers_of(recipe, requests, 2);
  for (size_t i = 0; i < requests.size(); ++i) {
    const engine::Ids& ids = free[i].ids;
    const auto end = std::find(ids.begin(), ids.end(), stop);
    EXPECT_EQ(stopped[i].finish, end != ids.end() ? Finish::stop : Finish::length);
    EXPECT_EQ(stopped[i].ids, engine::Ids(ids.begin(), end == ids.end() ? end : end + 1));
  }
  EXPECT_EQ(stopped[0].finish, Finish::stop);
}

// In each step the likeliest of the penalized logits, as whole passes give them. Below 1, or below
// 0, what was seen becomes likelier.
TEST(Engine, PenalizesPromptAndAnswer) {
  const formats::Recipe recipe = golden_recipe("basic");
  const std::vector<Request> free = random_requests({5, 3}, 113);
  Inference inference(recipe, runtime::open_model(recipe), generate::score_shape(5 + kNew));
  for (const engine::SamplingOptions& options :
       {engine::SamplingOptions{.repetition_penalty = 0.1},
        {.presence_penalty = -6, .frequency_penalty = 0.5}}) {
    const std::vector<Request> requests = with_sampling(free, options);
    const std::vector<Answer> answers = answers_of(recipe, requests, 2);
    engine::Penalties penalties(options);
    for (size_t i = 0; i < requests.size(); ++i) {
      const engine::Ids& prompt = requests[i].prompt;
      engine::Ids answer;
      while (std::ssize(answer) < kNew) {
        engine::Ids ids = prompt;
        ids.insert(ids.end(), answer.begin(), answer.end());
        int32_t next = 0;
        generate::log_probabilities(inference, ids, [&](std::span<const float> logits) {
          next = engine::argmax(penalties.applied(logits, {prompt, answer}));
        });
        answer.push_back(next);
      }
      EXPECT_EQ(answers[i].ids, answer);
    }
    EXPECT_NE(answers[0].ids, answers_of(recipe, free, 2)[0].ids);
  }
}

TEST(Engine, MaxNewTokensAndStreaming) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<Request> requests = random_requests({5, 9, 2});
  std::vector<Request> short_ones = requests;
  for (Request& request : short_ones) request.max_new_tokens = 1;
  for (const Answer& answer : answers_of(recipe, short_ones, 2)) {
    EXPECT_EQ(answer.ids.size(), 1U);
    EXPECT_EQ(answer.finish, Finish::length);
  }
  Inference inference(recipe, runtime::open_model(recipe), shape_of(recipe, requests, 2));
  const std::vector<Answer> answers = engine::Engine(inference).answers(requests);
  std::vector<Answer> streamed(requests.size());
  engine::Engine engine(inference);
  for (const Request& request : requests)
    engine.submit(request, [&](const engine::AnswerEvent& event) {
      engine::add_to(streamed[static_cast<size_t>(event.request)], event);
    });
  while (engine.step()) continue;
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(streamed[i].ids, answers[i].ids);
}

// What the program looks for, and what the host finds in whole rows of logits.
TEST(Engine, TokensAreTheSameByCandidatesAndByWholeRows) {
  const formats::Recipe recipe = golden_recipe(kModel);
  for (const auto& [temperature, top_k, top_p] :
       {std::tuple{0.0, int64_t{0}, 1.0}, {2.0, int64_t{1}, 1.0}, {1.5, int64_t{50}, 0.95}}) {
    const std::vector<Request> requests =
        with_sampling(random_requests({3, 11, 4}),
                      {.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 3});
    plan::InferenceShape shape = shape_of(recipe, requests, 2);
    EXPECT_EQ(shape.candidates, std::max<int64_t>(top_k, 1));
    const std::vector<Answer> by_candidates = answers_of(recipe, requests, 2);
    shape.candidates = 0;
    Inference inference(recipe, runtime::open_model(recipe), shape);
    const std::vector<Answer> by_rows = engine::Engine(inference).answers(requests);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(by_candidates[i].ids, by_rows[i].ids);
  }
}

TEST(Engine, SamplingDependsOnTheSeedAndNotOnTheBatch) {
  const formats::Recipe recipe = golden_recipe(kModel);
  const std::vector<Request> free = random_requests({3, 11, 4, 8});
  engine::SamplingOptions sampling{.temperature = 1.5, .top_k = 50, .top_p = 0.95, .seed = 3};
  const std::vector<Request> requests = with_sampling(free, sampling);
  const std::vector<Answer> all = answers_of(recipe, requests, 4);
  const std::vector<Answer> one_by_one = answers_of(recipe, requests, 1);
  sampling.seed = 4;
  const std::vector<Answer> other = answers_of(recipe, with_sampling(free, sampling), 4);
  bool differs = false;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(all[i].ids, one_by_one[i].ids);
    differs = differs || all[i].ids != other[i].ids;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace snug::testing
