// The thread that owns the engine. Threads of connections give it requests and hear of them
// through queues. All members may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "serve/answer_queue.h"

namespace snug::serve {

// What an answer follows; the thread of inference makes the grammar, where it does not know it by
// its name.
struct AskedForm {
  std::string name{};
  std::function<text::ByteGrammar()> grammar{};  // empty: any answer
};

// One of the answers that an HTTP request asks for.
struct Submission {
  engine::Request request{};
  AskedForm form{};
};

struct LoopLimits {
  int64_t max_waiting = 0;     // answers that wait for room; 0: no limit
  double request_seconds = 0;  // from the arrival to the end; 0: no limit
};

// How the engine stands, as of its last run.
struct LoopState {
  int64_t open = 0;  // answers that have not ended
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t used_pages = 0;
  engine::EngineTimes times{};
};

class InferenceLoop {
 public:
  // Both must outlive it.
  InferenceLoop(engine::Inference& inference, const text::Tokenizer& tokenizer,
                const LoopLimits& limits);
  // Ends what runs.
  ~InferenceLoop();
  InferenceLoop(const InferenceLoop&) = delete;
  InferenceLoop& operator=(const InferenceLoop&) = delete;

  // Begins answers, all or none; their places in the list are their choices. Throws ApiError where
  // too many wait. What the engine refuses fails the queue.
  std::shared_ptr<AnswerQueue> submit(std::vector<Submission> submissions);
  // Ends what is left of them.
  void cancel(const std::shared_ptr<AnswerQueue>& queue);
  // Puts the recipe's adapters in the place of those that there are, as Inference does, once all
  // that runs has ended; what is submitted meanwhile begins after it. Throws UserError as it does.
  void replace_adapters(const formats::Recipe& recipe);
  // Ends all with this error.
  void fail_all(const ApiError& error);

  LoopState state() const;
  // Why nothing runs any more; empty: it does.
  std::string failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug::serve
