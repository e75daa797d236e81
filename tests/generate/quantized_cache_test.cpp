// Keys and values in 8 bits (kv_cache_dtype=int8) through the engine: the same numbers however a
// prompt is cut, and near those of the full width.
#include "../train/golden_models.h"
#include "engine/cached_forward.h"
#include "golden_recipe.h"

#include <string_view>

namespace snug::testing {
namespace {

constexpr int64_t kTokens = 21;

// The logits after each of the ids from `prompt` tokens on, which are read in chunks of 8.
std::vector<std::vector<float>> logits_of(const formats::Recipe& recipe, const engine::Ids& ids,
                                          size_t prompt) {
  constexpr int64_t kChunk = 8;
  const models::ModelSource model = runtime::open_model(recipe);
  engine::Inference inference(recipe, model,
                              {.sequences = 2, .capacity = kTokens, .prefill_tokens = kChunk});
  engine::CachedForward forward(inference.executor(), inference.shape());
  std::vector<std::vector<float>> rows;
  const auto keep = [&] { rows.emplace_back(forward.logits(1).begin(), forward.logits(1).end()); };
  for (size_t done = 0; done < prompt; done += kChunk) {
    const engine::SequencePart part{
        1, std::span(ids).subspan(done, std::min<size_t>(kChunk, prompt - done))};
    forward.prefill({&part, 1});
  }
  keep();
  for (size_t token = prompt; token < ids.size(); ++token) {
    forward.decode(engine::Ids{engine::CachedForward::kIdle, ids[token]});
    keep();
  }
  return rows;
}

// Random weights whose every block ends in a norm carry what was rounded on with its full size, and
// a router of them chooses other experts where their scores are close.
double most_error(std::string_view model) {
  return model == "exaone4" || model == "olmoe" ? 0.1 : 0.03;
}

class QuantizedCache : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizedCache, GivesNearlyTheLogitsOfTheFullWidthHoweverAPromptIsCut) {
  const formats::Recipe full = golden_recipe(GetParam());
  const formats::Recipe recipe = golden_recipe(GetParam(), {"kv_cache_dtype=int8"});
  const engine::Ids ids = random_ids(kTokens, runtime::open_model(recipe).config.vocab_size, 7);
  const auto expected = logits_of(full, ids, 1);
  const auto decoded = logits_of(recipe, ids, 1);
  const auto prefilled = logits_of(recipe, ids, 17);
  double largest = 0;
  for (size_t i = 0; i < decoded.size(); ++i)
    largest = std::max(largest, relative_error(decoded[i], expected[i]));
  EXPECT_GT(largest, 1e-5) << "nothing was rounded";
  EXPECT_LT(largest, most_error(GetParam()));
  for (size_t i = 0; i < prefilled.size(); ++i)
    EXPECT_LT(relative_error(prefilled[i], decoded[i + 16]), 1e-5) << "row " << i;
}

INSTANTIATE_TEST_SUITE_P(Models, QuantizedCache, ::testing::ValuesIn(test::kGoldenModels),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::testing
