#include "report/step_picture.h"

#include <algorithm>
#include <map>

#include "plan/job/memory.h"
#include "plan/time/clock.h"

namespace snug::report {
namespace {

using program::Program;
using program::Space;

// Spans and gaps shorter than this share of a program's time are too small to see.
constexpr double kInvisible = 1.0 / 2000;

plan::RoleBytes sum_of(plan::RoleBytes a, const plan::RoleBytes& b) {
  for (size_t role = 0; role < a.size(); ++role) a[role] += b[role];
  return a;
}

// `shared`: the bytes of tensors that live longer than the program.
void add_moments(const std::vector<plan::RoleBytes>& live, const plan::RoleBytes& shared,
                 const plan::Timeline& timeline, double start, std::vector<MemoryMoment>& moments) {
  std::map<int, MemoryMoment> by_bin;
  for (const plan::OperationTime& time : timeline.operations) {
    const double share = timeline.seconds > 0 ? time.start_seconds / timeline.seconds : 0;
    const int bin =
        std::min(kMaxMomentsOfProgram - 1, static_cast<int>(kMaxMomentsOfProgram * share));
    const MemoryMoment moment{start + time.start_seconds,
                              sum_of(live[static_cast<size_t>(time.operation)], shared)};
    const auto [entry, is_new] = by_bin.try_emplace(bin, moment);
    if (is_new || entry->second.total() >= moment.total()) continue;
    entry->second.by_role = moment.by_role;
  }
  for (const auto& [bin, moment] : by_bin) moments.push_back(moment);
}

void add_spans(const Program& program, const plan::Timeline& timeline, double start,
               std::vector<ChannelSpan>& spans) {
  const double invisible = kInvisible * timeline.seconds;
  std::map<program::Channel, ChannelSpan> open;
  for (const plan::OperationTime& time : timeline.operations) {
    if (time.seconds == 0) continue;
    const auto& operation = program.operations[static_cast<size_t>(time.operation)];
    const double begin = start + time.start_seconds;
    const ChannelSpan span{operation.channel, operation.phase, operation.layer, begin,
                           time.seconds};
    const auto [entry, is_new] = open.try_emplace(operation.channel, span);
    ChannelSpan& last = entry->second;
    if (is_new) continue;
    const bool goes_on = last.phase == span.phase && last.layer == span.layer &&
                         begin - (last.start_seconds + last.seconds) <= invisible;
    if (goes_on) {
      last.seconds = begin + time.seconds - last.start_seconds;
      continue;
    }
    spans.push_back(last);
    last = span;
  }
  for (const auto& [channel, span] : open) spans.push_back(span);
}

}  // namespace

StepPicture picture_step(const plan::PlannedTraining& planned) {
  StepPicture picture;
  const plan::Job& job = planned.job;
  for (const plan::StepProgram& step : plan::step_programs(job, planned.spec.accumulation)) {
    const plan::Timeline timeline = plan::simulate(*step.program, planned.rates, planned.expected);
    for (size_t s = 0; s < picture.memory.size(); ++s) {
      const auto space = static_cast<Space>(s);
      add_moments(plan::live_bytes(*step.program, space),
                  plan::shared_bytes(job, program::Stage::training, space), timeline,
                  picture.seconds, picture.memory[s]);
    }
    add_spans(*step.program, timeline, picture.seconds, picture.spans);
    picture.programs.push_back(
        {std::string(program::name_of(step.name)), step.runs, picture.seconds, timeline.seconds});
    picture.seconds += timeline.seconds;
  }
  return picture;
}

}  // namespace snug::report
