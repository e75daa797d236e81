// Runs of the binary that learn from pairs of answers: the recipe of the example, both references,
// resuming, evaluation, and what is refused before anything is loaded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../cli/binary_run.h"
#include "base/file.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The example's recipe on fewer rows and, unless `more` says otherwise, on the pairs of `data`.
std::vector<std::string> words(const fs::path& data, const fs::path& output,
                               const std::string& more = "") {
  return joined(
      {"train", "examples/wordnet/dpo.yaml", "max_steps=6", "per_device_train_batch_size=2",
       "compute_dtype=fp32", "threads=1", "data=" + data.string(), "output_dir=" + output.string()},
      words_of(more));
}

std::vector<Json> metrics_of(const fs::path& output) {
  std::vector<Json> lines;
  std::stringstream stream(contents_of(output / "metrics.jsonl"));
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

class PreferenceRuns : public ::testing::Test {
 protected:
  // The pass that keeps log-probabilities goes through all there are.
  void SetUp() override { first_pairs("first.jsonl", 40); }
  std::vector<std::string> words_for(const std::string& output, const std::string& more) const {
    return words(folder_ / "first.jsonl", folder_ / output, more);
  }
  BinaryRun run(const std::string& output, const std::string& more = "") {
    return run_snug(words_for(output, more));
  }
  std::string adapter(const std::string& output) const {
    return contents_of(folder_ / output / "adapter/adapter_model.safetensors");
  }
  std::string refusal(const std::string& more) {
    const BinaryRun refused = run("refused", more);
    EXPECT_EQ(refused.exit_code, 2) << refused.output();
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
    return refused.last_line();
  }

  // A file of the example's first pairs.
  std::string first_pairs(const std::string& name, int count) const {
    const std::string all = contents_of("examples/wordnet/preferences.jsonl");
    size_t end = 0;
    for (int i = 0; i < count; ++i) end = all.find('\n', end) + 1;
    folder_.write(name, all.substr(0, end));
    return (folder_ / name).string();
  }

  // A file of the example's last pairs, whose numbers there are others than here.
  std::string last_pairs(size_t count) const {
    const std::string all = contents_of("examples/wordnet/preferences.jsonl");
    size_t begin = all.size() - 1;
    for (size_t i = 0; i < count; ++i) begin = all.rfind('\n', begin - 1);
    folder_.write("last.jsonl", all.substr(begin + 1));
    return (folder_ / "last.jsonl").string();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(PreferenceRuns, learn_which_of_two_answers_is_preferred) {
  const BinaryRun result =
      run_snug({"train", "examples/wordnet/dpo.yaml", "output_dir=" + (folder_ / "run").string()});
  ASSERT_EQ(result.exit_code, 0) << result.output();
  const std::vector<Json> lines = metrics_of(folder_ / "run");
  ASSERT_EQ(lines.size(), 40U);
  // The adapter begins as nothing, so that both models say the same.
  EXPECT_NEAR(lines[0]["loss"].get<double>(), std::log(2.0), 1e-3);
  EXPECT_NEAR(lines[0]["rewards/margins"].get<double>(), 0, 2e-2);
  double margin = 0;
  double accuracy = 0;
  for (size_t i = 30; i < 40; ++i) {
    margin += lines[i]["rewards/margins"].get<double>() / 10;
    accuracy += lines[i]["rewards/accuracies"].get<double>() / 10;
    EXPECT_NEAR(
        lines[i]["rewards/margins"].get<double>(),
        lines[i]["rewards/chosen"].get<double>() - lines[i]["rewards/rejected"].get<double>(),
        1e-3);
  }
  EXPECT_GT(margin, 0.1);
  EXPECT_GT(accuracy, 0.8);
}

TEST_F(PreferenceRuns, compare_alike_with_an_adapter_that_is_off_and_with_what_was_kept) {
  ASSERT_EQ(run("off").exit_code, 0);
  const BinaryRun kept = run("kept", "precompute_ref_log_probs=true");
  ASSERT_EQ(kept.exit_code, 0) << kept.output();
  EXPECT_TRUE(fs::exists(folder_ / "kept/reference_log_probabilities.safetensors"));
  const auto off_lines = metrics_of(folder_ / "off");
  const auto kept_lines = metrics_of(folder_ / "kept");
  for (size_t i = 0; i < 6; ++i)
    for (const char* key : {"loss", "rewards/margins", "grad_norm"})
      EXPECT_NEAR(off_lines[i][key].get<double>(), kept_lines[i][key].get<double>(), 1e-4) << key;
}

// The pass before training is planned as often as the program runs, and measured.
TEST_F(PreferenceRuns, plan_the_pass_that_keeps_log_probabilities) {
  const std::string more = "precompute_ref_log_probs=true eval_data=" + last_pairs(10);
  const BinaryRun kept = run("kept", more);
  ASSERT_EQ(kept.exit_code, 0) << kept.output();
  const Json plan = Json::parse(contents_of(folder_ / "kept/plan.json"));
  const int64_t runs = plan["reference"]["runs"].get<int64_t>();
  EXPECT_NE(kept.output().find(fmt::format(" sequences in {} runs, ", runs)), std::string::npos)
      << kept.output();
  EXPECT_GE(plan["reference"]["seconds"].get<double>(),
            static_cast<double>(runs) * plan["reference"]["run_seconds"].get<double>());
  EXPECT_GE(plan["evaluation"]["runs"].get<int64_t>(), 1);
  EXPECT_LT(plan["evaluation"]["runs"].get<int64_t>(), runs);
  EXPECT_GT(plan["save_seconds"].get<double>(), 0);
  const Json measured = Json::parse(contents_of(folder_ / "kept/measured.json"));
  EXPECT_GT(measured["reference"]["seconds"].get<double>(), 0);
  EXPECT_NE(kept.output().find("\nreference "), std::string::npos) << kept.output();
  // Planned without the data nobody knows how often it runs; other jobs have no such pass.
  std::vector<std::string> planned = words_for("kept", more + " data=/nowhere --json");
  planned[0] = "plan";
  const Json without = Json::parse(run_snug(planned).out);
  EXPECT_TRUE(without["reference"]["seconds"].is_null());
  EXPECT_GT(without["reference"]["run_seconds"].get<double>(), 0);
  ASSERT_EQ(run("off").exit_code, 0);
  EXPECT_FALSE(Json::parse(contents_of(folder_ / "off/plan.json")).contains("reference"));
  EXPECT_FALSE(Json::parse(contents_of(folder_ / "off/measured.json")).contains("reference"));
}

TEST_F(PreferenceRuns, do_not_depend_on_the_micro_batch) {
  ASSERT_EQ(run("two").exit_code, 0);
  ASSERT_EQ(run("one", "per_device_train_batch_size=1 gradient_accumulation_steps=2").exit_code, 0);
  const auto two = metrics_of(folder_ / "two");
  const auto one = metrics_of(folder_ / "one");
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(two[i]["loss"].get<double>(), one[i]["loss"].get<double>(), 1e-4);
    EXPECT_NEAR(two[i]["logps/chosen"].get<double>(), one[i]["logps/chosen"].get<double>(), 1e-3);
  }
}

TEST_F(PreferenceRuns, resume_with_the_same_bits) {
  for (const std::string more : {"", "precompute_ref_log_probs=true"}) {
    const std::string name = more.empty() ? "off" : "kept";
    ASSERT_EQ(run(name + "-whole", more).exit_code, 0);
    ASSERT_EQ(run(name + "-parts", more + " max_steps=3 lr_scheduler_type=constant").exit_code, 0);
    const BinaryRun rest =
        run(name + "-parts", more + " resume_from_checkpoint=auto lr_scheduler_type=constant");
    ASSERT_EQ(rest.exit_code, 0) << rest.output();
    EXPECT_NE(rest.output().find("resumed from"), std::string::npos);
    EXPECT_EQ(rest.output().find("reference log-probabilities are those of") != std::string::npos,
              !more.empty());
    ASSERT_EQ(run(name + "-constant", more + " lr_scheduler_type=constant").exit_code, 0);
    EXPECT_EQ(adapter(name + "-parts"), adapter(name + "-constant"));
    EXPECT_NE(adapter(name + "-parts"), adapter(name + "-whole"));
  }
}

TEST_F(PreferenceRuns, notice_damage_of_what_was_kept) {
  const std::string more = "precompute_ref_log_probs=true lr_scheduler_type=constant ";
  ASSERT_EQ(run("whole", more).exit_code, 0);
  ASSERT_EQ(run("parts", more + "max_steps=3").exit_code, 0);
  const fs::path file = folder_ / "parts/reference_log_probabilities.safetensors";
  std::string bytes = contents_of(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  base::write_file_atomically(file, bytes);
  const BinaryRun rest = run("parts", more + "resume_from_checkpoint=auto");
  ASSERT_EQ(rest.exit_code, 0) << rest.output();
  EXPECT_NE(rest.output().find("damaged"), std::string::npos) << rest.output();
  EXPECT_EQ(adapter("parts"), adapter("whole"));
}

TEST_F(PreferenceRuns, evaluate_pairs) {
  for (const std::string more : {"", "precompute_ref_log_probs=true"}) {
    const std::string name = more.empty() ? "off" : "kept";
    const BinaryRun result = run(name, more + " eval_data=" + last_pairs(16) + " eval_steps=3");
    ASSERT_EQ(result.exit_code, 0) << result.output();
    int evaluations = 0;
    for (const Json& line : metrics_of(folder_ / name)) {
      if (!line.contains("eval_loss")) continue;
      ++evaluations;
      EXPECT_LT(line["eval_loss"].get<double>(), std::log(2.0));
      EXPECT_GT(line["eval_rewards/margins"].get<double>(), 1e-4);
      EXPECT_LT(line["eval_logps/chosen"].get<double>(), -1);
      EXPECT_NEAR(
          line["eval_rewards/margins"].get<double>(),
          line["eval_rewards/chosen"].get<double>() - line["eval_rewards/rejected"].get<double>(),
          1e-4);
    }
    EXPECT_EQ(evaluations, 2);
  }
  const auto off = metrics_of(folder_ / "off");
  const auto kept = metrics_of(folder_ / "kept");
  ASSERT_EQ(off.size(), kept.size());
  for (size_t i = 0; i < off.size(); ++i)
    for (const char* key : {"eval_loss", "eval_rewards/chosen", "eval_rewards/rejected",
                            "eval_logps/chosen", "eval_logps/rejected"})
      if (off[i].contains(key)) {
        EXPECT_NEAR(off[i][key].get<double>(), kept[i].value(key, 0.0), 2e-4) << key;
      }
}

#ifdef SNUG_WITH_MPI
// Two ranks learn, evaluate and keep what one does, and go on from a checkpoint.
TEST_F(PreferenceRuns, on_two_ranks_are_those_of_one) {
  for (const std::string more : {"", "precompute_ref_log_probs=true "}) {
    const std::string name = more.empty() ? "off" : "kept";
    const std::string start = more + "eval_data=" + last_pairs(7) +
                              " eval_steps=2 lr_scheduler_type=constant save_steps=2 max_steps=4 ";
    ASSERT_EQ(run(name + "-one", start).exit_code, 0);
    const std::string two = start + "per_device_train_batch_size=1 devices=2 strategy=full_shard ";
    const BinaryRun whole = run(name + "-two", two);
    ASSERT_EQ(whole.exit_code, 0) << whole.output();
    ASSERT_EQ(run(name + "-parts", two + "max_steps=2").exit_code, 0);
    const BinaryRun rest = run(name + "-parts", two + "resume_from_checkpoint=auto");
    ASSERT_EQ(rest.exit_code, 0) << rest.output();
    EXPECT_NE(rest.output().find("resumed from"), std::string::npos);
    EXPECT_EQ(adapter(name + "-parts"), adapter(name + "-two"));
    const auto of_one = metrics_of(folder_ / (name + "-one"));
    const auto of_two = metrics_of(folder_ / (name + "-two"));
    ASSERT_EQ(of_one.size(), 6U);  // four steps and two evaluations
    ASSERT_EQ(of_two.size(), 6U);
    for (size_t i = 0; i < of_one.size(); ++i)
      for (const char* key : {"loss", "eval_loss", "rewards/margins", "eval_rewards/margins",
                              "eval_rewards/accuracies"}) {
        ASSERT_EQ(of_one[i].contains(key), of_two[i].contains(key)) << key;
        if (!of_one[i].contains(key)) continue;
        EXPECT_NEAR(of_one[i][key].get<double>(), of_two[i][key].get<double>(), 2e-4)
            << key << " of line " << i;
      }
  }
}
#endif

TEST_F(PreferenceRuns, train_an_adapter_on_4_bits_and_go_on_from_an_adapter) {
  ASSERT_EQ(run("first", "method=qlora").exit_code, 0);
  const std::string start = "adapter=" + (folder_ / "first/adapter").string();
  const BinaryRun second = run("second", "method=qlora precompute_ref_log_probs=true " + start);
  ASSERT_EQ(second.exit_code, 0) << second.output();
  // What it is compared with is the adapter as it begins.
  EXPECT_NEAR(metrics_of(folder_ / "second")[0]["loss"].get<double>(), std::log(2.0), 1e-5);
  EXPECT_NE(refusal("method=qlora " + start).find("precompute_ref_log_probs=true"),
            std::string::npos);
}

TEST_F(PreferenceRuns, refuse_what_does_not_go_with_pairs) {
  EXPECT_NE(refusal("method=full").find("precompute_ref_log_probs=true"), std::string::npos);
  EXPECT_NE(refusal("method=full").find("gone after the first step"), std::string::npos);
  EXPECT_NE(refusal("modules_to_save=norm").find("modules_to_save trains; set precompute_ref_log_"),
            std::string::npos);
  EXPECT_NE(refusal("lora_dropout=0.1").find("lora_dropout=0"), std::string::npos);
  EXPECT_NE(refusal("train_on_prompt=true").find("compares answers"), std::string::npos);
  EXPECT_NE(refusal("data_format=alpaca").find("chosen and rejected"), std::string::npos);
  EXPECT_NE(
      refusal("data=examples/wordnet/train.jsonl").find("objective=dpo, orpo and simpo learn from"),
      std::string::npos);
  // As many as the model has positions.
  EXPECT_NE(refusal("max_length=auto").find("max_length=512"), std::string::npos);
  EXPECT_NE(refusal("max_segments=3").find("multiple of 2"), std::string::npos);
  EXPECT_NE(refusal("loss_type=aot").find("loss_type: sigmoid"), std::string::npos);
  EXPECT_NE(refusal("loss_type=exo_pair").find("label_smoothing=0.001"), std::string::npos);
  EXPECT_NE(refusal("loss_type=ipo label_smoothing=0.1").find("ipo does not use"),
            std::string::npos);
  for (const char* key : {"roles_to_train=user", "train_on_turns=last"})
    EXPECT_NE(refusal(key).find("compares all that follows the prompt"), std::string::npos) << key;
  EXPECT_NE(refusal("model=tests/goldens/mixtral/model output_router_logits=true")
                .find("output_router_logits=false"),
            std::string::npos);
  EXPECT_NE(refusal("beta=0").find("beta"), std::string::npos);
  // The command line takes the objective back, and with it the file's keys of it.
  EXPECT_NE(refusal("objective=next_token").find("objective=dpo"), std::string::npos);
  EXPECT_NE(refusal("objective=next_token beta=0.2 data=examples/wordnet/train.jsonl")
                .find("key of objective=dpo"),
            std::string::npos);
}

TEST_F(PreferenceRuns, learn_the_odds_of_answers) {
  const std::string start =
      "objective=orpo beta=0.5 lr_scheduler_type=constant eval_steps=3 eval_data=" + last_pairs(12);
  const BinaryRun first = run("two", start);
  ASSERT_EQ(first.exit_code, 0) << first.output();
  ASSERT_EQ(
      run("one", start + " per_device_train_batch_size=1 gradient_accumulation_steps=2").exit_code,
      0);
  const std::vector<Json> two = metrics_of(folder_ / "two");
  const std::vector<Json> one = metrics_of(folder_ / "one");
  ASSERT_EQ(two.size(), 8U);  // six steps and two evaluations
  for (size_t i = 0; i < two.size(); ++i) {
    const std::string of = two[i].contains("eval_loss") ? "eval_" : "";
    const auto value = [&](const std::string& name) { return two[i].at(of + name).get<double>(); };
    EXPECT_NEAR(value("loss"), value("nll_loss") - 0.5 * value("log_odds_ratio"), 1e-5);
    EXPECT_NEAR(value("rewards/chosen"), 0.5 * value("logps/chosen"), 1e-5);
    EXPECT_NEAR(value("rewards/margins"), value("rewards/chosen") - value("rewards/rejected"),
                1e-5);
    EXPECT_GT(value("rewards/accuracies"), 0);
    for (const char* name : {"loss", "nll_loss", "log_odds_chosen"})
      EXPECT_NEAR(value(name), one[i].at(of + name).get<double>(), 1e-4) << of << name;
  }
  // What the run wrote of itself makes the same run.
  const BinaryRun again = run_snug({"train", (folder_ / "two/recipe.yaml").string(),
                                    "output_dir=" + (folder_ / "again").string()});
  ASSERT_EQ(again.exit_code, 0) << again.output();
  EXPECT_EQ(adapter("again"), adapter("two"));
  // Keys of the file that another objective has no use for are not the run's.
  folder_.write("kept.yaml",
                contents_of("examples/wordnet/dpo.yaml") + "\nprecompute_ref_log_probs: true\n");
  const std::string quick =
      "objective=orpo max_steps=1 per_device_train_batch_size=1 threads=1 output_dir=";
  const BinaryRun kept = run_snug(joined({"train", (folder_ / "kept.yaml").string()},
                                         words_of(quick + (folder_ / "kept").string())));
  ASSERT_EQ(kept.exit_code, 0) << kept.output();
  EXPECT_NE(contents_of(folder_ / "kept/recipe.yaml").find("precompute_ref_log_probs: false"),
            std::string::npos);
  EXPECT_NE(refusal("objective=orpo precompute_ref_log_probs=true").find("key of objective=dpo"),
            std::string::npos);
  EXPECT_NE(
      refusal("objective=orpo data=examples/wordnet/train.jsonl").find("orpo and simpo learn"),
      std::string::npos);
  EXPECT_NE(refusal("simpo_gamma=1").find("is a key of objective=simpo"), std::string::npos);
  EXPECT_NE(refusal("objective=simpo loss_type=hinge").find("key of objective=dpo"),
            std::string::npos);
  EXPECT_NE(refusal("label_smoothing_factor=0.1").find("is a key of objective=next_token"),
            std::string::npos);
  EXPECT_NE(refusal("objective=orpo lora_dropout=0.1").find("lora_dropout=0"), std::string::npos);
}

// The example's pairs, unpaired; what is learned moves what is measured of both labels apart.
TEST_F(PreferenceRuns, learn_whether_an_answer_is_desirable) {
  const std::string few = first_pairs("few.jsonl", 10);
  const std::string start = "objective=kto lr_scheduler_type=constant eval_steps=3 data=" + few +
                            " eval_data=" + few + " ";
  const BinaryRun first = run("off", start);
  ASSERT_EQ(first.exit_code, 0) << first.output();
  EXPECT_NE(first.output().find("of them desirable"), std::string::npos) << first.output();
  ASSERT_EQ(run("kept", start + "precompute_ref_log_probs=true").exit_code, 0);
  const std::vector<Json> off = metrics_of(folder_ / "off");
  const std::vector<Json> kept = metrics_of(folder_ / "kept");
  ASSERT_EQ(off.size(), 8U);  // six steps and two evaluations
  EXPECT_NEAR(off[0]["loss"].get<double>(), 0.5, 1e-3);
  for (size_t i = 0; i < off.size(); ++i) {
    const std::string of = off[i].contains("eval_loss") ? "eval_" : "";
    const auto value = [&](const std::string& name) { return off[i].at(of + name).get<double>(); };
    EXPECT_NEAR(value("rewards/margins"), value("rewards/chosen") - value("rewards/rejected"),
                1e-4);
    EXPECT_GE(value("kl"), 0);
    EXPECT_LT(value("logps/rejected"), 0);
    for (const char* name : {"loss", "rewards/margins", "kl"})
      EXPECT_NEAR(value(name), kept[i].at(of + name).get<double>(), 1e-4) << of << name;
  }
  EXPECT_GT(off.back()["eval_rewards/margins"].get<double>(), 1e-3);
  // A run goes on with the same bits.
  ASSERT_EQ(run("parts", start + "max_steps=3").exit_code, 0);
  const BinaryRun rest = run("parts", start + "resume_from_checkpoint=auto");
  ASSERT_EQ(rest.exit_code, 0) << rest.output();
  EXPECT_EQ(adapter("parts"), adapter("off"));
}

TEST_F(PreferenceRuns, refuse_what_does_not_go_with_labels) {
  folder_.write("good.jsonl", R"({"prompt": "a dog", "completion": " is an animal", "label": true}
{"prompt": "a tree", "completion": " is a plant", "label": true}
{"prompt": "a stone", "completion": " is a thing", "label": true}
)");
  const std::string data =
      "objective=kto packing=false data=" + (folder_ / "good.jsonl").string() + " ";
  const std::string good = data + "per_device_train_batch_size=2 ";
  ASSERT_EQ(run("good", good + "max_steps=2").exit_code, 0);
  // What is a mean over none is not reported.
  for (const Json& line : metrics_of(folder_ / "good")) {
    EXPECT_TRUE(line.contains("rewards/chosen"));
    for (const char* name : {"rewards/rejected", "rewards/margins", "logps/rejected"})
      EXPECT_FALSE(line.contains(name)) << name;
  }
  // Answers are exchanged within batches, so that with other batches the data are others.
  const BinaryRun other =
      run("good", data + "per_device_train_batch_size=3 resume_from_checkpoint=auto");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.last_line().find("per_device_train_batch_size"), std::string::npos)
      << other.output();
  EXPECT_NE(refusal(data + "per_device_train_batch_size=1").find("is 1, but with objective=kto"),
            std::string::npos);
  EXPECT_NE(refusal(good + "loss_type=kto").find("objective: kto"), std::string::npos);
  EXPECT_NE(refusal(good + "data_format=alpaca").find("completion and label"), std::string::npos);
  EXPECT_NE(refusal("desirable_weight=2").find("key of objective=kto"), std::string::npos);
  EXPECT_NE(refusal("objective=kto method=full").find("precompute_ref_log_probs=true"),
            std::string::npos);
  folder_.write("bad.jsonl", R"({"prompt": "a dog", "completion": " is an animal"})");
  EXPECT_NE(refusal("objective=kto data=" + (folder_ / "bad.jsonl").string()).find("'label'"),
            std::string::npos);
  EXPECT_NE(refusal("objective=next_token data_format=unpaired").find("objective=kto"),
            std::string::npos);
}

TEST_F(PreferenceRuns, are_planned_and_explained) {
  const BinaryRun plan = run_snug({"plan", "model=llama-3.1-8b", "method=lora", "objective=dpo",
                                   "max_length=2048", "device=h100", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.output();
  const Json json = Json::parse(plan.out);
  EXPECT_EQ(json["objective"], "dpo");
  EXPECT_EQ(json["micro_batch"]["row_tokens"], 4096);
  const BinaryRun explained = run_snug({"explain", "examples/wordnet/dpo.yaml"});
  ASSERT_EQ(explained.exit_code, 0) << explained.output();
  for (const char* line : {"program reference", "dpo_grad", "weigh_rows"})
    EXPECT_NE(explained.out.find(line), std::string::npos) << line;
}

}  // namespace
}  // namespace snug::cli
