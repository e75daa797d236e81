// The CUDA backend on the emulated device of cuda_emulator/: every kind against the reference in
// fp64 (operation_check.h), and what the emulator itself must catch.
#include <gtest/gtest.h>

#include "backends/cuda/cuda_backend.h"
#include "operation_check.h"

namespace snug::backends::test {
namespace {

class CudaEmulator : public testing::TestWithParam<program::Kind> {};

TEST_P(CudaEmulator, agrees_with_fp64) {
  cuda::CudaBackend backend({});
  check_kind(backend, GetParam(), cuda_must_run);
}

INSTANTIATE_TEST_SUITE_P(, CudaEmulator, testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
