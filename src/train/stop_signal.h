// The signals that ask a run to stop: SIGINT, SIGTERM, SIGHUP. One asks for a checkpoint; another
// one that comes a second later kills as usual.
#pragma once

#include <csignal>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace snug::train {

// While it lives, signals set requested() instead of killing the process. Those that come within a
// second of the first are the same request: a terminal that closes sends SIGHUP twice, and so do
// wrappers that forward what their group was sent too. SIGHUP never kills. Signals that are ignored
// (nohup) stay so. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The first signal that came, or 0.
  const std::atomic<int>& requested() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// What a run says that a signal stopped.
std::string stopped_text(int64_t last_step);

}  // namespace snug::train
