// Attention over whole segments, in cuDNN's terms. A token is a row of (heads, head_dim); the
// positions of segments are read from tables on the device, so that one plan serves every batch.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// The tensors. lse is (tokens, heads) f32, the log-sum-exp of the scaled scores; all others have
// the same 16-bit format. The forward pass reads the first three and writes o and lse.
enum class SegmentOperand : uint8_t { q, k, v, o, lse, d_o, dq, dk, dv };
inline constexpr size_t kSegmentOperands = kSegmentTables;
inline constexpr size_t kForwardOperands = kForwardTables;

// Everything that a plan depends on, except addresses.
struct SegmentAttention {
  bool is_gradient = false;
  ElementFormat format = ElementFormat::bf16;
  int64_t segments = 0;        // capacity of the tables
  int64_t segment_tokens = 0;  // the number of tokens in the longest segment
  int64_t tokens = 0;          // the number of tokens in all segments
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  float softcap = 0.0F;                             // above zero only where causal
  std::array<int64_t, kSegmentOperands> strides{};  // elements from one token to the next
  auto operator<=>(const SegmentAttention&) const = default;

  size_t operands() const { return is_gradient ? kSegmentOperands : kForwardOperands; }
  int64_t stride(SegmentOperand operand) const { return strides[static_cast<size_t>(operand)]; }
};

struct SegmentAddresses {
  std::array<void*, kSegmentOperands> operands{};
  const int32_t* lengths = nullptr;  // (segments) tokens in each, 0 for an unused one
  // (operands, segment_table_entries): the index of the element at which each segment begins, then
  // the end of all segments.
  const int64_t* begins = nullptr;
};

class SegmentPlan {
 public:
  virtual ~SegmentPlan() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Asynchronous. Tokens outside all segments are not written.
  virtual void run(const SegmentAddresses& addresses, void* workspace,
                   cudaStream_t stream) const = 0;
};

class Cudnn {
 public:
  virtual ~Cudnn() = default;
  virtual std::string version() const = 0;
  // Takes seconds, since the library compiles kernels. Throws UserError where it has none for the
  // shape.
  virtual std::unique_ptr<SegmentPlan> plan(const SegmentAttention& shape) = 0;
};

// cuDNN for the current device; null where the library is not found, or support for it is not built
// in.
std::unique_ptr<Cudnn> open_cudnn();

// cuDNN for a GPU that is not present, described by the library's own device properties (JSON) and
// its compute capability (90): its plans can be created and sized, but not run. It needs a driver
// library, which may be a stub. Null where cuDNN is not found.
std::unique_ptr<Cudnn> open_cudnn_without_card(std::string_view properties, int compute_capability);

}  // namespace snug::backends::cuda
