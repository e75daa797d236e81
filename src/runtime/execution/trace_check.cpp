#include "runtime/execution/trace_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"
#include "program/work/decisions.h"

namespace snug::runtime {
namespace {

using backends::Trace;
using program::Operation;
using program::Program;

// Bytes that pass through the runtime's staging memory are counted at their destination. An await
// counts only what it waits for.
int64_t operand_bytes(const Program& program, const Operation& operation) {
  int64_t bytes = 0;
  const auto add = [&](const std::vector<program::TensorId>& ids) {
    for (const program::TensorId id : ids) bytes += program.tensor(id).bytes();
  };
  if (program::traits_of(operation).copying != program::Copying::ends) add(operation.reads);
  add(operation.writes);
  if (program::traits_of(operation).performer != program::Performer::runtime)
    add(operation.updates);
  return bytes;
}

std::string words_of(const program::Extent& extent) {
  return fmt::format("{} rows, {} keys, {} pairs", extent.rows, extent.keys, extent.pairs);
}

void compare_extents(const program::OperationView& view, const program::WorkList& work,
                     const Trace& trace, std::vector<std::string>& problems) {
  const bool has_extent = program::traits_of(view.operation).has_extent();
  if (!has_extent && trace.extent) problems.push_back("has an extent, which its kind has not");
  if (has_extent && !trace.extent) problems.push_back("says nothing of its extent");
  if (!has_extent || !trace.extent) return;
  if (*trace.extent != work.extent)
    problems.push_back(fmt::format("did {}; {} {}", words_of(*trace.extent),
                                   trace.by_capacity ? "shapes allow" : "the batch asks for",
                                   words_of(work.extent)));
}

// Whether the recorded values match the plan: the planned value exactly once and, only if that
// value is a class, at least one choice of that class next to it; nothing else.
bool is_as_planned(program::Kind kind, std::string_view name, int64_t planned,
                   const std::vector<int64_t>& ran) {
  const bool is_class = program::is_class(kind, name, planned);
  const auto others = static_cast<size_t>(std::ranges::count_if(
      ran, [&](int64_t way) { return program::is_of_class(kind, name, planned, way); }));
  return std::ranges::count(ran, planned) == 1 && others + 1 == ran.size() &&
         is_class == (others > 0);
}

// Whether a run that recorded nothing for this decision may still be as planned: nothing was to be
// decided, the batch asked for no work, or the decision only sets pieces, whose record shows it.
// What the runtime performs is always recorded. If the pieces are wrong, they prove nothing.
bool may_be_silent(const program::OperationView& view, const program::WorkList& work,
                   std::string_view name, int64_t planned, const Trace& trace,
                   bool pieces_are_wrong) {
  if (planned == program::undecided_value(view.operation.kind(), name))
    return program::traits_of(view.operation).performer != program::Performer::runtime;
  if (trace.extent == program::Extent()) return true;
  return pieces_are_wrong || program::is_in_pieces(view.operation, work, name, trace.pieces);
}

void compare_decisions(const program::OperationView& view, const program::WorkList& work,
                       const Trace& trace, bool pieces_are_wrong,
                       std::vector<std::string>& problems) {
  const Operation& operation = view.operation;
  const auto planned = program::decisions_of(operation);
  const auto text_of = [&](std::string_view name, int64_t value) {
    return program::decision_text(operation.kind(), name, value);
  };
  size_t compared = 0;
  for (const auto& [name, value] : planned) {
    std::vector<int64_t> ran;
    for (const auto& [decision, done] : trace.decisions)
      if (decision == name) ran.push_back(done);
    compared += ran.size();
    if (ran.empty() && may_be_silent(view, work, name, value, trace, pieces_are_wrong)) continue;
    if (ran.empty()) {
      problems.push_back(
          fmt::format("says nothing of {}, planned as {}", name, text_of(name, value)));
    } else if (!is_as_planned(operation.kind(), name, value, ran)) {
      std::vector<std::string> texts;
      texts.reserve(ran.size());
      for (const int64_t done : ran) texts.push_back(text_of(name, done));
      problems.push_back(fmt::format("ran with {} {}, planned as {}", name, fmt::join(texts, ", "),
                                     text_of(name, value)));
    }
  }
  if (trace.decisions.size() > compared)
    problems.push_back(
        fmt::format("decided {} times what is not planned", trace.decisions.size() - compared));
}

// The number of choices made within classes (ProductAlgorithm::timed). Each may take one launch
// less than its class states, but no more; decisions without a class take exactly the stated
// launches.
int64_t ways_chosen(const Operation& operation, const Trace& trace) {
  int64_t ways = 0;
  for (const auto& [name, planned] : program::decisions_of(operation))
    for (const auto& [decision, way] : trace.decisions)
      if (decision == name && program::is_of_class(operation.kind(), name, planned, way)) ++ways;
  return ways;
}

// The launches that are planned, those of chunks among them. A target that states none starts none.
int64_t planned_launches(const program::OperationView& view, const program::WorkList& work) {
  if (view.operation.launches == 0) return 0;
  return std::llround(program::cost_of(view, work.extent).launches);
}

void compare_launches(const program::OperationView& view, const program::WorkList& work,
                      const Trace& trace, std::vector<std::string>& problems) {
  const int64_t planned = planned_launches(view, work);
  if (trace.launches + trace.launches_spared != planned || trace.launches_spared < 0) {
    problems.push_back(fmt::format("took {} launches and spared {}, planned were {}",
                                   trace.launches, trace.launches_spared, planned));
  } else if (const int64_t ways = ways_chosen(view.operation, trace);
             trace.launches_spared > ways) {
    problems.push_back(fmt::format("spared {} launches, of {} that were chosen by timing",
                                   trace.launches_spared, ways));
  }
}

std::vector<std::string> compare(const Planned& planned, const Operation& operation,
                                 const Trace& trace) {
  if (trace.runs != 1) return {fmt::format("ran {} times", trace.runs)};
  std::vector<std::string> problems;
  if (trace.kind != operation.kind())
    problems.push_back(fmt::format("ran as {}", name_of(trace.kind)));
  if (trace.channel != operation.channel)
    problems.push_back(fmt::format("ran on channel {}, planned on {}", name_of(trace.channel),
                                   name_of(operation.channel)));
  if (const int64_t bytes = operand_bytes(planned.program, operation); trace.bytes != bytes)
    problems.push_back(
        fmt::format("asked for {} bytes of operands, planned were {}", trace.bytes, bytes));
  if (trace.joined != operation.joined)
    problems.push_back(trace.joined ? "ran with the operation before it" : "ran alone");
  const program::OperationView view{planned.program, operation};
  // Which of the two it is only the backend knows: a kernel that reads the bounds on the device is
  // launched for all that shapes allow, also in a recording that is made before there is a batch.
  const program::WorkList work =
      program::work_of(view, trace.by_capacity ? program::BatchBounds() : planned.bounds);
  const size_t before = problems.size();
  compare_extents(view, work, trace, problems);
  const bool extent_differs = problems.size() > before;
  const std::string wrong_pieces = program::pieces_error(work, trace.pieces);
  compare_decisions(view, work, trace, !wrong_pieces.empty(), problems);
  // Pieces and launches follow from the extent, so only the wrong extent is reported.
  if (extent_differs) return problems;
  if (!wrong_pieces.empty()) problems.push_back(wrong_pieces);
  compare_launches(view, work, trace, problems);
  return problems;
}

}  // namespace

std::vector<std::string> differences(const Planned& planned, size_t operation, const Trace& trace) {
  return compare(planned, planned.program.operations[operation], trace);
}

std::vector<std::string> differences(const Planned& planned, std::span<const Trace> traces) {
  const Program& program = planned.program;
  SNUG_CHECK_EQ(traces.size(), program.operations.size());
  std::vector<std::string> all;
  for (size_t i = 0; i < traces.size(); ++i)
    for (const std::string& problem : compare(planned, program.operations[i], traces[i]))
      all.push_back(fmt::format("operation {} ({}) of {} {}", i,
                                name_of(program.operations[i].kind()), program.name, problem));
  return all;
}

void check_performed(const Program& program, std::span<const Trace> traces,
                     std::span<const int64_t> bytes) {
  const program::BatchBounds no_bounds;
  if (bytes.empty()) {
    const auto all = differences({program, no_bounds}, traces);
    SNUG_CHECK(all.empty(), "{}", all.front());
    return;
  }
  SNUG_CHECK_EQ(bytes.size(), traces.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    Trace trace = traces[i];
    SNUG_CHECK_EQ(trace.bytes, bytes[i]);
    if (bytes[i] == 0) {
      SNUG_CHECK_EQ(trace.runs, 0);
      continue;
    }
    trace.bytes = operand_bytes(program, program.operations[i]);
    const auto of_one = differences({program, no_bounds}, i, trace);
    SNUG_CHECK(of_one.empty(), "operation {} of {} {}", i, program.name, of_one.front());
  }
}

}  // namespace snug::runtime
