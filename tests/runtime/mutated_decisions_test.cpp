// That the cpu backend obeys each decision of each operation: given another one than is planned, it
// refuses it in prepare(), or does it and its trace shows that. What it would ignore is found here.
// The operation is changed between the plan and the backend, in a process of its own, since a
// refusal ends that.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <set>

#include "backends/cpu/cpu_backend.h"
#include "every_trace.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using program::Attributes;
using program::DType;
using program::Operation;

using Tested = backends::cpu::CpuBackend;

constexpr int kLateExit = 101;

// A decision of an operation and another value of it.
struct Mutation {
  program::ProgramName program{};
  size_t operation = 0;
  std::string decision;
  int64_t value = 0;
};

// Calls f(field, member) for the attribute of that name.
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

Attributes mutated(Attributes attributes, const Mutation& mutation) {
  with_field(attributes, mutation.decision, [&](auto& member) {
    using Value = std::decay_t<decltype(member)>;
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>)
      member = static_cast<Value>(mutation.value);
  });
  return attributes;
}

// The other values that a decision might have had. Sizes become smaller: what is larger needs
// memory that nobody planned.
std::vector<int64_t> other_values(const Operation& operation, std::string_view decision) {
  std::vector<int64_t> values;
  with_field(operation.attributes, decision, [&](const auto& member) {
    using Value = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Value, bool>) {
      values = {member ? 0 : 1};
    } else if constexpr (std::is_enum_v<Value>) {
      for (const auto& word : words_of(Value{}))
        if (word.value != member) values.push_back(static_cast<int64_t>(word.value));
    } else if constexpr (std::is_integral_v<Value>) {
      for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{member} / 2, int64_t{32}})
        if (value != member && (member == 0 || value < member)) values.push_back(value);
    }
  });
  return values;
}

// Gives one operation to the backend otherwise than it is planned.
class Mutating final : public Tested {
 public:
  Mutating(const Mutation& mutation, const Attributes& planned)
      : Tested({.threads = 1}), mutation_(mutation), planned_(planned) {}
  // From here on.
  void mutate(const Operation& operation) { operation_ = &operation; }

  // Enough for what it is given, too, where it says how much that is.
  program::Workspace workspace(const program::OperationView& view) const override {
    program::Workspace workspace = Tested::workspace(view);
    if (view.operation.attributes == planned_) workspace.bytes += kMoreBytes;
    return workspace;
  }
  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    if (&view.operation != operation_) return Tested::prepare(view);
    Operation operation = view.operation;
    operation.attributes = mutated(operation.attributes, mutation_);
    return Tested::prepare({view.program, operation});
  }
  void run(const backends::Invocation& invocation) override { Tested::run(changed(invocation)); }
  void run_list(std::span<const backends::Invocation> invocations) override {
    std::vector<backends::Invocation> list;
    for (const backends::Invocation& invocation : invocations) list.push_back(changed(invocation));
    Tested::run_list(list);
  }

 private:
  static constexpr int64_t kMoreBytes = int64_t{4} << 20;

  backends::Invocation changed(const backends::Invocation& given) {
    if (given.view == nullptr || &given.view->operation != operation_) return given;
    backends::Invocation invocation = given;
    attributes_ = mutated(*given.attributes, mutation_);
    invocation.attributes = &attributes_;
    return invocation;
  }

  Mutation mutation_;
  Attributes planned_;
  const Operation* operation_ = nullptr;
  Attributes attributes_;
};

using MakeJob = std::function<plan::Job(const program::Target&)>;

enum class Outcome : uint8_t { seen, refused, ignored };

// Ends the process where a CHECK fails once everything is prepared: that is no refusal.
[[noreturn]] void end_late(int /*signal*/) { ::_exit(kLateExit); }

// Whether the trace of the mutated operation shows what it was given.
Outcome outcome_here(const MakeJob& make_job, const Mutation& mutation, const Attributes& planned) {
  Mutating backend(mutation, planned);
  const plan::Job job = make_job(backend);
  const program::Program& program = *job.find(mutation.program);
  backend.mutate(program.operations[mutation.operation]);
  Executor executor(job, backend);
  std::signal(SIGABRT, end_late);
  testing::fill_batch(program, executor);
  const std::vector<backends::Trace> traces = executor.run_traced(mutation.program);
  const Planned compared{program, executor.bounds(mutation.program)};
  return differences(compared, mutation.operation, traces[mutation.operation]).empty()
             ? Outcome::ignored
             : Outcome::seen;
}

Outcome outcome_of(const MakeJob& make_job, const Mutation& mutation, const Attributes& planned) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(100);
    Outcome outcome = Outcome::refused;
    try {
      outcome = outcome_here(make_job, mutation, planned);
    } catch (const base::UserError&) {
    }
    ::_exit(static_cast<int>(outcome));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGABRT)
        << fmt::format("{} {} of operation {} of {} is no refusal", mutation.decision,
                       mutation.value, mutation.operation, base::word_of(mutation.program));
    return Outcome::refused;
  }
  EXPECT_NE(WEXITSTATUS(status), kLateExit)
      << fmt::format("{} {} of operation {} of {} is refused when it runs", mutation.decision,
                     mutation.value, mutation.operation, base::word_of(mutation.program));
  return static_cast<Outcome>(WEXITSTATUS(status));
}

// Each decision of operations that differ in what was decided of them. Returns how many other
// decisions were done and seen.
int expect_obeyed(const MakeJob& make_job) {
  const Tested planner({.threads = 1});
  const plan::Job job = make_job(planner);
  std::set<std::pair<program::Kind, std::vector<int64_t>>> known;
  int seen = 0;
  for (const program::Program& program : job.programs) {
    if (!testing::is_run_by_backends(program)) continue;
    for (size_t i = 0; i < program.operations.size(); ++i) {
      const Operation& operation = program.operations[i];
      const auto name = testing::typed_name(program);
      std::vector<int64_t> values;
      for (const auto& [decision, value] : program::decisions_of(operation))
        values.push_back(value);
      if (operation.joined || !known.insert({operation.kind(), values}).second) continue;
      for (const auto& [decision, planned] : program::decisions_of(operation))
        for (const int64_t value : other_values(operation, decision)) {
          const Mutation mutation{name, i, std::string(decision), value};
          const Outcome outcome = outcome_of(make_job, mutation, operation.attributes);
          EXPECT_NE(outcome, Outcome::ignored) << fmt::format(
              "{} of {} with {} {}, planned as {}", name_of(operation.kind()), program.name,
              decision, program::decision_text(operation.kind(), decision, value),
              program::decision_text(operation.kind(), decision, planned));
          seen += outcome == Outcome::seen ? 1 : 0;
        }
    }
  }
  return seen;
}

DType narrow_type() { return testing::lacks_bf16("cpu") ? DType::f32 : DType::bf16; }

models::ModelConfig one_layer() {
  models::ModelConfig model = testing::tiny_model();
  model.num_layers = 1;
  model.hidden_size = 64;
  model.head_dim = 32;
  model.num_heads = 2;
  model.intermediate_size = 96;
  return model;
}

plan::TrainingSpec spec_of_one_layer(bool narrow) {
  testing::TinyOptions options{.model = one_layer()};
  if (narrow) options.compute = narrow_type();
  plan::TrainingSpec spec = testing::spec_of(options);
  testing::pack_rows(spec);
  return spec;
}

MakeJob training(const plan::TrainingSpec& spec) {
  return [spec](const program::Target& target) { return plan::plan_training(spec, target); };
}

TEST(MutatedDecisions, AreRefusedOrSeenInTraining) {
  EXPECT_GT(expect_obeyed(training(spec_of_one_layer(false))), 0);
  EXPECT_GT(expect_obeyed(training(spec_of_one_layer(true))), 0);
}

TEST(MutatedDecisions, AreRefusedOrSeenOfExperts) {
  for (const bool narrow : {false, true}) {
    plan::TrainingSpec spec = spec_of_one_layer(narrow);
    spec.model.model_type = "mixtral";
    spec.model.num_experts = 4;
    spec.model.chosen_experts = 2;
    spec.model.expert_size = spec.model.intermediate_size;
    EXPECT_GT(expect_obeyed(training(spec)), 0);
  }
}

// Gradients that add up in bf16, with rounding that is drawn.
TEST(MutatedDecisions, AreRefusedOrSeenOfDrawnRounding) {
  if (narrow_type() != DType::bf16) GTEST_SKIP() << "no bf16 here";
  plan::TrainingSpec spec = spec_of_one_layer(true);
  spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  spec.update.gradient = DType::bf16;
  spec.accumulation = 2;
  spec.evaluate = true;
  EXPECT_GT(expect_obeyed(training(spec)), 0);
}

TEST(MutatedDecisions, AreRefusedOrSeenOfCodedWeights) {
  plan::TrainingSpec spec = spec_of_one_layer(true);
  spec.method = formats::Method::lora;
  spec.lora.target_modules = {"all-linear"};
  spec.quantization.emplace();
  EXPECT_GT(expect_obeyed(training(spec)), 0);
}

TEST(MutatedDecisions, AreRefusedOrSeenInInference) {
  plan::InferenceSpec spec;
  spec.model = one_layer();
  spec.sequences = 2;
  spec.capacity = 300;
  spec.prefill_tokens = 32;
  spec.compute = narrow_type();
  for (const bool quantized : {false, true}) {
    if (quantized) spec.quantization = passes::QuantizeOptions{};
    EXPECT_GT(expect_obeyed([&](const program::Target& target) {
                return plan::plan_inference(spec, target);
              }),
              0);
  }
}

}  // namespace
}  // namespace snug::runtime
