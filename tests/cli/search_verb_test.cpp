// `snug search` by the built binary: its best recipe runs as it is, machines and methods are
// compared, and mistakes are told.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "binary_run.h"

namespace snug::cli {
namespace {

using nlohmann::json;

const std::vector<std::string> kJob =
    words_of("search --json model=smollm2-360m max_length=1024 per_device_train_batch_size=4");

json result_of(const BinaryRun& run) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out);
}

// Every plan that is shown, fed to `snug plan`, has the figures that were shown.
TEST(SearchVerb, ItsRecipesArePlannedWithTheSameFigures) {
  const testing::TemporaryFolder folder;
  const json found = result_of(run_snug(
      joined(kJob, {"machines=2x rtx-3090", "method=full,qlora", "device_memory=5GiB",
                    "offload_params=false", "offload_optimizer=none", "strategy=full_shard",
                    "recipe_out=" + (folder / "out.yaml").string()})));
  ASSERT_EQ(found["machines"].size(), 2U);
  ASSERT_GE(found["plans"].size(), 4U);
  EXPECT_EQ(contents_of(folder / "out.yaml"), found["plans"][0]["recipe"].get<std::string>());
  for (const json& plan : found["plans"]) {
    const std::string recipe = plan["recipe"];
    SCOPED_TRACE(recipe);
    folder.write("recipe.yaml", recipe);
    const json planned = result_of(run_snug({"plan", "--json", (folder / "recipe.yaml").string()}));
    EXPECT_TRUE(planned["fits"].get<bool>());
    EXPECT_EQ(planned["device"]["peak_bytes"], plan["device_bytes"]);
    EXPECT_EQ(planned["host"]["peak_bytes"], plan["host_bytes"]);
    EXPECT_EQ(planned["step_seconds"], plan["step_seconds"]);
  }
  for (const json& machine : found["machines"]) {
    EXPECT_GT(machine["settings"].size(), 30U);
    for (const json& setting : machine["settings"])
      EXPECT_EQ(setting.contains("reason"), setting["judgement"] != "fits") << setting;
  }
}

TEST(SearchVerb, RanksBySpeedOrByCost) {
  const auto words = [&](const std::string& more) {
    return joined(joined(kJob, {"machines=rtx-3090, h100", "method=lora", "recompute=layer"}),
                  words_of(more));
  };
  const json fast = result_of(run_snug(words("job_tokens=36e8")));
  EXPECT_EQ(fast["plans"][0]["machine"], "h100");
  for (const json& plan : fast["plans"])
    EXPECT_NEAR(plan["hours"].get<double>() * plan["tokens_per_second"].get<double>(), 1e6, 1);
  const json cheap = result_of(run_snug(words("rank_by=cost")));
  double before = 0;
  for (const json& plan : cheap["plans"]) {
    EXPECT_GE(plan["dollars_per_million_tokens"].get<double>(), before);
    before = plan["dollars_per_million_tokens"];
    const double price = plan["machine"] == "h100" ? 1.99 : 0.22;
    EXPECT_NEAR(plan["dollars_per_million_tokens"].get<double>() * 3600 *
                    plan["tokens_per_second"].get<double>() / 1e6,
                price, 1e-6);
  }
}

TEST(SearchVerb, SearchesWhatIsHere) {
  const BinaryRun run = run_snug(words_of(
      "search model=smollm2-135m max_length=256 per_device_train_batch_size=2 recompute=layer"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.find("this machine, lora: ") != std::string::npos) << run.out;
  EXPECT_TRUE(run.out.find("model: smollm2-135m\n") != std::string::npos) << run.out;
}

TEST(SearchVerb, SaysWhatIsWrong) {
  const auto expect = [](const std::vector<std::string>& more, int code, const std::string& text) {
    const BinaryRun run =
        run_snug(joined(joined(kJob, {"recompute=layer", "offload_params=false"}), more));
    EXPECT_EQ(run.exit_code, code) << run.err;
    EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
  };
  expect({"machines=2 rtx-3090"}, 2, "'2 rtx-3090' is no machine");
  expect({"machines=0x h100"}, 2, "'0x h100' has a number that is not from 1 to 4096");
  expect({"machines=h100,"}, 2, "'' is no machine");
  expect({"machines=h100", "device=h200"}, 2, "'device=h200' and machines both say");
  expect({"machines=rtx-4080"}, 2, "is rtx-4080, which the hardware table does not have");
  expect({"machines=t4"}, 2, "has no bf16 products");
  expect({"machines=h100, nonsense"}, 2, "is nonsense, which the hardware table does not have");
  expect({"machines=h100, h200", "model=nonsense"}, 2, "nonsense");
  expect({"machines=h100", "method=lora,bogus"}, 2, "'bogus' is no method; it is one of full");
  expect({"machines=h100", "method=lora,"}, 2, "'' is no method");
  expect({"machines=h100", "recipe_out=/nowhere/x.yaml"}, 2, "there is no folder /nowhere");
  expect({"machines=h100", "recipe_out=README.md"}, 2, "README.md is there already");
  expect({"machines=h100", "recipe_out="}, 2, "'recipe_out' is empty");
  // Hours follow from the speed, and rank as it does.
  expect({"device=h100", "rank_by=hours"}, 2, "it is one of tokens_per_second, cost");
  expect({"device=h100", "hardware=/nowhere/cards.yaml"}, 2, "/nowhere/cards.yaml");
  expect({"hardware=examples/cards.yaml"}, 2, "give its name as device");
  expect({"device=my-card", "hardware=examples/cards.yaml", "nodes=2"}, 2,
         "'nodes' is 2, but the hardware table does not say how fast cards of my-card");
  expect({"device=my-card", "hardware=examples/cards.yaml", "devices=2", "nodes=2"}, 2,
         "'devices' is 2, but the hardware table does not say how fast cards of my-card");
  // Before anything is searched: nothing would fit.
  for (const char* machine : {"device=rtx-5090", "machines=rtx-5090"})
    expect({machine, "rank_by=cost", "device_memory=20MiB"}, 2, "give price_per_hour");
  expect({"device=h100", "price_per_hour=-1"}, 2, "'price_per_hour' is '-1'");
  expect({"device=h100", "device_memory=20MiB"}, 3,
         "no setting of the job fits; the nearest on h100");
}

// The machine that is searched has its own number of cards, whatever the recipe says.
TEST(SearchVerb, AMachineReplacesThatOfTheRecipe) {
  const testing::TemporaryFolder folder;
  folder.write("recipe.yaml", "model: smollm2-135m\nmax_length: 256\ndevices: 2\n");
  const json found = result_of(
      run_snug({"search", "--json", (folder / "recipe.yaml").string(), "machines=h100",
                "method=lora,lora", "recompute=layer", "per_device_train_batch_size=256"}));
  ASSERT_EQ(found["machines"].size(), 1U);
  EXPECT_NE(found["plans"][0]["recipe"].get<std::string>().find("devices: 1\n"), std::string::npos);
  const json& settings = found["machines"][0]["settings"];
  EXPECT_TRUE(std::any_of(settings.begin(), settings.end(), [](const json& setting) {
    return setting["setting"].get<std::string>().find("256 rows") != std::string::npos;
  }));
}

// Its rows of a step are those of gradient_accumulation_steps, and no number is chosen beforehand.
TEST(SearchVerb, OfAutomaticRowsSearchesAll) {
  const BinaryRun run = run_snug(
      words_of("search --json model=smollm2-135m max_length=256 device=h100 recompute=layer "
               "offload_params=false activation_offloading=false per_device_train_batch_size=auto "
               "gradient_accumulation_steps=4"));
  EXPECT_EQ(run.err.find("auto:"), std::string::npos) << run.err;
  const json found = result_of(run);
  std::set<std::string> batches;
  for (const json& setting : found["machines"][0]["settings"]) {
    const std::string text = setting["setting"];
    batches.insert(text.substr(text.rfind(", ") + 2));
  }
  EXPECT_EQ(batches, (std::set<std::string>{"1 row x 4", "2 rows x 2", "4 rows"}));
  EXPECT_NE(found["plans"][0]["recipe"].get<std::string>().find("per_device_train_batch_size: "),
            std::string::npos);
}

// A user's own table: a new card, and another price of a known one.
TEST(SearchVerb, TakesCardsOfTheUsersOwn) {
  const testing::TemporaryFolder folder;
  folder.write("cards.yaml",
               "devices:\n"
               "  rtx-4090: {price: {low: 0.01, high: 0.02, date: 2026-11}}\n"
               "  my-card:\n"
               "    compute_capability: 89\n"
               "    multiprocessors: 100\n"
               "    memory_gib: 12.5\n"
               "    bf16_flops_per_second: 200e12\n"
               "    f32_flops_per_second: 50e12\n"
               "    bytes_per_second: 1e12\n"
               "    link_bytes_per_second: 32e9\n"
               "    interconnect_bytes_per_second: 10e9\n");
  folder.write("recipe.yaml",
               "hardware: cards.yaml\nmodel: smollm2-135m\nmax_length: 256\nrecompute: layer\n"
               "per_device_train_batch_size: 4\noffload_params: false\n"
               "activation_offloading: false\n");
  const std::string recipe = (folder / "recipe.yaml").string();
  const json found = result_of(
      run_snug({"search", "--json", recipe, "rank_by=cost", "machines=2x my-card, rtx-4090"}));
  EXPECT_EQ(found["plans"][0]["machine"], "rtx-4090");
  EXPECT_EQ(found["machines"][1]["price"]["low"], 0.01);
  EXPECT_FALSE(found["machines"][0].contains("price"));
  EXPECT_LT(found["machines"][0]["device_bytes"], int64_t{12} << 30);
  EXPECT_GT(found["machines"][0]["device_bytes"], int64_t{11} << 30);
  const json planned = result_of(run_snug({"plan", "--json", recipe, "device=my-card"}));
  EXPECT_EQ(planned["card"]["name"], "my-card");
  const std::string typed = run_snug({"plan", recipe, "device=my-cart"}).err;
  EXPECT_NE(typed.find("did you mean my-card?"), std::string::npos) << typed;
  folder.write("cards.yaml", "devices:\n  my-card: {memory_gib: 12}\n");
  const std::string broken = run_snug({"plan", recipe, "device=my-card"}).err;
  EXPECT_NE(broken.find("cards.yaml:2:12: 'my-card' is not in the built-in table, so it needs "
                        "compute_capability"),
            std::string::npos)
      << broken;
}

// A machine that cannot do it does not end the search of others.
TEST(SearchVerb, NamesMachinesThatItRejects) {
  const json found = result_of(run_snug(joined(kJob, {"machines=t4, h100", "recompute=layer"})));
  EXPECT_NE(found["machines"][0]["refusal"].get<std::string>().find("t4"), std::string::npos);
  EXPECT_EQ(found["plans"][0]["machine"], "h100");
}

}  // namespace
}  // namespace snug::cli
