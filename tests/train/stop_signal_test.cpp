#include "train/stop_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace snug::train {
namespace {

// How a process of its own ends: its exit code, or 128 + the signal that killed it.
int end_of(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

constexpr useconds_t kLaterUs = 1'200'000;

TEST(StopSignal, TheFirstIsTheRequest) {
  EXPECT_EQ(end_of([] {
              const StopSignal signal;
              if (signal.requested() != 0) return 1;
              for (const int number : {SIGTERM, SIGTERM, SIGINT, SIGHUP}) ::raise(number);
              return signal.requested() == SIGTERM ? 0 : 2;
            }),
            0);
}

TEST(StopSignal, ALaterOneKillsButForSighup) {
  const auto again = [](int number) {
    return end_of([&] {
      const StopSignal signal;
      ::raise(number);
      ::usleep(kLaterUs);
      ::raise(number);
      return signal.requested() == number ? 0 : 1;
    });
  };
  EXPECT_EQ(again(SIGINT), 128 + SIGINT);
  EXPECT_EQ(again(SIGHUP), 0);
}

TEST(StopSignal, LeavesSignalsAsTheyWere) {
  EXPECT_EQ(end_of([] {
              std::signal(SIGHUP, SIG_IGN);
              {
                const StopSignal signal;
                ::raise(SIGHUP);
                if (signal.requested() != 0) return 1;
              }
              ::raise(SIGTERM);
              return 2;
            }),
            128 + SIGTERM);
}

}  // namespace
}  // namespace snug::train
