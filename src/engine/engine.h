// Requests enter, wait, run side by side and leave, each on its own: the one way in which Snug
// generates. Everything that happens follows from the order of the calls, so that a run can be
// repeated. Not thread-safe: one thread submits, cancels and steps; listeners are called on it, and
// may submit and cancel. Who waits, who runs and in which turns: engine/scheduler.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/cached_forward.h"
#include "engine/inference.h"
#include "engine/request.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

// Of all runs since the engine began; the choice of tokens included, listeners left out.
struct EngineTimes {
  double prefill_seconds = 0;
  double decode_seconds = 0;
  int64_t prefill_tokens = 0;
  int64_t known_tokens = 0;  // of prompts: they were not read, since others had begun alike
  int64_t decode_tokens = 0;
  int64_t decode_runs = 0;
  int64_t preemptions = 0;
  int64_t guessed_tokens = 0;  // that runs of decode verified
  int64_t right_guesses = 0;   // of them: these are tokens of answers, too
};

struct EngineOptions {
  const text::Tokenizer* tokenizer = nullptr;  // without one there is no text
  std::function<Seconds()> clock{};            // for deadlines; empty: the steady clock
  std::vector<std::string> adapters{};         // the names of those in the job's slots, in order
  AgreeOnTurn agree_on_turn{};  // engine/cached_forward.h; empty: there are no other ranks
  // For how many new tokens a request has its pages promised when it enters. Nothing: for all that
  // it may give, so that nobody who has entered is disturbed. Fewer let more requests run side by
  // side where few answers are as long as they may be. Where pages run short, the request that
  // arrived last is preempted: it waits again, and goes on by reading its prompt and its answer so
  // far. Its draws stay the same, so its tokens do, up to rounding.
  std::optional<int64_t> expected_new_tokens{};
};

// Adds to an answer what an event tells.
void add_to(Answer& answer, const AnswerEvent& event);

class Engine {
 public:
  // All that is given must outlive the engine. Engines of one executor may take turns, each when
  // the others have no request inside, or a CHECK fails: after another has run, an engine knows no
  // beginnings. A tokenizer may be nullptr, without which there is no text.
  explicit Engine(Inference& inference, const text::Tokenizer* tokenizer = nullptr);
  // The executor's job must contain the programs of `shape`, with the weights of `model`.
  Engine(runtime::Executor& executor, const models::ModelConfig& model,
         const plan::InferenceShape& shape, EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes a request, which waits until there is room for it. Throws UserError, with nothing done,
  // for one that can never run: an empty prompt, an id that the model has no row for, more tokens
  // than a sequence can have or the pages hold, sampling for which the programs do not give what it
  // needs, stop texts without a tokenizer, an adapter that the engine does not have.
  RequestId submit(Request request, Listener listener);

  // Ends a request, waiting or running; its listener hears of it now, and of nothing afterwards.
  // One whose listener has heard of its end is passed over.
  void cancel(RequestId request);

  // Ends what has come to its deadline, then runs one program: a chunk of the prompts that are
  // being read, or one token more for each sequence that answers. Tells the listeners in the order
  // of arrival. Returns whether there is more to do. Where a listener throws, the others hear in
  // the next step what they would have heard. Throws UserError where logits are not finite, after
  // which the engine can only be destroyed.
  bool step();

  // Where ranks take turns (EngineOptions::agree_on_turn), runs what the others still run. Each
  // rank calls it when it has no more to do, and submits nothing before it returns.
  void await_others();

  // Runs all of these to their end, in the order in which they are given, and returns their
  // answers in that order.
  std::vector<Answer> answers(std::span<const Request> requests);

  // The weights have changed: nothing that is cached now is shared with requests that enter later.
  // One that runs goes on with what it has read.
  void forget_beginnings();

  // Of a request's prompt, how many tokens were not read when it entered last, since others had
  // begun alike. The request has not ended, or its listener is being called.
  int64_t known_tokens(RequestId request) const;
  int64_t waiting() const;
  int64_t running() const;
  int64_t used_pages() const;  // by those that run
  Seconds now() const;         // by the clock of deadlines
  const EngineTimes& times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug::engine
