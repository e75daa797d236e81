#include "comm/launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "comm/host_communicator.h"
#include "comm/local.h"
#include "comm/mpi_transport.h"

namespace snug::comm {
namespace {

// The names of one launcher's variables. Those about the machine may be missing.
struct Names {
  Launcher launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Names kTorchrun{Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK",
                          "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi{Launcher::openmpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kMpich{Launcher::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                       "MPI_LOCALNRANKS"};
constexpr Names kSlurm{Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                       "SLURM_STEP_TASKS_PER_NODE"};

bool has(const Variables& variables, const char* name) { return variables.contains(name); }

int number(const std::string& name, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    base::throw_user_error("The environment has {}={}, which is no number from {} on", name, text,
                           least);
  return value;
}

int required(const Variables& variables, const char* name, const char* present, int least) {
  const auto found = variables.find(name);
  if (found == variables.end())
    base::throw_user_error(
        "The environment has {} and no {}: a launcher sets both; where none did, unset it", present,
        name);
  return number(name, found->second, least);
}

int optional_number(const Variables& variables, const char* name, int least, int otherwise) {
  const auto found = variables.find(name);
  return found == variables.end() ? otherwise : number(name, found->second, least);
}

void check_order(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank >= size)
    base::throw_user_error("The environment has {}={} and {}={}: ranks count from 0 to {}",
                           rank_name, rank, size_name, size, size - 1);
}

Launch read(const Variables& variables, const Names& names) {
  Launch launch;
  launch.launcher = names.launcher;
  launch.size = required(variables, names.size, names.rank, 1);
  launch.rank = required(variables, names.rank, names.size, 0);
  check_order(names.rank, launch.rank, names.size, launch.size);
  launch.local_rank = optional_number(variables, names.local_rank, 0, launch.rank);
  launch.local_size =
      optional_number(variables, names.local_size, 1, std::max(launch.local_rank + 1, 1));
  return launch;
}

// The number of tasks on node `own_node`, given a text like "4(x2),3": 4 tasks on each of two
// nodes, then 3.
int tasks_of_node(const std::string& text, const int own_node) {
  int node = own_node;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const size_t open = entry.find("(x");
    const int tasks = number("SLURM_STEP_TASKS_PER_NODE", std::string(entry.substr(0, open)), 1);
    int nodes = 1;
    if (open != std::string_view::npos && entry.ends_with(')'))
      nodes = number("SLURM_STEP_TASKS_PER_NODE",
                     std::string(entry.substr(open + 2, entry.size() - open - 3)), 1);
    if (node < nodes) return tasks;
    node -= nodes;
  }
  base::throw_user_error("SLURM_STEP_TASKS_PER_NODE={} has no entry for node {}", text, own_node);
}

Launch read_slurm(Variables variables) {
  const auto tasks = variables.find(kSlurm.local_size);
  if (tasks != variables.end()) {
    const int node = optional_number(variables, "SLURM_NODEID", 0, 0);
    tasks->second = std::to_string(tasks_of_node(tasks->second, node));
  }
  return read(variables, kSlurm);
}

// A shell that salloc or sbatch started is a single process, however many tasks the job asked for.
void check_step(const Variables& variables) {
  const int tasks = optional_number(variables, "SLURM_NTASKS", 1, 1);
  if (tasks > 1)
    base::throw_user_error(
        "This Slurm job has {} tasks (SLURM_NTASKS), but srun did not start this process, so it "
        "would be alone. Start it with srun: srun snug ...",
        tasks);
}

void check_local(const Launch& launch, const Names& names) {
  check_order(names.local_rank, launch.local_rank, names.local_size, launch.local_size);
  if (launch.local_rank > launch.rank)
    base::throw_user_error(
        "The environment has {}={} and {}={}: more ranks come before this one on "
        "its machine than on all",
        names.local_rank, launch.local_rank, names.rank, launch.rank);
  if (launch.local_size > launch.size)
    base::throw_user_error("The environment has {}={} and {}={}: a machine has no more than all",
                           names.local_size, launch.local_size, names.size, launch.size);
}

Launch read_checked(const Variables& variables, const Names& names) {
  const Launch launch =
      names.launcher == Launcher::slurm ? read_slurm(variables) : read(variables, names);
  check_local(launch, names);
  return launch;
}

bool has_any(const Variables& variables, const Names& names) {
  return has(variables, names.rank) || has(variables, names.size);
}

// Torch's variables next to those of the launcher that counts must be the same numbers, as scripts
// set them, or those of a single process.
void check_left_over(const Variables& variables, const Names& names, const Launch& launch) {
  const auto differs = [&](const char* name, int value) {
    const auto found = variables.find(name);
    return found != variables.end() && found->second != std::to_string(value);
  };
  const auto size = variables.find(kTorchrun.size);
  if (size != variables.end() && size->second == "1") return;
  for (const auto& [name, other, value] : {std::tuple{kTorchrun.rank, names.rank, launch.rank},
                                           std::tuple{kTorchrun.size, names.size, launch.size}})
    if (differs(name, value))
      base::throw_user_error(
          "The environment has {}={} as torchrun sets it, and {}={} of {}: they contradict each "
          "other. Unset what is left over: env -u RANK -u WORLD_SIZE ...",
          name, variables.at(name), other, value, base::word_of(names.launcher));
}

}  // namespace

bool is_of_torchrun(const Variables& variables) { return has(variables, "TORCHELASTIC_RUN_ID"); }

Launch read_launch(const Variables& variables) {
  const bool has_torch_names = has_any(variables, kTorchrun);
  if (has_torch_names && is_of_torchrun(variables)) return read_checked(variables, kTorchrun);
  for (const Names& names : {kOpenMpi, kMpich, kSlurm}) {
    const bool is_step = has(variables, "SLURM_STEP_ID") && has(variables, kSlurm.size);
    if (names.launcher == Launcher::slurm ? !is_step : !has_any(variables, names)) continue;
    const Launch launch = read_checked(variables, names);
    check_left_over(variables, names, launch);
    return launch;
  }
  if (has_torch_names)
    if (const Launch launch = read_checked(variables, kTorchrun); launch.size > 1) return launch;
  if (has(variables, "SLURM_JOB_ID") || has(variables, "SLURM_NTASKS")) check_step(variables);
  return {};
}

Variables environment() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

bool is_first_rank() {
  try {
    return read_launch(environment()).rank == 0;
  } catch (const base::UserError&) {
    return true;
  }
}

std::unique_ptr<Communicator> connect(const Launch& launch, const ConnectOptions& options) {
  switch (launch.launcher) {
    case Launcher::none:
      return LocalGroup(1).communicator(0);
    case Launcher::torchrun:
      base::throw_user_error(
          "torchrun started this process, and its ranks have no way to reach each other on this "
          "device. Start them with MPI: mpirun -n {} snug ..., or srun. If torchrun did not, RANK "
          "and WORLD_SIZE are left over: env -u RANK -u WORLD_SIZE snug ...",
          launch.size);
    case Launcher::openmpi:
    case Launcher::mpich:
    case Launcher::slurm:
      break;
  }
  auto transport = open_mpi_transport(options.timeout.count(), options.mpi_folder);
  if (transport->size() != launch.size || transport->rank() != launch.rank)
    base::throw_user_error(
        "The launcher ({}) says that this is rank {} of {}, but MPI says rank {} of {}: start it "
        "with "
        "the launcher of the MPI that snug was built with; with Slurm, srun --mpi=pmix.",
        base::word_of(launch.launcher), launch.rank, launch.size, transport->rank(),
        transport->size());
  return std::make_unique<HostCommunicator>(std::move(transport));
}

}  // namespace snug::comm
