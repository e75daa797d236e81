// Looks after the collectives that are under way on a card. A collective whose other ranks do not
// come would keep the card, and whoever waits for it, for ever: so a thread asks whether those that
// have begun have ended within the time limit, and whether NCCL has an error. Where one does not
// end, everything that is under way is let go, and whoever waited is told by check().
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
    // What NCCL says is wrong; empty: nothing. The watch's thread calls it.
    std::function<std::string()> error;
    // Lets go what is under way, and tells the other ranks why. Called once, by whichever thread
    // fails first.
    std::function<void(const std::string& reason)> let_go;
  };
  explicit CollectiveWatch(Options options);
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  ~CollectiveWatch();

  // Makes now what one more collective that is under way takes of the GPU. Throws UserError where
  // there is no memory for it.
  void prepare();
  // A collective is queued by `queue` on the stream; `what` names it in errors. Where as many are
  // under way as were prepared, waits for the oldest first. Throws UserError where it fails, and
  // where anything failed before.
  void watch(std::string what, cudaStream_t stream, const std::function<void()>& queue);
  // Throws UserError with what went wrong, if anything has.
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
  // Removes those that have ended.
  void take_back_ended();
  // Removes those that have ended; then says why the first that has not ended is an error; empty:
  // it is none.
  std::string overdue();
  std::string first_under_way();
  void fail(const std::string& reason);
  Watched take_events(std::string what);
  void wait_for_oldest();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable stops_;
  std::deque<Watched> under_way_;                     // in the order of the stream
  std::vector<std::pair<Event, Event>> free_events_;  // of collectives that begin and end
  std::optional<std::string> failure_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace snug::backends::cuda
