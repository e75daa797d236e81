#include "serve/answer_queue.h"

#include <utility>

namespace snug::serve {

bool AnswerQueue::push(ChoiceEvent event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= kMostEvents && !event.event.finish) return false;
  events_.push_back(std::move(event));
  changed_.notify_one();
  return true;
}

void AnswerQueue::fail(const ApiError& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_one();
}

std::optional<ChoiceEvent> AnswerQueue::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return !events_.empty() || error_; });
  if (error_) throw ApiError(*error_);
  if (events_.empty()) return std::nullopt;
  ChoiceEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace snug::serve
