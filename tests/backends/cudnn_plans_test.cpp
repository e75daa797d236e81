// Attention by cuDNN as cuDNN itself sees it: for cards that are described to the library and not
// here, with a driver that is idle, it takes every graph, compiles its kernels, and asks for no
// more scratch than is planned. What the kernels compute only a card can tell (cuda_device_test).
#include <gtest/gtest.h>

#include "backends/cuda/cudnn_library.h"
#include "backends/cuda/hardware_table.h"
#include "backends/cuda/needs/attention.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

// As cuDNN writes the properties of a card.
std::string properties_of(const HardwareRow& row) {
  return fmt::format(
      R"({{"deviceName": "{}", "cudaDeviceId": 0, "deviceVer": {}, "multiProcessorCount": {},
          "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
          "regsPerBlock": 65536, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
          "l2CacheSize": 52428800, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
          "maxSharedMemoryPerBlockOptin": {}, "reservedSharedMemoryPerBlock": 1024,
          "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32,
          "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0,
          "supportCoopLaunch": 1, "driverVer": 13000, "totalGlobalMem": 85000000000}})",
      row.driver_name, 10 * row.compute_capability, row.multiprocessors, card_of(row).shared_bytes);
}

struct Form {
  int64_t segments, segment_tokens, tokens, heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
};

// Rows of one document and packed ones; grouped heads, one head a key head; heads of 32 to 128;
// windows; a job of a user with a small card; a row so long that its elements are counted beyond
// 2^31.
constexpr Form kForms[]{{2, 8192, 16384, 32, 8, 128},   {16, 8192, 16384, 32, 8, 128},
                        {2, 8192, 16384, 32, 32, 96},   {1, 2048, 2048, 14, 2, 64},
                        {8, 512, 1024, 9, 3, 32},       {4, 1024, 4096, 32, 8, 128, true, 256},
                        {64, 256, 2048, 8, 8, 64},      {1, 100, 100, 2, 1, 32, false},
                        {1, 524288, 524288, 32, 8, 128}};

SegmentAttention shape_of(const Form& form, bool is_gradient) {
  SegmentAttention shape{.is_gradient = is_gradient,
                         .segments = form.segments,
                         .segment_tokens = form.segment_tokens,
                         .tokens = form.tokens,
                         .heads = form.heads,
                         .kv_heads = form.kv_heads,
                         .head_dim = form.head_dim,
                         .scale = 0.125F,
                         .causal = form.causal,
                         .window = form.window,
                         .strides = {}};
  // q, k and v are columns of one product.
  const int64_t width = (form.heads + 2 * form.kv_heads) * form.head_dim;
  const int64_t of_heads = form.heads * form.head_dim;
  const int64_t of_kv_heads = form.kv_heads * form.head_dim;
  shape.strides = {width,    width,    width,       of_heads,   form.heads,
                   of_heads, of_heads, of_kv_heads, of_kv_heads};
  return shape;
}

class CudnnPlans : public testing::TestWithParam<const char*> {};

TEST_P(CudnnPlans, fit_in_what_is_planned) {
  const HardwareRow* row = find_hardware(GetParam());
  ASSERT_NE(row, nullptr);
  const auto cudnn = open_cudnn_without_card(properties_of(*row), row->compute_capability);
  if (cudnn == nullptr) GTEST_SKIP() << "no cuDNN here";
  for (const Form& form : kForms)
    for (const bool is_gradient : {false, true}) {
      const auto plan = cudnn->plan(shape_of(form, is_gradient));
      const int64_t planned = cudnn_workspace_bytes(is_gradient, form.segments, form.tokens,
                                                    form.heads, form.kv_heads, form.head_dim);
      EXPECT_LE(plan->workspace_bytes(), planned) << form.segments << " segments, heads of "
                                                  << form.head_dim << ", gradient " << is_gradient;
      // A bound that is far off would waste the card.
      constexpr int64_t kSlack = 80 << 10;
      EXPECT_GE(plan->workspace_bytes(), planned - kSlack) << "gradient " << is_gradient;
    }
}

TEST_P(CudnnPlans, name_what_the_library_refuses) {
  const HardwareRow* row = find_hardware(GetParam());
  ASSERT_NE(row, nullptr);
  const auto cudnn = open_cudnn_without_card(properties_of(*row), row->compute_capability);
  if (cudnn == nullptr) GTEST_SKIP() << "no cuDNN here";
  EXPECT_THROW(cudnn->plan(shape_of({1, 64, 64, 2, 1, 12}, false)), base::UserError);
}

INSTANTIATE_TEST_SUITE_P(Cards, CudnnPlans, testing::Values("h100", "b200"));

}  // namespace
}  // namespace snug::backends::cuda
