// That backends do what was decided, whatever that is, and that a trace shows where one does
// otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#ifdef SNUG_TEST_CPU_BACKEND
#include "backends/cpu/isa.h"
#endif
#include "plan/document/document.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/grouped_matmul.h"
#include "program/kinds/product/matmul.h"
#include "runtime/execution/trace_check.h"
#include "tested_backends.h"
#include "tiny_run.h"
#include "traced_batch.h"

namespace snug::runtime {
namespace {

using backends::Trace;
using program::DType;
using program::Program;
using testing::fill_batch;
using testing::pack_rows;
using testing::TinyOptions;
using testing::typed_name;

// Where what ran is otherwise than what was to run.
size_t differences_of(const plan::TrainingSpec& spec, backends::Backend& backend) {
  const plan::Job job = plan::plan_training(spec, backend);
  Executor executor(job, backend);
  const Program& program = *job.find(program::ProgramName::micro_first);
  fill_batch(program, executor);
  const Planned planned{program, executor.bounds(typed_name(program))};
  return differences(planned, executor.run_traced(typed_name(program))).size();
}

plan::TrainingSpec packed_spec() {
  plan::TrainingSpec spec = testing::spec_of({});
  pack_rows(spec);
  return spec;
}

// Does what it is told except with norms.
template <typename Tested>
class Careless final : public Tested {
 public:
  enum class Fault { none, skips, repeats, does_nothing };
  explicit Careless(Fault fault) : fault_(fault) {}

  void run_list(std::span<const backends::Invocation> given) override {
    std::vector<backends::Invocation> list;
    for (const backends::Invocation& invocation : given) {
      const bool is_norm = invocation.attributes->is<program::RmsNorm>();
      if (is_norm && fault_ == Fault::does_nothing) invocation.note_run();
      if (is_norm && (fault_ == Fault::does_nothing || fault_ == Fault::skips)) continue;
      if (is_norm && fault_ == Fault::repeats) list.push_back(invocation);
      list.push_back(invocation);
    }
    Tested::run_list(list);
  }

 private:
  Fault fault_;
};

struct Norms {
  size_t count = 0;
  size_t launched = 0;  // those for which the program states launches
};

Norms norms_of(const program::Target& target) {
  const plan::Job job = plan::plan_training(packed_spec(), target);
  Norms norms;
  for (const auto& operation : job.find(program::ProgramName::micro_first)->operations)
    if (operation.kind() == program::Kind::rms_norm) {
      ++norms.count;
      if (operation.launches > 0) ++norms.launched;
    }
  return norms;
}

template <typename Tested>
class CarelessBackends : public ::testing::Test {};
TYPED_TEST_SUITE(CarelessBackends, testing::TestedBackends);

TYPED_TEST(CarelessBackends, AreSeen) {
  using Fault = typename Careless<TypeParam>::Fault;
  const auto differences_with = [](Fault fault) {
    Careless<TypeParam> backend(fault);
    return differences_of(packed_spec(), backend);
  };
  EXPECT_EQ(differences_with(Fault::none), 0U);
  const Norms norms = norms_of(TypeParam());
  EXPECT_EQ(differences_with(Fault::skips), norms.count);
  EXPECT_EQ(differences_with(Fault::repeats), norms.count);
  EXPECT_EQ(differences_with(Fault::does_nothing), norms.count + norms.launched)
      << "it says that it ran, and asked for no operand and launched nothing";
}

#ifndef SNUG_TEST_CPU_BACKEND
// A card's backend that prepares what was decided, and then starts other kernels.
class OtherKernels final : public testing::OnCard {
 public:
  enum class Fault { none, attention, experts };
  explicit OtherKernels(Fault fault) : fault_(fault) {}

  void run_list(std::span<const backends::Invocation> given) override {
    std::vector<backends::Invocation> list(given.begin(), given.end());
    std::vector<program::Attributes> attributes;
    attributes.reserve(list.size());
    for (backends::Invocation& invocation : list) {
      attributes.push_back(*invocation.attributes);
      invocation.attributes = &attributes.back();
      if (auto* grad = attributes.back().get_if<program::AttentionGrad>();
          grad != nullptr && fault_ == Fault::attention)
        grad->kernel.by = program::AttentionBy::plain;
      if (auto* grouped = attributes.back().get_if<program::GroupedMatmul>();
          grouped != nullptr && fault_ == Fault::experts)
        grouped->choice.algorithm = program::ProductAlgorithm::blocked;
    }
    OnCard::run_list(list);
  }

 private:
  Fault fault_;
};

TEST(Traces, OtherKernelsAreSeenOnACard) {
  using Fault = OtherKernels::Fault;
  testing::TinyOptions options{.compute = DType::bf16};
  options.model.hidden_size = 64;
  options.model.num_heads = 2;
  options.model.head_dim = 32;
  options.model.intermediate_size = 96;
  options.model.model_type = "mixtral";
  options.model.num_experts = 4;
  options.model.chosen_experts = 2;
  options.model.expert_size = options.model.intermediate_size;
  plan::TrainingSpec spec = testing::spec_of(options);
  spec.row_tokens = 40;
  const auto differences_with = [&](Fault fault) {
    OtherKernels backend(fault);
    return differences_of(spec, backend);
  };
  EXPECT_EQ(differences_with(Fault::none), 0U);
  EXPECT_EQ(differences_with(Fault::attention), 2U) << "of two layers";
  EXPECT_GE(differences_with(Fault::experts), 6U) << "three products in each";
}
#else
using testing::lacks_bf16;
using testing::trained_of;

// Does what it is told except for one thing.
class Disobedient final : public backends::cpu::CpuBackend {
 public:
  enum class Fault {
    none,
    smaller_chunks,
    other_algorithm,
    other_logits_algorithm,
    no_few_queries,
    no_few_keys,
    shorter_segments,
    smaller_pieces
  };
  explicit Disobedient(Fault fault) : CpuBackend({.threads = 1}), fault_(fault) {}

  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    program::Operation operation = view.operation;
    auto* loss = operation.attributes.get_if<program::LinearCrossEntropyTrain>();
    if (fault_ == Fault::smaller_chunks && loss != nullptr) loss->chunks.rows = 1;
    if (fault_ == Fault::other_logits_algorithm && loss != nullptr)
      loss->products.main.logits = other_algorithm(loss->products.main.logits);
    if (auto* matmul = operation.attributes.get_if<program::Matmul>();
        matmul != nullptr && fault_ == Fault::other_algorithm)
      matmul->choice.main.algorithm = other_algorithm(matmul->choice.main.algorithm);
    if (auto* grouped = operation.attributes.get_if<program::GroupedMatmul>();
        grouped != nullptr && fault_ == Fault::smaller_pieces)
      grouped->choice.block_rows = 1;
    return CpuBackend::prepare({view.program, operation});
  }
  // Chunks of few rows, where the fault is about their logits.
  program::Attributes decide(const program::OperationView& view) const override {
    program::Operation operation = view.operation;
    auto* loss = operation.attributes.get_if<program::LinearCrossEntropyTrain>();
    if (fault_ == Fault::other_logits_algorithm && loss != nullptr) loss->chunks.rows = 2;
    return CpuBackend::decide({view.program, operation});
  }
  // Enough for another algorithm.
  program::Workspace workspace(const program::OperationView& view) const override {
    program::Workspace workspace = CpuBackend::workspace(view);
    const auto* matmul = view.operation.attributes.get_if<program::Matmul>();
    if (matmul != nullptr && matmul->choice.main.algorithm == program::ProductAlgorithm::few_rows)
      workspace.bytes += int64_t{1} << 20;
    const auto* loss = view.operation.attributes.get_if<program::LinearCrossEntropyTrain>();
    if (loss != nullptr && loss->products.main.logits == program::ProductAlgorithm::few_rows)
      workspace.bytes += int64_t{1} << 20;
    return workspace;
  }
  void run(const backends::Invocation& given) override {
    backends::Invocation invocation = given;
    program::Attributes attributes = *given.attributes;
    invocation.attributes = &attributes;
    if (auto* few = attributes.get_if<program::Attention>();
        few != nullptr && fault_ == Fault::no_few_queries)
      few->kernel.few_queries = 0;
    if (auto* few = attributes.get_if<program::AttentionGrad>();
        few != nullptr && fault_ == Fault::no_few_keys)
      few->kernel.few_keys = 1;
    using program::Attention;
    if (const auto* attention = invocation.attributes->get_if<Attention>();
        attention != nullptr && fault_ == Fault::shorter_segments)
      --invocation[Attention::kQBounds].as<int32_t>()[1];
    CpuBackend::run(invocation);
  }

 private:
  // What makes a product of few rows besides the kernel for them.
  static program::ProductAlgorithm other_algorithm(program::ProductAlgorithm planned) {
    using program::ProductAlgorithm;
    if (planned != ProductAlgorithm::few_rows) return planned;
    return backends::cpu::detect_isa() < backends::cpu::Isa::v4 ? ProductAlgorithm::blocked
                                                                : ProductAlgorithm::library;
  }

  Fault fault_;
};

// Decides otherwise than the cpu backend does, and runs what it has decided.
class OtherDecisions final : public backends::cpu::CpuBackend {
 public:
  OtherDecisions() : CpuBackend({.threads = 1}) {}
  program::Attributes decide(const program::OperationView& view) const override {
    program::Attributes decided = CpuBackend::decide(view);
    // Chunks of so few rows have a kernel of their own, which is not what is decided here.
    if (auto* loss = decided.get_if<program::LinearCrossEntropyTrain>()) loss->chunks.rows = 2;
    if (auto* attention = decided.get_if<program::Attention>()) attention->kernel.few_queries = 3;
    if (auto* grad = decided.get_if<program::AttentionGrad>()) grad->kernel.few_queries = 2;
    if (auto* grad = decided.get_if<program::AttentionGrad>()) grad->kernel.few_keys = 3;
    return decided;
  }
};

size_t differences_with(Disobedient::Fault fault) {
  Disobedient backend(fault);
  plan::TrainingSpec spec = testing::spec_of({});
  if (fault == Disobedient::Fault::smaller_pieces) {
    spec.model.model_type = "mixtral";
    spec.model.num_experts = 4;
    spec.model.chosen_experts = 2;
    spec.model.expert_size = spec.model.intermediate_size;
  }
  if (fault == Disobedient::Fault::other_algorithm) spec.row_tokens = 4;
  if (fault == Disobedient::Fault::no_few_queries) pack_rows(spec);
  if (fault == Disobedient::Fault::no_few_keys) pack_rows(spec);
  return differences_of(spec, backend);
}

TEST(Traces, ACpuBackendThatDoesOtherwiseIsSeen) {
  using Fault = Disobedient::Fault;
  EXPECT_EQ(differences_with(Fault::none), 0U);
  EXPECT_EQ(differences_with(Fault::smaller_chunks), 1U) << "the chunks";
  EXPECT_EQ(differences_with(Fault::other_algorithm), 14U) << "the linears of two layers";
  EXPECT_EQ(differences_with(Fault::other_logits_algorithm), 1U);
  EXPECT_EQ(differences_with(Fault::no_few_queries), 2U) << "what it was for, in two layers";
  EXPECT_EQ(differences_with(Fault::no_few_keys), 2U);
  EXPECT_EQ(differences_with(Fault::shorter_segments), 4U) << "attention and its gradient, twice";
  EXPECT_EQ(differences_with(Fault::smaller_pieces), 8U)
      << "two products of two layers, and two for their gradients";
}

// That the products of a loss were computed as the program says, and not as the cpu backend would
// decide by itself for such chunks.
void expect_other_products(const program::Operation& operation, const program::OperationView& view,
                           const backends::cpu::CpuBackend& backend, const Trace& trace) {
  using program::LinearCrossEntropyTrain;
  const auto& loss = operation.attributes.get<LinearCrossEntropyTrain>();
  const auto own = backend.CpuBackend::decide(view);
  EXPECT_NE(loss.products.main.logits, own.get<LinearCrossEntropyTrain>().products.main.logits);
  constexpr auto kName =
      program::decision_name<&LinearCrossEntropyTrain::products, &program::LossProducts::main,
                             &program::LossAlgorithms::logits>();
  const auto ran = std::ranges::find(trace.decisions, kName,
                                     [](const auto& decision) { return decision.first; });
  ASSERT_NE(ran, trace.decisions.end());
  EXPECT_EQ(ran->second, static_cast<int64_t>(loss.products.main.logits));
}

// What a target decides is what runs, where it is not what the backend decides by itself too.
TEST(Traces, OtherDecisionsAreObeyed) {
  using methods::OptimizerKind;
  const bool has_bf16 = !lacks_bf16("cpu");
  OtherDecisions backend;
  TinyOptions options;
  options.compute = has_bf16 ? DType::bf16 : DType::f32;
  options.optimizer = has_bf16 ? OptimizerKind::adamw_bf16 : OptimizerKind::adamw;
  plan::TrainingSpec spec = testing::spec_of(options);
  if (has_bf16) spec.update.gradient = DType::bf16;
  spec.accumulation = 2;
  pack_rows(spec);
  const plan::Job job = plan::plan_training(spec, backend);
  Executor executor(job, backend);
  for (const auto name : {program::ProgramName::micro_first, program::ProgramName::micro_next}) {
    const Program& program = *job.find(name);
    fill_batch(program, executor);
    const std::vector<Trace> traces = executor.run_traced(name);
    EXPECT_EQ(differences({program, executor.bounds(name)}, traces), std::vector<std::string>{});
    const int64_t trained = trained_of(spec.row_tokens.decoder());
    for (size_t i = 0; i < traces.size(); ++i) {
      if (traces[i].kind == program::Kind::linear_cross_entropy_train) {
        const auto& loss = program.operations[i].attributes.get<program::LinearCrossEntropyTrain>();
        EXPECT_EQ(loss.chunks.rows, 2);
        EXPECT_EQ(traces[i].pieces, program::chunk_sizes(loss.chunks.algorithm, loss.chunks.rows,
                                                         spec.row_tokens.decoder(), trained));
        expect_other_products(program.operations[i], {program, program.operations[i]}, backend,
                              traces[i]);
      }
      if (traces[i].kind == program::Kind::attention) {
        EXPECT_EQ(traces[i].pieces, std::vector<int64_t>{2 + 3});
      }
      if (traces[i].kind == program::Kind::attention_grad) {
        EXPECT_EQ(traces[i].pieces, std::vector<int64_t>{2 + 3});
      }
    }
  }
}

// A size is called asked where a library gave it, and nowhere else.
TEST(Workspaces, SayWhatTheirSizeRestsOn) {
  using program::WorkspaceBasis;
  const bool has_library = backends::cpu::detect_isa() >= backends::cpu::Isa::v4;
  const backends::cpu::CpuBackend backend({.threads = 1});
  const plan::Job job = plan::plan_training(testing::spec_of({}), backend);
  int of_losses = 0;
  auto least_certain = WorkspaceBasis::computed;
  for (const Program& program : job.programs)
    for (const program::Operation& operation : program.operations) {
      if (operation.workspace == program::kNone) continue;
      const program::OperationView view{program, operation};
      const WorkspaceBasis basis = backend.workspace(view).basis;
      least_certain = std::max(least_certain, basis);
      if (operation.kind() == program::Kind::linear_cross_entropy_train) {
        EXPECT_EQ(basis, has_library ? WorkspaceBasis::asked : WorkspaceBasis::computed);
        ++of_losses;
      }
      if (operation.kind() == program::Kind::attention) {
        EXPECT_EQ(basis, WorkspaceBasis::computed);
      }
    }
  EXPECT_GT(of_losses, 0);
  EXPECT_EQ(plan::describe(job, backend).workspaces, base::word_of(least_certain));
}

#endif

}  // namespace
}  // namespace snug::runtime
