// The CUDA backend on the emulated device of cuda_emulator/: what the emulator itself must catch,
// then every kind against the reference in fp64 (operation_check.h).
#include <gtest/gtest.h>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"
#include "operation_check.h"

namespace snug::backends::test {
namespace {

constexpr uint32_t kThreads = 64;

// Each thread gives a value to its neighbour through shared memory; every second block runs its
// threads backwards, so without the barrier half of the neighbours have not given yet.
__global__ void pass_on(bool with_barrier, int* received) {
  int* given = cuda::shared_memory<int>();
  given[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  received[blockIdx.x * kThreads + threadIdx.x] = given[(threadIdx.x + 1) % kThreads];
}

int wrong_values(bool with_barrier) {
  constexpr uint32_t kBlocks = 2;
  std::vector<int> received(kBlocks * kThreads);
  const cuda::LaunchShape shape{{kBlocks, 1, 1}, {kThreads, 1, 1}, kThreads * sizeof(int)};
  cuda::launch(pass_on, shape, nullptr, with_barrier, received.data());
  int wrong = 0;
  for (uint32_t i = 0; i < received.size(); ++i)
    wrong += received[i] == static_cast<int>((i + 1) % kThreads) ? 0 : 1;
  return wrong;
}

TEST(EmulatedDevice, shows_a_missing_barrier) {
  EXPECT_EQ(wrong_values(true), 0);
  EXPECT_GE(wrong_values(false), static_cast<int>(kThreads));
}

__global__ void half_reaches_the_barrier() {
  if (threadIdx.x < kThreads / 2) __syncthreads();
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

__global__ void writes_beyond_shared_memory() { cuda::shared_memory<int>()[kThreads] = 1; }

__global__ void ends_with_a_copy_under_way(const uint16_t* from) {
  cuda::begin_copy(cuda::shared_memory<uint16_t>(), from, false);
}

// Each thread copies 16 bytes and shows the first two, after waiting for them or not.
__global__ void copies(bool with_wait, const uint16_t* from, uint16_t* seen) {
  uint16_t* to = cuda::shared_memory<uint16_t>() + 8 * threadIdx.x;
  cuda::begin_copy(to, from, false);
  cuda::end_batch();
  if (with_wait) cuda::wait_for_batches<0>();
  seen[threadIdx.x] = *to;
  cuda::wait_for_batches<0>();
}

__global__ void loads_a_crooked_vector(const float* from) { cuda::load_vector(from + 1); }

TEST(EmulatedDevice, aborts_where_hardware_would_hang_or_fail) {
  cuda::LaunchShape shape;
  shape.block.x = kThreads;
  shape.shared_bytes = kThreads * sizeof(int);
  const auto run = [&](auto kernel, auto... arguments) {
    cuda::launch(kernel, shape, nullptr, arguments...);
  };
  EXPECT_DEATH(run(half_reaches_the_barrier), "others never reach");
  EXPECT_DEATH(run(half_a_warp_votes), "others never reach");
  EXPECT_DEATH(run(lanes_meet_in_unlike_operations), "unlike operations");
  EXPECT_DEATH(run(writes_beyond_shared_memory), "beyond the block's shared memory");
  alignas(16) const float values[8] = {};
  alignas(16) const uint16_t words[8] = {};
  EXPECT_DEATH(run(ends_with_a_copy_under_way, &words[0]), "copies under way");
  EXPECT_DEATH(run(loads_a_crooked_vector, &values[0]), "no multiple of 16");
}

TEST(EmulatedDevice, shows_a_copy_that_is_not_waited_for) {
  alignas(16) const uint16_t words[8] = {7};
  const cuda::LaunchShape shape{{1, 1, 1}, {kThreads, 1, 1}, kThreads * sizeof(words)};
  for (const bool with_wait : {true, false}) {
    std::vector<uint16_t> seen(kThreads);
    cuda::launch(copies, shape, nullptr, with_wait, &words[0], seen.data());
    for (const uint16_t word : seen) EXPECT_EQ(word == 7, with_wait);
  }
}

class CudaEmulator : public testing::TestWithParam<program::Kind> {};

TEST_P(CudaEmulator, agrees_with_fp64) {
  cuda::CudaBackend backend({});
  check_kind(backend, GetParam(), cuda_must_run, true);
}

INSTANTIATE_TEST_SUITE_P(, CudaEmulator, testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
