#include "engine/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/seconds_since.h"
#include "engine/cached_forward.h"
#include "engine/open_answer.h"
#include "engine/request_shape.h"
#include "engine/scheduler.h"

namespace snug::engine {
namespace {

using RunClock = std::chrono::steady_clock;

SchedulerRoom room_of(const plan::InferenceShape& shape) {
  return {.sequences = shape.sequences,
          .prefill_tokens = shape.prefill_tokens,
          .encoder_tokens = shape.capacity.has_encoder() ? shape.encoder_tokens : 0};
}

// A request that has not ended, with who hears of it. An event holds it too, since a listener may
// end its own request.
struct Open {
  Open(OpenAnswer&& of_request, Listener hears)
      : answer(std::move(of_request)), listener(std::move(hears)) {}

  OpenAnswer answer;
  Listener listener;
  int64_t known_tokens = 0;  // of its prompt: they were not read
};

}  // namespace

struct Engine::State {
  State(runtime::Executor& executor, const models::ModelConfig& of_model,
        const plan::InferenceShape& shape, EngineOptions given)
      : model(of_model),
        options(std::move(given)),
        forward(executor, shape, options.agree_on_turn),
        scheduler(room_of(shape), [this](RequestId request, int64_t sequence) {
          return enter(request, sequence);
        }) {
    SNUG_CHECK(!shape.all_logits, "programs that score generate nothing");
  }

  void check(const Request& request) const;
  void check_pages(const Request& request) const;
  int64_t promised_tokens(const OpenAnswer& answer) const;
  std::optional<int64_t> enter(RequestId request, int64_t sequence);
  void end(RequestId request, Finish finish);
  void close(RequestId request);
  void make_room(std::vector<ScheduledRun::Answering>& answering);
  void preempt_latest();
  void tell();
  void read(const std::vector<PromptPart>& parts);
  void answer(const std::vector<ScheduledRun::Answering>& answering);
  int64_t room_for_guesses(int64_t sequence) const;
  int64_t take_tokens(RequestId request, int64_t sequence, std::span<const int32_t> read);
  AdapterVersion adapter_of(const OpenAnswer& answer) const;

  const models::ModelConfig& model;
  const EngineOptions options;
  CachedForward forward;
  Scheduler scheduler;
  std::map<RequestId, std::shared_ptr<Open>> open;
  // What listeners have not heard yet. It is empty between steps, unless one of them threw.
  std::deque<std::pair<std::shared_ptr<Open>, AnswerEvent>> events;
  std::pair<RequestId, std::shared_ptr<Open>> hearing{-1, nullptr};  // whose listener is called
  RequestId next_request = 0;
  EngineTimes times;
  const RunClock::time_point begin = RunClock::now();
  bool is_running = false;  // a program, whose tokens are not all chosen
  bool is_stepping = false;
};

void Engine::State::check(const Request& request) const {
  check_request(request, model, forward.shape());
  check_adapter(request.adapter, options.adapters);
  if (!request.end.texts.empty() && options.tokenizer == nullptr)
    base::throw_user_error(
        "a stop text is compared with text, but there is no tokenizer; give the ids that end an "
        "answer");
  check_pages(request);
}

void Engine::State::check_pages(const Request& request) const {
  const int64_t prompt = std::ssize(read_by_decoder(request.prompt, model));
  const int64_t tokens = prompt + request.max_new_tokens - 1;
  // One that is preempted reads its answer too.
  const models::SequenceGrowth growth{options.expected_new_tokens ? tokens : prompt, tokens};
  const int64_t encoder_tokens = model.has_encoder() ? std::ssize(request.prompt) : 0;
  if (forward.can_ever_enter(growth, encoder_tokens)) return;
  base::throw_user_error(
      "a prompt of {} tokens and {} new ones need more pages of keys and values than there are for "
      "all requests together: {} of {} tokens; shorten the prompt, lower max_new_tokens, or give "
      "the cache more memory",
      request.prompt.size(), request.max_new_tokens, fmt::join(forward.pages_of_groups(), " and "),
      forward.shape().page_tokens);
}

// The tokens for which a request has its pages when it enters. One that has been preempted gets a
// page more at least, so that it does not leave at once.
int64_t Engine::State::promised_tokens(const OpenAnswer& answer) const {
  const int64_t most = answer.most_tokens();
  if (!options.expected_new_tokens) return most;
  const int64_t least = std::ssize(answer.decoder_ids()) + forward.shape().page_tokens - 1;
  return std::min(most, std::max(answer.tokens_with(*options.expected_new_tokens), least));
}

// Lets a request in if there are pages, unless what it begins with is just being read: then it
// waits for that.
std::optional<int64_t> Engine::State::enter(RequestId request, int64_t sequence) {
  const OpenAnswer& answer = open.at(request)->answer;
  const EnteringSequence entering{.prompt = answer.decoder_ids(),
                                  .promised_tokens = promised_tokens(answer),
                                  .adapter = adapter_of(answer)};
  if (forward.is_being_read(entering)) return std::nullopt;
  const std::optional<int64_t> known =
      forward.enter(sequence, entering, std::ssize(answer.encoder_ids()));
  times.known_tokens += known.value_or(0);
  open.at(request)->known_tokens = known.value_or(0);
  return known;
}

// An adapter's weights stay in their slot, so that there is one version of them.
AdapterVersion Engine::State::adapter_of(const OpenAnswer& answer) const {
  const auto slot = std::ranges::find(options.adapters, answer.adapter());
  if (slot == options.adapters.end()) return {};
  return {.adapter = slot - options.adapters.begin(), .version = 0};
}

// Ends a request from outside, whatever it is doing, and tells its listener at once.
void Engine::State::end(RequestId request, Finish finish) {
  std::shared_ptr<Open> one;
  std::erase_if(events, [&](const auto& event) {
    const bool is_its = event.second.request == request;
    if (is_its) one = event.first;
    return is_its;
  });
  if (const auto at = open.find(request); at != open.end()) {
    one = at->second;
    close(request);
  }
  if (one == nullptr) return;
  hearing = {request, one};
  one->listener(one->answer.end(finish));
}

// Gives back what a request has.
void Engine::State::close(RequestId request) {
  if (const auto sequence = scheduler.remove(request)) forward.release(*sequence);
  open.erase(request);
}

// Sees to it that each has a page for its next token. Where there is none, those that arrived last
// leave, be they read or answering.
void Engine::State::make_room(std::vector<ScheduledRun::Answering>& answering) {
  for (size_t i = 0; i < answering.size(); ++i)
    while (i < answering.size() &&
           !forward.promise(answering[i].sequence, forward.length(answering[i].sequence) + 1)) {
      if (answering.back().request == scheduler.latest()) answering.pop_back();
      preempt_latest();
    }
}

void Engine::State::preempt_latest() {
  OpenAnswer& answer = open.at(scheduler.latest())->answer;
  answer.read_again();
  forward.release(scheduler.preempt_latest(std::ssize(answer.decoder_ids())));
  times.preemptions += 1;
}

void Engine::State::tell() {
  while (!events.empty()) {
    const auto [one, event] = std::move(events.front());
    events.pop_front();
    hearing = {event.request, one};
    one->listener(event);
  }
}

void Engine::State::read(const std::vector<PromptPart>& parts) {
  const RunClock::time_point start = RunClock::now();
  std::vector<SequencePart> sequence_parts;
  for (const PromptPart& part : parts) {
    const OpenAnswer& answer = open.at(part.request)->answer;
    sequence_parts.push_back({part.sequence,
                              answer.decoder_ids().subspan(static_cast<size_t>(part.first),
                                                           static_cast<size_t>(part.tokens)),
                              part.is_first ? answer.encoder_ids() : std::span<const int32_t>(),
                              adapter_of(answer)});
    times.prefill_tokens += part.tokens + std::ssize(sequence_parts.back().encoder_ids);
  }
  std::ranges::sort(sequence_parts, {}, &SequencePart::sequence);
  forward.prefill(sequence_parts);
  for (const PromptPart& part : parts)
    if (part.is_last) take_tokens(part.request, part.sequence, {});
  times.prefill_seconds += base::seconds_since(start);
}

void Engine::State::answer(const std::vector<ScheduledRun::Answering>& answering) {
  const RunClock::time_point start = RunClock::now();
  std::vector<Ids> ids;
  std::vector<SequencePart> parts;
  ids.reserve(answering.size());
  parts.reserve(answering.size());
  for (const auto& [request, sequence] : answering) {
    const OpenAnswer& answer = open.at(request)->answer;
    const Ids guess = answer.guess(room_for_guesses(sequence));
    Ids& read = ids.emplace_back(1, answer.last_id());
    read.insert(read.end(), guess.begin(), guess.end());
    parts.push_back({sequence, read});
    times.guessed_tokens += std::ssize(guess);
  }
  std::vector<SequencePart> in_order = parts;
  std::ranges::sort(in_order, {}, &SequencePart::sequence);
  forward.decode(in_order);
  for (size_t i = 0; i < answering.size(); ++i)
    times.decode_tokens += take_tokens(answering[i].request, parts[i].sequence, parts[i].ids);
  times.decode_runs += 1;
  times.decode_seconds += base::seconds_since(start);
}

// Up to what the sequence is promised, the token that it has next counted.
int64_t Engine::State::room_for_guesses(int64_t sequence) const {
  return std::min<int64_t>(forward.shape().guessed_tokens,
                           forward.promised(sequence) - forward.length(sequence) - 1);
}

// Takes the token after each of those that were read, as long as these were guessed right. Returns
// how many it took.
int64_t Engine::State::take_tokens(RequestId request, int64_t sequence,
                                   std::span<const int32_t> read) {
  const std::shared_ptr<Open> one = open.at(request);
  int64_t taken = 0;
  bool goes_on = true;
  bool has_ended = false;
  while (goes_on) {
    events.emplace_back(one, one->answer.take(forward, sequence, taken));
    const AnswerEvent& event = events.back().second;
    ++taken;
    has_ended = event.finish.has_value();
    goes_on =
        !has_ended && taken < std::ssize(read) && read[static_cast<size_t>(taken)] == *event.id;
  }
  forward.keep(sequence, taken);
  times.right_guesses += taken - 1;
  if (has_ended) close(request);
  return taken;
}

void add_to(Answer& answer, const AnswerEvent& event) {
  if (event.id) answer.ids.push_back(*event.id);
  answer.text += event.text;
  if (event.log_probability) answer.log_probabilities.push_back(*event.log_probability);
  if (event.entropy) answer.entropies.push_back(*event.entropy);
  if (event.finish) answer.finish = *event.finish;
}

Engine::Engine(Inference& inference, const text::Tokenizer* tokenizer)
    : Engine(inference.executor(), inference.model(), inference.shape(),
             {.tokenizer = tokenizer, .clock = {}, .adapters = inference.adapters()}) {}

Engine::Engine(runtime::Executor& executor, const models::ModelConfig& model,
               const plan::InferenceShape& shape, EngineOptions options)
    : state_(std::make_unique<State>(executor, model, shape, std::move(options))) {}

Engine::~Engine() = default;

RequestId Engine::submit(Request request, Listener listener) {
  State& state = *state_;
  state.check(request);
  const RequestId id = state.next_request;
  const std::optional<Seconds> deadline = request.deadline;
  auto one = std::make_shared<Open>(
      OpenAnswer(id, std::move(request), state.model, state.options.tokenizer),
      std::move(listener));
  state.scheduler.add(id, {.tokens = std::ssize(one->answer.decoder_ids()),
                           .encoder_tokens = std::ssize(one->answer.encoder_ids()),
                           .deadline = deadline});
  state.open.emplace(id, std::move(one));
  ++state.next_request;
  return id;
}

void Engine::cancel(RequestId request) { state_->end(request, Finish::cancelled); }

bool Engine::step() {
  State& state = *state_;
  SNUG_CHECK(!state.is_stepping, "a listener steps the engine that calls it");
  SNUG_CHECK(!state.is_running, "an engine whose run has failed goes on");
  struct Stepping {
    bool& is_stepping;
    explicit Stepping(bool& flag) : is_stepping(flag) { is_stepping = true; }
    ~Stepping() { is_stepping = false; }
  } const stepping(state.is_stepping);
  state.tell();
  for (const RequestId request : state.scheduler.expired(now()))
    state.end(request, Finish::deadline);
  ScheduledRun run = state.scheduler.next();
  state.make_room(run.answering);
  state.is_running = true;
  if (!run.parts.empty()) state.read(run.parts);
  if (!run.answering.empty()) state.answer(run.answering);
  state.is_running = false;
  state.tell();
  return !state.open.empty();
}

std::vector<Answer> Engine::answers(std::span<const Request> requests) {
  for (const Request& request : requests) state_->check(request);
  struct Collected {
    std::vector<Answer> answers;
    size_t ended = 0;
  };
  Collected all;
  all.answers.resize(requests.size());
  std::vector<RequestId> ids;
  try {
    for (size_t i = 0; i < requests.size(); ++i) {
      all.answers[i].prompt_tokens = std::ssize(requests[i].prompt);
      ids.push_back(submit(requests[i], [&all, i](const AnswerEvent& event) {
        add_to(all.answers[i], event);
        if (event.finish) ++all.ended;
      }));
    }
    while (all.ended < requests.size()) step();
  } catch (...) {
    for (const RequestId id : ids) cancel(id);
    throw;
  }
  return std::move(all.answers);
}

void Engine::await_others() { state_->forward.await_others(); }

void Engine::forget_beginnings() { state_->forward.forget_beginnings(); }

int64_t Engine::known_tokens(RequestId request) const {
  if (state_->hearing.first == request) return state_->hearing.second->known_tokens;
  const auto at = state_->open.find(request);
  return at == state_->open.end() ? 0 : at->second->known_tokens;
}

int64_t Engine::waiting() const { return state_->scheduler.waiting(); }
int64_t Engine::running() const { return state_->scheduler.running(); }
int64_t Engine::used_pages() const { return state_->forward.used_pages(); }
const EngineTimes& Engine::times() const { return state_->times; }

Seconds Engine::now() const {
  return state_->options.clock ? state_->options.clock() : base::seconds_since(state_->begin);
}

}  // namespace snug::engine
