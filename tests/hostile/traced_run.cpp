#include "traced_run.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "../base/temporary_folder.h"

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                          PTRACE_O_TRACEFORK | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEVFORK;

// Stops at the calls of file_call_numbers and lets all others pass. Survives exec.
std::vector<sock_filter> filter_program() {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number : file_call_numbers()) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

// In the child. The parent sets its options at the stop, before the first call that they concern.
void ask_to_be_traced(std::vector<sock_filter>& filter) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(125);
  ::raise(SIGSTOP);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(125);
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

class Tracer {
 public:
  Tracer(pid_t process, fs::path folder, const Disturbance& disturbance)
      : process_(process), folder_(std::move(folder)), disturbance_(disturbance) {}

  // Until the process has ended; its status.
  int follow(const Deadline& deadline) {
    while (true) {
      int status = 0;
      const pid_t thread = ::waitpid(-process_, &status, __WALL);
      if (thread < 0) {
        if (errno != EINTR) return status;
        if (deadline.is_over() && !std::exchange(timed_out_, true)) end();
        continue;
      }
      if (!WIFSTOPPED(status)) {
        if (thread == process_) return status;
        continue;
      }
      go_on(thread, status);
    }
  }

  bool timed_out() const { return timed_out_; }
  std::vector<FileCall> take_calls() { return std::move(calls_); }

 private:
  void end() const { ::kill(process_, SIGKILL); }

  void go_on(pid_t thread, int status) {
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    auto request = PTRACE_CONT;
    if (event == PTRACE_EVENT_SECCOMP) {
      if (stop_after(thread)) request = PTRACE_SYSCALL;
    } else if (event == 0 && signal == SIGTRAP && is_tearing_) {
      end();
    }
    if (!is_set_up_) {
      is_set_up_ = true;
      ::ptrace(PTRACE_SETOPTIONS, thread, nullptr, kOptions);
    }
    // New threads begin with a SIGSTOP of the tracer's own.
    const bool is_own = event != 0 || signal == SIGTRAP || signal == SIGSTOP;
    ::ptrace(request, thread, nullptr, is_own ? 0L : static_cast<long>(signal));
  }

  // Notes and disturbs the call; true where the thread is to stop again after it.
  bool stop_after(pid_t thread) {
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
    const std::optional<FileCall> call = file_call_of(thread, registers);
    if (!call || !is_below(call->path, folder_)) return false;
    calls_.push_back(*call);
    if (std::ssize(calls_) - 1 != disturbance_.call) return false;
    switch (disturbance_.way) {
      case Way::none:
        return false;
      case Way::kill:
        end();
        return false;
      case Way::fail:
        registers.orig_rax = ~0ULL;  // no call is made, and rax is the answer
        registers.rax =
            static_cast<unsigned long long>(-static_cast<long long>(disturbance_.error_number));
        break;
      case Way::torn:
      case Way::shorten:
        if (call->moves_bytes && registers.rdx > 1) registers.rdx /= 2;
        is_tearing_ = disturbance_.way == Way::torn;
        break;
    }
    ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    return is_tearing_;
  }

  pid_t process_;
  fs::path folder_;
  Disturbance disturbance_;
  std::vector<FileCall> calls_;
  bool is_set_up_ = false;
  bool is_tearing_ = false;
  bool timed_out_ = false;
};

}  // namespace

TracedRun run_traced(const Command& command, const fs::path& folder,
                     const Disturbance& disturbance) {
  std::vector<sock_filter> filter = filter_program();
  const pid_t process = start(command, [&] { ask_to_be_traced(filter); });
  ::setpgid(process, process);  // here too, so that the group is there before it is waited for
  const Deadline deadline(command.limit_seconds);
  Tracer tracer(process, folder, disturbance);
  const int status = tracer.follow(deadline);
  TracedRun result;
  result.end = ended(command, status, tracer.timed_out());
  result.calls = tracer.take_calls();
  return result;
}

bool can_trace() {
  const testing::TemporaryFolder folder;
  const Command command{.words = {"/bin/true"}, .streams = folder.path()};
  return run_traced(command, folder.path(), {}).end.exit_code == 0;
}

}  // namespace snug::hostile
