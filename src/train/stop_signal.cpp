#include "train/stop_signal.h"

#include <fmt/format.h>
#include <time.h>

#include <cstdint>

namespace snug::train {
namespace {

constexpr int64_t kSameRequestMs = 1000;

std::atomic<int> first_signal{0};
std::atomic<int64_t> first_ms{0};
static_assert(std::atomic<int64_t>::is_always_lock_free, "for a signal handler");

int64_t now_ms() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void handle(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_ms = now_ms();
  } else if (signal != SIGHUP && now_ms() - first_ms > kSameRequestMs) {
    // It comes again when this returns.
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

StopSignal::StopSignal() {
  first_signal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = handle;
    // One at a time, so that the time of the first is there for the second.
    for (const int other : kSignals) ::sigaddset(&action.sa_mask, other);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<int>& StopSignal::requested() const { return first_signal; }

std::string stopped_text(int64_t last_step) {
  if (last_step == 0) return "stopped before the end of the first step; there is nothing to save";
  return fmt::format(
      "stopped after step {}; checkpoint saved, resume_from_checkpoint=auto continues", last_step);
}

}  // namespace snug::train
