// Work that two threads do piece by piece while its results are handed in one after the other, in
// the order in which pieces were taken.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace snug::convert {

inline constexpr size_t kPieceWorkers = 2;

template <typename Piece>
class OrderedPieces {
 public:
  // Until `take` returns nothing: a worker takes the next piece, makes what it is about with
  // make(piece, worker), and waits until all earlier pieces have been handed in; then it calls
  // hand_in(piece, worker). At most kPieceWorkers pieces are in progress. take and hand_in are
  // called by one thread at a time. Rethrows the first exception, after which nothing more is
  // handed in.
  template <typename Take, typename Make, typename HandIn>
  void run(const Take& take, const Make& make, const HandIn& hand_in) {
    const auto work = [&](size_t worker) {
      try {
        while (auto next = taken(take)) {
          make(next->second, worker);
          wait_for(next->first, [&] { hand_in(next->second, worker); });
        }
      } catch (...) {
        fail(std::current_exception());
      }
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <typename Take>
  std::optional<std::pair<int64_t, Piece>> taken(const Take& take) {
    const std::lock_guard lock(mutex_);
    if (failure_) return std::nullopt;
    std::optional<Piece> piece = take();
    if (!piece) return std::nullopt;
    return std::pair(number_++, std::move(*piece));
  }

  template <typename Action>
  void wait_for(int64_t number, const Action& action) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return failure_ || handed_in_ == number; });
    if (failure_) return;
    lock.unlock();
    action();
    lock.lock();
    ++handed_in_;
    turn_.notify_all();
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    turn_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable turn_;
  int64_t number_ = 0;
  int64_t handed_in_ = 0;
  std::exception_ptr failure_;
};

}  // namespace snug::convert
