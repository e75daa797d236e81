#include "bench/quick_calibration.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/error.h"
#include "plan/time/calibration_file.h"

namespace snug::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "SNUG_CALIBRATION_SECONDS";
constexpr double kUsualSeconds = 5;
constexpr double kMaxSeconds = 600;
// On a busy machine the step in progress may take longer than predicted: it is then aborted, and
// the file has what was measured before.
constexpr double kGraceSeconds = 1;

// Creates the folder if necessary. Empty where it accepts files; else the reason why not.
std::string why_not_kept(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  return error ? fmt::format("{}: {}", folder.string(), error.message()) : "";
}

// Runs in the forked process, which may only call async-signal-safe functions.
[[noreturn]] void become(char* const* arguments, pid_t parent, unsigned limit_seconds) {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl took effect
  for (const int signal : {SIGALRM, SIGCHLD}) std::signal(signal, SIG_DFL);
  ::alarm(limit_seconds);
  ::execv("/proc/self/exe", arguments);
  ::_exit(1);
}

// During its lifetime, children that end are not kept for wait(), so that the system does not add
// their peak memory to this process's statistics.
class ForgetChildren {
 public:
  ForgetChildren() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &ignore, &before_);
  }
  ~ForgetChildren() { ::sigaction(SIGCHLD, &before_, nullptr); }
  ForgetChildren(const ForgetChildren&) = delete;
  ForgetChildren& operator=(const ForgetChildren&) = delete;

 private:
  struct sigaction before_ = {};
};

// The output of the measurement is dropped: its error messages would look like errors of the run.
void run_measurement(int64_t threads, double seconds) {
  std::array<std::string, 4> words{"snug", "bench", "calibrate-quickly",
                                   fmt::format("threads={}", threads)};
  std::array<char*, words.size() + 1> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  const ForgetChildren forgotten;
  const pid_t parent = ::getpid();
  const auto limit = static_cast<unsigned>(std::ceil(seconds + kGraceSeconds));
  const pid_t child = ::fork();
  if (child == 0) become(arguments.data(), parent, limit);
  // waitpid returns only when the child has ended, with ECHILD.
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::optional<double> calibration_seconds_wanted() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  double seconds = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= 0 && seconds <= kMaxSeconds))
    base::throw_user_error(
        "{} is \"{}\" in the environment; expected seconds from 0, which leaves measuring out, to "
        "{}",
        kVariable, text, kMaxSeconds);
  return seconds;
}

double quick_calibration_seconds() { return calibration_seconds_wanted().value_or(kUsualSeconds); }

void calibrate_before_first_run(const formats::Recipe& recipe) {
  if (recipe.backend != formats::BackendName::cpu || !recipe.calibration.empty()) return;
  const double seconds = quick_calibration_seconds();
  if (seconds <= 0) return;
  const auto backend = backends::open_backend(recipe);
  if (plan::find_calibration(recipe, *backend)) return;
  const fs::path path = plan::quick_calibration_path(plan::identify_machine(*backend));
  if (const std::string why = why_not_kept(path.parent_path()); !why.empty()) {
    base::say("the time of a step is assumed, since what is measured could not be kept: {}", why);
    return;
  }
  base::say(
      "measuring this machine for about {} s, once, so that the time of a step is known; 'snug "
      "bench "
      "calibrate' does it more exactly, in a few minutes",
      seconds);
  run_measurement(recipe.threads, seconds);
  if (plan::remove_if_busy(path))
    base::say(
        "other programs kept this machine busy, so what was measured is not kept and the time of a "
        "step is assumed; the next run measures again");
  else if (!plan::find_calibration(recipe, *backend))
    base::say(
        "measuring failed, so the time of a step is assumed; 'snug bench calibrate' says why");
}

}  // namespace snug::bench
