// A run that is killed, at whatever instant, resumes from its newest complete checkpoint and ends
// with the same bits as one left alone.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "../cli/binary_run.h"
#include "backends/cpu/isa.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const fs::path& output, const std::vector<std::string>& more) {
  return joined({"train", "model=examples/wordnet", "data=examples/wordnet/train.jsonl",
                 "max_length=64", "per_device_train_batch_size=2", "max_steps=30", "save_steps=4",
                 "save_total_limit=2", "lora_dropout=0.1", "output_dir=" + output.string()},
                more);
}

// metrics.jsonl without what a clock or the system wrote.
std::vector<std::string> losses(const fs::path& output) {
  std::vector<std::string> lines;
  std::stringstream stream(contents_of(output / "metrics.jsonl"));
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line.substr(0, line.find(",\"tokens_per_second\"")));
  return lines;
}

// So that the last start has something to take up, however slow the machine.
void wait_for_checkpoint(const fs::path& output) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (fs::is_directory(output))
      for (const auto& entry : fs::directory_iterator(output)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("checkpoint-") && name.find(".snug-tmp") == std::string::npos) return;
      }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The wait is bounded: what a run that never gets there has said, the test says at its end.
void wait_for_steps(const fs::path& output, size_t steps) {
  for (int tries = 0; tries < 60000 && losses(output).size() < steps; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void expect_same_end(const std::vector<std::string>& more, const std::string& result) {
  const testing::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole";
  const fs::path killed = folder.path() / "killed";
  ASSERT_EQ(run_snug(words(whole, more)).exit_code, 0);
  // Killed several times, at different steps; each start takes up the newest checkpoint. A step
  // and not a clock says when, so that a fast machine is not done before the first kill.
  auto resumed = more;
  resumed.push_back("resume_from_checkpoint=auto");
  int kills = 0;
  for (const size_t steps : {1U, 6U, 14U}) {
    const pid_t process = start_snug(words(killed, resumed), folder.path());
    wait_for_steps(killed, steps);
    ::kill(process, SIGKILL);
    if (wait_for(process) == 128 + SIGKILL) ++kills;
  }
  EXPECT_GT(kills, 0);
  const BinaryRun last = run_snug(words(killed, resumed));
  ASSERT_EQ(last.exit_code, 0) << last.output();
  EXPECT_NE(last.output().find("resumed from"), std::string::npos) << last.output();
  EXPECT_EQ(contents_of(killed / result), contents_of(whole / result));
  EXPECT_EQ(losses(killed), losses(whole));
  EXPECT_EQ(losses(whole).size(), 30U);
}

TEST(Resume, LoraEndsWithTheSameBits) {
  expect_same_end({"method=lora"}, "adapter/adapter_model.safetensors");
}

TEST(Resume, QloraEndsWithTheSameBits) {
  expect_same_end({"method=qlora", "recompute=all_but_attention", "activation_offloading=true"},
                  "adapter/adapter_model.safetensors");
}

TEST(Resume, AnEmbeddingsAdapterEndsWithTheSameBits) {
  expect_same_end({"method=lora", "target_modules=embed_tokens,q_proj", "ema_decay=0.8"},
                  "adapter/adapter_model.safetensors");
}

TEST(Resume, FullEndsWithTheSameBits) {
  expect_same_end({"method=full", "gradient_accumulation_steps=2", "lora_dropout=0"},
                  "model/model.safetensors");
}

TEST(Resume, FullWithAllOnTheHostEndsWithTheSameBits) {
  expect_same_end({"method=full", "offload_params=true", "offload_optimizer=auto",
                   "offload_threshold=0", "lora_dropout=0", "ema_decay=0.8"},
                  "model/model.safetensors");
}

TEST(Resume, FullWithBf16StateEndsWithTheSameBits) {
  if (!backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
    GTEST_SKIP() << "the processor has no bf16 products, which this optimizer needs";
  expect_same_end({"method=full", "optim=adamw_bf16", "lora_dropout=0"}, "model/model.safetensors");
}

TEST(Resume, FullWith8bitStateEndsWithTheSameBits) {
  expect_same_end({"method=full", "optim=adamw_8bit", "lora_dropout=0"}, "model/model.safetensors");
}

TEST(Resume, FullWithOtherOptimizersEndsWithTheSameBits) {
  for (const char* optimizer : {"optim=lion", "optim=adafactor", "optim=muon"}) {
    SCOPED_TRACE(optimizer);
    expect_same_end({"method=full", optimizer, "lora_dropout=0"}, "model/model.safetensors");
  }
}

TEST(Resume, AnUpdateInTheBackwardPassEndsWithTheSameBits) {
  expect_same_end({"method=full", "optim=adamw_8bit", "optim_in_backward=true", "max_grad_norm=0",
                   "lora_dropout=0"},
                  "model/model.safetensors");
}

TEST(Resume, FullWithFrozenModulesEndsWithTheSameBits) {
  expect_same_end({"method=full", "trainable_modules=layers.[23],model.norm", "recompute=layer",
                   "freeze_modules=q_proj,k_proj", "lora_dropout=0"},
                  "model/model.safetensors");
}

// Of a run that chose its rows and what layers compute again by a small memory, on a machine with
// more: the rows stay, since the last bits depend on them, and the modes need not.
TEST(Resume, OnAnotherBudgetEndsWithTheSameBits) {
  const testing::TemporaryFolder folder;
  const std::string adapter = "adapter/adapter_model.safetensors";
  const std::vector<std::string> open{"method=lora", "max_steps=4", "save_steps=2",
                                      "per_device_train_batch_size=auto",
                                      "gradient_accumulation_steps=6"};
  const auto run = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.begin(), open.begin(), open.end());
    const BinaryRun done = run_snug(words(folder.path() / name, more));
    EXPECT_EQ(done.exit_code, 0) << done.output();
    return done.output();
  };
  const std::string large = run("large", {});
  EXPECT_NE(large.find("batch_size=auto: 6 rows in a micro-batch"), std::string::npos) << large;
  EXPECT_NE(large.find("keep_all in "), std::string::npos) << large;
  const BinaryRun plan = run_snug(
      {"plan", "--json", "model=examples/wordnet", "data=examples/wordnet/train.jsonl",
       "max_length=64", "lora_dropout=0.1", "gradient_accumulation_steps=6", "recompute=none"});
  const auto bytes = nlohmann::json::parse(plan.out)["device"]["peak_bytes"].get<int64_t>();
  const std::string small = run("small", {"device_memory=" + std::to_string(bytes)});
  EXPECT_EQ(small.find("batch_size=auto: 6 rows in a micro-batch"), std::string::npos) << small;
  EXPECT_EQ(small.find("keep_all in "), std::string::npos) << small;
  const std::string resumed = run(
      "resumed", {"resume_from_checkpoint=" + (folder.path() / "small" / "checkpoint-2").string()});
  EXPECT_NE(resumed.find(", as the run began"), std::string::npos) << resumed;
  EXPECT_NE(resumed.find("keep_all in "), std::string::npos) << resumed;
  EXPECT_EQ(contents_of(folder.path() / "resumed" / adapter),
            contents_of(folder.path() / "small" / adapter));
}

TEST(Resume, OtherFrozenModulesAreRefused) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const std::vector<std::string> first{"method=full", "freeze_modules=layers.[01]", "max_steps=1",
                                       "lora_dropout=0"};
  ASSERT_EQ(run_snug(words(output, first)).exit_code, 0);
  const std::vector<std::string> on{"method=full", "lora_dropout=0", "max_steps=2",
                                    "resume_from_checkpoint=auto"};
  for (const char* other : {"freeze_modules=layers.0", "trainable_modules=layers.[23]"}) {
    const BinaryRun resumed = run_snug(words(output, joined(on, {other})));
    EXPECT_EQ(resumed.exit_code, 2);
    EXPECT_NE(resumed.output().find("of another run: freeze_modules was layers.[01] and is "),
              std::string::npos)
        << resumed.output();
  }
  const BinaryRun same = run_snug(words(output, joined(on, {"freeze_modules=layers.[01]"})));
  EXPECT_EQ(same.exit_code, 0) << same.output();
}

// With the optimizer's state, whatever checkpoints have otherwise.
TEST(Resume, ASignalSavesACheckpoint) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const pid_t process = start_snug(
      words(output, {"method=lora", "max_steps=100000", "save_only_model=true"}), folder.path());
  while (!fs::exists(output / "checkpoint-4"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 128 + SIGTERM);
  const BinaryRun resumed = run_snug(words(
      output, {"method=lora", "max_steps=100000", "resume_from_checkpoint=auto", "lora_r=8"}));
  EXPECT_NE(resumed.exit_code, 0) << "another recipe must be refused";
  EXPECT_NE(resumed.output().find("lora_r was 16 and is 8"), std::string::npos) << resumed.output();
}

// A step of many micro-batches is not waited for.
TEST(Resume, ASignalIsHeardBetweenMicroBatches) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const auto start = std::chrono::steady_clock::now();
  const pid_t process =
      start_snug(words(output, {"gradient_accumulation_steps=100000"}), folder.path());
  while (!fs::exists(output / "metrics.jsonl"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 128 + SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(2));
  EXPECT_NE(contents_of(folder.path() / "err").find("before the end of the first step"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(output / "checkpoint-0"));
}

// A folder has one run at a time, whatever the second one asks for.
TEST(Resume, WaitsForNoOtherRunInItsFolder) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const std::vector<std::string> endless{"method=lora", "max_steps=100000"};
  const pid_t process = start_snug(words(output, endless), folder.path());
  wait_for_checkpoint(output);
  for (const char* word : {"resume_from_checkpoint=auto", "overwrite_output_dir=true"}) {
    const BinaryRun second = run_snug(words(output, joined(endless, {word})));
    EXPECT_EQ(second.exit_code, 2) << word;
    EXPECT_NE(second.output().find("another run is writing to output_dir"), std::string::npos)
        << second.output();
  }
  ::kill(process, SIGHUP);
  EXPECT_EQ(wait_for(process), 128 + SIGHUP);
  EXPECT_EQ(run_snug(words(output, {"method=lora", "max_steps=1", "overwrite_output_dir=true"}))
                .exit_code,
            0);
}

// A kill between the last checkpoint and the removal of surplus ones leaves them to the next start.
TEST(Resume, RemovesWhatIsSurplus) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const std::vector<std::string> first{"max_steps=3", "save_steps=1", "save_total_limit=0"};
  ASSERT_EQ(run_snug(words(output, first)).exit_code, 0);
  ASSERT_TRUE(fs::exists(output / "checkpoint-1"));
  const BinaryRun again =
      run_snug(words(output, {"max_steps=3", "save_steps=1", "save_total_limit=2",
                              "resume_from_checkpoint=auto"}));
  ASSERT_EQ(again.exit_code, 0) << again.output();
  EXPECT_FALSE(fs::exists(output / "checkpoint-1"));
  EXPECT_TRUE(fs::exists(output / "checkpoint-2"));
  EXPECT_TRUE(fs::exists(output / "checkpoint-3"));
}

void flip_bit(const fs::path& path, int64_t byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(byte);
  const int value = file.get();
  file.seekp(byte);
  file.put(static_cast<char>(value ^ 1));
}

// A byte that changed on the disk is found before anything is computed with it: the checkpoint
// before is taken where that is left to Snug, and the end has the same bits.
TEST(Resume, PassesOverADamagedCheckpoint) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const fs::path whole = folder.path() / "whole";
  const std::vector<std::string> first{"max_steps=3", "save_steps=1", "save_total_limit=0"};
  ASSERT_EQ(run_snug(words(whole, joined(first, {"max_steps=4"}))).exit_code, 0);
  ASSERT_EQ(run_snug(words(output, joined(first, {"max_steps=4"}))).exit_code, 0);
  const std::string newest = (output / "checkpoint-4").string();
  const std::string optimizer = newest + "/optimizer.safetensors";
  flip_bit(optimizer, static_cast<int64_t>(fs::file_size(optimizer)) / 2);

  const auto recipe = contents_of(output / "recipe.yaml");
  const BinaryRun named =
      run_snug(words(output, joined(first, {"max_steps=4", "resume_from_checkpoint=" + newest})));
  EXPECT_EQ(named.exit_code, 2) << named.output();
  EXPECT_NE(named.output().find(optimizer + ": tensor '"), std::string::npos) << named.output();
  EXPECT_EQ(contents_of(output / "recipe.yaml"), recipe);

  const BinaryRun resumed =
      run_snug(words(output, joined(first, {"max_steps=4", "resume_from_checkpoint=auto"})));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output();
  EXPECT_NE(resumed.output().find("passed over: " + optimizer), std::string::npos)
      << resumed.output();
  EXPECT_NE(resumed.output().find("checkpoint-3 at step 3"), std::string::npos) << resumed.output();
  EXPECT_EQ(contents_of(output / "adapter/adapter_model.safetensors"),
            contents_of(whole / "adapter/adapter_model.safetensors"));
  EXPECT_EQ(losses(output), losses(whole));

  for (int step = 1; step <= 4; ++step) {
    const fs::path file = output / fmt::format("checkpoint-{}/adapter_model.safetensors", step);
    flip_bit(file, static_cast<int64_t>(fs::file_size(file)) - 1);
  }
  const BinaryRun none =
      run_snug(words(output, joined(first, {"max_steps=5", "resume_from_checkpoint=auto"})));
  EXPECT_EQ(none.exit_code, 2) << none.output();
  EXPECT_NE(none.last_line().find("checkpoint-1/adapter_model.safetensors"), std::string::npos)
      << none.output();
}

// Another base than the one that was trained on is refused, whichever of its bytes is another.
TEST(Resume, RefusesAnotherBase) {
  for (const char* method : {"method=lora", "method=qlora"}) {
    const testing::TemporaryFolder folder;
    const fs::path model = folder.path() / "model";
    fs::copy("examples/wordnet", model, fs::copy_options::recursive);
    const fs::path output = folder.path() / "run";
    const std::vector<std::string> recipe{method, "model=" + model.string(), "max_steps=1"};
    ASSERT_EQ(run_snug(words(output, recipe)).exit_code, 0);
    const auto more = joined(recipe, {"max_steps=2", "resume_from_checkpoint=auto"});
    const fs::path weights = model / "model.safetensors";
    flip_bit(weights, static_cast<int64_t>(fs::file_size(weights)) / 2);
    const BinaryRun refused = run_snug(words(output, more));
    EXPECT_EQ(refused.exit_code, 2) << refused.output();
    EXPECT_NE(refused.last_line().find("this checkpoint is of another run: the model was "),
              std::string::npos)
        << refused.output();
    flip_bit(weights, static_cast<int64_t>(fs::file_size(weights)) / 2);
    EXPECT_EQ(run_snug(words(output, more)).exit_code, 0);
  }
}

// The adapter that training began with is part of what made the checkpoint.
TEST(Resume, RefusesAnotherStartAdapter) {
  const testing::TemporaryFolder folder;
  const fs::path start = folder.path() / "start";
  const fs::path output = folder.path() / "run";
  ASSERT_EQ(run_snug(words(start, {"max_steps=1"})).exit_code, 0);
  const std::vector<std::string> recipe{"adapter=" + (start / "adapter").string(), "max_steps=1"};
  ASSERT_EQ(run_snug(words(output, recipe)).exit_code, 0);
  const fs::path file = start / "adapter/adapter_model.safetensors";
  flip_bit(file, static_cast<int64_t>(fs::file_size(file)) / 2);
  const BinaryRun refused =
      run_snug(words(output, joined(recipe, {"max_steps=2", "resume_from_checkpoint=auto"})));
  EXPECT_EQ(refused.exit_code, 2) << refused.output();
  EXPECT_NE(refused.last_line().find("the start adapter was "), std::string::npos)
      << refused.output();
}

// Going back to an earlier step drops what came after it only when that is asked for.
TEST(Resume, AnEarlierCheckpointDropsLaterOnesOnlyWhenAsked) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const std::vector<std::string> first{"max_steps=6", "save_steps=2", "save_total_limit=0"};
  ASSERT_EQ(run_snug(words(output, first)).exit_code, 0);
  const std::string result = contents_of(output / "adapter/adapter_model.safetensors");
  const std::vector<std::string> lines = losses(output);
  const auto back = joined(first, {"resume_from_checkpoint=" + (output / "checkpoint-2").string(),
                                   "save_total_limit=1"});
  const BinaryRun refused = run_snug(words(output, back));
  EXPECT_EQ(refused.exit_code, 2) << refused.output();
  EXPECT_NE(refused.output().find("later checkpoints, up to step 6"), std::string::npos)
      << refused.output();
  EXPECT_TRUE(fs::exists(output / "checkpoint-6"));

  EXPECT_EQ(run_snug(words(folder.path() / "other", back)).exit_code, 0);
  EXPECT_TRUE(fs::exists(output / "checkpoint-6"));

  const BinaryRun dropped =
      run_snug(words(output, joined(back, {"overwrite_output_dir=true", "max_steps=3"})));
  ASSERT_EQ(dropped.exit_code, 0) << dropped.output();
  for (const auto& [step, is_there] : {std::pair{2, false}, {3, true}, {4, false}, {6, false}})
    EXPECT_EQ(fs::exists(output / ("checkpoint-" + std::to_string(step))), is_there) << step;
  const BinaryRun whole = run_snug(words(output, joined(first, {"resume_from_checkpoint=auto"})));
  ASSERT_EQ(whole.exit_code, 0) << whole.output();
  EXPECT_EQ(losses(output).size(), lines.size());
}

// What a user may want on the way is told and done; what makes it another run is refused before
// anything is loaded, and the run folder stays as it was.
TEST(Resume, TellsWhatIsFreeAndRefusesWhatIsFixed) {
  const testing::TemporaryFolder folder;
  const fs::path output = folder.path() / "run";
  const std::vector<std::string> first{"max_steps=2", "lora_dropout=0"};
  ASSERT_EQ(run_snug(words(output, first)).exit_code, 0);
  const auto resumed = [&](const std::vector<std::string>& more) {
    return run_snug(words(output, joined(joined(first, {"resume_from_checkpoint=auto"}), more)));
  };
  const std::string recipe = contents_of(output / "recipe.yaml");
  for (const auto& [word, told] : std::vector<std::pair<std::string, std::string>>{
           {"lora_alpha=7", "lora_alpha was 32 and is 7"},
           {"seed=7", "seed was 42 and is 7"},
           {"max_length=128", "max_length was 64 and is 128"},
           {"method=full", "method was lora and is full"},
           {"init=random", "init was files and is random"},
           {"optim=adamw_8bit", "optim was adamw and is adamw_8bit"},
           {"data=examples/wordnet/heldout.jsonl", "the data was "}}) {
    const BinaryRun outcome = resumed({word});
    EXPECT_EQ(outcome.exit_code, 2) << word << outcome.output();
    EXPECT_NE(outcome.output().find(told), std::string::npos) << word << outcome.output();
    EXPECT_EQ(contents_of(output / "recipe.yaml"), recipe) << word;
  }
  // A run with nothing left to do has no step to measure.
  const auto has_step = [&] {
    return contents_of(output / "measured.json").find("\"step_seconds\"") != std::string::npos;
  };
  ASSERT_TRUE(has_step());
  ASSERT_EQ(resumed({}).exit_code, 0);
  EXPECT_FALSE(has_step());
  const BinaryRun slower = resumed({"learning_rate=1e-5", "max_steps=3"});
  EXPECT_EQ(slower.exit_code, 0) << slower.output();
  EXPECT_NE(slower.output().find("learning_rate was 0.0002 and is 1e-05"), std::string::npos)
      << slower.output();
  EXPECT_EQ(losses(output).size(), 3U);
}

}  // namespace
}  // namespace snug::cli
