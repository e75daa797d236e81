#include "serve/inference_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "engine/answer_forms.h"

namespace snug::serve {

struct InferenceLoop::State {
  using Queue = std::shared_ptr<AnswerQueue>;

  State(engine::Inference& of_model, const text::Tokenizer& of_text, const LoopLimits& given)
      : limits(given),
        most_running(of_model.shape().sequences),
        inference(of_model),
        tokenizer(of_text),
        forms(tokenizer) {
    open_engine();
  }

  using Commands = std::deque<std::function<void()>>;
  void post(Commands& to, std::function<void()> command);
  Commands take_commands(bool waits);
  void run();
  void open_engine() { engine.emplace(inference, &tokenizer); }
  bool is_idle() const { return engine->running() + engine->waiting() == 0; }
  bool is_asked_to_end() const {
    const std::lock_guard lock(mutex);
    return is_ending;
  }
  void check_runs() const {
    const std::lock_guard lock(mutex);
    if (!failure.empty()) throw ApiError(kInternal, failure);
  }
  bool step();
  void begin(std::vector<Submission>& submissions, const Queue& queue);
  void hear(int64_t choice, const engine::AnswerEvent& event, const Queue& queue);
  void end_all(const ApiError& error);
  void publish();

  const LoopLimits limits;
  const int64_t most_running;

  mutable std::mutex mutex;  // of the members below it
  std::condition_variable changed;
  Commands commands{};  // at once
  Commands changes{};   // of the adapters: when nothing runs
  Commands begins{};    // of requests: after changes
  LoopState shown{};
  int64_t open = 0;
  std::string failure{};
  bool is_ending = false;

  // Of the thread of inference.
  engine::Inference& inference;
  const text::Tokenizer& tokenizer;
  std::optional<engine::Engine> engine{};
  engine::AnswerForms forms;
  std::set<Queue> queues{};
  std::thread thread{};
};

void InferenceLoop::State::post(Commands& to, std::function<void()> command) {
  {
    const std::lock_guard lock(mutex);
    to.push_back(std::move(command));
  }
  changed.notify_one();
}

// What is to be done now. `waits`: there is nothing else to do.
InferenceLoop::State::Commands InferenceLoop::State::take_commands(bool waits) {
  std::unique_lock lock(mutex);
  if (waits)
    changed.wait(lock, [&] {
      return !commands.empty() || !changes.empty() || !begins.empty() || is_ending;
    });
  Commands now = std::exchange(commands, {});
  if (!changes.empty() && (is_idle() || !failure.empty())) {
    now.push_back(std::move(changes.front()));
    changes.pop_front();
  } else if (changes.empty()) {
    std::ranges::move(begins, std::back_inserter(now));
    begins.clear();
  }
  return now;
}

void InferenceLoop::State::run() {
  bool has_more = false;
  while (true) {
    const Commands now = take_commands(!has_more);
    for (const std::function<void()>& command : now) command();
    if (is_asked_to_end()) break;
    has_more = step();
    publish();
  }
  end_all(ApiError(kUnavailable, "the server has stopped"));
}

// A failure ends everything: after it the engine runs no more.
bool InferenceLoop::State::step() {
  {
    const std::lock_guard lock(mutex);
    if (!failure.empty()) return false;
  }
  try {
    return engine->step();
  } catch (const base::UserError& error) {
    {
      const std::lock_guard lock(mutex);
      failure = error.what();
    }
    for (const Queue& queue : queues) queue->fail(ApiError(kInternal, error.what()));
    queues.clear();
    return false;
  }
}

void InferenceLoop::State::publish() {
  const std::lock_guard lock(mutex);
  shown = {.open = open,
           .running = engine->running(),
           .waiting = engine->waiting(),
           .used_pages = engine->used_pages(),
           .times = engine->times()};
}

void InferenceLoop::State::begin(std::vector<Submission>& submissions, const Queue& queue) {
  if (queue->is_taken_back) {
    const std::lock_guard lock(mutex);
    open -= std::ssize(submissions);
    return;
  }
  queues.insert(queue);
  int64_t choice = 0;
  try {
    for (auto& [request, form] : submissions) {
      if (form.grammar) request.form = forms.form(form.name, form.grammar);
      if (limits.request_seconds > 0) request.deadline = engine->now() + limits.request_seconds;
      queue->requests.push_back(engine->submit(
          std::move(request),
          [this, choice, queue](const engine::AnswerEvent& event) { hear(choice, event, queue); }));
      ++choice;
    }
  } catch (const base::UserError& error) {
    {
      const std::lock_guard lock(mutex);
      open -= std::ssize(submissions) - choice;
    }
    queue->fail(ApiError(kBadRequest, error.what()));
    for (const engine::RequestId request : std::vector(queue->requests)) engine->cancel(request);
    queues.erase(queue);
  }
}

void InferenceLoop::State::hear(int64_t choice, const engine::AnswerEvent& event,
                                const Queue& queue) {
  const bool is_taken = queue->push(
      {.choice = choice, .event = event, .cached_tokens = engine->known_tokens(event.request)});
  if (event.finish) {
    std::erase(queue->requests, event.request);
    if (queue->requests.empty()) queues.erase(queue);
    const std::lock_guard lock(mutex);
    --open;
  } else if (!is_taken) {
    queue->fail(ApiError(kTimeout, "the answer was read more slowly than it was written"));
    engine->cancel(event.request);
  }
}

void InferenceLoop::State::end_all(const ApiError& error) {
  const std::set<Queue> all = queues;
  for (const Queue& queue : all) {
    queue->fail(error);
    for (const engine::RequestId request : std::vector(queue->requests)) engine->cancel(request);
  }
  queues.clear();
}

InferenceLoop::InferenceLoop(engine::Inference& inference, const text::Tokenizer& tokenizer,
                             const LoopLimits& limits)
    : state_(std::make_unique<State>(inference, tokenizer, limits)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

InferenceLoop::~InferenceLoop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

std::shared_ptr<AnswerQueue> InferenceLoop::submit(std::vector<Submission> submissions) {
  State& state = *state_;
  const auto more = std::ssize(submissions);
  {
    const std::lock_guard lock(state.mutex);
    if (!state.failure.empty()) throw ApiError(kInternal, state.failure);
    if (state.is_ending) throw ApiError(kUnavailable, "the server is stopping");
    const int64_t room = state.most_running + state.limits.max_waiting;
    if (state.limits.max_waiting > 0 && more > room)
      throw ApiError(kBadRequest, fmt::format("{} answers are asked for at once, and there is room "
                                              "for {}; ask for fewer",
                                              more, room));
    if (state.limits.max_waiting > 0 && state.open + more > room)
      throw ApiError(
          kTooMany,
          fmt::format("{} answers are being written or wait already; try again later", state.open));
    state.open += more;
  }
  auto queue = std::make_shared<AnswerQueue>();
  // Functions must be copied, and these requests are not.
  auto held = std::make_shared<std::vector<Submission>>(std::move(submissions));
  state.post(state.begins, [&state, held, queue] { state.begin(*held, queue); });
  return queue;
}

void InferenceLoop::cancel(const std::shared_ptr<AnswerQueue>& queue) {
  state_->post(state_->commands, [state = state_.get(), queue] {
    queue->is_taken_back = true;
    for (const engine::RequestId request : std::vector(queue->requests))
      state->engine->cancel(request);
  });
}

void InferenceLoop::replace_adapters(const formats::Recipe& recipe) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> is_done = done->get_future();
  state_->post(state_->changes, [state = state_.get(), done, recipe] {
    try {
      state->check_runs();
      state->inference.replace_adapters(recipe);
      state->open_engine();  // which knows the names, and no beginnings
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  is_done.get();
}

void InferenceLoop::fail_all(const ApiError& error) {
  state_->post(state_->commands, [state = state_.get(), error] { state->end_all(error); });
}

LoopState InferenceLoop::state() const {
  const std::lock_guard lock(state_->mutex);
  LoopState now = state_->shown;
  now.open = state_->open;
  return now;
}

std::string InferenceLoop::failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure;
}

}  // namespace snug::serve
