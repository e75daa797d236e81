// What the executor records and what it queues in every run: a loss between other operations, on
// the CUDA backend and its emulated device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "passes/memory/host_copies.h"
#include "plan/job/job.h"
#include "program/ir/builder.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/transfer/transfer.h"
#include "program/verify/verify.h"
#include "program/work/target.h"
#include "runtime/execution/executor.h"

namespace snug::testing {
namespace {

using program::DType;
using program::Kind;
using program::Lifetime;
using program::Role;
using program::TensorId;

constexpr int64_t kTokens = 12;
constexpr int64_t kWidth = 8;
constexpr int64_t kVocab = 16;
constexpr int64_t kChunkRows = 4;

// Counts what it is given and does not repeat itself, and notes what it is told of the loss.
class Watched final : public backends::cuda::CudaBackend {
 public:
  Watched() : CudaBackend({}) {}
  void run_list(std::span<const backends::Invocation> invocations) override {
    for (const backends::Invocation& invocation : invocations) {
      const auto kind = invocation.attributes->kind();
      ++runs[kind];
      // What is recorded is not told what a batch holds.
      EXPECT_EQ(invocation.bounds != nullptr, kind == Kind::linear_cross_entropy);
      if (kind == Kind::linear_cross_entropy)
        loss_rows = static_cast<int64_t>(invocation.extent().rows);
    }
    CudaBackend::run_list(invocations);
  }

  std::map<Kind, int> runs;
  int64_t loss_rows = -1;
};

TensorId add_tensor(program::Builder& builder, const std::string& name, const program::Shape& shape,
                    DType dtype = DType::f32, Role role = Role::weight) {
  program::Tensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  tensor.dtype = dtype;
  tensor.role = role;
  tensor.lifetime = Lifetime::run;
  return builder.add(tensor);
}

// sum = x + x; the loss of sum; twice = losses + losses; four = twice + twice.
program::Program loss_program(const program::Target& target) {
  program::Builder builder(program::ProgramName::micro_first);
  const TensorId x = add_tensor(builder, "x", {kTokens, kWidth});
  const TensorId weight = add_tensor(builder, "weight", {kVocab, kWidth});
  const TensorId targets = add_tensor(builder, "targets", {kTokens}, DType::i32, Role::batch);
  const TensorId inverse_tokens =
      add_tensor(builder, "inverse_tokens", {1}, DType::f32, Role::batch);
  const TensorId sum = add_tensor(builder, "sum", {kTokens, kWidth});
  const TensorId losses = add_tensor(builder, "losses", {kTokens});
  const TensorId loss = add_tensor(builder, "loss", {1});
  const TensorId twice = add_tensor(builder, "twice", {kTokens});
  const TensorId four = add_tensor(builder, "four", {kTokens});
  builder.emit(program::Add{}, {x, x}, {sum});
  builder.emit(program::LinearCrossEntropy{.chunks = {.rows = kChunkRows}},
               {sum, weight, targets, inverse_tokens}, {losses, loss});
  builder.emit(program::Add{}, {losses, losses}, {twice});
  builder.emit(program::Add{}, {twice, twice}, {four});
  program::Program program = passes::host_copies(builder.take(), {});
  const auto with_loss = std::find_if(
      program.operations.begin(), program.operations.end(),
      [](const auto& operation) { return operation.kind() == Kind::linear_cross_entropy; });
  with_loss->attributes = target.decide({program, *with_loss});
  program::Tensor workspace;
  workspace.name = "workspace";
  workspace.dtype = DType::u8;
  workspace.role = Role::workspace;
  workspace.shape = {target.workspace({program, *with_loss}).bytes};
  with_loss->workspace = static_cast<TensorId>(program.tensors.size());
  program.tensors.push_back(workspace);
  for (program::Operation& each : program.operations)
    each.launches = target.launches({program, each});
  return program;
}

class LossJob {
 public:
  LossJob() : job_(plan::make_job({loss_program(backend_)}, backend_)), executor_(job_, backend_) {
    fill("x", 3);
    fill("weight", 5);
    executor_.set_input("inverse_tokens", 1.0F);
  }

  // Four times the losses of a batch in which every `stride`-th row is trained.
  std::vector<float> step(int64_t stride) {
    executor_.await_inputs(program::ProgramName::micro_first);
    auto* targets = executor_.tensor("host.targets").as<int32_t>();
    for (int64_t t = 0; t < kTokens; ++t)
      targets[t] = t % stride == 0 ? static_cast<int32_t>(t) : -1;
    executor_.run(program::ProgramName::micro_first);
    std::vector<float> four(kTokens);
    backend_.copy(four.data(), executor_.tensor("four").data, kTokens * int64_t{sizeof(float)});
    return four;
  }

  Watched& backend() { return backend_; }

 private:
  void fill(const char* name, int modulus) {
    const backends::Buffer& buffer = executor_.tensor(name);
    std::vector<float> values(static_cast<size_t>(buffer.elements()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 0.25F * static_cast<float>(static_cast<int>(i) % modulus - 1);
    backend_.copy(buffer.data, values.data(), buffer.bytes());
  }

  Watched backend_;
  plan::Job job_;
  runtime::Executor executor_;
};

TEST(Recordings, leave_the_loss_out_whose_rows_change) {
  LossJob job;
  std::vector<float> all = job.step(1);
  ASSERT_GT(*std::min_element(all.begin(), all.end()), 0);
  for (const int64_t stride : {3, 1, 12, 2, 1}) {
    const std::vector<float> four = job.step(stride);
    EXPECT_EQ(job.backend().loss_rows, (kTokens + stride - 1) / stride);
    for (int64_t t = 0; t < kTokens; ++t)
      EXPECT_EQ(four[static_cast<size_t>(t)], t % stride == 0 ? all[static_cast<size_t>(t)] : 0)
          << "row " << t << " of every " << stride;
  }
  EXPECT_EQ(job.backend().runs[Kind::linear_cross_entropy], 6);
  EXPECT_EQ(job.backend().runs[Kind::add], 3) << "each of three: once, for the recording";
}

// sum = x + x, copied to the host and back while the loss of sum is computed; back2 = back + back.
program::Program program_with_copies(const program::Target& target) {
  program::Program program = loss_program(target);
  const auto add = [&](const std::string& name, program::Space space) {
    program::Tensor tensor = program.tensor(program.find("sum"));
    tensor.name = name;
    tensor.space = space;
    program.tensors.push_back(tensor);
    return static_cast<TensorId>(program.tensors.size() - 1);
  };
  const TensorId sum = program.find("sum");
  const TensorId out = add("out", program::Space::pinned_host);
  const TensorId back = add("back", program::Space::device);
  const TensorId twice = add("back2", program::Space::device);
  const auto operation = [](program::Attributes attributes, TensorId from, TensorId to) {
    program::Operation made;
    made.attributes = std::move(attributes);
    made.reads = {from};
    const bool is_await = made.attributes.is<program::Await>();
    (is_await ? made.updates : made.writes) = {to};
    return made;
  };
  const auto transfer = [&](TensorId from, TensorId to, program::Channel channel) {
    program::Operation made = operation(program::Transfer{}, from, to);
    made.channel = channel;
    return made;
  };
  std::vector<program::Operation>& list = program.operations;
  const auto at_loss = [&] {
    return std::find_if(list.begin(), list.end(),
                        [](const auto& each) { return each.kind() == Kind::linear_cross_entropy; });
  };
  list.insert(at_loss(), transfer(sum, out, program::Channel::device_to_host));
  list.insert(at_loss() + 1, {operation(program::Await{}, sum, out),
                              transfer(out, back, program::Channel::host_to_device)});
  list.push_back(operation(program::Await{}, out, back));
  program::Operation doubled = operation(program::Add{}, back, twice);
  doubled.reads = {back, back};
  doubled.launches = target.launches({program, doubled});
  list.push_back(doubled);
  return program;
}

TEST(Recordings, LetCopiesGoOnAcrossTheLoss) {
  Watched backend;
  const plan::Job job = plan::make_job({program_with_copies(backend)}, backend);
  EXPECT_EQ(program::verify(job.programs[0]), std::vector<std::string>{});
  runtime::Executor executor(job, backend);
  executor.set_input("inverse_tokens", 1.0F);
  const backends::Buffer& x = executor.tensor("x");
  for (int run = 0; run < 3; ++run) {
    std::vector<float> values(static_cast<size_t>(x.elements()), 1.5F + static_cast<float>(run));
    backend.copy(x.data, values.data(), x.bytes());
    executor.run(program::ProgramName::micro_first);
    std::vector<float> twice(values.size());
    backend.copy(twice.data(), executor.tensor("back2").data, x.bytes());
    EXPECT_EQ(twice, std::vector<float>(values.size(), 4 * values[0])) << "run " << run;
  }
  EXPECT_EQ(backend.runs[Kind::transfer], 4)
      << "across the loss once in each run; the other once, for the recording";
  EXPECT_EQ(backend.runs[Kind::await], 4);
}

}  // namespace
}  // namespace snug::testing
