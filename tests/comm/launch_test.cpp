#include "comm/launch.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug::comm {
namespace {

std::string error_of(const Variables& variables) {
  try {
    read_launch(variables);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

void expect_launch(const Variables& variables, Launcher launcher, int rank, int size,
                   int local_rank, int local_size) {
  const Launch launch = read_launch(variables);
  EXPECT_EQ(base::word_of(launch.launcher), base::word_of(launcher));
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.size, size);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.local_size, local_size);
}

void expect_error(const Variables& variables, const std::vector<std::string>& words) {
  const std::string error = error_of(variables);
  for (const std::string& word : words)
    EXPECT_NE(error.find(word), std::string::npos) << "'" << error << "' lacks '" << word << "'";
}

const Variables kTorchrun{
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "6"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Variables kSlurm{{"SLURM_JOB_ID", "9"}, {"SLURM_STEP_ID", "0"},
                       {"SLURM_NTASKS", "7"}, {"SLURM_STEP_NUM_TASKS", "7"},
                       {"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"},
                       {"SLURM_NODEID", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}};

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

TEST(Launch, NothingIsASingleProcess) {
  expect_launch({{"PATH", "/bin"}}, Launcher::none, 0, 1, 0, 1);
  // PMIX_RANK has no size.
  expect_launch({{"PMIX_RANK", "3"}}, Launcher::none, 0, 1, 0, 1);
}

TEST(Launch, EachLauncherIsUnderstood) {
  expect_launch(kTorchrun, Launcher::torchrun, 5, 8, 1, 4);
  expect_launch(kOpenMpi, Launcher::openmpi, 3, 6, 0, 3);
  expect_launch({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}, Launcher::mpich, 2, 4, 2, 3);
  expect_launch(kSlurm, Launcher::slurm, 6, 7, 0, 1);
  expect_launch(
      with(kSlurm, {{"SLURM_NODEID", "1"}, {"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "2"}}),
      Launcher::slurm, 5, 7, 2, 3);
}

TEST(Launch, TheInnerLauncherCounts) {
  Variables all = with(with(kSlurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), kOpenMpi);
  expect_launch(all, Launcher::openmpi, 3, 6, 0, 3);
  expect_launch(with(with(all, kTorchrun), {{"TORCHELASTIC_RUN_ID", "none"}}), Launcher::torchrun,
                5, 8, 1, 4);
  expect_launch(with(kSlurm, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), Launcher::mpich, 2, 4, 2, 3);
}

// Images and scripts set torch's names too.
TEST(Launch, TorchsVariablesMayBeLeftOver) {
  expect_launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, Launcher::none, 0, 1, 0, 1);
  expect_launch(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), Launcher::openmpi, 3, 6, 0,
                3);
  expect_launch(with(kOpenMpi, {{"RANK", "3"}, {"WORLD_SIZE", "6"}}), Launcher::openmpi, 3, 6, 0,
                3);
  expect_error(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "6"}}),
               {"RANK=0", "OMPI_COMM_WORLD_RANK=3", "openmpi", "env -u RANK -u WORLD_SIZE"});
  expect_error(with(kOpenMpi, {{"WORLD_SIZE", "8"}}),
               {"WORLD_SIZE=8", "OMPI_COMM_WORLD_SIZE=6", "openmpi"});
  expect_error(with(kSlurm, {{"RANK", "0"}}), {"RANK=0", "SLURM_PROCID=6"});
  expect_error({{"RANK", "0"}}, {"no WORLD_SIZE", "unset it"});
}

TEST(Launch, WrongVariablesAreNamed) {
  expect_error({{"RANK", "two"}, {"WORLD_SIZE", "4"}}, {"RANK=two", "no number"});
  expect_error({{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, {"RANK=1x"});
  expect_error({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, {"RANK=-1"});
  expect_error({{"RANK", ""}, {"WORLD_SIZE", "4"}}, {"RANK="});
  expect_error({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE=0"});
  expect_error({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, {"WORLD_SIZE=99999999999"});
  expect_error({{"RANK", "4"}, {"WORLD_SIZE", "4"}}, {"RANK=4", "WORLD_SIZE=4"});
  expect_error({{"RANK", "0"}}, {"RANK", "WORLD_SIZE"});
  expect_error({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE", "RANK"});
  expect_error({{"OMPI_COMM_WORLD_RANK", "0"}}, {"OMPI_COMM_WORLD_SIZE"});
}

TEST(Launch, ContradictionsAreNamed) {
  expect_error(with(kTorchrun, {{"LOCAL_RANK", "4"}}), {"LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4"});
  expect_error(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}),
               {"LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8"});
  expect_error(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3,3"}}), {"3,3", "node 2"});
  expect_error(with(kTorchrun, {{"LOCAL_RANK", "6"}, {"LOCAL_WORLD_SIZE", "8"}}), {"LOCAL_RANK=6"});
}

TEST(Launch, SlurmJobsNeedAStep) {
  expect_error({{"SLURM_JOB_ID", "9"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},
               {"SLURM_NTASKS", "srun"});
  expect_error({{"SLURM_NTASKS", "x"}}, {"SLURM_NTASKS=x"});
  expect_launch({{"SLURM_JOB_ID", "9"}, {"SLURM_NTASKS", "1"}}, Launcher::none, 0, 1, 0, 1);
  // mpirun in a job of sbatch.
  expect_launch(with(kOpenMpi, {{"SLURM_JOB_ID", "9"}, {"SLURM_NTASKS", "4"}}), Launcher::openmpi,
                3, 6, 0, 3);
}

TEST(Connect, OneProcessNeedsNoMpi) {
  const auto communicator = connect({});
  EXPECT_EQ(communicator->size(), 1);
  communicator->barrier();
}

TEST(Connect, SaysWhatIsMissing) {
  ConnectOptions options;
  options.mpi_folder = "no/such/folder";
  for (const auto& [launcher, word] : {std::pair{Launcher::torchrun, "mpirun -n 4"},
                                       std::pair{Launcher::openmpi, "libopenmpi-dev"}}) {
    try {
      connect({0, 4, 0, 4, launcher}, options);
      ADD_FAILURE();
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace snug::comm
