// The CUDA backend on the emulated device of cuda_emulator/: its parts, then every kind against the
// reference in fp64 (operation_check.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "../base/captured_stream.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/device.cuh"
#include "backends/cuda/device/graph.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/device/side_copies.h"
#include "backends/cuda/device/stream.h"
#include "backends/cuda/loss/kernels/cross_entropy.h"
#include "base/error.h"
#include "block_fibers.h"
#include "operation_check.h"
#include "program/work/graph_memory.h"
#include "refusals.h"
#include "refusals_check.h"
#include "transfers_check.h"
#include "weights_check.h"

namespace snug::backends::test {
namespace {

using testing::dies;

// More tokens than the block that lists them has threads, which no case of the tables has.
TEST(CrossEntropyKernels, list_the_rows_that_carry_loss_in_order) {
  constexpr int32_t kTokens = 3000;
  std::vector<int32_t> targets(kTokens);
  std::vector<int32_t> expected;
  Random random(test_seed());
  for (int32_t t = 0; t < kTokens; ++t) {
    targets[static_cast<size_t>(t)] = random() % 3 == 0 ? -100 : t % 17;
    if (targets[static_cast<size_t>(t)] >= 0) expected.push_back(t);
  }
  for (int repeat = 0; repeat < 2; ++repeat) {  // blocks in both orders
    std::vector<int32_t> numbers(kTokens);
    std::vector<float> losses(kTokens, 1.0F);
    std::vector<float> hits(kTokens, 1.0F);
    int32_t count = 0;
    cuda::find_trained_rows(
        {targets.data(), kTokens, numbers.data(), &count, losses.data(), hits.data(), kTokens},
        nullptr);
    numbers.resize(static_cast<size_t>(count));
    EXPECT_EQ(numbers, expected);
    for (size_t t = 0; t < losses.size(); ++t) EXPECT_EQ(losses[t], targets[t] >= 0 ? 1.0F : 0.0F);
    EXPECT_EQ(hits, losses);
  }
}

__global__ void increment(int* value) { ++*value; }

TEST(CudaGraph, repeats_what_was_recorded_which_did_not_run_meanwhile) {
  int value = 0;
  const cuda::Stream stream;
  const auto wait = [&] { CUDA_CHECK(cudaStreamSynchronize(stream.get())); };
  const auto graph =
      cuda::record_graph([&] { cuda::launch(increment, {}, stream.get(), &value); }, stream.get());
  wait();
  EXPECT_EQ(value, 0);
  graph->replay();
  graph->replay();
  EXPECT_EQ(value, 0) << "the stream did not do its work at the last moment";
  wait();
  EXPECT_EQ(value, 2);
  cuda::launch(increment, {}, stream.get(), &value);
  wait();
  EXPECT_EQ(value, 3);
  EXPECT_TRUE(dies([&] { cuda::record_graph(wait, stream.get()); }, "cudaStreamSynchronize"));
}

// A copy that nobody awaits is not there, and a recording that leaves one out is refused.
TEST(EmulatedDevice, shows_a_side_copy_that_is_not_awaited) {
  const cuda::Stream stream;
  cuda::SideCopies copies;
  copies.prepare();
  const int from = 7;
  int to = 0;
  const auto begin = [&] {
    copies.begin(program::Channel::device_to_host, {&to, &from, sizeof(to)}, stream.get());
  };
  begin();
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(to, 0);
  copies.await(&to, stream.get());
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(to, 7);
  EXPECT_TRUE(dies([&] { cuda::record_graph(begin, stream.get()); }, "cudaStreamEndCapture"));
  EXPECT_TRUE(dies([&] { copies.await(&from, stream.get()); }, "was not begun"));
}

// An earlier run's copy is not the one that is awaited; another stream may wait for the same.
TEST(EmulatedDevice, shows_an_await_without_a_copy_of_its_own) {
  const cuda::Stream stream;
  const cuda::Stream other;
  cuda::SideCopies copies;
  copies.prepare();
  const int from = 7;
  int to = 0;
  for (int run = 0; run < 2; ++run) {
    copies.begin(program::Channel::device_to_host, {&to, &from, sizeof(to)}, stream.get());
    copies.await(&to, stream.get());
    copies.await(&to, other.get());
  }
  EXPECT_TRUE(dies([&] { copies.await(&to, stream.get()); }, "was not begun again"));
  EXPECT_TRUE(dies([&] { copies.await(&to, other.get()); }, "was not begun again"));
}

// Of two copies under way, in one direction or in both, the one that is named is waited for.
TEST(EmulatedDevice, awaits_the_copy_that_is_named) {
  using program::Channel;
  for (const Channel second : {Channel::host_to_device, Channel::device_to_host}) {
    const cuda::Stream stream;
    cuda::SideCopies copies;
    for (int copy = 0; copy < 2; ++copy) copies.prepare();
    const int from = 7;
    int first_to = 0;
    int second_to = 0;
    copies.begin(Channel::host_to_device, {&first_to, &from, sizeof(from)}, stream.get());
    copies.begin(second, {&second_to, &from, sizeof(from)}, stream.get());
    copies.await(&first_to, stream.get());
    CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    EXPECT_EQ(first_to, 7);
    EXPECT_EQ(second_to, 0) << "the device had time for the other one too, but nobody asked";
    copies.await(&second_to, stream.get());
    CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    EXPECT_EQ(second_to, 7);
  }
}

// What does not wait for the work of another stream reads what was there before.
TEST(EmulatedDevice, shows_a_side_copy_that_begins_too_early) {
  for (const bool waits : {true, false}) {
    int value = 0;
    int copy = -1;
    const cuda::Stream work;
    const cuda::Stream copies;
    cudaEvent_t reached = nullptr;
    CUDA_CHECK(cudaEventCreate(&reached));
    cuda::launch(increment, {}, work.get(), &value);
    CUDA_CHECK(cudaEventRecord(reached, work.get()));
    if (waits) CUDA_CHECK(cudaStreamWaitEvent(copies.get(), reached, 0));
    CUDA_CHECK(cudaMemcpyAsync(&copy, &value, sizeof(copy), cudaMemcpyDefault, copies.get()));
    EXPECT_EQ(copy, waits ? -1 : 0);
    CUDA_CHECK(cudaStreamSynchronize(copies.get()));
    EXPECT_EQ(copy, waits ? 1 : 0);
    CUDA_CHECK(cudaEventDestroy(reached));
  }
}

TEST(CudaBackend, copies_next_to_its_work_also_in_a_graph) {
  cuda::CudaBackend backend({});
  check_transfers(backend);
}

TEST(CudaBackend, refuses_what_it_does_not_do_before_anything_runs) {
  cuda::CudaBackend backend({});
  check_refused_types(backend);
  check_refused_tensors(backend);
  check_refused_decisions(backend);
}

TEST(CudaGraph, is_an_error_where_the_device_has_no_memory_for_it) {
  int value = 0;
  const cuda::Stream stream;
  const auto operations = [&] { cuda::launch(increment, {}, stream.get(), &value); };
  cuda_emulator::refuses_graphs = true;
  const snug::testing::CapturedStream said(stderr);
  EXPECT_THROW(cuda::record_graph(operations, stream.get()), base::UserError);
  cuda_emulator::refuses_graphs = false;
  EXPECT_EQ(said.text(), "") << "it goes on without a graph";
  // The stream goes on, and no error is left for the next call.
  operations();
  CUDA_CHECK(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(value, 1);
}

// What is waited for is done, what was queued after it is not.
TEST(CudaEvents, waits_for_a_point_and_no_further) {
  int value = 0;
  const cuda::Stream stream;
  cuda::CudaEvents events(2, stream.get());
  events.wait(0);
  for (const size_t point : {0, 1}) {
    cuda::launch(increment, {}, stream.get(), &value);
    events.mark(point);
  }
  events.wait(0);
  EXPECT_EQ(value, 1);
  EXPECT_GT(events.seconds(0, 1), 0);
  EXPECT_EQ(value, 2);
}

TEST(CudaBackend, names_the_build_that_a_card_needs) {
  cuda_emulator::has_other_kernels = true;
  std::string message;
  try {
    cuda::CudaBackend backend({});
  } catch (const base::UserError& error) {
    message = error.what();
  }
  cuda_emulator::has_other_kernels = false;
  EXPECT_NE(message.find("make build SNUG_CUDA_ARCHS=90a"), std::string::npos) << message;
}

TEST(CudaGraph, is_left_out_on_demand) {
  const char* const variable = "SNUG_CUDA_GRAPHS";
  const auto nothing = [] {};
  EXPECT_NE(cuda::CudaBackend({}).record(nothing), nullptr);
  setenv(variable, "off", 1);
  EXPECT_EQ(cuda::CudaBackend({}).record(nothing), nullptr);
  setenv(variable, "no", 1);
  EXPECT_THROW(cuda::CudaBackend({}), base::UserError);
  unsetenv(variable);
}

// Before the first step, and not when they are recorded.
TEST(CudaGraph, are_refused_where_the_card_has_no_memory_for_all) {
  cuda::CudaBackend backend({});
  const int64_t free = backend.device()->memory_bytes - backend.device()->outside_bytes;
  const int64_t most = free / program::kGraphBytesPerLaunch;
  EXPECT_GT(most, 0);
  backend.expect_recordings(most);
  EXPECT_THROW(backend.expect_recordings(most + 1), base::UserError);
  setenv("SNUG_CUDA_GRAPHS", "off", 1);
  cuda::CudaBackend({}).expect_recordings(most + 1);
  unsetenv("SNUG_CUDA_GRAPHS");
}

// The emulated card has 4 GiB and no context.
TEST(CudaBackend, says_what_of_the_card_lies_outside_its_arenas) {
  constexpr int64_t kBytes = 1 << 20;
  const cuda::CudaBackend backend({});
  // A backend's counters of blocks that have ended.
  const int64_t before = backend.device()->outside_bytes;
  EXPECT_GT(before, 0);
  EXPECT_EQ(backend.device()->memory_bytes, int64_t{1} << 32);
  EXPECT_EQ(backend.device()->reserved_bytes, cuda::kLateBytes);
  EXPECT_EQ(backend.capacity_bytes(program::Space::device), backend.device()->arena_bytes());
  {
    cuda::CudaBackend other({.threads = 0, .device_memory_bytes = 3 * kBytes});
    EXPECT_EQ(other.capacity_bytes(program::Space::device), 3 * kBytes);
    const auto arena = other.allocate(program::Space::device, kBytes);
    EXPECT_EQ(other.device()->outside_bytes, 2 * before);
    EXPECT_EQ(other.device()->reserved_bytes, 0);
  }
  EXPECT_EQ(backend.device()->outside_bytes, before);
  EXPECT_EQ(backend.device()->reserved_bytes, cuda::kLateBytes);
}

TEST(CudaBackend, makes_the_values_of_weights_bit_for_bit) {
  cuda::CudaBackend backend({});
  check_fill(backend);
}

TEST(CudaBackend, quantises_weights_bit_for_bit) {
  cuda::CudaBackend backend({});
  check_quantize_nf4(backend);
}

TEST(CudaBackend, steps_many_tensors_in_one_launch) {
  cuda::CudaBackend backend({});
  uint64_t launches = 0;
  check_list_of_steps(
      backend, [&] { launches = cuda_emulator::launches(); },
      [&] { launches = cuda_emulator::launches() - launches; });
  EXPECT_EQ(static_cast<int64_t>(launches), launches_of_steps());
}

// On a card whose blocks have the least shared memory, which all kernels must do with.
class CudaEmulator : public ::testing::TestWithParam<program::Kind> {
 protected:
  void SetUp() override { cuda_emulator::most_shared_bytes = cuda::kLeastSharedBytes; }
  void TearDown() override {
    cuda_emulator::most_shared_bytes = cuda_emulator::kLargestSharedBytes;
  }
};

TEST_P(CudaEmulator, agrees_with_fp64) {
  setenv("SNUG_CUDA_TIMING", "off", 1);  // cuda_products_test has it on
  cuda::CudaBackend backend({});
  unsetenv("SNUG_CUDA_TIMING");
  check_kind(backend, GetParam(), cuda_must_run, true);
}

INSTANTIATE_TEST_SUITE_P(, CudaEmulator, ::testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
