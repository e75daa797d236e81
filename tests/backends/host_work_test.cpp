// Operations that a card's host does: what goes wrong there reaches whoever waits for the device.
#include "backends/cuda/device/host_work.h"

#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"
#include "block_fibers.h"
#include "operation_case.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/optimizer/optimizer.h"

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
    for (program::Tensor& each : program_.tensors) each.space = program::Space::pinned_host;
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
  std::byte* weights() const { return buffers_[4].data; }

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

// y = 2 x, on the card, of 64 numbers.
class Doubling {
 public:
  Doubling(cuda::CudaBackend& card, std::byte* x, std::byte* y) {
    program::Builder builder("doubling");
    const auto id = builder.activation("x", {1, 64}, program::DType::f32);
    const auto to = builder.activation("y", {1, 64}, program::DType::f32);
    builder.emit(program::Scale{2.0F}, {id}, {to});
    program_ = builder.take();
    program_.operations[0].launches = card.launches({program_, program_.operations[0]});
    for (std::byte* data : {x, y})
      buffers_.push_back({data, program::DType::f32, {1, 64}, program::dense_strides({1, 64})});
    prepared_ = card.prepare({program_, program_.operations[0]});
  }
  Invocation invocation() const {
    const std::span<const Buffer> all(buffers_);
    Invocation invocation;
    invocation.attributes = &program_.operations[0].attributes;
    invocation.reads = all.first(1);
    invocation.writes = all.subspan(1);
    invocation.prepared = prepared_.get();
    return invocation;
  }

 private:
  program::Program program_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Prepared> prepared_;
};

// The emulated host works at the last moment, and the emulated card, of which this other stream is
// the first, at the first that it has.
TEST(HostWork, IsWaitedForByWhatSharesItsBytesAlone) {
  const cuda::Stream first;
  cuda::CudaBackend card({.make_host = [] { return std::make_unique<FailingHost>(0); }});
  const auto memory = card.allocate(program::Space::device, 3 * 256);
  const Update update;
  const auto prepared = card.prepare(update.view());
  Invocation work = update.invocation();
  work.prepared = prepared.get();
  const Doubling apart(card, memory->data(), memory->data() + 256);
  const Doubling after(card, update.weights(), memory->data() + 512);
  for (const bool is_recorded : {false, true}) {
    std::unique_ptr<Recording> of_apart;
    std::unique_ptr<Recording> of_after;
    if (is_recorded) {
      of_apart = card.record([&] { card.run(apart.invocation()); });
      of_after = card.record([&] { card.run(after.invocation()); });
    }
    const float before = update.weight();
    const uint64_t launches = cuda_emulator::launches();
    Trace trace;
    work.trace = &trace;
    card.run(work);
    EXPECT_EQ(trace.channel, program::Channel::host);
    is_recorded ? of_apart->replay() : card.run(apart.invocation());
    EXPECT_EQ(cuda_emulator::launches() - launches, 1U) << "it waits for the host";
    EXPECT_EQ(update.weight(), before) << "the host has worked at once";
    is_recorded ? of_after->replay() : card.run(after.invocation());
    EXPECT_EQ(cuda_emulator::launches() - launches, 1U) << "it does not wait for the host";
    card.synchronise();
    EXPECT_EQ(cuda_emulator::launches() - launches, 2U);
    EXPECT_LT(update.weight(), before);
    float doubled = 0;
    card.copy(&doubled, memory->data() + 512, sizeof doubled);
    EXPECT_EQ(doubled, 2 * update.weight());
  }
}

// A point that is marked after it is reached when the host is done.
TEST(HostWork, IsAmongWhatAPointWaitsFor) {
  cuda::CudaBackend card({.make_host = [] { return std::make_unique<FailingHost>(0); }});
  const Update update;
  const auto prepared = card.prepare(update.view());
  Invocation work = update.invocation();
  work.prepared = prepared.get();
  const auto points = card.events(1);
  card.run(work);
  points->mark(0);
  points->wait(0);
  EXPECT_LT(update.weight(), 0.0F);
}

TEST(HostWork, NeedsABackendOfTheHost) {
  cuda::CudaBackend card({});
  const Update update;
  EXPECT_TRUE(testing::dies([&] { (void)card.prepare(update.view()); }, "no backend for it"));
}

}  // namespace
}  // namespace snug::backends::test
