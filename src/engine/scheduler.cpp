#include "engine/scheduler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace snug::engine {
Scheduler::Scheduler(const SchedulerRoom& room, Enter enter)
    : room_(room), enter_(std::move(enter)) {
  SNUG_CHECK(room_.sequences > 0 && room_.prefill_tokens > 0, "{} sequences, {} tokens in a chunk",
             room_.sequences, room_.prefill_tokens);
  for (int64_t sequence = 0; sequence < room_.sequences; ++sequence)
    free_sequences_.insert(sequence);
}

void Scheduler::add(RequestId request, Demand demand) {
  SNUG_CHECK(demand.tokens > 0 && demand.encoder_tokens <= room_.encoder_tokens,
             "request {} reads {} tokens, and {} for its encoder", request, demand.tokens,
             demand.encoder_tokens);
  SNUG_CHECK(waiting_.empty() || waiting_.rbegin()->first < request, "request {} comes late",
             request);
  if (demand.deadline) {
    SNUG_CHECK(!std::isnan(*demand.deadline), "request {} has no time as its deadline", request);
    deadlines_.emplace(*demand.deadline, request);
  }
  waiting_.emplace_hint(waiting_.end(), request, std::move(demand));
}

std::optional<int64_t> Scheduler::remove(RequestId request) {
  const auto forget = [&](const Demand& demand) {
    if (demand.deadline) deadlines_.erase({*demand.deadline, request});
  };
  if (const auto at = waiting_.find(request); at != waiting_.end()) {
    forget(at->second);
    waiting_.erase(at);
    return std::nullopt;
  }
  const auto at = inside_.find(request);
  SNUG_CHECK(at != inside_.end(), "request {} is not here", request);
  const Inside& one = at->second;
  forget(one.demand);
  const int64_t sequence = one.sequence;
  free_sequences_.insert(sequence);
  inside_.erase(at);
  return sequence;
}

RequestId Scheduler::latest() const {
  SNUG_CHECK(!inside_.empty(), "nobody is inside");
  return inside_.rbegin()->first;
}

int64_t Scheduler::preempt_latest(int64_t tokens) {
  const auto one = inside_.find(latest());
  const int64_t sequence = one->second.sequence;
  Demand demand = std::move(one->second.demand);
  demand.tokens = tokens;
  waiting_.emplace_hint(waiting_.begin(), one->first, std::move(demand));
  free_sequences_.insert(sequence);
  inside_.erase(one);
  return sequence;
}

std::vector<RequestId> Scheduler::expired(Seconds now) const {
  std::vector<RequestId> requests;
  for (const auto& [deadline, request] : deadlines_) {
    if (deadline > now) break;
    requests.push_back(request);
  }
  return requests;
}

void Scheduler::let_enter() {
  while (!waiting_.empty() && !free_sequences_.empty()) {
    const auto first = waiting_.begin();
    const int64_t sequence = *free_sequences_.begin();
    const std::optional<int64_t> known = enter_ ? enter_(first->first, sequence) : 0;
    if (!known) return;
    SNUG_CHECK(*known < first->second.tokens, "{} of {} tokens are known", *known,
               first->second.tokens);
    free_sequences_.erase(sequence);
    inside_.emplace(first->first, Inside{std::move(first->second), sequence, *known, *known});
    waiting_.erase(first);
  }
}

ScheduledRun Scheduler::next() {
  let_enter();
  const auto reads = [](const auto& one) { return one.second.is_reading(); };
  const bool some_read = std::ranges::any_of(inside_, reads);
  const bool some_answer = !std::ranges::all_of(inside_, reads);
  has_just_read_ = some_read && !(some_answer && has_just_read_);
  return has_just_read_ ? next_chunk() : next_tokens();
}

ScheduledRun Scheduler::next_chunk() {
  ScheduledRun run;
  int64_t room = room_.prefill_tokens;
  int64_t encoder_room = room_.encoder_tokens;
  for (auto& [request, one] : inside_) {
    if (!one.is_reading()) continue;
    const bool is_first = one.read == one.known;
    const int64_t for_encoder = is_first ? one.demand.encoder_tokens : 0;
    if (room == 0 || for_encoder > encoder_room) break;
    const int64_t tokens = std::min(room, one.demand.tokens - one.read);
    run.parts.push_back({.request = request,
                         .sequence = one.sequence,
                         .first = one.read,
                         .tokens = tokens,
                         .is_first = is_first,
                         .is_last = one.read + tokens == one.demand.tokens});
    one.read += tokens;
    room -= tokens;
    encoder_room -= for_encoder;
  }
  return run;
}

ScheduledRun Scheduler::next_tokens() const {
  ScheduledRun run;
  for (const auto& [request, one] : inside_)
    if (!one.is_reading()) run.answering.push_back({request, one.sequence});
  return run;
}

}  // namespace snug::engine
