#include "serve/running_completion.h"

#include <fmt/format.h>

#include <utility>

#include "base/seconds_since.h"
#include "serve/api_error.h"

namespace snug::serve {
namespace {

// How often a connection is looked at while nothing comes.
constexpr std::chrono::milliseconds kLook{200};

std::vector<Submission> submissions_of(const CompletionRequest& request, int64_t first_sample) {
  std::vector<Submission> submissions;
  submissions.reserve(request.prompts.size() * static_cast<size_t>(request.answers));
  for (const engine::Ids& prompt : request.prompts)
    for (int64_t i = 0; i < request.answers; ++i) {
      Submission& one = submissions.emplace_back(Submission{request.common, request.form});
      one.request.prompt = prompt;
      one.request.sample = request.has_seed ? i : first_sample++;
    }
  return submissions;
}

int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

std::string event_text(const nlohmann::ordered_json& json) {
  return fmt::format("data: {}\n\n", one_line(json));
}

}  // namespace

RunningCompletion::RunningCompletion(CompletionRequest request, const ServedModel& model,
                                     InferenceLoop& loop, int64_t first_sample)
    : request_(std::move(request)),
      loop_(loop),
      answer_(request_, model,
              fmt::format("{}-{:x}-{}", request_.is_chat ? "chatcmpl" : "cmpl",
                          seconds_since_1970(), first_sample),
              seconds_since_1970()),
      queue_(loop.submit(submissions_of(request_, first_sample))) {}

RunningCompletion::~RunningCompletion() {
  if (!answer_.has_ended()) loop_.cancel(queue_);
}

double RunningCompletion::seconds() const { return base::seconds_since(begin_); }

// Events that come faster than looks do not hold them off.
std::optional<ChoiceEvent> RunningCompletion::next(const std::function<bool()>& is_cut) {
  if (first_) return std::exchange(first_, std::nullopt);
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ >= kLook) {
      looked_ = now;
      if (is_cut()) return std::nullopt;
    }
    if (std::optional<ChoiceEvent> event = queue_->wait(kLook)) return event;
  }
}

bool RunningCompletion::wait_for_first(const std::function<bool()>& is_cut) {
  first_ = next(is_cut);
  return first_.has_value();
}

bool RunningCompletion::wait_for_all(const std::function<bool()>& is_cut) {
  while (!answer_.has_ended()) {
    const std::optional<ChoiceEvent> event = next(is_cut);
    if (!event) return false;
    answer_.take(*event);
  }
  return true;
}

std::string RunningCompletion::whole() const { return one_line(answer_.whole()); }

bool RunningCompletion::stream(const SendPiece& send, const std::function<bool()>& is_cut) {
  try {
    for (const auto& chunk : answer_.first_chunks())
      if (!send(event_text(chunk))) return false;
    while (!answer_.has_ended()) {
      const std::optional<ChoiceEvent> event = next(is_cut);
      if (!event) return false;
      answer_.take(*event);
      for (const auto& chunk : answer_.chunks(*event))
        if (!send(event_text(chunk))) return false;
    }
    if (request_.has_usage && !send(event_text(answer_.usage_chunk()))) return false;
  } catch (const ApiError& error) {
    if (!send(event_text(error.json()))) return false;
  }
  return send("data: [DONE]\n\n");
}

}  // namespace snug::serve
