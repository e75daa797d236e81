// Keys and values in 8 bits (kv_cache_dtype=int8) through the engine: the same numbers however a
// prompt is cut, and near those of the full width.
#include "../base/temporary_folder.h"
#include "../train/golden_models.h"
#include "base/json.h"
#include "engine/cached_forward.h"
#include "golden_recipe.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

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

// Random weights whose every block ends in a norm carry what was rounded on with its full size.
double most_error(std::string_view model) { return model == "exaone4" ? 0.1 : 0.03; }

// The golden model. Of a mixture every token gets all experts: which of them a router chooses would
// change at once where two scores are close, however little was rounded.
class Model {
 public:
  explicit Model(const std::string& golden) : golden_(kGoldens + golden + "/model") {
    const int64_t experts = runtime::open_model(recipe_of({"model=" + golden_})).config.num_experts;
    if (experts == 0) return;
    std::filesystem::copy(golden_, folder_ / "model");
    nlohmann::json config = base::read_json_file(folder_ / "model/config.json");
    config["num_experts_per_tok"] = experts;
    if (config.contains("topk_group")) config["topk_group"] = config["n_group"];
    folder_.write("model/config.json", config.dump());
    golden_ = folder_ / "model";
  }
  formats::Recipe recipe(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), "model=" + golden_);
    return recipe_of(std::move(words));
  }

 private:
  TemporaryFolder folder_;
  std::string golden_;
};

class QuantizedCache : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizedCache, GivesNearlyTheLogitsOfTheFullWidthHoweverAPromptIsCut) {
  const Model model(GetParam());
  const formats::Recipe full = model.recipe();
  const formats::Recipe recipe = model.recipe({"kv_cache_dtype=int8"});
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
