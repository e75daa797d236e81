// Each verb of the built binary, on a tiny model that it trained itself.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "binary_run.h"
#include "formats/recipe/recipe.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

const std::vector<std::string> kRun =
    words_of("max_length=256 per_device_train_batch_size=2 max_steps=2 threads=2");

// The base model is trained once for all tests.
class Verbs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<testing::TemporaryFolder>();
    write_tiny_shape(*folder_, "shape");
    folder_->write("data.jsonl", kTinyData);
    base_ =
        run_snug(joined({"train", "--json", "model=" + path("shape"), "init=random", "method=full",
                         "data=" + path("data.jsonl"), "output_dir=" + path("base")},
                        kRun));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override { ASSERT_EQ(base_.exit_code, 0) << base_.err; }

  static std::string path(const char* name) { return (*folder_ / name).string(); }
  static std::string model() { return "model=" + path("base/model"); }

  static std::unique_ptr<testing::TemporaryFolder> folder_;
  static BinaryRun base_;
};

std::unique_ptr<testing::TemporaryFolder> Verbs::folder_;
BinaryRun Verbs::base_;

TEST_F(Verbs, ThoseThatRunAloneRefuseALaunchOfSeveral) {
  const auto run_in = [](const std::string& variables, const std::string& words) {
    return run_program(joined(joined({"/usr/bin/env"}, words_of(variables)),
                              joined({SNUG_BINARY}, words_of(words))));
  };
  const std::string mpi = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2";
  for (const std::string& words :
       {"generate prompt=a " + model(), "score prompt=a " + model(), "plan " + model(),
        "quantize output_dir=" + path("quantized") + " " + model(), std::string("models"),
        "bench step " + model()}) {
    const BinaryRun run = run_in(mpi, words);
    EXPECT_EQ(run.exit_code, 2) << words << run.output();
    EXPECT_TRUE(contains(run.err, "runs as one process, but a launcher (openmpi) started 2"))
        << words << run.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("quantized")));
  EXPECT_EQ(run_in("RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=1", "models").exit_code, 2);
  for (const char* variables :
       {"RANK=1 WORLD_SIZE=2", "RANK=1", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1"})
    EXPECT_EQ(run_in(variables, "models").exit_code, 0) << variables;
}

TEST_F(Verbs, TrainWritesTheRunFolder) {
  for (const char* name :
       {"recipe.yaml", "plan.json", "measured.json", "metrics.jsonl", "report.html",
        "model/config.json", "model/tokenizer.json", "model/model.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(*folder_ / "base" / name)) << name;
  const auto planned = json::parse(contents_of(*folder_ / "base/plan.json"));
  const auto measured = json::parse(contents_of(*folder_ / "base/measured.json"));
  EXPECT_EQ(measured["device"]["peak_bytes"], planned["device"]["peak_bytes"]);
  EXPECT_EQ(measured, json::parse(base_.out));
  // What the data hold is counted in the run.
  for (const auto& item : measured.items())
    EXPECT_TRUE(item.key() == "data" || planned.contains(item.key())) << item.key();
  std::istringstream lines(contents_of(*folder_ / "base/metrics.jsonl"));
  int steps = 0;
  double tokens = 0;
  for (std::string line; std::getline(lines, line); ++steps) {
    const auto metrics = json::parse(line);
    for (const char* key : {"step", "loss", "grad_norm", "learning_rate", "tokens_per_second"})
      EXPECT_TRUE(metrics.contains(key)) << key;
    EXPECT_EQ(metrics["step"], steps + 1);
    tokens += metrics["tokens"].get<double>();
  }
  EXPECT_EQ(steps, 2);
  EXPECT_NEAR(measured["tokens_per_step"].get<double>(), tokens / steps, 0.5);
}

TEST_F(Verbs, TrainRunsFromARecipeWithOverrides) {
  const auto recipe = folder_->write(
      "lora.yaml", "model: " + path("base/model") + "\ndata: " + path("data.jsonl") +
                       "\nmethod: lora\nlora_r: 2\nmax_length: 256\nmax_steps: 100\n");
  const BinaryRun run = run_snug({"train", recipe.string(), "max_steps=3", "logging_steps=3",
                                  "output_dir=" + path("tuned"), "threads=2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.empty()) << run.out;
  EXPECT_TRUE(contains(run.err, "trainable params: "));
  EXPECT_FALSE(contains(run.err, "step 1/3 loss "));
  EXPECT_TRUE(contains(run.err, "step 3/3 loss "));
  // The log is thinned, the file is not.
  EXPECT_TRUE(contains(contents_of(*folder_ / "tuned/metrics.jsonl"), "{\"step\":2,"));
  EXPECT_TRUE(contains(run.err, "planned"));
  EXPECT_TRUE(std::filesystem::exists(*folder_ / "tuned/adapter/adapter_model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(*folder_ / "tuned/adapter/adapter_config.json"));
}

// Step 1 of the warm-up has the rate 0, step 2 is the last one: its weights are infinite.
TEST_F(Verbs, TrainSavesNoWeightsThatAreNotFinite) {
  const BinaryRun run =
      run_snug(joined({"train", model(), "data=" + path("data.jsonl"), "output_dir=" + path("far"),
                       "learning_rate=1e30", "weight_decay=1e30", "warmup_steps=1", "save_steps=1"},
                      kRun));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  for (const char* part : {"tensor '", "lora_", "not finite", "learning_rate"})
    EXPECT_TRUE(contains(run.last_line(), part));
  EXPECT_TRUE(std::filesystem::exists(*folder_ / "far/checkpoint-1"));
  EXPECT_FALSE(std::filesystem::exists(*folder_ / "far/checkpoint-2"));
  EXPECT_FALSE(std::filesystem::exists(*folder_ / "far/adapter"));
}

TEST_F(Verbs, PlanOfAFolderIsWhatTrainingPlans) {
  const std::vector<std::string> words =
      joined({"plan", "--json", "model=" + path("shape"), "init=random", "method=full",
              "data=" + path("data.jsonl")},
             kRun);
  const BinaryRun run = run_snug(words);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto plan = json::parse(run.out);
  const auto trained = json::parse(contents_of(*folder_ / "base/plan.json"));
  EXPECT_EQ(plan["device"]["by_role"], trained["device"]["by_role"]);
  EXPECT_EQ(plan["device"]["peak_bytes"], trained["device"]["peak_bytes"]);
  EXPECT_EQ(plan["host"]["peak_bytes"], trained["host"]["peak_bytes"]);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_EQ(plan["outside"]["basis"], "measured");
  EXPECT_GT(plan["outside"]["bytes"], 1 << 20);
}

TEST_F(Verbs, PlanIsDrawnAsAPage) {
  const auto plan_with = [](const std::string& word) {
    return run_snug({"plan", "model=smollm2-135m", "method=lora", "max_length=64", word});
  };
  const BinaryRun run = plan_with("picture=" + path("plan.html"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, path("plan.html"))) << run.err;
  EXPECT_TRUE(contains(contents_of(*folder_ / "plan.html"), "Memory over a step"));
  for (const std::string& place : {path("no_folder/plan.html"), folder_->path().string()}) {
    const BinaryRun failed = plan_with("picture=" + place);
    EXPECT_NE(failed.exit_code, 0);
    EXPECT_TRUE(contains(failed.err, place)) << failed.err;
  }
  const BinaryRun explained = run_snug({"explain", "model=smollm2-135m", "picture=x.html"});
  EXPECT_EQ(explained.exit_code, 2);
  EXPECT_TRUE(contains(explained.err, "picture")) << explained.err;
}

TEST_F(Verbs, PlanNeedsNoDataYet) {
  const BinaryRun run = run_snug({"plan", model(), "data=not/yet.jsonl", "max_length=128"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "not/yet.jsonl"));
  EXPECT_TRUE(contains(run.out, "trainable params: "));
}

// Tokens need no tokenizer, so a built-in shape with random weights trains on them.
TEST_F(Verbs, ABuiltInShapeTrainsOnTokens) {
  const auto data = folder_->write("tokens.jsonl", "{\"input_ids\": [1, 2, 3, 49151]}\n");
  const std::vector<std::string> words =
      words_of("model=smollm2-135m init=random method=lora max_length=8 max_steps=1 threads=2");
  const BinaryRun run = run_snug(
      joined({"train", "data=" + data.string(), "--json", "output_dir=" + path("preset")}, words));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "1 records of form tokens, 1 documents, 4 tokens, 3 of them"));
  EXPECT_TRUE(contains(contents_of(*folder_ / "preset/metrics.jsonl"), "\"trained_tokens\":3,"));
  const BinaryRun plan = run_snug(joined({"plan", "data=" + data.string()}, words));
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_FALSE(contains(plan.err, "planned without")) << plan.err;
  const BinaryRun text = run_snug(joined({"train", "data=" + path("data.jsonl")}, words));
  EXPECT_EQ(text.exit_code, 2) << text.err;
  EXPECT_TRUE(contains(text.err, "built-in shape without a tokenizer")) << text.err;
  const BinaryRun planned = run_snug(joined({"plan", "data=" + path("data.jsonl")}, words));
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_TRUE(contains(planned.err, "a built-in shape has no tokenizer")) << planned.err;
}

TEST_F(Verbs, TokenizeTurnsTextToIdsAndBack) {
  const BinaryRun ids = run_snug({"tokenize", model(), "--json"}, "az\n");
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(json::parse(ids.out), (json{{"ids", {97, 122, 10}}}));
  EXPECT_EQ(run_snug({"tokenize", model(), "prompt=az"}).out, "97 122\n");
  EXPECT_EQ(run_snug({"tokenize", model(), "ids=97 100000"}).exit_code, 2);
  const BinaryRun text = run_snug({"tokenize", model(), "ids=97 122", "--json"});
  EXPECT_EQ(json::parse(text.out), (json{{"text", "az"}}));
}

TEST_F(Verbs, ExplainPrintsProgramsPassesWhatIsLiveAndWhatTakesTheTime) {
  const BinaryRun run = run_snug({"explain", model(), "method=lora", "max_length=64"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* part : {"program micro_first", "program update", "layer x2 from 0 {",
                           "differentiate", "live at the peak of ", "model.layers.*.self_attn",
                           "slowest operations of a step of ", "matmul -> "})
    EXPECT_TRUE(contains(run.out, part));
  const BinaryRun as_json = run_snug({"explain", model(), "max_length=64", "--json"});
  const auto explained = json::parse(as_json.out);
  EXPECT_GT(explained["programs"].size(), 3U);
  int64_t live = 0;
  for (const auto& tensor : explained["peak"]["live"]) live += tensor["bytes"].get<int64_t>();
  EXPECT_LE(live, explained["peak"]["bytes"].get<int64_t>());
  EXPECT_GT(live, explained["peak"]["bytes"].get<int64_t>() * 9 / 10);
  double seconds = 0;
  for (const auto& group : explained["step"]["operations"])
    seconds += group["seconds"].get<double>();
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(seconds, explained["step"]["seconds"].get<double>(), 1e-9 + 1e-6 * seconds);
}

#ifdef SNUG_WITH_GENERATE
TEST_F(Verbs, BenchTraceSaysWhatEachOperationDid) {
  const BinaryRun run = run_snug(joined({"bench", "trace", model(), "method=lora"}, kRun));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  std::map<std::string, int> kinds;
  for (std::string line; std::getline(lines, line);) {
    const auto ran = json::parse(line);
    EXPECT_FALSE(ran.contains("differences")) << line;
    for (const char* seconds : {"seconds", "planned_seconds"})
      EXPECT_EQ(ran.value(seconds, -1.0) >= 0, !ran.contains("launched_with")) << line;
    ++kinds[ran["kind"].get<std::string>()];
    if (ran["kind"] == "linear_cross_entropy_train") {
      EXPECT_FALSE(ran["pieces"].empty());
      EXPECT_EQ(ran["extent"]["rows"], 512) << "a full batch of 2 x 256";
      EXPECT_EQ(ran["by_capacity"], false);
    }
  }
  EXPECT_EQ(kinds["linear_cross_entropy_train"], 1);
  EXPECT_GT(kinds["copy"], 0);
  EXPECT_GT(kinds["adamw"], 0);
}

TEST_F(Verbs, GenerateAndScoreUseTheModel) {
  const BinaryRun generated =
      run_snug({"generate", model(), "prompt=ab", "max_new_tokens=3", "temperature=0", "--json"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_LE(json::parse(generated.out)["ids"].size(), 3U);
  const BinaryRun scored = run_snug(
      {"score", model(), "ids=1 5 9", "--json", "logits_out=" + path("logits.safetensors")});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const auto logprobs = json::parse(scored.out)["logprobs"];
  ASSERT_EQ(logprobs.size(), 2U);
  for (const auto& logprob : logprobs) EXPECT_LT(logprob.get<double>(), 0.0);
  EXPECT_TRUE(std::filesystem::exists(path("logits.safetensors")));
}

TEST_F(Verbs, EvaluateCountsExactAnswers) {
  const BinaryRun run =
      run_snug({"evaluate", model(), "data=" + path("data.jsonl"), "max_new_tokens=4", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["total"], 3);
}
#endif

TEST(Binary, ListsModels) {
  const BinaryRun table = run_snug({"models"});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_TRUE(contains(table.out, "llama-3.1-8b"));
  const auto list = json::parse(run_snug({"models", "--json"}).out);
  bool found = false;
  for (const auto& model : list)
    if (model["name"] == "llama-3.1-8b") {
      found = true;
      EXPECT_EQ(model["parameters"], 8030261248);
      EXPECT_EQ(model["context"], 131072);
    }
  EXPECT_TRUE(found);
}

TEST(Binary, SaysItsVersionAndHelps) {
  EXPECT_TRUE(contains(run_snug({"--version"}).out, "snug 0."));
  const BinaryRun help = run_snug({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* verb : {"plan", "train", "tokenize", "explain", "models"})
    EXPECT_TRUE(contains(help.out, verb));
  const BinaryRun keys = run_snug({"train", "--help"});
  EXPECT_EQ(keys.exit_code, 0);
  for (const char* part : {"learning_rate", "2e-4 for lora", "also: lora_rank"})
    EXPECT_TRUE(contains(keys.out, part));
  // Nothing that chat would refuse.
  const BinaryRun chat = run_snug({"chat", "--help"});
  EXPECT_TRUE(contains(chat.out, "  temperature "));
  for (const char* key : {"  prompt ", "  prompts ", "  batch ", "  fields ", "  logprobs "})
    EXPECT_FALSE(contains(chat.out, key)) << key;
}

// No card is here, nor, in many builds, the toolkit.
TEST(Binary, PlansForACardThatIsNotHere) {
  const std::vector<std::string> job = words_of(
      "plan --json model=llama-3.1-8b method=qlora max_length=8192 "
      "per_device_train_batch_size=2");
  const BinaryRun run = run_snug(joined(job, {"device=h100"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto plan = json::parse(run.out);
  EXPECT_EQ(plan["card"]["name"], "h100");
  EXPECT_EQ(plan["step_basis"], "data sheet");
  const auto same = json::parse(run_snug(joined(job, {"device=h100", "backend=cuda"})).out);
  for (const char* part : {"card", "device", "host", "step_seconds"})
    EXPECT_EQ(same[part], plan[part]) << part;
  // Of the smaller card what is computed again makes room, of a part of it not.
  EXPECT_EQ(run_snug(joined(job, {"device=rtx-4090"})).exit_code, 0);
  const std::vector<std::string> small = joined(job, {"device=rtx-4090", "device_memory=7GiB"});
  const BinaryRun refused = run_snug(small);
  EXPECT_EQ(refused.exit_code, 3);
  const std::string change = json::parse(refused.out)["change"];
  EXPECT_TRUE(contains(refused.last_line(), change));
  const BinaryRun changed = run_snug(joined(small, words_of(change)));
  EXPECT_EQ(changed.exit_code, 0) << change << ": " << changed.err;
}

TEST(Binary, NamesTheCardsThatItKnows) {
  const auto refused = [](const std::string& words, const std::string& part) {
    const BinaryRun run = run_snug(joined({"plan", "model=smollm2-135m"}, words_of(words)));
    EXPECT_EQ(run.exit_code, 2) << words;
    EXPECT_TRUE(contains(run.last_line(), part)) << run.err;
  };
  refused("device=rtx4090", "did you mean rtx-4090? It has b200, h200, h100");
  refused("device=h100 backend=cpu", "backend is cpu; leave one of them out");
  const BinaryRun train = run_snug({"train", "model=smollm2-135m", "device=h100"});
  EXPECT_EQ(train.exit_code, 2);
  EXPECT_TRUE(contains(train.last_line(), "it is a key of: audit, plan, search, explain"))
      << train.err;
}

const std::vector<std::string> kLargePlan = words_of(
    "plan --json model=llama-3.1-8b method=lora max_length=8192 "
    "per_device_train_batch_size=2");

TEST(Binary, PlansAPresetWithoutAnyFile) {
  const BinaryRun run = run_snug(joined(kLargePlan, {"device_memory=80GiB"}));
  const auto plan = json::parse(run.out);
  EXPECT_EQ(run.exit_code, plan["fits"].get<bool>() ? 0 : 3);
  EXPECT_EQ(plan["parameters"]["total"],
            8030261248 + plan["parameters"]["trainable"].get<int64_t>());
  EXPECT_EQ(plan["device"]["capacity_bytes"], int64_t{80} << 30);
  EXPECT_EQ(plan["tokens_per_step"], 16384);
}

// The change is put after the line that did not fit, as a user would. Down to what layers take that
// keep their input alone the job fits by what is computed again.
TEST(Binary, ChangeAppliedVerbatimFits) {
  const int64_t bytes =
      json::parse(run_snug(joined(kLargePlan, {"recompute=layer", "device_memory=1TiB"}))
                      .out)["device"]["peak_bytes"]
          .get<int64_t>();
  const auto budget = [](int64_t device) { return "device_memory=" + std::to_string(device); };
  EXPECT_EQ(run_snug(joined(kLargePlan, {budget(bytes)})).exit_code, 0);
  for (const int64_t device : {bytes - 1, bytes / 2, bytes / 3}) {
    const std::vector<std::string> words = joined(kLargePlan, {budget(device)});
    const BinaryRun refused = run_snug(words);
    EXPECT_EQ(refused.exit_code, 3);
    const auto plan = json::parse(refused.out);
    EXPECT_EQ(plan["fits"], false);
    const std::string change = plan["change"];
    EXPECT_TRUE(contains(refused.last_line(), change));
    EXPECT_TRUE(contains(refused.last_line(), std::to_string(bytes - device)));
    const BinaryRun changed = run_snug(joined(words, words_of(change)));
    EXPECT_EQ(changed.exit_code, 0) << change << ": " << changed.err;
  }
}

TEST(PlanOfAnAdapter, LooksAtIt) {
  const BinaryRun run = run_snug({"plan", "model=examples/wordnet", "adapter=nowhere"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("nowhere: there is no such folder; expected the folder of a PEFT adapter"),
            std::string::npos)
      << run.err;
}

TEST(PlanOfAnAdapter, TakesFromItWhatTheRecipeLeavesOpen) {
  const testing::TemporaryFolder folder;
  const std::string output = (folder / "run").string();
  const std::vector<std::string> small{"lora_r=4", "lora_dropout=0.25",
                                       R"(target_modules=.*\.(q|v)_proj)"};
  const std::vector<std::string> model{"model=examples/wordnet", "max_length=64"};
  const BinaryRun run = run_snug(joined(
      joined({"train", "data=examples/wordnet/train.jsonl", "max_steps=1", "output_dir=" + output},
             model),
      small));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // The expression is written as the names that it stands for.
  const std::string config = contents_of(folder / "run/adapter/adapter_config.json");
  EXPECT_TRUE(contains(config, "\"model.layers.0.self_attn.q_proj\",")) << config;
  EXPECT_FALSE(contains(config, "(q|v)")) << config;
  const auto trained = [&](const std::vector<std::string>& more) {
    const std::string out = run_snug(joined(joined({"plan"}, model), more)).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_EQ(trained({"adapter=" + output + "/adapter"}), trained(small));
  EXPECT_NE(trained({}), trained(small));
  const std::vector<std::string> again{"train", "data=examples/wordnet/train.jsonl", "max_steps=1",
                                       "output_dir=" + (folder / "again").string(),
                                       "adapter=" + output + "/adapter"};
  const BinaryRun more = run_snug(joined(again, model));
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(contents_of(folder / "again/adapter/adapter_config.json"), config);
}

}  // namespace
}  // namespace snug::cli
