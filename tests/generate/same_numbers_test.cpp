// The log-probabilities that generation tells are those that `score` gives to the same tokens, and
// those of the training forward pass: what learning from rewards rests on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../backends/comparison.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "training_logits.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::Request;

// How far numbers are from each other.
struct Distance {
  double largest = 0;
  double sum = 0;
  double count = 0;

  void add(double a, double b) {
    largest = std::max(largest, std::abs(a - b));
    sum += std::abs(a - b);
    count += 1;
  }
  double mean() const { return sum / count; }
};

// Drawn at temperature 1, as rollouts are, so that unlikely tokens are among them.
std::vector<Request> rollouts(int64_t vocab) {
  std::vector<Request> requests;
  for (const size_t prompt : {3, 21, 1, 9, 14})
    requests.push_back({.prompt = random_ids(prompt, vocab, static_cast<unsigned>(prompt)),
                        .max_new_tokens = 20,
                        .sampling = {.temperature = 1, .seed = 11},
                        .log_probabilities = 0,
                        .sample = static_cast<int64_t>(requests.size())});
  return requests;
}

class SameNumbers : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  std::string name() const { return std::get<0>(GetParam()); }
  bool is_bf16() const { return std::get<1>(GetParam()) == std::string_view("bf16"); }

  void expect_near(const Distance& distance, const char* what) const {
    if (!is_bf16()) {
      EXPECT_LT(distance.largest, 1e-5) << what;
      return;
    }
    fmt::print("{} in bf16, generation and {}: mean {:.2e}, largest {:.2e} of {} tokens\n", name(),
               what, distance.mean(), distance.largest, distance.count);
    EXPECT_LT(distance.mean(), 1e-2) << what;
  }
};

TEST_P(SameNumbers, OfGenerationScoreAndTraining) {
  if (is_bf16() && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  const formats::Recipe recipe =
      golden_recipe(name(), {fmt::format("compute_dtype={}", std::get<1>(GetParam()))});
  const models::ModelSource model = runtime::open_model(recipe);
  const auto vocab = static_cast<size_t>(model.config.vocab_size);
  const std::vector<Request> requests = rollouts(model.config.vocab_size);
  plan::InferenceShape shape = engine::shape_for(requests, 3, model.config);
  shape.prefill_tokens = 16;
  engine::Inference inference(recipe, model, shape);
  const std::vector<Answer> answers = engine::Engine(inference).answers(requests);
  engine::Inference scoring(recipe, model, generate::score_shape(64));
  Distance from_score;
  Distance from_training;
  for (size_t i = 0; i < answers.size(); ++i) {
    engine::Ids ids = requests[i].prompt;
    const size_t prompt = ids.size();
    ids.insert(ids.end(), answers[i].ids.begin(), answers[i].ids.end());
    const std::vector<double> scores = generate::log_probabilities(scoring, ids);
    const std::vector<float> logits =
        training_logits(name(), ids, {static_cast<int32_t>(ids.size())},
                        is_bf16() ? base::DType::bf16 : base::DType::f32);
    ASSERT_EQ(answers[i].log_probabilities.size(), answers[i].ids.size());
    for (size_t token = 0; token < answers[i].ids.size(); ++token) {
      const double told = answers[i].log_probabilities[token];
      from_score.add(told, scores[prompt + token - 1]);
      const auto row = std::span(logits).subspan((prompt + token - 1) * vocab, vocab);
      from_training.add(told, engine::log_probability(row, answers[i].ids[token]));
    }
  }
  expect_near(from_score, "score");
  expect_near(from_training, "training");
}

INSTANTIATE_TEST_SUITE_P(All, SameNumbers,
                         ::testing::Combine(::testing::Values("mistral", "gemma2", "gpt2",
                                                              "qwen3_moe"),
                                            ::testing::Values("fp32", "bf16")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace snug::testing
