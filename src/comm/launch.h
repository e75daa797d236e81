// Which launcher started this process, and its rank and the number of ranks, read from the
// variables that launchers set.
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
  int local_rank = 0;  // its number among the ranks of this machine
  int local_size = 1;
  Launcher launcher = Launcher::none;
};

using Variables = std::map<std::string, std::string>;

// The launchers are looked for in the order torchrun, Open MPI, MPICH, Slurm, since each may run
// inside a later one. Images and scripts set RANK and WORLD_SIZE too, so without
// TORCHELASTIC_RUN_ID these count only where no other launcher is found, and WORLD_SIZE=1 is a
// single process. Throws UserError where variables are missing, are not numbers or contradict each
// other, and in a Slurm job of several tasks whose processes srun did not start.
Launch read_launch(const Variables& variables);
// Whether torchrun itself started this process.
bool is_of_torchrun(const Variables& variables);
// The environment variables of this process.
Variables environment();
// Whether this process speaks for all that were started with the same command line: it is the only
// one or the first, or its variables are wrong.
bool is_first_rank();

struct ConnectOptions {
  std::chrono::duration<double> timeout = std::chrono::seconds(600);
  // The folder of libsnug_mpi.so; if empty, the library is next to the binary.
  std::filesystem::path mpi_folder;
};

// The communicator of all ranks; of this process alone where no launcher started it. Call it at
// most once in a process. Throws UserError.
std::unique_ptr<Communicator> connect(const Launch& launch, const ConnectOptions& options = {});

}  // namespace snug::comm
