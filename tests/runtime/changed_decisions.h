// Decisions that are changed between the plan and the backend: each must be refused in prepare(),
// or done, so that the trace shows it and the device was given something else. Of what an operation
// says besides them (where it is done, in how many launches) the same holds. Every change is tried
// in a process of its own, since a refusal ends that.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "every_trace.h"
#include "program/kinds/dispatch.h"
#include "program/work/decisions.h"
#include "tested_backends.h"
#include "tiny_run.h"

namespace snug::testing {

// What is said of an operation, by name, in numbers.
using Said = std::vector<std::pair<std::string_view, int64_t>>;

// Next to its decisions, by the words of the text form.
inline Said placement_of(const program::Operation& operation) {
  Said said{{"channel", static_cast<int64_t>(operation.channel)},
            {"joined", operation.joined ? 1 : 0},
            {"launches", operation.launches},
            {"on_host", operation.on_host ? 1 : 0}};
  program::dispatch<void>(operation.attributes, [&](const auto& attributes) {
    if constexpr (requires { attributes.chunk_launches; })
      if (attributes.chunk_launches > 0)
        said.emplace_back("chunk_launches", attributes.chunk_launches);
  });
  return said;
}

// A decision of an operation, or what else is said of it, and another value of that.
struct Mutation {
  program::ProgramName program{};
  size_t operation = 0;
  std::string decision;
  int64_t value = 0;
};

// Calls f(value) for the part of a decision of that name.
template <typename Attributes, typename F>
void with_decision(Attributes& attributes, std::string_view name, F&& f) {
  program::dispatch<void>(attributes, [&]<typename Struct>(Struct& chosen) {
    using Attribute = std::remove_const_t<Struct>;
    program::for_each_part<Attribute>([&](const auto& part) {
      if (part.name == name) f(part.of(chosen));
    });
    // Launches of chunks are planned like a decision, and stand among the other attributes.
    const auto look = [&]<typename Listed>(const Listed& listed) {
      if constexpr (!Listed::kIsDecision)
        if constexpr (std::is_integral_v<std::decay_t<decltype(chosen.*listed.member)>>)
          if (listed.name == name) f(chosen.*listed.member);
    };
    std::apply([&](const auto&... listed) { (look(listed), ...); }, Attribute::kFields);
  });
}

inline void change(program::Operation& operation, const Mutation& mutation) {
  if (mutation.decision == "channel") {
    operation.channel = static_cast<program::Channel>(mutation.value);
  } else if (mutation.decision == "joined") {
    operation.joined = mutation.value != 0;
  } else if (mutation.decision == "launches") {
    operation.launches = static_cast<int32_t>(mutation.value);
  } else if (mutation.decision == "on_host") {
    operation.on_host = mutation.value != 0;
  } else {
    with_decision(operation.attributes, mutation.decision, [&](auto& member) {
      member = static_cast<std::decay_t<decltype(member)>>(mutation.value);
    });
  }
}

// The other values that a decision might have had. Sizes become smaller: what is larger needs
// memory that nobody planned.
inline std::vector<int64_t> other_values(const program::Operation& operation,
                                         std::string_view decision) {
  std::set<int64_t> values;
  for (const auto& [name, planned] : placement_of(operation)) {
    if (name != decision) continue;
    if (name == "channel")
      for (int64_t channel = 0; channel < static_cast<int64_t>(program::kChannelCount); ++channel)
        values.insert(channel);
    else if (name == "joined" || name == "on_host")
      values = {0, 1};
    else
      values = {0, std::max<int64_t>(0, planned - 1), planned + 1};
    values.erase(planned);
    return {values.begin(), values.end()};
  }
  with_decision(operation.attributes, decision, [&](const auto& member) {
    using Value = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Value, bool>) {
      values = {member ? 0 : 1};
    } else if constexpr (std::is_enum_v<Value>) {
      for (const auto& word : words_of(Value{}))
        if (word.value != member) values.insert(static_cast<int64_t>(word.value));
    } else if constexpr (std::is_integral_v<Value>) {
      for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{member} / 2, int64_t{32}})
        if (value != member && (member == 0 || value < member)) values.insert(value);
    }
  });
  return {values.begin(), values.end()};
}

// Plans as the backend does, with scratch for other decisions too; then gives the backend one
// operation otherwise than it is planned.
template <typename Tested>
class Mutating final : public Tested {
 public:
  using Tested::Tested;
  // From here on nothing is planned.
  void mutate(const program::Program& planned, const Mutation& mutation) {
    planned_ = &planned;
    operation_ = mutation.operation;
    changed_ = planned;
    change(changed_.operations[operation_], mutation);
    changed_view_.emplace(program::OperationView{changed_, changed_.operations[operation_]});
  }
  void end_planning() { is_planning_ = false; }
  // Of the operation that is changed.
  const program::OperationView& changed_view() const { return *changed_view_; }

  program::Workspace workspace(const program::OperationView& view) const override {
    program::Workspace workspace = Tested::workspace(view);
    if (is_planning_ && !program::decisions_of(view.operation).empty())
      workspace.bytes += kMoreBytes;
    return workspace;
  }
  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    if (&view.program != planned_) return Tested::prepare(view);
    const auto index = static_cast<size_t>(&view.operation - planned_->operations.data());
    return Tested::prepare({changed_, changed_.operations[index]});
  }
  void tune(const backends::Invocation& invocation) override { Tested::tune(changed(invocation)); }
  void load(std::span<const backends::Invocation> invocations) override {
    Tested::load(changed(invocations));
  }
  void run(const backends::Invocation& invocation) override { Tested::run(changed(invocation)); }
  void run_list(std::span<const backends::Invocation> invocations) override {
    Tested::run_list(changed(invocations));
  }

 private:
  static constexpr int64_t kMoreBytes = int64_t{4} << 20;

  backends::Invocation changed(const backends::Invocation& given) const {
    const bool is_mutated = planned_ != nullptr && given.view != nullptr &&
                            &given.view->operation == &planned_->operations[operation_];
    if (!is_mutated) return given;
    backends::Invocation invocation = given;
    invocation.view = &*changed_view_;
    invocation.attributes = &changed_view_->operation.attributes;
    invocation.channel = changed_view_->operation.channel;
    invocation.joined = changed_view_->operation.joined;
    invocation.on_host = changed_view_->operation.on_host;
    return invocation;
  }
  std::vector<backends::Invocation> changed(
      std::span<const backends::Invocation> invocations) const {
    std::vector<backends::Invocation> list;
    for (const backends::Invocation& invocation : invocations) list.push_back(changed(invocation));
    return list;
  }

  bool is_planning_ = true;
  const program::Program* planned_ = nullptr;
  size_t operation_ = 0;
  program::Program changed_;
  std::optional<program::OperationView> changed_view_;
};

// `pretended`: the trace shows it, and the device was given the same as without the change.
// `without_work`: there was nothing to do by it, and the trace says so.
enum class Outcome : uint8_t {
  seen,
  refused,
  ignored,
  pretended,
  refused_late,
  crashed,
  without_work
};

// What a program did as it is planned.
struct PlannedRun {
  std::vector<backends::Trace> traces;
  std::vector<std::string> record;  // of what the device was given, where it keeps one
};

inline bool says_nothing_of(const backends::Trace& trace, std::string_view decision) {
  return std::ranges::none_of(trace.decisions,
                              [&](const auto& noted) { return noted.first == decision; });
}

// How a process that tried a change ended, and what it said.
struct Tried {
  Outcome outcome;
  std::string said;
};

constexpr int kLateExit = 101;
// Ends the process where a CHECK fails once everything is prepared: that is no refusal.
[[noreturn]] inline void end_late(int /*signal*/) { ::_exit(kLateExit); }

// Runs f in a process of its own, which ends it with an Outcome.
template <typename F>
Tried tried_apart(const F& f) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    auto outcome = Outcome::refused;
    try {
      outcome = f();
    } catch (const base::UserError& error) {
      std::fputs(error.what(), stderr);
    }
    std::fflush(stderr);
    ::_exit(static_cast<int>(outcome));
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> read{};
  for (ssize_t count = 0; (count = ::read(ends[0], read.data(), read.size())) > 0;)
    said.append(read.data(), static_cast<size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return {WTERMSIG(status) == SIGABRT ? Outcome::refused : Outcome::crashed, said};
  const int code = WEXITSTATUS(status);
  return {code == kLateExit ? Outcome::refused_late : static_cast<Outcome>(code), said};
}

// A job of a backend whose decisions are changed one by one.
template <typename Tested>
class ChangedJob {
 public:
  using MakeJob = std::function<plan::Job(const program::Target&)>;
  explicit ChangedJob(const MakeJob& make_job) : job_(make_job(backend_)) {
    backend_.end_planning();
  }

  struct Counts {
    int seen = 0;
    int refused = 0;
  };

  // Each decision of operations that differ in what was decided of them.
  Counts expect_obeyed() {
    return expect_obeyed(
        [](const program::Operation& operation) { return Said(program::decisions_of(operation)); });
  }
  // Where operations are done, and in how many launches.
  Counts expect_placement_obeyed() { return expect_obeyed(placement_of); }

 private:
  template <typename SaidOf>
  Counts expect_obeyed(const SaidOf& said_of) {
    Counts counts;
    std::set<std::tuple<program::Kind, bool, std::vector<int64_t>>> known;
    for (const program::Program& program : job_.programs) {
      if (!is_run_by_backends(program)) continue;
      const PlannedRun planned = run_as_planned(program);
      for (size_t i = 0; i < program.operations.size(); ++i) {
        const program::Operation& operation = program.operations[i];
        const program::Together together = program::done_with(program, i);
        const Said said = said_of(operation);
        std::vector<int64_t> values;
        for (const auto& [name, value] : said) values.push_back(value);
        const bool shares = together.first != together.last;
        if (values.empty() || !known.insert({operation.kind(), shares, values}).second) continue;
        for (const auto& [name, value] : said)
          expect_obeyed(program, i, {name, value}, planned, counts);
      }
    }
    return counts;
  }

  void expect_obeyed(const program::Program& program, size_t index,
                     const std::pair<std::string_view, int64_t>& said, const PlannedRun& run,
                     Counts& counts) {
    const program::Operation& operation = program.operations[index];
    const auto& [decision, planned] = said;
    for (const int64_t value : other_values(operation, decision)) {
      const Mutation mutation{typed_name(program), index, std::string(decision), value};
      const Tried tried = tried_apart([&] { return outcome_here(program, mutation, run); });
      const std::string what = fmt::format(
          "{} of {} with {} {}, planned as {}: {}", name_of(operation.kind()), program.name,
          decision, program::decision_text(operation.kind(), decision, value),
          program::decision_text(operation.kind(), decision, planned), tried.said);
      EXPECT_NE(tried.outcome, Outcome::ignored) << what;
      EXPECT_NE(tried.outcome, Outcome::pretended) << what;
      EXPECT_NE(tried.outcome, Outcome::refused_late) << what;
      EXPECT_NE(tried.outcome, Outcome::crashed) << what;
      counts.seen += tried.outcome == Outcome::seen ? 1 : 0;
      if (tried.outcome != Outcome::refused) continue;
      ++counts.refused;
      EXPECT_NE(tried.said, "") << what;
    }
  }

  PlannedRun run_as_planned(const program::Program& program) {
    runtime::Executor executor(job_, backend_);
    fill_batch(program, executor);
    PlannedRun run;
    run.record = recorded([&] { run.traces = executor.run_traced(typed_name(program)); });
    const runtime::Planned planned{program, executor.bounds(typed_name(program))};
    EXPECT_EQ(runtime::differences(planned, run.traces), std::vector<std::string>{});
    return run;
  }

  // Whether a decision that may have nothing to do had nothing, as planned and as changed.
  bool is_without_work(const runtime::Planned& planned, const Mutation& mutation,
                       const backends::Trace& as_planned, const backends::Trace& as_changed) const {
    const program::OperationView view{planned.program,
                                      planned.program.operations[mutation.operation]};
    const auto is_silent = [&](const program::OperationView& ran, const backends::Trace& trace) {
      return says_nothing_of(trace, mutation.decision) &&
             program::is_in_pieces(ran.operation, program::work_of(ran, planned.bounds),
                                   mutation.decision, trace.pieces);
    };
    return is_silent(view, as_planned) && is_silent(backend_.changed_view(), as_changed) &&
           program::work_of(backend_.changed_view(), planned.bounds).pieces ==
               program::work_of(view, planned.bounds).pieces;
  }

  // Of the operation and of what shares a launch with it: what they are refused for, without a run.
  void prepare_alone(const program::Program& program, size_t operation) {
    const program::Together together = program::done_with(program, operation);
    for (size_t i = together.first; i <= together.last; ++i)
      (void)backend_.prepare({program, program.operations[i]});
  }

  // Whether the trace of the mutated operation shows what it was given.
  Outcome outcome_here(const program::Program& program, const Mutation& mutation,
                       const PlannedRun& planned_run) {
    backend_.mutate(program, mutation);
    prepare_alone(program, mutation.operation);
    runtime::Executor executor(job_, backend_);
    std::signal(SIGABRT, end_late);
    fill_batch(program, executor);
    std::vector<backends::Trace> traces;
    std::vector<std::string> record;
    try {
      record = recorded([&] { traces = executor.run_traced(mutation.program); });
    } catch (const base::UserError& error) {
      std::fputs(error.what(), stderr);
      return Outcome::refused_late;
    }
    const runtime::Planned planned{program, executor.bounds(mutation.program)};
    const size_t i = mutation.operation;
    if (runtime::differences(planned, i, traces[i]).empty())
      return is_without_work(planned, mutation, planned_run.traces[i], traces[i])
                 ? Outcome::without_work
                 : Outcome::ignored;
    // A channel is noted by the stream on which something was queued, of which a record says
    // nothing.
    const bool is_on_record = Tested::kHasRecord && mutation.decision != "channel";
    return is_on_record && record == planned_run.record ? Outcome::pretended : Outcome::seen;
  }

  Mutating<Tested> backend_;
  plan::Job job_;
};

}  // namespace snug::testing
