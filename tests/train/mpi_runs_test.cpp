// Training by the binary on ranks that are processes of MPI: the curve of one rank, and what a user
// is told when ranks hang or cannot start.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "mpi_apps.h"
#include "mpi_job.h"

namespace snug::train {
namespace {

void expect_same_curve(const TinyJob& job, const std::string& one, const std::string& many,
                       size_t steps = 3) {
  const std::vector<double> a = values_of(job, one, "loss");
  const std::vector<double> b = values_of(job, many, "loss");
  ASSERT_EQ(a.size(), steps);
  ASSERT_EQ(b.size(), steps) << "one line a step, whatever the number of ranks";
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << "step " << i + 1;
}

class MpiRuns : public ::testing::Test {
 protected:
  MpiRuns() { prepare_mpi(); }
  TinyJob job_;
};

TEST_F(MpiRuns, StartTheirRanksAndFollowOneRank) {
  const std::string base = std::string(kMpiCommon) + "method=full ";
  ASSERT_EQ(job_.run("one", base + "per_device_train_batch_size=4").exit_code, 0);
  const cli::BinaryRun two =
      job_.run("two", base +
                          "per_device_train_batch_size=2 devices=2 strategy=full_shard "
                          "shard_threshold=100");
  ASSERT_EQ(two.exit_code, 0) << two.output();
  expect_same_curve(job_, "one", "two");
  EXPECT_NE(two.err.find("2 by full_shard"), std::string::npos) << two.err;
  const cli::BinaryRun four =
      job_.run("four", base + "per_device_train_batch_size=1 devices=4 strategy=ddp");
  ASSERT_EQ(four.exit_code, 0) << four.output();
  expect_same_curve(job_, "one", "four");
}

// What is sharded, and of which method, on 2 and 4 processes.
TEST_F(MpiRuns, OfEveryStrategyAndMethodFollowOneRank) {
  struct Many {
    const char* method;
    const char* strategy;
    int ranks;
  };
  constexpr auto kMany = std::to_array<Many>({{"lora", "zero2", 2},
                                              {"lora", "shard_grad_op", 4},
                                              {"qlora", "full_shard", 2},
                                              {"qlora", "zero1", 4},
                                              {"full", "zero1", 2},
                                              {"full", "zero2", 4},
                                              {"full", "shard_grad_op", 2}});
  for (const char* method : {"lora", "qlora", "full"}) {
    const std::string base = fmt::format("{} method={} ", kMpiCommon, method);
    ASSERT_EQ(job_.run(method, base + "per_device_train_batch_size=4").exit_code, 0);
    for (const Many& many : kMany) {
      if (std::string_view(method) != many.method) continue;
      const std::string name = fmt::format("{}-{}", many.method, many.strategy);
      SCOPED_TRACE(name);
      const cli::BinaryRun run =
          job_.run(name, base + fmt::format("per_device_train_batch_size={} devices={} strategy={} "
                                            "shard_threshold=10",
                                            4 / many.ranks, many.ranks, many.strategy));
      ASSERT_EQ(run.exit_code, 0) << run.output();
      expect_same_curve(job_, method, name);
    }
  }
}

// Each rank makes a part of the answers, and learns from a part of them. Answers of one prompt may
// come from two ranks.
TEST_F(MpiRuns, ThatMakeAnswersFollowOneRank) {
  const std::string base =
      std::string(kMpiCommon) +
      "objective=grpo rewards=length num_generations=4 max_completion_length=8 beta=0.05 "
      "method=lora ";
  const auto expect_like_one = [&](const std::string& more, int answers, const std::string& ranks) {
    SCOPED_TRACE(more + " " + ranks);
    const auto run = [&](const std::string& name, const std::string& words) {
      const cli::BinaryRun found = job_.run(name, base + more + words);
      ASSERT_EQ(found.exit_code, 0) << found.output();
    };
    const std::string again = " overwrite_output_dir=true per_device_train_batch_size=";
    run("one", again + "16");
    run("many", again + std::to_string(answers) + ranks);
    for (const char* name : {"loss", "reward", "entropy", "completions/mean_length", "grad_norm"}) {
      const std::vector<double> one = values_of(job_, "one", name);
      const std::vector<double> many = values_of(job_, "many", name);
      ASSERT_EQ(one.size(), many.size()) << name;
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(one[i], many[i], 1e-4 * std::max(1.0, std::abs(one[i]))) << name << " " << i;
    }
  };
  expect_like_one("num_iterations=2 old_logprobs=recompute", 8, " devices=2 strategy=ddp");
  expect_like_one("max_resamples=2", 8, " devices=2 strategy=full_shard shard_threshold=10");
}

// A byte less than for all weights next to the answers' pages, and they are gathered in each
// program, which ranks whose answers have ended run, too.
TEST_F(MpiRuns, ThatMakeAnswersGatherWeightsInEachProgramWhereTheyMust) {
  cli::write_tiny_shape(job_.folder(), "wide");
  nlohmann::json config = nlohmann::json::parse(cli::kTinyConfig);
  config["intermediate_size"] = 1024;
  job_.folder().write("wide/config.json", config.dump());
  const std::string base = fmt::format(
      "{} objective=grpo rewards=length num_generations=4 max_completion_length=8 "
      "model={} max_length=160 per_device_train_batch_size=1 recompute=layer ",
      kMpiCommon, job_.path("wide").string());
  const std::string two =
      "gradient_accumulation_steps=8 devices=2 strategy=full_shard "
      "shard_threshold=10 ";
  const auto plan = [&](const std::string& name) {
    return nlohmann::json::parse(cli::contents_of(job_.path(name) / "plan.json"));
  };
  ASSERT_EQ(job_.run("one", base + "gradient_accumulation_steps=16").exit_code, 0);
  ASSERT_EQ(job_.run("once", base + two).exit_code, 0);
  const int64_t peak = plan("once")["device"]["peak_bytes"];
  const cli::BinaryRun within =
      job_.run("within", base + two + fmt::format("device_memory={}", peak - 1));
  ASSERT_EQ(within.exit_code, 0) << within.output();
  EXPECT_EQ(plan("once")["rollouts"]["gathers_in_each_program"], false);
  EXPECT_EQ(plan("within")["rollouts"]["gathers_in_each_program"], true);
  EXPECT_LT(values_of(job_, "one", "completions/mean_terminated_length").front(), 8);
  for (const char* name : {"loss", "reward", "grad_norm"})
    for (const char* many : {"once", "within"}) {
      const std::vector<double> expected = values_of(job_, "one", name);
      const std::vector<double> found = values_of(job_, many, name);
      ASSERT_EQ(found.size(), 3U) << many;
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-4 * std::max(1.0, std::abs(expected[i])))
            << name << " " << many;
    }
}

// Also where the ranks are in the middle of learning from their answers.
TEST_F(MpiRuns, ThatMakeAnswersGoOnWithTheSameBits) {
  const std::string base =
      std::string(kMpiCommon) +
      "objective=grpo rewards=length num_generations=4 max_completion_length=8 "
      "per_device_train_batch_size=4 steps_per_generation=2 num_iterations=2 "
      "devices=2 strategy=zero2 ";
  ASSERT_EQ(job_.run("whole", base + "max_steps=4").exit_code, 0);
  ASSERT_EQ(job_.run("part", base + "max_steps=3").exit_code, 0);
  const cli::BinaryRun rest = job_.run("part", base + "max_steps=4 resume_from_checkpoint=auto");
  ASSERT_EQ(rest.exit_code, 0) << rest.output();
  EXPECT_EQ(job_.adapter("part"), job_.adapter("whole"));
}

TEST_F(MpiRuns, AHangingRankIsNamed) {
  const testing::TemporaryFolder streams;
  const std::vector<std::string> words =
      job_.words("hangs", std::string(kMpiCommon) + "devices=2 max_steps=100000 timeout_seconds=2");
  const pid_t launcher = cli::start_snug(words, streams.path());
  ASSERT_TRUE(job_.wait_for_steps("hangs", 2));
  const std::map<int, pid_t> ranks = ranks_of(job_.path("hangs"));
  ASSERT_EQ(ranks.size(), 2);
  ::kill(ranks.at(1), SIGSTOP);
  const int code = cli::wait_for(launcher);
  for (const auto& [rank, process] : ranks) ::kill(process, SIGKILL);
  EXPECT_EQ(code, 1);  // 2 is what was given wrongly
  const std::string err = cli::contents_of(streams / "err");
  EXPECT_NE(err.find("rank 1 did not come within 2 s"), std::string::npos) << err;
  EXPECT_NE(err.find("step "), std::string::npos) << err;
}

TEST_F(MpiRuns, RanksThatAreToldOtherThingsAreRefused) {
  const cli::BinaryRun run = cli::run_snug(job_.words("two", std::string(kMpiCommon) + "devices=2 "
                                                                                       "nodes=2"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("started alone"), std::string::npos) << run.err;
  const cli::BinaryRun odd = cli::run_snug(job_.words(
      "two", std::string(kMpiCommon) + "devices=3 strategy=hybrid_full_shard shard_devices=2"));
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_NE(odd.err.find("does not divide"), std::string::npos) << odd.err;
}

// Found by the ranks, after they were started: the launcher ends as they do, and of the documents
// of JSON there is one.
TEST_F(MpiRuns, ARefusalByTheRanksIsThatOfTheJob) {
  job_.folder().write("broken.jsonl", "{\"prompt\": 1}\n");
  std::vector<std::string> words =
      job_.words("refused", std::string(kMpiCommon) +
                                "devices=2 eval_data=" + job_.path("broken.jsonl").string());
  words.push_back("--json");
  const cli::BinaryRun run = cli::run_snug(words);
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(count_of(run.err, "broken.jsonl"), 1) << run.err;
  EXPECT_EQ(count_of(run.err, "snug: error: "), 1) << run.err;
  EXPECT_EQ(run.err.find("is gone"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("stopped: "), std::string::npos) << run.err;
  EXPECT_EQ(count_of(run.out, "exit_code"), 1) << run.out;
}

// Of what each rank of a launcher finds one says it, and the job ends with its exit code.
TEST_F(MpiRuns, AnErrorOfAllRanksIsSaidOnce) {
  job_.folder().write("broken.jsonl", "{\"prompt\": 1}\n");
  job_.folder().write("file", "");
  for (const auto& [key, name, words] : std::vector<std::array<std::string, 3>>{
           {"eval_data", "broken.jsonl", "broken.jsonl"},
           {"output_dir", "file", "is a file; give a folder"}}) {
    const std::string more = kMpiCommon + key + "=" + job_.path(name).string();
    const App app{job_.path("."), with_binary(job_.words("run", more))};
    const cli::BinaryRun run = launch({app, app});
    expect_all_refuse(job_, run, words);
    EXPECT_EQ(count_of(run.err, "snug: error: "), 1) << run.err;
    EXPECT_EQ(run.err.find("stopped: "), std::string::npos) << run.err;
  }
}

// What one process sees it says alone, and starts no ranks.
TEST_F(MpiRuns, WhatOneProcessSeesIsSaidOnce) {
  for (const auto& [more, words] : std::vector<std::pair<std::string, std::string>>{
           {"devices=3 eval_data=absent.jsonl", "absent.jsonl"},
           {"devices=3 model=absent", "absent"},
           {"devices=264", "'devices' is 264, and this machine has"}}) {
    const cli::BinaryRun run = cli::run_snug(job_.words("alone", std::string(kMpiCommon) + more));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_EQ(count_of(run.err, "snug: error: "), 1) << run.err;
    EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("mpirun detected"), std::string::npos) << run.err;
  }
}

// A binary without the library that it opens next to itself, as one is that was built without MPI.
TEST_F(MpiRuns, ABuildWithoutMpiSaysSoOnce) {
  const fs::path alone = job_.path("snug");
  fs::copy_file(SNUG_BINARY, alone);
  const cli::BinaryRun run = cli::run_program(
      cli::joined({alone.string()}, job_.words("alone", std::string(kMpiCommon) + "devices=2")));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(count_of(run.err, "snug: error: "), 1) << run.err;
  EXPECT_NE(run.err.find("this snug was built without it"), std::string::npos) << run.err;
}

// What a recipe's notes say, the launcher of devices=2 says, or the first of mpirun's ranks.
TEST_F(MpiRuns, NotesAreSaidOnce) {
  const std::string note = "fsdp_config.fsdp_use_orig_params: not used";
  job_.folder().write("a.yaml", "fsdp_config:\n  fsdp_use_orig_params: true\n");
  const std::string words = std::string(kMpiCommon) +
                            "max_steps=1 accelerate_config=" + job_.path("a.yaml").string() + " ";
  const cli::BinaryRun own = job_.run("own", words + "devices=2");
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(count_of(own.err, note), 1) << own.err;
  EXPECT_EQ(count_of(cli::contents_of(job_.path("own") / "run.log"), note), 1);
  const App app{job_.path("."), with_binary(job_.words("launched", words))};
  const cli::BinaryRun launched = launch({app, app});
  EXPECT_EQ(launched.exit_code, 0) << launched.err;
  EXPECT_EQ(count_of(launched.err, note), 1) << launched.err;
}

// As one rank does, and as shells tell of a signal.
TEST_F(MpiRuns, ASignalToTheLauncherStopsTheRunWithACheckpoint) {
  const testing::TemporaryFolder streams;
  const pid_t launcher = cli::start_snug(
      job_.words("stops", std::string(kMpiCommon) + "devices=2 max_steps=100000"), streams.path());
  ASSERT_TRUE(job_.wait_for_steps("stops", 2));
  ::kill(launcher, SIGINT);
  EXPECT_EQ(cli::wait_for(launcher), 128 + SIGINT);
  EXPECT_TRUE(has_checkpoint(job_.path("stops"))) << cli::contents_of(streams / "err");
  EXPECT_TRUE(ranks_of(job_.path("stops")).empty());
}

TEST_F(MpiRuns, ARankWithoutMemoryEndsAll) {
#ifdef SNUG_SANITIZED
  GTEST_SKIP() << "the sanitizer needs more address space than the test leaves";
#endif
  std::string command = "ulimit -v 1000000; exec";
  std::vector<App> apps;
  for (int rank = 0; rank < 2; ++rank)
    apps.push_back({job_.path("."),
                    with_binary(job_.words(
                        "run", std::string(kMpiCommon) + "per_device_train_batch_size=1200"))});
  for (const std::string& word : apps.back().words) command += " '" + word + "'";
  apps.back().words = {"/bin/sh", "-c", command};
  expect_all_refuse(job_, launch(apps), "rank 1: The system refused");
}

// The launcher ends ranks that still look for a change that fits once another has ended.
TEST_F(MpiRuns, AJobThatDoesNotFitIsRefusedByAll) {
  const App app{
      job_.path("."),
      with_binary(job_.words("run", std::string(kMpiCommon) + "method=full device_memory=64KiB"))};
  const cli::BinaryRun run = launch({app, app});
  expect_all_refuse(job_, run, "the job does not fit: it plans", 3);
}

TEST_F(MpiRuns, LaunchesOfAnotherKindAreRefused) {
  const auto run_with = [&](std::vector<std::string> variables, const std::string& words) {
    return cli::run_program(cli::joined(cli::joined({"/usr/bin/env"}, variables),
                                        with_binary(job_.words("run", kMpiCommon + words))));
  };
  const App app{job_.path("."),
                with_binary(job_.words("run", std::string(kMpiCommon) + "devices=3"))};
  expect_all_refuse(job_, launch({app, app}), "make 3 ranks, but the launcher started 2");
  const cli::BinaryRun sbatch = run_with({"SLURM_JOB_ID=9", "SLURM_NTASKS=2"}, "devices=2");
  expect_all_refuse(job_, sbatch, "Start it with srun");
  const cli::BinaryRun torchrun =
      run_with({"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                "MASTER_ADDR=localhost", "MASTER_PORT=29500"},
               "");
  expect_all_refuse(job_, torchrun, "torchrun started this process");
  const cli::BinaryRun left_over = cli::run_program(cli::joined(
      {"/usr/bin/env", "RANK=0", "WORLD_SIZE=8", SNUG_MPIRUN, "--oversubscribe", "-n", "2"},
      with_binary(job_.words("run", kMpiCommon))));
  expect_all_refuse(job_, left_over,
                    "WORLD_SIZE=8 as torchrun sets it, and OMPI_COMM_WORLD_SIZE=2");
}

// Three records on 4 ranks: one has a row without loss.
TEST_F(MpiRuns, EvaluateAsOneRankDoes) {
  const std::string base = std::string(kMpiCommon) + "method=full eval_steps=1 max_steps=2 " +
                           "eval_data=" + job_.path("data.jsonl").string() + " ";
  ASSERT_EQ(job_.run("one", base + "per_device_train_batch_size=4").exit_code, 0);
  const cli::BinaryRun four =
      job_.run("four", base +
                           "per_device_train_batch_size=1 devices=4 strategy=full_shard "
                           "shard_threshold=100");
  ASSERT_EQ(four.exit_code, 0) << four.output();
  const std::vector<double> a = values_of(job_, "one", "eval_loss");
  const std::vector<double> b = values_of(job_, "four", "eval_loss");
  ASSERT_EQ(a.size(), 2);
  ASSERT_EQ(b.size(), 2);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

// In "make test-long".
TEST_F(MpiRuns, OfEightRanksFollowOneRank) {
  const std::string base = std::string(kMpiCommon) + "method=full max_steps=20 save_steps=10 ";
  ASSERT_EQ(job_.run("one", base + "per_device_train_batch_size=8").exit_code, 0);
  for (const char* output : {"eight", "again"}) {
    const cli::BinaryRun eight =
        job_.run(output, base +
                             "per_device_train_batch_size=1 devices=8 strategy=full_shard "
                             "shard_threshold=100");
    ASSERT_EQ(eight.exit_code, 0) << eight.output();
    expect_same_curve(job_, "one", output, 20);
  }
  EXPECT_TRUE(cli::contents_of(job_.path("eight") / "model/model.safetensors") ==
              cli::contents_of(job_.path("again") / "model/model.safetensors"));
}

// As between machines without a faster link. In "make test-long".
TEST_F(MpiRuns, OverTcpFollowOneRank) {
  const std::string base = std::string(kMpiCommon) + "method=full max_steps=20 ";
  ASSERT_EQ(job_.run("one", base + "per_device_train_batch_size=4").exit_code, 0);
  ::setenv("OMPI_MCA_btl", "self,tcp", 1);
  ::setenv("OMPI_MCA_pml", "ob1", 1);
  for (const char* strategy : {"hybrid_full_shard", "hybrid_shard_grad_op"}) {
    const cli::BinaryRun four =
        job_.run(strategy, base +
                               "per_device_train_batch_size=1 devices=4 shard_devices=2 "
                               "shard_threshold=100 strategy=" +
                               strategy);
    EXPECT_EQ(four.exit_code, 0) << four.output();
    expect_same_curve(job_, "one", strategy, 20);
  }
  ::unsetenv("OMPI_MCA_btl");
  ::unsetenv("OMPI_MCA_pml");
}

}  // namespace
}  // namespace snug::train
