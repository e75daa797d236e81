// The CUDA backend on a real card: every kind against the reference in fp64 (operation_check.h).
#include <gtest/gtest.h>

#include "backends/open_cuda.h"
#include "base/error.h"
#include "operation_check.h"

namespace snug::backends::test {
namespace {

class CudaDevice : public testing::TestWithParam<program::Kind> {};

TEST_P(CudaDevice, agrees_with_fp64) {
  if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
  const auto backend = open_backend("cuda", {});
  check_kind(*backend, GetParam(), cuda_must_run);
}

INSTANTIATE_TEST_SUITE_P(, CudaDevice, testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

TEST(CudaWithoutDevice, is_an_error_that_names_the_way_out) {
  if (has_cuda_device()) GTEST_SKIP() << "there is a device";
  try {
    open_backend("cuda", {});
    FAIL() << "opened";
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("backend: cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace snug::backends::test
