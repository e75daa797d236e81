// A request that the engine is answering, as its connection sees it. One thread. Where it goes away
// before the end, so do its answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/completion_answer.h"
#include "serve/completion_request.h"
#include "serve/http_server.h"
#include "serve/inference_loop.h"

namespace snug::serve {

class RunningCompletion {
 public:
  // `first_sample`: the number of the first answer's draws. The model and the loop must outlive it.
  // Throws ApiError where too many wait.
  RunningCompletion(CompletionRequest request, const ServedModel& model, InferenceLoop& loop,
                    int64_t first_sample);
  ~RunningCompletion();
  RunningCompletion(const RunningCompletion&) = delete;
  RunningCompletion& operator=(const RunningCompletion&) = delete;

  // Waits for the first event of any answer. False: the other side has gone. Throws ApiError.
  bool wait_for_first(const std::function<bool()>& is_cut);
  // Waits for the end. The same.
  bool wait_for_all(const std::function<bool()>& is_cut);
  std::string whole() const;
  // Sends all as events, an error too, to the last, which is [DONE]. False: the other side has
  // gone.
  bool stream(const SendPiece& send, const std::function<bool()>& is_cut);

  bool is_streamed() const { return request_.is_streamed; }
  double seconds() const;  // since it began

 private:
  std::optional<ChoiceEvent> next(const std::function<bool()>& is_cut);

  const CompletionRequest request_;
  InferenceLoop& loop_;
  CompletionAnswer answer_;
  std::shared_ptr<AnswerQueue> queue_;
  std::optional<ChoiceEvent> first_{};
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point looked_ = begin_;  // whether the other side is there
};

}  // namespace snug::serve
