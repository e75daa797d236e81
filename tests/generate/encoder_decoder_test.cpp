// Encoder-decoders with caches against transformers: logits of an answer, appended in chunks and
// token by token, and what is generated, greedily and side by side.
#include <fmt/format.h>

#include "engine/cached_forward.h"
#include "engine/sampling.h"
#include "formats/recipe/recipe.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/loading/load_weights.h"

namespace snug::testing {
namespace {

using engine::CachedForward;
using engine::SequencePart;

constexpr int64_t kEncoderTokens = 37;
constexpr int64_t kTokens = 33;

class EncoderDecoderLogits : public ::testing::TestWithParam<std::string> {
 protected:
  EncoderDecoderLogits()
      : recipe_(golden_recipe(GetParam())),
        model_(runtime::open_model(recipe_)),
        golden_(kGoldens + GetParam() + "/golden.safetensors"),
        ids_(golden_values<int32_t>(golden_, "ids")),
        encoder_ids_(golden_values<int32_t>(golden_, "encoder_ids")),
        logits_(golden_values<float>(golden_, "logits")) {}

  std::span<const int32_t> ids(int64_t row) const {
    return std::span(ids_).subspan(static_cast<size_t>(row * kTokens), kTokens);
  }
  std::span<const int32_t> encoder_ids(int64_t row) const {
    return std::span(encoder_ids_)
        .subspan(static_cast<size_t>(row * kEncoderTokens), kEncoderTokens);
  }
  std::span<const float> expected(int64_t row, int64_t token) const {
    const auto vocab = static_cast<size_t>(model_.config.vocab_size);
    return std::span(logits_).subspan(static_cast<size_t>(row * kTokens + token) * vocab, vocab);
  }

  // Of all tokens of two sequences, appended at once.
  void expect_all_within(const formats::Recipe& recipe, double tolerance) {
    engine::Inference inference(recipe, model_,
                                {.sequences = 2,
                                 .capacity = {kTokens, kEncoderTokens},
                                 .prefill_tokens = 2 * kTokens,
                                 .encoder_tokens = 2 * kEncoderTokens,
                                 .all_logits = true});
    engine::CachedForward forward(inference.executor(), inference.shape());
    const std::vector<engine::SequencePart> parts{{0, ids(0), encoder_ids(0)},
                                                  {1, ids(1), encoder_ids(1)}};
    forward.prefill(parts);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t token = 0; token < kTokens; ++token)
        EXPECT_LT(relative_error(forward.logits(row * kTokens + token), expected(row, token)),
                  tolerance)
            << row << " " << token;
  }

  formats::Recipe recipe_;
  models::ModelSource model_;
  formats::SafetensorsFile golden_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> encoder_ids_;
  std::vector<float> logits_;
};

TEST_P(EncoderDecoderLogits, OfAllTokensAtOnce) { expect_all_within(recipe_, 1e-4); }

// Those of the encoder too.
TEST_P(EncoderDecoderLogits, OfKeysAndValuesIn8Bits) {
  expect_all_within(golden_recipe(GetParam(), {"kv_cache_dtype=int8"}), 0.05);
}

// The encoder reads a sequence once; what follows needs its caches alone, which another sequence's
// prompt leaves as they are.
TEST_P(EncoderDecoderLogits, OfChunksAndSingleTokens) {
  constexpr int64_t kChunk = 16;
  engine::Inference inference(recipe_, model_,
                              {.sequences = 2,
                               .capacity = {kTokens, kEncoderTokens},
                               .prefill_tokens = kChunk,
                               .encoder_tokens = kEncoderTokens});
  engine::CachedForward forward(inference.executor(), inference.shape());
  for (const int64_t begin : {1, 15, 16}) {
    forward.release_all();
    const engine::SequencePart first{1, ids(1).first(static_cast<size_t>(begin)), encoder_ids(1)};
    forward.prefill({&first, 1});
    EXPECT_LT(relative_error(forward.logits(1), expected(1, begin - 1)), 1e-4) << begin;
    const engine::SequencePart other{0, ids(0).first(1), encoder_ids(0)};
    forward.prefill({&other, 1});
    EXPECT_LT(relative_error(forward.logits(0), expected(0, 0)), 1e-4);
    const engine::SequencePart more{1, ids(1).subspan(static_cast<size_t>(begin), 3)};
    forward.prefill({&more, 1});
    EXPECT_LT(relative_error(forward.logits(1), expected(1, begin + 2)), 1e-4) << begin;
    for (int64_t token = begin + 3; token < kTokens; ++token) {
      const bool goes_on = token % 2 == 0 && forward.length(0) < kTokens;
      const int64_t of_other = forward.length(0);
      forward.decode(engine::Ids{
          goes_on ? ids(0)[static_cast<size_t>(of_other)] : engine::CachedForward::kIdle,
          ids(1)[static_cast<size_t>(token)]});
      EXPECT_LT(relative_error(forward.logits(1), expected(1, token)), 1e-4)
          << begin << " " << token;
      if (goes_on) {
        EXPECT_LT(relative_error(forward.logits(0), expected(0, of_other)), 1e-4) << of_other;
      }
    }
  }
}

// In chunks, of which the first alone runs the encoder with something to read.
TEST_P(EncoderDecoderLogits, ScoresOfAnAnswer) {
  const auto labels = golden_values<int32_t>(golden_, "targets");
  const auto answer = std::span(labels).subspan(kTokens);  // all of row 1 has a loss
  const bool repeats = model_.config.repeats_prompt;
  const auto last =
      repeats ? golden_values<float>(golden_, "answer_logits")
              : std::vector<float>(logits_.begin() + std::ssize(logits_) / 2, logits_.end());
  plan::InferenceShape shape =
      generate::score_shape(kTokens + (repeats ? kEncoderTokens : 0), kEncoderTokens);
  shape.prefill_tokens = 16;
  engine::Inference inference(recipe_, model_, shape);
  std::vector<float> logits;
  const std::vector<double> scores = generate::answer_log_probabilities(
      inference, encoder_ids(1), answer,
      [&](std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); });
  ASSERT_EQ(scores.size(), answer.size());
  ASSERT_EQ(logits.size(), last.size());
  EXPECT_LT(relative_error(logits, last), 1e-4);
  const auto vocab = static_cast<size_t>(model_.config.vocab_size);
  for (size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i],
                engine::log_probability(std::span(last).subspan(i * vocab, vocab), answer[i]), 1e-4)
        << i;
}

TEST_P(EncoderDecoderLogits, GreedyAnswersAreTransformers) {
  const auto greedy = golden_values<int32_t>(golden_, "greedy");
  const auto count = static_cast<size_t>(golden_.at("greedy").shape[1]);
  std::vector<engine::Request> requests;
  for (const int64_t row : {0, 1})
    requests.push_back({.prompt = {encoder_ids(row).begin(), encoder_ids(row).end()},
                        .max_new_tokens = static_cast<int64_t>(count)});
  for (const int64_t batch : {1, 2}) {
    plan::InferenceShape shape = engine::shape_for(requests, batch, model_.config);
    for (const int64_t room : {shape.encoder_tokens, kEncoderTokens}) {
      shape.encoder_tokens = room;
      engine::Inference inference(recipe_, model_, shape);
      const auto answers = engine::Engine(inference).answers(requests);
      for (size_t row = 0; row < 2; ++row)
        EXPECT_EQ(answers[row].ids,
                  engine::Ids(greedy.begin() + static_cast<std::ptrdiff_t>(row * count),
                              greedy.begin() + static_cast<std::ptrdiff_t>((row + 1) * count)))
            << batch << " " << room;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoderLogits,
                         ::testing::Values("t5", "t5_gated", "mt5", "codet5p"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::testing
