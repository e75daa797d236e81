// Watches the collectives in progress on a GPU. If other ranks do not arrive, a collective would
// block the GPU, and everyone who waits for it, for ever. So a thread checks whether collectives
// that have begun end within the time limit, and whether NCCL reports an error. Where one does not
// end, everything in progress is aborted, and check() tells those who waited.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/device/stream.h"

namespace snug::backends::cuda {

class CollectiveWatch {
 public:
  struct Options {
    double timeout_seconds = 600;
    // NCCL's error; empty: none. The watch's thread calls it.
    std::function<std::string()> error;
    // Aborts what is in progress, and tells the other ranks why. Called once, by the thread that
    // fails first.
    std::function<void(const std::string& reason)> let_go;
  };
  explicit CollectiveWatch(Options options);
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  ~CollectiveWatch();

  // Creates what one more collective in progress needs of the GPU. Throws UserError where there is
  // no memory for it.
  void prepare();
  // Calls `queue`, which queues a collective on the stream; `what` names it in errors. If as many
  // are in progress as were prepared, first waits for the oldest. Throws UserError where that
  // fails, and where anything failed before.
  void watch(std::string what, cudaStream_t stream, const std::function<void()>& queue);
  // Throws a UserError that says what went wrong, if anything has.
  void check();
  bool has_failed();

 private:
  struct Watched {
    std::string what;
    Event begun;
    Event ended;
    std::optional<std::chrono::steady_clock::time_point> seen_begun{};
  };
  void run();
  // Removes collectives that have ended.
  void take_back_ended();
  // Removes collectives that have ended. If the first remaining one is overdue, returns the error;
  // otherwise an empty string.
  std::string overdue();
  std::string first_under_way();
  void fail(const std::string& reason);
  Watched take_events(std::string what);
  void wait_for_oldest();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable stops_;
  std::deque<Watched> under_way_;                     // in the order in which they were queued
  std::vector<std::pair<Event, Event>> free_events_;  // for the begin and end of collectives
  std::optional<std::string> failure_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace snug::backends::cuda
