// Who started this process, and as which of how many ranks: read from the variables that launchers
// set.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/words.h"
#include "comm/communicator.h"

namespace snug::comm {

enum class Launcher : uint8_t { none, openmpi, mpich, slurm, torchrun };

constexpr auto words_of(Launcher) {
  return base::words<Launcher>({{Launcher::none, "none"},
                                {Launcher::openmpi, "openmpi"},
                                {Launcher::mpich, "mpich"},
                                {Launcher::slurm, "slurm"},
                                {Launcher::torchrun, "torchrun"}});
}

struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among those of this machine
  int local_size = 1;
  Launcher launcher = Launcher::none;
};

using Variables = std::map<std::string, std::string>;

// torchrun counts before Open MPI, MPICH and Slurm, since each may run inside of those that follow.
// RANK and WORLD_SIZE are set by images and scripts too, so without TORCHELASTIC_RUN_ID they count
// only where no other launcher is, and WORLD_SIZE=1 is a single process. Throws UserError where
// variables are missing, are no numbers or contradict each other, and in a Slurm job of several
// tasks whose processes srun did not start.
Launch read_launch(const Variables& variables);
// Whether torchrun itself started this process.
bool is_of_torchrun(const Variables& variables);
// The variables of this process.
Variables environment();
// Whether this process speaks for those that were started with the same words: it is alone or the
// first, or its variables are wrong.
bool is_first_rank();

struct ConnectOptions {
  std::chrono::duration<double> timeout = std::chrono::seconds(600);
  // Where libsnug_mpi.so is; empty: next to the binary.
  std::filesystem::path mpi_folder;
};

// The communicator of all ranks; of this process alone where nothing launched it. At most once in a
// process. Throws UserError.
std::unique_ptr<Communicator> connect(const Launch& launch, const ConnectOptions& options = {});

}  // namespace snug::comm
