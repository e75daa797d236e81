// The loss that balances experts in training: of several micro-batches, on one rank or more, and in
// what a run shows.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../text/tiny_tokenizer.h"
#include "formats/recipe/recipe.h"
#include "program/kinds/expert/route.h"
#include "rank_run.h"
#include "tiny_job.h"

namespace snug::train {
namespace {

using nlohmann::json;

// Two layers that choose two of five experts.
class BalanceJob : public TinyJob {
 public:
  explicit BalanceJob(const json& more = json::object()) {
    json config = json::parse(cli::kTinyConfig);
    config.update(
        {{"model_type", "mixtral"}, {"num_local_experts", 5}, {"num_experts_per_tok", 2}});
    config.update(more);
    folder().write("shape/config.json", config.dump());
  }

  RankRun on_ranks(int ranks, int accumulation, const std::string& more) const {
    const std::string words = fmt::format(
        "model={} data={} init=random method=full max_length=160 packing=false "
        "compute_dtype=fp32 learning_rate=1e-3 lr_scheduler_type=constant "
        "shard_threshold=100 router_aux_loss_coef=0.5 "
        "per_device_train_batch_size=1 gradient_accumulation_steps={} {}",
        path("shape").string(), path("data.jsonl").string(), accumulation, more);
    return run_on_ranks(cli::words_of(words), ranks, int64_t{3});
  }

  // Of each step.
  std::vector<json> metrics(const std::string& output, const std::string& more) const {
    const cli::BinaryRun of = run(output, more);
    EXPECT_EQ(of.exit_code, 0) << of.err;
    std::vector<json> lines;
    std::istringstream text(cli::contents_of(path(output) / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
  }
};

constexpr const char* kOn = "output_router_logits=true";

// Micro-batches are the same rows, whichever rank has them.
TEST(Balance, OfSeveralRanksIsThatOfAllMicroBatches) {
  const BalanceJob job;
  const RankRun one = job.on_ranks(1, 4, kOn);
  const RankRun plain = job.on_ranks(1, 4, "");
  EXPECT_TRUE(plain.router_losses.empty());
  EXPECT_GT(std::abs(plain.losses.back() - one.losses.back()), 1e-5) << "it changes nothing";
  ASSERT_EQ(one.router_losses.size(), 3U);
  for (const auto& [ranks, strategy] : {std::pair{2, "ddp"}, {2, "full_shard"}, {4, "zero2"}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, strategy));
    const RankRun many =
        job.on_ranks(ranks, 4 / ranks, fmt::format("{} strategy={}", kOn, strategy));
    for (size_t step = 0; step < 3; ++step) {
      EXPECT_NEAR(many.router_losses.at(step), one.router_losses[step], 1e-5);
      EXPECT_NEAR(many.losses.at(step), one.losses[step], 1e-5);
      EXPECT_NEAR(many.norms.at(step) / one.norms[step], 1, 1e-4);
    }
    for (const auto& [name, values] : one.weights)
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(many.weights.at(name).at(i), values[i], 2e-5) << name;
  }
}

// Two of five experts whose use is even: k, without the coefficient. A rank's documents may differ
// in length, so shares of micro-batches do too.
TEST(Balance, IsShownWithoutItsCoefficient) {
  const BalanceJob job;
  for (const std::string method : {"full", "lora"}) {
    const std::string words = fmt::format(
        "method={} max_steps=3 gradient_accumulation_steps=2 packing=false learning_rate=1e-9 ",
        method);
    const auto plain = job.metrics("plain_" + method, words);
    const auto small = job.metrics("small_" + method, words + kOn);
    const auto large = job.metrics("large_" + method, words + kOn + " router_aux_loss_coef=0.25");
    ASSERT_EQ(plain.size(), 3U);
    for (size_t step = 0; step < 3; ++step) {
      EXPECT_FALSE(plain[step].contains("aux_loss"));
      const double loss = plain[step]["loss"];
      const double aux_loss = large[step]["aux_loss"];
      EXPECT_NEAR(aux_loss, 2.0, 0.3);
      EXPECT_NEAR(small[step]["aux_loss"], aux_loss, 1e-4);
      EXPECT_NEAR(large[step]["loss"], loss + 0.25 * aux_loss, 1e-4);
      EXPECT_NEAR(small[step]["loss"], loss + 0.001 * aux_loss, 1e-4);
    }
  }
}

// The loss of all layers is made in the forward pass, so that nothing of them is kept or made again
// for it; a layer leaves a few bytes for each expert.
TEST(Balance, KeepsAFewBytesOfALayer) {
  const BalanceJob job;
  const auto backend = backends::open_backend("cpu", {.threads = 1});
  const auto planned = [&](const char* word, const char* recompute) {
    const formats::Recipe recipe = formats::load_recipe(
        "", cli::words_of(fmt::format("model={} data={} init=random method=full max_length=256 "
                                      "recompute={} {}",
                                      job.path("shape").string(), job.path("data.jsonl").string(),
                                      recompute, word)));
    const models::ModelSource model = models::find_model(recipe.model);
    return plan::plan_training(plan::training_spec(recipe, model.config, *backend), *backend);
  };
  for (const char* recompute : {"none", "layer"}) {
    const plan::Job with = planned(kOn, recompute);
    const plan::Job without = planned("", recompute);
    const auto bytes = [](const plan::Job& of) {
      return of.layout.spaces[static_cast<size_t>(program::Space::device)].arena_bytes;
    };
    EXPECT_LE(bytes(with) - bytes(without), 4096) << recompute;
    const program::Program& micro = *with.find(program::ProgramName::micro_first);
    int losses = 0;
    int gradients = 0;
    for (const program::Operation& operation : micro.operations) {
      if (operation.kind() == program::Kind::balance_loss_train) {
        ++losses;
        EXPECT_EQ(operation.phase, program::Phase::forward);
      } else if (operation.kind() == program::Kind::route_grad) {
        gradients += operation.attributes.get<program::RouteGrad>().balance ? 1 : 0;
      }
    }
    EXPECT_EQ(losses, 1);
    EXPECT_EQ(gradients, 2) << "of two layers";
  }
}

// As transformers' Trainer has it.
TEST(Balance, IsOnWhereTheConfigSaysSoAndARecipeMayTurnItOff) {
  const BalanceJob job({{"output_router_logits", true}, {"router_aux_loss_coef", 0.125}});
  const auto on = job.metrics("on", "max_steps=1");
  const auto off = job.metrics("off", "max_steps=1 output_router_logits=false");
  ASSERT_EQ(on.size(), 1U);
  EXPECT_FALSE(off.at(0).contains("aux_loss"));
  EXPECT_NEAR(on[0]["loss"], off[0]["loss"].get<double>() + 0.125 * on[0]["aux_loss"].get<double>(),
              1e-4);
}

// Three documents, two rows a step: the last step of the epoch has a row without a document.
TEST(Balance, OfAShortLastStepIsThatOfItsTokens) {
  const BalanceJob job;
  const auto lines = job.metrics("run", fmt::format("num_train_epochs=1 packing=false {} "
                                                    "gradient_accumulation_steps=2",
                                                    kOn));
  ASSERT_EQ(lines.size(), 2U);
  for (const json& line : lines) EXPECT_NEAR(line["aux_loss"], 2.0, 0.3) << line.dump();
}

TEST(Balance, OfAModelWithoutExpertsIsRefused) {
  const TinyJob job;
  for (const char* word : {"output_router_logits=true", "router_aux_loss_coef=0.1"}) {
    const cli::BinaryRun run = job.run("run", word);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(testing::contains(run.last_line(), "the model has none")) << run.err;
  }
  EXPECT_EQ(job.run("run", "output_router_logits=false max_steps=1").exit_code, 0);
}

}  // namespace
}  // namespace snug::train
