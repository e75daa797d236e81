// Decisions that are changed between the plan and the backend: each must be refused in prepare(),
// or done, so that the trace shows it and the device was given something else. Every change is
// tried in a process of its own, since a refusal ends that.
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
#include "program/decisions.h"
#include "tested_backends.h"
#include "tiny_run.h"

namespace snug::testing {

// A decision of an operation and another value of it.
struct Mutation {
  program::ProgramName program{};
  size_t operation = 0;
  std::string decision;
  int64_t value = 0;
};

// Calls f(member) for the attribute of that name.
template <typename Attributes, typename F>
void with_field(Attributes& attributes, std::string_view name, F&& f) {
  std::visit(
      [&](auto& chosen) {
        using Struct = std::decay_t<decltype(chosen)>;
        const auto look = [&](const auto& field) {
          if (field.name == name) f(chosen.*field.member);
        };
        std::apply([&](const auto&... fields) { (look(fields), ...); }, Struct::kFields);
      },
      attributes);
}

inline void change(program::Attributes& attributes, const Mutation& mutation) {
  with_field(attributes, mutation.decision, [&](auto& member) {
    using Value = std::decay_t<decltype(member)>;
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>)
      member = static_cast<Value>(mutation.value);
  });
}

// The other values that a decision might have had. Sizes become smaller: what is larger needs
// memory that nobody planned.
inline std::vector<int64_t> other_values(const program::Operation& operation,
                                         std::string_view decision) {
  std::set<int64_t> values;
  with_field(operation.attributes, decision, [&](const auto& member) {
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
  // From here on nothing is planned.
  void mutate(const program::Program& planned, const Mutation& mutation) {
    planned_ = &planned;
    operation_ = mutation.operation;
    changed_ = planned;
    change(changed_.operations[operation_].attributes, mutation);
    changed_view_.emplace(program::OperationView{changed_, changed_.operations[operation_]});
  }
  void end_planning() { is_planning_ = false; }

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
enum class Outcome : uint8_t { seen, refused, ignored, pretended, refused_late, crashed };

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
    Counts counts;
    std::set<std::tuple<program::Kind, bool, std::vector<int64_t>>> known;
    for (const program::Program& program : job_.programs) {
      if (!is_run_by_backends(program)) continue;
      const std::vector<std::string> record = planned_record(program);
      for (size_t i = 0; i < program.operations.size(); ++i) {
        const program::Operation& operation = program.operations[i];
        const program::Together together = program::done_with(program, i);
        std::vector<int64_t> values;
        for (const auto& [decision, value] : program::decisions_of(operation))
          values.push_back(value);
        const bool shares = together.first != together.last;
        if (values.empty() || !known.insert({operation.kind(), shares, values}).second) continue;
        expect_obeyed(program, i, record, counts);
      }
    }
    return counts;
  }

 private:
  void expect_obeyed(const program::Program& program, size_t index,
                     const std::vector<std::string>& record, Counts& counts) {
    const program::Operation& operation = program.operations[index];
    for (const auto& [decision, planned] : program::decisions_of(operation))
      for (const int64_t value : other_values(operation, decision)) {
        const Mutation mutation{typed_name(program), index, std::string(decision), value};
        const Tried tried = tried_apart([&] { return outcome_here(program, mutation, record); });
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

  // What the device is given for the program as planned, where it keeps a record.
  std::vector<std::string> planned_record(const program::Program& program) {
    runtime::Executor executor(job_, backend_);
    fill_batch(program, executor);
    std::vector<backends::Trace> traces;
    std::vector<std::string> record =
        recorded([&] { traces = executor.run_traced(typed_name(program)); });
    const runtime::Planned planned{program, executor.bounds(typed_name(program))};
    EXPECT_EQ(runtime::differences(planned, traces), std::vector<std::string>{});
    return record;
  }

  // Of the operation and of what shares a launch with it: what they are refused for, without a run.
  void prepare_alone(const program::Program& program, size_t operation) {
    const program::Together together = program::done_with(program, operation);
    for (size_t i = together.first; i <= together.last; ++i)
      (void)backend_.prepare({program, program.operations[i]});
  }

  // Whether the trace of the mutated operation shows what it was given.
  Outcome outcome_here(const program::Program& program, const Mutation& mutation,
                       const std::vector<std::string>& planned_record) {
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
    if (runtime::differences(planned, i, traces[i]).empty()) return Outcome::ignored;
    return Tested::kHasRecord && record == planned_record ? Outcome::pretended : Outcome::seen;
  }

  Mutating<Tested> backend_;
  plan::Job job_;
};

}  // namespace snug::testing
