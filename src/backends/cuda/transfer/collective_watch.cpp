#include "backends/cuda/transfer/collective_watch.h"

#include <utility>

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(20);

bool is_reached(cudaEvent_t event) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears the result, which is not an error
    return false;
  }
  CUDA_CHECK(state);
  return true;
}

}  // namespace

CollectiveWatch::CollectiveWatch(Options options)
    : options_(std::move(options)), thread_([this] { run(); }) {}

CollectiveWatch::~CollectiveWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  stops_.notify_all();
  thread_.join();
}

void CollectiveWatch::prepare() {
  std::pair<Event, Event> events;
  const std::lock_guard lock(mutex_);
  free_events_.push_back(std::move(events));
}

CollectiveWatch::Watched CollectiveWatch::take_events(std::string what) {
  const std::lock_guard lock(mutex_);
  SNUG_CHECK(!free_events_.empty(), "{} was not prepared", what);
  auto [begun, ended] = std::move(free_events_.back());
  free_events_.pop_back();
  return {.what = std::move(what), .begun = std::move(begun), .ended = std::move(ended)};
}

// Called when no events are free. By then the host is ahead by all collectives of a step or more.
void CollectiveWatch::wait_for_oldest() {
  cudaEvent_t ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_events_.empty() || under_way_.empty()) return;
    ended = under_way_.front().ended.get();
  }
  CUDA_CHECK(cudaEventSynchronize(ended));
  check();
  take_back_ended();
}

void CollectiveWatch::watch(std::string what, cudaStream_t stream,
                            const std::function<void()>& queue) {
  check();
  wait_for_oldest();
  Watched watched = take_events(std::move(what));
  CUDA_CHECK(cudaEventRecord(watched.begun.get(), stream));
  std::optional<std::string> error;
  try {
    queue();
  } catch (const base::UserError& caught) {
    error = fmt::format("{}: {}", watched.what, caught.what());
  }
  CUDA_CHECK(cudaEventRecord(watched.ended.get(), stream));
  {
    const std::lock_guard lock(mutex_);
    under_way_.push_back(std::move(watched));
  }
  if (!error) return;
  fail(*error);
  check();
}

void CollectiveWatch::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw base::UserError(*failure_);
}

bool CollectiveWatch::has_failed() {
  const std::lock_guard lock(mutex_);
  return failure_.has_value();
}

void CollectiveWatch::take_back_ended() {
  const std::lock_guard lock(mutex_);
  while (!under_way_.empty() && is_reached(under_way_.front().ended.get())) {
    Watched& front = under_way_.front();
    free_events_.emplace_back(std::move(front.begun), std::move(front.ended));
    under_way_.pop_front();
  }
}

std::string CollectiveWatch::overdue() {
  take_back_ended();
  const std::lock_guard lock(mutex_);
  if (under_way_.empty()) return {};
  Watched& first = under_way_.front();
  if (!first.seen_begun && is_reached(first.begun.get())) first.seen_begun = Clock::now();
  if (!first.seen_begun) return {};
  const std::chrono::duration<double> took = Clock::now() - *first.seen_begun;
  if (took.count() < options_.timeout_seconds) return {};
  return fmt::format("{}: another rank did not come within {:g} s", first.what,
                     options_.timeout_seconds);
}

// For example "rank 1, step 7, all_gather: ", if one is in progress.
std::string CollectiveWatch::first_under_way() {
  const std::lock_guard lock(mutex_);
  return under_way_.empty() ? "" : under_way_.front().what + ": ";
}

void CollectiveWatch::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (stops_.wait_for(lock, kPause, [&] { return is_stopping_; })) return;
      if (failure_) continue;
    }
    std::string reason = overdue();
    if (const std::string error = options_.error(); reason.empty() && !error.empty())
      reason = first_under_way() + error;
    if (!reason.empty()) fail(reason);
  }
}

// The reason is stored before work in progress ends, so that those who waited for it find the
// reason.
void CollectiveWatch::fail(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = reason;
  }
  options_.let_go(reason);
}

}  // namespace snug::backends::cuda
