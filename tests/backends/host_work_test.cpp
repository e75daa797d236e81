// Operations that a card's host does: what goes wrong there reaches whoever waits for the device.
#include "backends/cuda/host_work.h"

#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"
#include "operation_case.h"

namespace snug::backends::test {
namespace {

// Fails in the run with this number.
class FailingHost final : public cpu::CpuBackend {
 public:
  explicit FailingHost(int failing_run) : CpuBackend({.threads = 1}), failing_run_(failing_run) {}
  void run(const Invocation& invocation) override {
    if (++runs_ == failing_run_) base::throw_user_error("run {} fails", runs_);
    CpuBackend::run(invocation);
  }

 private:
  const int failing_run_;
  int runs_ = 0;
};

// A step of AdamW on 64 weights, all in memory of the host.
class Update {
 public:
  Update() {
    program::Builder builder("update");
    const auto tensor = [&](const char* name, int64_t elements, program::DType dtype) {
      memory_.emplace_back(static_cast<size_t>(elements));
      buffers_.push_back({reinterpret_cast<std::byte*>(memory_.back().data()),
                          dtype,
                          {elements},
                          program::dense_strides({elements})});
      return builder.activation(name, {elements}, dtype);
    };
    using program::DType;
    const auto gradient = tensor("gradient", 64, DType::f32);
    const auto factor = tensor("factor", 1, DType::f32);
    const auto rate = tensor("learning_rate", 1, DType::f32);
    const auto step = tensor("step", 1, DType::i32);
    const auto weight = tensor("weight", 64, DType::f32);
    const auto first = tensor("first_moment", 64, DType::f32);
    const auto second = tensor("second_moment", 64, DType::f32);
    memory_[0].assign(64, 1.0F);
    memory_[1] = memory_[2] = {1.0F};
    memory_[3] = {std::bit_cast<float>(1)};
    builder.emit(program::AdamW{.beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F},
                 {gradient, factor, rate, step}, {}, {weight, first, second});
    program_ = builder.take();
    program_.operations[0].on_host = true;
    program_.operations[0].channel = program::Channel::host;
  }

  program::OperationView view() const { return {program_, program_.operations[0]}; }
  Invocation invocation() const {
    const std::span<const Buffer> all(buffers_);
    Invocation invocation;
    invocation.attributes = &program_.operations[0].attributes;
    invocation.reads = all.first(4);
    invocation.updates = all.subspan(4);
    invocation.on_host = true;
    invocation.channel = program::Channel::host;
    return invocation;
  }
  float weight() const { return memory_[4][0]; }

 private:
  program::Program program_;
  std::vector<std::vector<float>> memory_;
  std::vector<Buffer> buffers_;
};

TEST(HostWork, WhatFailsThereIsThrownWhereTheDeviceIsWaitedFor) {
  cuda::CudaBackend card({.make_host = [] { return std::make_unique<FailingHost>(2); }});
  const Update update;
  const auto prepared = card.prepare(update.view());
  Invocation invocation = update.invocation();
  invocation.prepared = prepared.get();
  card.run(invocation);
  card.synchronise();
  const float after_one = update.weight();
  EXPECT_LT(after_one, 0.0F);
  card.run(invocation);
  EXPECT_THROW(card.synchronise(), base::UserError);
  EXPECT_EQ(update.weight(), after_one);
  card.run(invocation);
  card.synchronise();
  EXPECT_LT(update.weight(), after_one);
}

TEST(HostWork, NeedsABackendOfTheHost) {
  cuda::CudaBackend card({});
  const Update update;
  EXPECT_TRUE(testing::dies([&] { (void)card.prepare(update.view()); }, "no backend for it"));
}

}  // namespace
}  // namespace snug::backends::test
