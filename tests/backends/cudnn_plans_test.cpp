// Attention by cuDNN as cuDNN itself sees it: for cards that are described to the library and not
// here, with a driver that is idle, it takes every graph, compiles its kernels, and asks for no
// more scratch than is planned. What the kernels compute only a card can tell (cuda_device_test).
#include <gtest/gtest.h>

#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/device/hardware_table.h"
#include "base/error.h"
#include "program/ir/builder.h"
#include "program/kinds/attention/attention.h"

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
  float softcap = 0.0F;
};

// Rows of one document and packed ones; grouped heads, one head a key head; heads of 64 to 256, and
// of 80; windows, soft caps; Phi-3 128k, whose window is wider than its rows; a job of a user with
// a small card; a row so long that its elements are counted beyond 2^31; documents in groups.
constexpr Form kForms[]{{2, 8192, 16384, 32, 8, 128},
                        {2, 8192, 16384, 16, 8, 256, true, 4096, 50.0F},
                        {2, 8192, 16384, 32, 32, 96, true, 262144},
                        {1, 2048, 2048, 14, 2, 64},
                        {16, 8192, 16384, 16, 16, 256},
                        {4, 1024, 4096, 32, 8, 128, true, 256},
                        {40, 512, 1024, 8, 8, 80},
                        {1, 100, 100, 2, 1, 32, false},
                        {1, 524288, 524288, 32, 8, 128}};

using program::Attention;
using program::AttentionGrad;
using program::DType;
using program::Shape;
using program::TensorId;

// An attention, then its gradient; q, k and v are columns of one product, and so are dq, dk, dv.
class FusedAttention {
 public:
  explicit FusedAttention(const Form& form, DType dtype = DType::bf16)
      : form_(form), dtype_(dtype) {
    const Attention attention{.heads = form.heads,
                              .kv_heads = form.kv_heads,
                              .head_dim = form.head_dim,
                              .scale = 0.125F,
                              .causal = form.causal,
                              .window = form.window,
                              .softcap = form.softcap,
                              .segment_tokens = form.segment_tokens};
    const auto [q, k, v] = fused("qkv");
    const TensorId o = tensor("o", {form.tokens, form.heads * form.head_dim}, dtype_);
    const TensorId lse = tensor("lse", {form.heads, form.tokens}, DType::f32);
    const TensorId bounds = tensor("bounds", {form.segments, 2}, DType::i32);
    builder_.emit(attention, {q, k, v, bounds, bounds}, {o, lse});
    const AttentionGrad grad{.heads = form.heads,
                             .kv_heads = form.kv_heads,
                             .head_dim = form.head_dim,
                             .scale = 0.125F,
                             .causal = form.causal,
                             .window = form.window,
                             .softcap = form.softcap,
                             .segment_tokens = form.segment_tokens,
                             // As lowering decides it where parts of a fused matrix have gaps.
                             .dense = {true, true, true, true}};
    const TensorId d_o = tensor("do", {form.tokens, form.heads * form.head_dim}, dtype_);
    const auto [dq, dk, dv] = fused("dqkv");
    builder_.emit(grad, {d_o, q, k, v, o, lse, bounds, bounds}, {dq, dk, dv});
    program_ = builder_.take();
  }

  std::vector<SegmentAttention> asked(bool is_gradient) const {
    return is_gradient ? segments_of(grad(), view(1)) : segments_of(attention(), view(0));
  }
  SegmentScratch planned(bool is_gradient) const {
    return is_gradient ? segment_scratch(grad(), view(1)) : segment_scratch(attention(), view(0));
  }

 private:
  program::OperationView view(size_t index) const { return {program_, program_.operations[index]}; }
  const Attention& attention() const { return program_.operations[0].attributes.get<Attention>(); }
  const AttentionGrad& grad() const {
    return program_.operations[1].attributes.get<AttentionGrad>();
  }
  TensorId tensor(const char* name, const Shape& shape, DType type) {
    return builder_.activation(name, shape, type);
  }
  std::array<TensorId, 3> fused(const std::string& name) {
    const int64_t width = (form_.heads + 2 * form_.kv_heads) * form_.head_dim;
    const TensorId all = builder_.activation(name, {form_.tokens, width}, dtype_);
    std::array<TensorId, 3> parts{};
    int64_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      program::Tensor part;
      part.name = name + std::to_string(i);
      part.shape = {form_.tokens, (i == 0 ? form_.heads : form_.kv_heads) * form_.head_dim};
      part.dtype = dtype_;
      part.view.base = all;
      part.view.offset = first;
      part.view.strides = {width, 1, 0, 0};
      first += part.shape[1];
      parts[i] = builder_.add(std::move(part));
    }
    return parts;
  }

  Form form_;
  DType dtype_;
  program::Builder builder_{"attention"};
  program::Program program_;
};

class CudnnPlans : public ::testing::TestWithParam<const char*> {};

TEST_P(CudnnPlans, fit_in_what_is_planned) {
  const HardwareRow* row = find_hardware(GetParam());
  ASSERT_NE(row, nullptr);
  const auto cudnn = open_cudnn_without_card(properties_of(*row), row->compute_capability);
  if (cudnn == nullptr) GTEST_SKIP() << "no cuDNN here";
  // Of each form the forward pass in one type and the backward pass in the other: every plan costs
  // the library's compilation of a kernel, and the card that is next has them the other way round.
  const bool turned = row->compute_capability >= 100;
  for (size_t i = 0; i < std::size(kForms); ++i)
    for (const bool is_gradient : {false, true}) {
      const Form& form = kForms[i];
      if (is_gradient && row->compute_capability >= 100 && form.head_dim > 128) continue;
      const DType dtype = (i % 2 == 0) == (is_gradient == turned) ? DType::bf16 : DType::f16;
      SCOPED_TRACE(fmt::format("{} segments, heads of {}, {}, gradient {}", form.segments,
                               form.head_dim, base::name_of(dtype), is_gradient));
      const FusedAttention attention(form, dtype);
      const int64_t planned = attention.planned(is_gradient).library_bytes;
      int64_t most = 0;
      for (const SegmentAttention& shape : attention.asked(is_gradient))
        most = std::max(most, cudnn->plan(shape)->workspace_bytes());
      EXPECT_LE(most, planned);
      // A bound that is far off would waste the card.
      constexpr int64_t kSlack = 80 << 10;
      EXPECT_GE(most, planned - kSlack);
    }
}

TEST_P(CudnnPlans, name_what_the_library_refuses) {
  const HardwareRow* row = find_hardware(GetParam());
  ASSERT_NE(row, nullptr);
  const auto cudnn = open_cudnn_without_card(properties_of(*row), row->compute_capability);
  if (cudnn == nullptr) GTEST_SKIP() << "no cuDNN here";
  EXPECT_THROW(cudnn->plan(FusedAttention({1, 64, 64, 2, 1, 12}).asked(false).front()),
               base::UserError);
}

INSTANTIATE_TEST_SUITE_P(Cards, CudnnPlans, ::testing::Values("h100", "b200"));

}  // namespace
}  // namespace snug::backends::cuda
