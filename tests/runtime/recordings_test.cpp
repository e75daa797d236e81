// What the executor records and what it queues anew: a loss between other operations, on the CUDA
// backend and its emulated device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "backends/loss_operands.h"
#include "plan/job.h"
#include "program/builder.h"
#include "runtime/executor.h"

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
      const auto kind = static_cast<Kind>(invocation.attributes->index());
      ++runs[kind];
      if (kind == Kind::linear_cross_entropy)
        loss_rows = backends::rows_with_loss(invocation, kTokens);
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
  program::Builder builder("micro_first");
  const TensorId x = add_tensor(builder, "x", {kTokens, kWidth});
  const TensorId weight = add_tensor(builder, "weight", {kVocab, kWidth});
  const TensorId targets = add_tensor(builder, "targets", {kTokens}, DType::i32, Role::batch);
  const TensorId inverse_tokens = add_tensor(builder, "inverse_tokens", {1});
  const TensorId sum = add_tensor(builder, "sum", {kTokens, kWidth});
  const TensorId losses = add_tensor(builder, "losses", {kTokens});
  const TensorId loss = add_tensor(builder, "loss", {1});
  const TensorId twice = add_tensor(builder, "twice", {kTokens});
  const TensorId four = add_tensor(builder, "four", {kTokens});
  builder.emit(program::Add{}, {x, x}, {sum});
  builder.emit(program::LinearCrossEntropy{kChunkRows}, {sum, weight, targets, inverse_tokens},
               {losses, loss});
  builder.emit(program::Add{}, {losses, losses}, {twice});
  builder.emit(program::Add{}, {twice, twice}, {four});
  program::Program program = builder.take();
  program::Tensor host = program.tensor(targets);
  host.name = "host.targets";
  host.space = program::Space::pinned_host;
  program.tensors.push_back(host);
  program::Tensor workspace;
  workspace.name = "workspace";
  workspace.dtype = DType::u8;
  workspace.role = Role::workspace;
  workspace.shape = {target.workspace({program, program.operations[1]}).bytes};
  program.operations[1].workspace = static_cast<TensorId>(program.tensors.size());
  program.tensors.push_back(workspace);
  return program;
}

class LossJob {
 public:
  LossJob() : job_(plan::make_job({loss_program(backend_)}, backend_)), executor_(job_, backend_) {
    fill("x", 3);
    fill("weight", 5);
    executor_.set_scalar("inverse_tokens", 1.0F);
  }

  // Four times the losses of a batch in which every `stride`-th row is trained.
  std::vector<float> step(int64_t stride) {
    executor_.await_upload();
    auto* targets = executor_.tensor("host.targets").as<int32_t>();
    for (int64_t t = 0; t < kTokens; ++t)
      targets[t] = t % stride == 0 ? static_cast<int32_t>(t) : -1;
    executor_.upload_batch("micro_first");
    executor_.run("micro_first");
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
  EXPECT_EQ(job.backend().runs[Kind::add], 6)
      << "each of three: once one by one, once for the recording";
}

}  // namespace
}  // namespace snug::testing
