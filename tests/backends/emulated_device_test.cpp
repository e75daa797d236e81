// What the emulated device of cuda_emulator/ must catch of a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../base/captured_stream.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kernels/warp_matrix.cuh"
#include "block_fibers.h"
#include "device_arrays.h"
#include "unfinished_writes.h"

namespace snug::backends::test {
namespace {

using testing::dies;

constexpr uint32_t kBlockThreads = 64;

// Each thread gives a value to its neighbour through shared memory; every second block runs its
// threads backwards, so without the barrier many neighbours have not given yet.
__global__ void pass_on(bool with_barrier, int* received) {
  int* given = cuda::shared_memory<int>();
  given[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  received[blockIdx.x * kBlockThreads + threadIdx.x] = given[(threadIdx.x + 1) % kBlockThreads];
}

int wrong_values(bool with_barrier) {
  constexpr uint32_t kBlocks = 2;
  std::vector<int> received(kBlocks * kBlockThreads);
  const cuda::LaunchShape shape{
      {kBlocks, 1, 1}, {kBlockThreads, 1, 1}, kBlockThreads * sizeof(int)};
  cuda::launch(pass_on, shape, nullptr, with_barrier, received.data());
  int wrong = 0;
  for (uint32_t i = 0; i < received.size(); ++i)
    wrong += received[i] == static_cast<int>((i + 1) % kBlockThreads) ? 0 : 1;
  return wrong;
}

TEST(EmulatedDevice, shows_a_missing_barrier) {
  EXPECT_EQ(wrong_values(true), 0);
  EXPECT_GE(wrong_values(false), static_cast<int>(kBlockThreads));
}

__global__ void half_reaches_the_barrier() {
  if (threadIdx.x < kBlockThreads / 2) __syncthreads();
}

__global__ void half_a_warp_votes() {
  if (threadIdx.x % 32 < 16) __ballot_sync(0xffffffffU, true);
}

__global__ void lanes_meet_in_unlike_operations() {
  if (threadIdx.x % 32 < 16)
    __ballot_sync(0xffffffffU, true);
  else
    __shfl_xor_sync(0xffffffffU, 1.0F, 1);
}

__global__ void writes_beyond_shared_memory() { cuda::shared_memory<int>()[kBlockThreads] = 1; }

__global__ void ends_with_a_copy_under_way(const uint16_t* from) {
  cuda::begin_copy(cuda::shared_memory<uint16_t>(), from, false);
}

// Each thread copies 16 bytes and shows the first two, after waiting for them or not: in one of two
// blocks the copy is late.
__global__ void copies(bool with_wait, const uint16_t* from, uint16_t* seen) {
  uint16_t* to = cuda::shared_memory<uint16_t>() + 8 * threadIdx.x;
  cuda::begin_copy(to, from, false);
  cuda::end_batch();
  if (with_wait) cuda::wait_for_batches<0>();
  seen[blockIdx.x * kBlockThreads + threadIdx.x] = *to;
  cuda::wait_for_batches<0>();
}

__global__ void does_nothing() {}

__global__ void loads_a_crooked_vector(const float* from) { cuda::load_vector(from + 1); }

// Rows of 8 elements, from one to the next `stride` elements, of which each lane gives one.
__global__ void loads_matrices(int first, int stride, bool transposed, uint32_t* loaded) {
  auto* elements = cuda::shared_memory<uint16_t>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8; ++i)
    elements[first + lane * stride + i] = static_cast<uint16_t>(8 * lane + i);
  __syncwarp();
  uint32_t pairs[4];
  if (transposed)
    cuda::load_transposed(pairs, elements + first + lane * stride);
  else
    cuda::load_matrices(pairs, elements + first + lane * stride);
  for (int m = 0; m < 4; ++m) loaded[4 * lane + m] = pairs[m];
}

constexpr cuda::LaunchShape kOneWarp{{1, 1, 1}, {32, 1, 1}, 32 * 40 * sizeof(uint16_t)};

TEST(EmulatedDevice, loads_matrices_as_lanes_hold_them) {
  for (const bool transposed : {false, true}) {
    std::vector<uint32_t> loaded(128);
    cuda::launch(loads_matrices, kOneWarp, nullptr, 0, 8, transposed, loaded.data());
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t m = 0; m < 4; ++m) {
        const uint32_t g = lane / 4;
        const uint32_t t = lane % 4;
        const uint32_t low = 64 * m + (transposed ? 16 * t + g : 8 * g + 2 * t);
        EXPECT_EQ(loaded[4 * lane + m], low | (low + (transposed ? 8 : 1)) << 16);
      }
  }
}

TEST(EmulatedDevice, aborts_where_matrices_would_fault_or_be_slow) {
  for (const bool transposed : {false, true}) {
    const auto load = [&](int first, int stride) {
      uint32_t loaded[128];
      cuda::launch(loads_matrices, kOneWarp, nullptr, first, stride, transposed, &loaded[0]);
    };
    load(0, 40);  // rows of 32 with 8 to spare
    EXPECT_TRUE(dies([&] { load(4, 8); }, "no multiple of 16"));
    EXPECT_TRUE(dies([&] { load(0, 32); }, "in the same banks"));
    EXPECT_TRUE(dies([&] { load(40, 40); }, "outside the block's shared memory"));
  }
}

__global__ void begins_a_crooked_copy(const uint16_t* from) {
  cuda::begin_copy(cuda::shared_memory<uint16_t>(), from + 1, false);
}

__global__ void begins_a_crooked_value_copy(const float* from) {
  const auto* value = reinterpret_cast<const cuda::TokenRange*>(from + 1);
  cuda::begin_value_copy(cuda::shared_memory<cuda::TokenRange>(), value, false);
}

TEST(EmulatedDevice, aborts_where_hardware_would_hang_or_fail) {
  cuda::LaunchShape shape;
  shape.grid.x = 2;  // copies are late in one of them
  shape.block.x = kBlockThreads;
  shape.shared_bytes = kBlockThreads * sizeof(int);
  const auto run = [&](auto kernel, auto... arguments) {
    cuda::launch(kernel, shape, nullptr, arguments...);
  };
  EXPECT_TRUE(dies([&] { run(half_reaches_the_barrier); }, "others never reach"));
  EXPECT_TRUE(dies([&] { run(half_a_warp_votes); }, "others never reach"));
  EXPECT_TRUE(dies([&] { run(lanes_meet_in_unlike_operations); }, "unlike operations"));
  EXPECT_TRUE(dies([&] { run(writes_beyond_shared_memory); }, "beyond the block's shared memory"));
  alignas(16) const float values[8] = {};
  alignas(16) const uint16_t words[8] = {};
  EXPECT_TRUE(dies([&] { run(ends_with_a_copy_under_way, &words[0]); }, "copies under way"));
  EXPECT_TRUE(dies([&] { run(begins_a_crooked_copy, &words[0]); }, "no multiples of 16"));
  EXPECT_TRUE(dies([&] { run(begins_a_crooked_value_copy, &values[0]); }, "multiples of its size"));
  EXPECT_TRUE(dies([&] { run(loads_a_crooked_vector, &values[0]); }, "no multiple of 16"));
}

// Half of its threads do not wait for the kernels before.
__global__ void half_waits() {
  if (threadIdx.x % 2 == 0) cuda::wait_for_kernels_before();
}

TEST(EmulatedDevice, shows_a_kernel_that_begins_early_and_does_not_wait) {
  cuda::LaunchShape shape{{1, 1, 1}, {kBlockThreads, 1, 1}};
  cuda::launch(half_waits, shape, nullptr);
  shape.begins_early = true;
  EXPECT_TRUE(dies([&] { cuda::launch(half_waits, shape, nullptr); }, "did not wait in every"));
}

// Lets the next kernel begin, before it waits or after, and writes ones.
__global__ void writes_ones(bool waits_first, float* to) {
  if (waits_first) cuda::wait_for_kernels_before();
  cuda::let_next_kernel_begin();
  cuda::wait_for_kernels_before();
  to[threadIdx.x] = 1.0F;
}

__global__ void copies_early(bool waits_first, const float* from, float* to) {
  if (waits_first) cuda::wait_for_kernels_before();
  const float value = from[threadIdx.x];
  cuda::wait_for_kernels_before();
  to[threadIdx.x] = value;
}

__global__ void writes_early(float* to) {
  to[threadIdx.x] = 1.0F;
  cuda::wait_for_kernels_before();
}

class EarlyKernels : public ::testing::Test {
 protected:
  // What a kernel copies of what another has written, with a third between them.
  float copied(bool copier_waits, bool middle_waits, bool is_from_middle) {
    DeviceArray<float> first(backend_, kBlockThreads);
    DeviceArray<float> second(backend_, kBlockThreads);
    DeviceArray<float> copy(backend_, kBlockThreads);
    cuda::launch(writes_ones, shape_, nullptr, true, first.data());
    cuda::launch(writes_ones, shape_, nullptr, middle_waits, second.data());
    cuda::launch(copies_early, shape_, nullptr, copier_waits,
                 is_from_middle ? second.data() : first.data(), copy.data());
    return copy.values().back();
  }

  cuda_emulator::UnfinishedWritesHidden hidden_;
  cuda::CudaBackend backend_{{}};
  cuda::LaunchShape shape_{{1, 1, 1}, {kBlockThreads, 1, 1}, 0, true};
};

TEST_F(EarlyKernels, see_nothing_of_what_may_still_be_written) {
  for (const bool middle_waits : {false, true})
    for (const bool is_from_middle : {false, true}) {
      EXPECT_EQ(copied(true, middle_waits, is_from_middle), 1.0F);
      // What the first wrote is there if the second has waited for it before the third begins.
      const bool is_there = middle_waits && !is_from_middle;
      EXPECT_EQ(std::isnan(copied(false, middle_waits, is_from_middle)), !is_there);
    }
}

TEST_F(EarlyKernels, write_nothing_before_they_wait) {
  DeviceArray<float> array(backend_, kBlockThreads);
  EXPECT_TRUE(dies([&] { cuda::launch(writes_early, shape_, nullptr, array.data()); },
                   "wrote before it waited"));
}

TEST(EmulatedDevice, has_the_limits_of_a_grid) {
  const cuda_emulator::OnlyEnds few(1);
  const auto run = [](const cuda::Extent3& grid) {
    cuda::launch(does_nothing, {.grid = grid, .block = {}}, nullptr);
  };
  constexpr uint32_t kMaxX = 0x7fffffff;
  run({kMaxX, cuda::kMaxGridY, cuda::kMaxGridY});
  EXPECT_TRUE(dies([&] { run({kMaxX + 1, 1, 1}); }, "2147483647 blocks in x"));
  EXPECT_TRUE(dies([&] { run({1, cuda::kMaxGridY + 1, 1}); }, "65535 blocks in y or z"));
  EXPECT_TRUE(dies([&] { run({1, 1, cuda::kMaxGridY + 1}); }, "65535 blocks in y or z"));
  EXPECT_TRUE(dies([&] { run({1, 0, 1}); }, "without blocks"));
}

TEST(EmulatedDevice, shows_a_copy_that_is_not_waited_for) {
  alignas(16) const uint16_t words[8] = {7};
  const cuda::LaunchShape shape{{2, 1, 1}, {kBlockThreads, 1, 1}, kBlockThreads * sizeof(words)};
  for (const bool with_wait : {true, false}) {
    std::vector<uint16_t> seen(2 * kBlockThreads);
    cuda::launch(copies, shape, nullptr, with_wait, &words[0], seen.data());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 7),
              with_wait ? 2 * kBlockThreads : kBlockThreads);
  }
}

// What block_sum's first barrier is for.
__global__ void sums_of_sums(float* sums) {
  for (int i = 0; i < 2; ++i) {
    const float value = static_cast<float>(i + 1);
    sums[(blockIdx.x * kBlockThreads + threadIdx.x) * 2 + static_cast<unsigned>(i)] =
        cuda::block_sum(value);
  }
}

TEST(EmulatedDevice, sums_may_follow_each_other) {
  std::vector<float> sums(2 * 2 * kBlockThreads);
  const cuda::LaunchShape shape{{2, 1, 1}, {kBlockThreads, 1, 1}};
  cuda::launch(sums_of_sums, shape, nullptr, sums.data());
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(sums[i], static_cast<float>(kBlockThreads * (i % 2 + 1)));
}

}  // namespace
}  // namespace snug::backends::test
