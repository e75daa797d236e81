// Requests enter, wait, run side by side and leave, each on its own: the one way in which Snug
// generates. Everything that happens follows from the order of the calls, so that a run can be
// repeated. Not thread-safe: one thread submits, cancels and steps; listeners are called on it, and
// may submit and cancel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/inference.h"
#include "engine/request.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

// Of all runs since the engine began.
struct EngineTimes {
  double prefill_seconds = 0;
  double decode_seconds = 0;
  int64_t prefill_tokens = 0;
  int64_t decode_tokens = 0;
};

class Engine {
 public:
  // `tokenizer`: may be nullptr, without which there is no text. Both must outlive the engine.
  explicit Engine(Inference& inference, const text::Tokenizer* tokenizer = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes a request, which waits until there is room for it. Throws UserError, with nothing done,
  // for one that can never run: an empty prompt, an id that the model has no row for, more tokens
  // than a sequence can have, sampling for which the programs do not give what it needs.
  RequestId submit(Request request, Listener listener);

  // Ends a request, waiting or running; its listener hears of it now. One that has ended is
  // passed over.
  void cancel(RequestId request);

  // Runs one program: a chunk of the prompts that are being read, or one token more for each
  // sequence that answers. Returns whether there is more to do.
  bool step();

  // Runs all of these to their end, in the order in which they are given, and returns their
  // answers in that order.
  std::vector<Answer> answers(std::span<const Request> requests);

  int64_t waiting() const;
  int64_t running() const;
  const EngineTimes& times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug::engine
