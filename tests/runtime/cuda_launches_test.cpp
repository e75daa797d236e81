// How many kernels the emulated device is given for a program.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "algorithms.h"
#include "backends/cuda/cuda_backend.h"
#include "block_fibers.h"
#include "library_calls.h"
#include "plan/time/clock.h"
#include "plan/time/token_work.h"
#include "program/kinds/product/matmul.h"
#include "program/work/decisions.h"
#include "runtime/execution/trace_check.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "tiny_run.h"
#include "unfinished_writes.h"

namespace snug::runtime {
namespace {

using testing::TinyRun;

// Two layers of seven linears with two factors each: one sum of squares, one norm, one factor and
// one step for all, not one a tensor.
TEST(CudaLaunches, AnUpdateStepsItsTensorsTogether) {
  for (const auto optimizer : {methods::OptimizerKind::adamw, methods::OptimizerKind::adamw_bf16}) {
    TinyRun run({.method = formats::Method::lora,
                 .compute = base::DType::bf16,
                 .optimizer = optimizer,
                 .init_seed = 1});
    random_weights(run.spec().model, run.executor());
    initialise_adapter(run.executor());
    run.executor().run(program::ProgramName::prepare);
    run.executor().set_input("learning_rate", 1e-3F);
    run.executor().set_input("step", int32_t{1});
    run.executor().backend().synchronise();
    const uint64_t before = cuda_emulator::launches();
    run.executor().run(program::ProgramName::update);
    run.executor().backend().synchronise();
    EXPECT_GE(run.job().find(program::ProgramName::update)->operations.size(), 28U);
    EXPECT_EQ(cuda_emulator::launches() - before, 4U);
  }
}

// Runs operations one by one.
class Alone : public Executor::Observer {
 public:
  void before(const program::Program&, size_t) override {}
  void after(const program::Program&, size_t) override {}
};

// Decodes three tokens of each sequence; the logits of all.
class TinyDecoding {
 public:
  explicit TinyDecoding(const plan::InferenceSpec& spec)
      : spec_(spec),
        backend_(backends::open_backend("cuda", {})),
        job_(plan::plan_inference(spec_, *backend_)),
        executor_(job_, *backend_) {
    random_weights(spec_.model, executor_);
    for (const program::Tensor& tensor : program().tensors)
      if (tensor.name.ends_with("_proj.bias")) fill(tensor);
  }

  Executor& executor() { return executor_; }
  const program::Program& program() const { return *job_.find(kDecode); }

  std::string run() {
    std::string logits;
    for (int32_t token = 0; token < 3; ++token) {
      set_inputs(token);
      executor_.run(kDecode);
      backend_->synchronise();
      const backends::Buffer& buffer =
          executor_.tensor(kDecode, own_name(kDecode, program::kLogitsName));
      std::string copy(static_cast<size_t>(buffer.bytes()), '\0');
      backend_->copy(copy.data(), buffer.data, buffer.bytes());
      logits += copy;
    }
    return logits;
  }

 private:
  static constexpr auto kDecode = program::ProgramName::decode;

  // Random biases are zeros.
  void fill(const program::Tensor& bias) {
    const backends::Buffer& buffer = executor_.tensor(kDecode, bias.name);
    const std::vector<uint16_t> ones(static_cast<size_t>(bias.shape.elements()), 0x3c00);
    backend_->copy(buffer.data, ones.data(), buffer.bytes());
  }

  int32_t* input(std::string_view name) {
    return executor_.tensor(kDecode, program::host_name(own_name(kDecode, name))).as<int32_t>();
  }

  void set_inputs(int32_t token) {
    executor_.await_inputs(kDecode);
    for (int32_t i = 0; i < static_cast<int32_t>(spec_.shape.sequences); ++i) {
      input(program::kTokensName)[i] =
          (3 * i + token) % static_cast<int32_t>(spec_.model.vocab_size);
      input(program::kPositionsName)[i] = token;
      input(program::kSlotsName)[i] = spec_.shape.page_tokens * i + token;
      input(program::kPagesName)[i] = i;
      input(program::kOutputRowsName)[i] = i;
      for (const int32_t end : {0, 1}) {
        input(program::kQueryBoundsName)[2 * i + end] = i + end;
        input(program::kKeyBoundsName)[2 * i + end] = end * (token + 1);
      }
    }
  }

  plan::InferenceSpec spec_;
  std::unique_ptr<backends::Backend> backend_;
  plan::Job job_;
  Executor executor_;
};

plan::InferenceSpec decoding_spec(int64_t sequences, std::optional<bool> nested) {
  plan::InferenceSpec spec;
  spec.model = testing::tiny_model();
  spec.model.hidden_size = 192;
  spec.model.num_heads = 4;
  spec.model.num_kv_heads = 2;
  spec.model.head_dim = 48;
  spec.model.intermediate_size = 320;
  spec.shape.sequences = sequences;
  spec.shape.capacity = 8;
  spec.shape.prefill_tokens = 8;
  spec.verify = true;
  spec.init_seed = 7;
  if (nested) spec.quantization = passes::QuantizeOptions{.nested = *nested, .kept = {}};
  return spec;
}

// Sees each launch once, as what measures launches does.
class Launches final : public Executor::Observer {
 public:
  bool sees_launches() const override { return true; }
  void before(const program::Program& program, size_t operation) override {
    EXPECT_FALSE(program.operations[operation].joined);
  }
  void after(const program::Program&, size_t) override {}
};

// Kernels and calls of libraries.
uint64_t done_by_device() { return cuda_emulator::launches() + cuda_emulator::library_calls; }

class Decoding : public ::testing::TestWithParam<base::DType> {};

// Those of one launch do what they do one by one, and are as few as planned. None that begins early
// reads what kernels before it may still be writing.
TEST_P(Decoding, DoesALayerInFewLaunches) {
  const cuda_emulator::UnfinishedWritesHidden hidden;
  for (const std::optional<bool> nested : {std::optional<bool>(), {false}, {true}})
    for (const int64_t sequences : {1, 3, 6, 20}) {
      // Of more sequences one of the forms is enough.
      const bool is_bf16 = GetParam() == base::DType::bf16;
      if (sequences > 4 && (nested != true || is_bf16 != (sequences == 20))) continue;
      plan::InferenceSpec spec = decoding_spec(sequences, nested);
      spec.compute = GetParam();
      if (sequences % 3 == 0) spec.model.model_type = "qwen2";  // with biases of q, k and v
      TinyDecoding together(spec);
      const plan::TokenWork work =
          plan::token_work(together.program(), program::full_rows(spec.shape.capacity));
      // Norms of more than four rows have launches of their own.
      EXPECT_EQ(work.layer_launches, sequences > 4 ? 7 : 5);
      const uint64_t before = done_by_device();
      const uint64_t early = cuda_emulator::early_launches;
      const uint64_t fetched = cuda_emulator::cache_fetches;
      const std::string logits = together.run();
      EXPECT_EQ(static_cast<double>(done_by_device() - before), 3 * work.launches);
      // All of a layer's kernels may begin while the one before them ends.
      EXPECT_GE(cuda_emulator::early_launches - early,
                static_cast<uint64_t>(3 * 5 * spec.model.num_layers));
      EXPECT_GT(cuda_emulator::cache_fetches, fetched);
      Alone alone;
      TinyDecoding one_by_one(spec);
      one_by_one.executor().set_observer(&alone);
      const uint64_t middle = done_by_device();
      EXPECT_EQ(logits, one_by_one.run());
      EXPECT_GT(done_by_device() - middle, 6 * static_cast<uint64_t>(work.launches) / 2);
      Launches launches;
      TinyDecoding observed(spec);
      observed.executor().set_observer(&launches);
      const uint64_t last = done_by_device();
      EXPECT_EQ(logits, observed.run());
      EXPECT_EQ(static_cast<double>(done_by_device() - last), 3 * work.launches);
      const Planned planned{together.program(),
                            together.executor().bounds(program::ProgramName::decode)};
      EXPECT_EQ(differences(planned, together.executor().run_traced(program::ProgramName::decode)),
                std::vector<std::string>{});
    }
}

INSTANTIATE_TEST_SUITE_P(CudaLaunches, Decoding,
                         ::testing::Values(base::DType::bf16, base::DType::f16));

// Counts what the device is given for each operation, and for those that are joined to it.
class Counting final : public backends::cuda::CudaBackend {
 public:
  explicit Counting(bool times) : CudaBackend({.chooses_by_timing = times}) {}

  // It waits for the device between operations, which a recording cannot.
  std::unique_ptr<backends::Recording> record(const std::function<void()>&) override {
    return nullptr;
  }

  void run_list(std::span<const backends::Invocation> invocations) override {
    while (!invocations.empty()) {
      size_t count = 1;
      while (count < invocations.size() && invocations[count].joined) ++count;
      synchronise();
      const uint64_t before = cuda_emulator::launches() + cuda_emulator::library_calls;
      CudaBackend::run_list(invocations.first(count));
      synchronise();
      counts[&invocations[0].view->operation] =
          cuda_emulator::launches() + cuda_emulator::library_calls - before;
      invocations = invocations.subspan(count);
    }
  }

  std::map<const program::Operation*, uint64_t> counts;
};

// Returns how many products were given more than one.
int expect_planned_launches(const plan::TrainingSpec& spec, bool times = false) {
  Counting backend(times);
  int in_parts = 0;
  const plan::Job job = plan::plan_training(spec, backend);
  Executor executor(job, backend);
  for (const program::Program& program : job.programs) {
    if (program.operations.empty() ||
        program::traits_of(program.operations[0]).performer == program::Performer::runtime)
      continue;
    const auto name = base::from_word<program::ProgramName>(program.name).value();
    const std::vector<backends::Trace> traces = executor.run_traced(name);
    EXPECT_EQ(differences({program, executor.bounds(name)}, traces), std::vector<std::string>{});
    for (size_t i = 0; i < traces.size(); ++i) {
      const program::Operation& operation = program.operations[i];
      if (operation.joined) continue;
      const auto given = static_cast<int64_t>(backend.counts[&operation]);
      EXPECT_EQ(traces[i].launches, given) << name_of(operation.kind()) << " of " << program.name;
      if (operation.launches == 0) continue;
      const program::Cost cost = program::cost({program, operation}, executor.bounds(name));
      EXPECT_EQ(static_cast<double>(given), cost.launches)
          << name_of(operation.kind()) << " of " << program.name;
      const auto* matmul = operation.attributes.get_if<program::Matmul>();
      if (matmul != nullptr && !matmul->augmented && cost.launches > 1) ++in_parts;
    }
  }
  return in_parts;
}

// What is planned, and priced, is what the device is given.
TEST(CudaLaunches, AreThoseOfThePlan) {
  using methods::OptimizerKind;
  testing::TinyOptions options{.compute = base::DType::bf16};
  for (const auto optimizer :
       {OptimizerKind::adamw, OptimizerKind::adamw_bf16, OptimizerKind::adamw_8bit,
        OptimizerKind::lion, OptimizerKind::adafactor, OptimizerKind::muon}) {
    options.optimizer = optimizer;
    plan::TrainingSpec spec = testing::spec_of(options);
    spec.accumulation = 2;
    if (optimizer == OptimizerKind::adamw_bf16) spec.update.gradient = base::DType::bf16;
    expect_planned_launches(spec);
  }
  options = {.method = formats::Method::lora, .compute = base::DType::bf16, .lora_r = 8};
  options.model.hidden_size = 64;
  options.model.num_heads = 2;
  options.model.head_dim = 32;
  options.model.intermediate_size = 128;
  for (const base::DType compute : {base::DType::bf16, base::DType::f16})
    for (const bool quantized : {false, true}) {
      testing::TinyOptions of_job = options;
      of_job.compute = compute;
      if (quantized) of_job.quantization.emplace();
      plan::TrainingSpec spec = testing::spec_of(of_job);
      spec.lora.dropout = 0.1;
      spec.evaluate = true;
      if (compute == base::DType::f16) spec.update.loss_scale.emplace();
      expect_planned_launches(spec);
    }
}

// A job with products for which there is an own kernel.
plan::TrainingSpec thin_products() {
  testing::TinyOptions options{
      .method = formats::Method::lora, .compute = base::DType::bf16, .lora_r = 8};
  options.model.hidden_size = 64;
  options.model.num_heads = 2;
  options.model.head_dim = 32;
  options.model.intermediate_size = 128;
  options.model.num_layers = 1;
  plan::TrainingSpec spec = testing::spec_of(options);
  spec.rows = 1;
  spec.row_tokens = 272;
  return spec;
}

// While it lives, the library takes so much longer than it does.
class SlowLibrary {
 public:
  explicit SlowLibrary(std::chrono::seconds extra) : usual_(cuda_emulator::algorithms) {
    for (auto& algorithm : cuda_emulator::algorithms) algorithm.extra = extra;
  }
  SlowLibrary(const SlowLibrary&) = delete;
  SlowLibrary& operator=(const SlowLibrary&) = delete;
  ~SlowLibrary() { cuda_emulator::algorithms = usual_; }

 private:
  decltype(cuda_emulator::algorithms) usual_;
};

// Where timing takes the own kernel for thin products, whose sums over long rows are made in parts
// and then added.
TEST(CudaLaunches, AreThoseOfThePlanForProductsThatAreTimed) {
  const SlowLibrary slow(std::chrono::seconds(100));
  EXPECT_GT(expect_planned_launches(thin_products(), true), 0);
}

// How often the library was called, and how often a trace says of a product that was timed that the
// own kernel made it.
struct TimedProducts {
  int64_t library_calls = 0;
  int64_t own = 0;
};

TimedProducts timed_products() {
  backends::cuda::CudaBackend backend({});
  const plan::Job job = plan::plan_training(thin_products(), backend);
  Executor executor(job, backend);
  constexpr auto kProgram = program::ProgramName::micro_first;
  const uint64_t before = cuda_emulator::library_calls;
  const std::vector<backends::Trace> traces = executor.run_traced(kProgram);
  TimedProducts products{.library_calls =
                             static_cast<int64_t>(cuda_emulator::library_calls - before)};
  const Planned planned{*job.find(kProgram), executor.bounds(kProgram)};
  EXPECT_EQ(differences(planned, traces), std::vector<std::string>{});
  for (const backends::Trace& trace : traces)
    for (const auto& [name, value] : trace.decisions)
      if (program::decision_text(trace.kind, name, value) == "thin") ++products.own;
  return products;
}

// A trace says which way a product that is timed took, and the device was given that.
TEST(CudaLaunches, OfProductsThatAreTimedAreNoted) {
  const auto with_library = [](std::chrono::seconds extra) {
    const SlowLibrary slow(extra);
    return timed_products();
  };
  const TimedProducts own = with_library(std::chrono::seconds(100));
  const TimedProducts by_library = with_library(std::chrono::seconds(-100));
  EXPECT_GT(own.own, 0);
  EXPECT_EQ(by_library.own, 0);
  EXPECT_EQ(by_library.library_calls - own.library_calls, own.own);
}

}  // namespace
}  // namespace snug::runtime
