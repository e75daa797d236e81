// What each rank of tests/comm/mpi_test does, started by mpirun:
//   mpi_ranks MPI_FOLDER check | late RANK | abort RANK | throw RANK | measure MIB
// Or, without MPI, what a rank does that waits in MPI's beginning, with a guard, for others:
//   mpi_ranks - guarded SECONDS | guarded_without_descriptors SECONDS | killed | stopped
// Or a supervisor, as `snug devices=2` is, of mpirun with two such ranks:
//   mpi_ranks - supervise MPIRUN
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/seconds_since.h"
#include "checked_sums.h"
#include "collective_checks.h"
#include "comm/launch.h"
#include "comm/launch_supervisor.h"
#include "comm/launcher_words.h"
#include "comm/mpi/guard_process.h"

namespace snug::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLate = std::chrono::milliseconds(1500);
// Later than ranks of a loaded machine come; the job ends before.
constexpr auto kTooLate = std::chrono::seconds(10);

int report(const Communicator& communicator, const std::string& line) {
  std::fprintf(stderr, "rank %d: %s\n", communicator.rank(), line.c_str());
  return base::UserError::kExitCode;
}

int check(Communicator& communicator) {
  check_all(communicator);
  communicator.barrier();
  return ::testing::Test::HasFailure() ? 1 : 0;
}

void gather(Communicator& communicator) {
  const int rank = communicator.rank();
  std::vector<int> all(communicator.size());
  const GatherPart parts[] = {{&rank, all.data(), sizeof rank}};
  communicator.wait(communicator.begin_all_gather(parts, "weights of layer 3"));
}

int fail(Communicator& communicator, const std::string& how, int rank) {
  communicator.set_step(7);
  gather(communicator);
  try {
    if (communicator.rank() == rank) {
      if (how == "late") std::this_thread::sleep_for(kTooLate);
      if (how == "abort") communicator.abort("out of memory");
      if (how == "throw") throw std::runtime_error("a mistake");
    }
    gather(communicator);
  } catch (const base::UserError& error) {
    return report(communicator, error.what());
  }
  return 0;
}

template <typename Work>
double seconds(Communicator& communicator, const Work& work) {
  work();
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    communicator.barrier();
    const auto begin = Clock::now();
    work();
    best = std::min(best, base::seconds_since(begin));
  }
  return best;
}

int measure(Communicator& communicator, int64_t mebibytes) {
  const int64_t elements = mebibytes * (1 << 20) / 4 / communicator.size();
  std::vector<float> whole(elements * communicator.size(), 1.0F), shard(elements);
  auto scratch = scratch_for(communicator, std::ssize(whole));
  const GatherPart gather_parts[] = {
      {whole.data() + communicator.rank() * elements, whole.data(), elements * 4}};
  ReducePart reduce{whole.data(), shard.data(), elements};
  reduce.valid = elements;
  const double gathered = seconds(communicator, [&] {
    communicator.wait(communicator.begin_all_gather(gather_parts, "whole"));
  });
  const double reduced = seconds(communicator, [&] {
    communicator.wait(communicator.begin_reduce_scatter({&reduce, 1}, scratch, "whole"));
  });
  if (communicator.rank() == 0) std::this_thread::sleep_for(kLate);
  const std::clock_t before = std::clock();
  communicator.barrier();
  const double waited = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  if (communicator.rank() == 1)
    std::printf("waiting takes %.1f %% of a core\n",
                100 * waited / std::chrono::duration<double>(kLate).count());
  if (communicator.rank() == 0)
    std::printf("all_gather %.1f ms, reduce_scatter %.1f ms\n", gathered * 1e3, reduced * 1e3);
  return 0;
}

// As where rules of the system keep a process from the descriptors of others: pidfd_getfd fails.
void go_without_descriptors() {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {std::size(program), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    throw std::runtime_error("no system call can be refused");
}

int supervise(const std::string& launcher) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  ::setenv(kSupervisor, std::to_string(::getpid()).c_str(), 1);
  return LaunchSupervisor({launcher, "--oversubscribe", "--bind-to", "none", "-n", "1", self, "-",
                           "guarded", "0.6", ":", "-n", "1", self, "-", "stopped"},
                          2, std::chrono::seconds(7))
      .run();
}

// All end within a minute whatever happens.
int wait_in_vain(const std::string& how, const std::string& seconds) {
  if (how == "supervise") return supervise(seconds);
  if (how == "guarded_without_descriptors") go_without_descriptors();
  if (how.starts_with("guarded")) {
    const GuardProcess guard(std::stod(seconds), std::chrono::milliseconds(500));
    std::this_thread::sleep_for(std::chrono::minutes(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::raise(how == "killed" ? SIGKILL : SIGSTOP);
  return 0;
}

int run(const std::string& folder, const std::string& what, const std::string& argument) {
  if (folder == "-") return wait_in_vain(what, argument);
  ConnectOptions options;
  options.mpi_folder = folder;
  // Within it MPI begins, too, on a loaded machine.
  options.timeout = std::chrono::milliseconds(what == "late" ? 3000 : 60000);
  const auto communicator = connect(read_launch(environment()), options);
  if (what == "check") return check(*communicator);
  if (what == "measure") return measure(*communicator, std::stoi(argument));
  return fail(*communicator, what, std::stoi(argument));
}

}  // namespace
}  // namespace snug::comm

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string what = argv[2];
  int code = 3;
  try {
    code = snug::comm::run(argv[1], what, argc > 3 ? argv[3] : "0");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  // The launcher ends all ranks when the first has ended: on a loaded machine the others may need
  // longer than usual to say what they were told.
  if (what == "abort" || what == "throw") std::this_thread::sleep_for(snug::comm::kLate);
  return code;
}
