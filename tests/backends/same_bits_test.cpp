// What gives the same bits on a card and on its host: updates of weights, and choices, which round
// nothing. SNUG_ISA selects the path of the cpu backend.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/reference/reference_backend.h"
#include "weights_check.h"

namespace snug::backends::test {
namespace {

TEST(Updates, HaveTheSameBitsOnACardAndOnItsHost) {
  cuda::CudaBackend card({});
  cpu::CpuBackend host({.threads = 2});
  check_same_bits(card, host, kUpdates);
}

TEST(TopK, FindsWhatTheReferenceFinds) {
  reference::ReferenceBackend reference({});
  cuda::CudaBackend card({});
  cpu::CpuBackend host({.threads = 2});
  check_same_bits(card, reference, {program::Kind::top_k});
  check_same_bits(host, reference, {program::Kind::top_k});
}

}  // namespace
}  // namespace snug::backends::test
