// What the engine says to one HTTP request, on its way from the thread of inference to the thread
// of the connection. It holds so much and no more: whoever reads more slowly loses the answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/api_error.h"

namespace snug::serve {

// An event of one of the answers that a request asks for.
struct ChoiceEvent {
  int64_t choice = 0;
  engine::AnswerEvent event{};
  int64_t cached_tokens = 0;  // of the prompt: they were not read
};

class AnswerQueue {
 public:
  // The events of tokens that wait to be read, at most.
  static constexpr size_t kMostEvents = 4096;

  // Adds an event. False: there are too many, and the answer has to end; its end is still taken.
  bool push(ChoiceEvent event);
  // All ends here, for this reason.
  void fail(const ApiError& error);
  // The next event, or nothing within this time. Throws ApiError after fail().
  std::optional<ChoiceEvent> wait(std::chrono::milliseconds time);

  // The engine's numbers of the answers. Of the thread of inference alone.
  std::vector<engine::RequestId> requests{};
  bool is_taken_back = false;  // of the same thread: it has not begun and shall not

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ChoiceEvent> events_{};
  std::optional<ApiError> error_{};
};

}  // namespace snug::serve
