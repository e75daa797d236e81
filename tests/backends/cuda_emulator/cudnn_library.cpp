// In the place of cuDNN: attention over segments in plain loops, from the same tables and strides.
// It writes what the library writes and no more: nothing outside the segments, and dq, dk and dv of
// the segments in whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cuda/attention/segment_attention.h"
#include "base/dtype.h"
#include "base/error.h"
#include "creations.h"
#include "device_memory.h"
#include "device_record.h"
#include "library_calls.h"
#include "refusals.h"
#include "stream.h"

namespace snug::backends::cuda {
namespace {

using cuda_emulator::AttentionFault;

bool has_fault(AttentionFault fault) { return cuda_emulator::attention_fault == fault; }

// One segment, its tensors found through the tables.
class EmulatedSegment {
 public:
  EmulatedSegment(const SegmentAttention& shape, const SegmentAddresses& addresses, int64_t index)
      : shape_(shape), addresses_(addresses), index_(index) {}

  int64_t length() const { return addresses_.lengths[index_]; }

  double at(SegmentOperand operand, int64_t token, int64_t head, int64_t column) const {
    const uint16_t bits = *element(operand, token, head, column);
    return shape_.format == ElementFormat::f16 ? base::to_float(base::Float16{bits})
                                               : base::to_float(base::BFloat16{bits});
  }
  void set(SegmentOperand operand, int64_t token, int64_t head, int64_t column,
           double value) const {
    const auto narrow = static_cast<float>(value);
    *element(operand, token, head, column) = shape_.format == ElementFormat::f16
                                                 ? base::to_float16(narrow).bits
                                                 : base::to_bfloat16(narrow).bits;
  }
  uint16_t* element(SegmentOperand operand, int64_t token, int64_t head, int64_t column) const {
    return static_cast<uint16_t*>(base(operand)) + begin(operand) + token * shape_.stride(operand) +
           head * shape_.head_dim + column;
  }
  float& lse(int64_t token, int64_t head) const {
    return static_cast<float*>(
        base(SegmentOperand::lse))[begin(SegmentOperand::lse) + token * shape_.heads + head];
  }
  double dot(SegmentOperand a, int64_t i, int64_t head_a, SegmentOperand b, int64_t j,
             int64_t head_b) const {
    double sum = 0;
    for (int64_t d = 0; d < shape_.head_dim; ++d) sum += at(a, i, head_a, d) * at(b, j, head_b, d);
    return sum;
  }
  bool sees(int64_t query, int64_t key) const {
    if (shape_.causal && key > query) return false;
    return shape_.window == 0 || has_fault(AttentionFault::no_window) ||
           key > query - shape_.window;
  }
  int64_t kv_head(int64_t head) const { return head / (shape_.heads / shape_.kv_heads); }

 private:
  void* base(SegmentOperand operand) const {
    return addresses_.operands[static_cast<size_t>(operand)];
  }
  int64_t begin(SegmentOperand operand) const {
    return addresses_
        .begins[static_cast<int64_t>(operand) * segment_table_entries(shape_.segments) + index_];
  }

  const SegmentAttention& shape_;
  const SegmentAddresses& addresses_;
  int64_t index_;
};

// A score, and by how much of the product of q and k it grows.
struct Score {
  double value;
  double slope;
};
Score score(const SegmentAttention& shape, const EmulatedSegment& segment, int64_t head, int64_t i,
            int64_t j) {
  using enum SegmentOperand;
  const double plain = shape.scale * segment.dot(q, i, head, k, j, segment.kv_head(head));
  const bool is_capped = shape.softcap > 0 && !has_fault(AttentionFault::no_cap);
  if (!is_capped) return {plain, shape.scale};
  const double bent = std::tanh(plain / shape.softcap);
  return {shape.softcap * bent, shape.scale * (1 - bent * bent)};
}

void attend(const SegmentAttention& shape, const EmulatedSegment& segment) {
  using enum SegmentOperand;
  const int64_t length = segment.length();
  for (int64_t head = 0; head < shape.heads; ++head)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t kv = segment.kv_head(head);
      double sum = 0;
      std::vector<double> weighted(static_cast<size_t>(shape.head_dim));
      for (int64_t j = 0; j < length; ++j) {
        if (!segment.sees(i, j)) continue;
        const double weight = std::exp(score(shape, segment, head, i, j).value);
        sum += weight;
        for (int64_t d = 0; d < shape.head_dim; ++d)
          weighted[static_cast<size_t>(d)] += weight * segment.at(v, j, kv, d);
      }
      for (int64_t d = 0; d < shape.head_dim; ++d)
        segment.set(o, i, head, d, weighted[static_cast<size_t>(d)] / sum);
      segment.lse(i, head) = static_cast<float>(std::log(sum));
    }
}

void differentiate(const SegmentAttention& shape, const EmulatedSegment& segment) {
  using enum SegmentOperand;
  const int64_t length = segment.length();
  const auto size = [&](int64_t heads) {
    return static_cast<size_t>(length * heads * shape.head_dim);
  };
  std::vector<double> sum_q(size(shape.heads));
  std::vector<double> sum_k(size(shape.kv_heads));
  std::vector<double> sum_v(size(shape.kv_heads));
  const auto at = [&](int64_t token, int64_t heads, int64_t head, int64_t d) {
    return static_cast<size_t>((token * heads + head) * shape.head_dim + d);
  };
  for (int64_t head = 0; head < shape.heads; ++head)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t kv = segment.kv_head(head);
      const double delta = segment.dot(d_o, i, head, o, i, head);
      for (int64_t j = 0; j < length; ++j) {
        if (!segment.sees(i, j)) continue;
        const auto [value, slope] = score(shape, segment, head, i, j);
        const double p = std::exp(value - segment.lse(i, head));
        const double ds = slope * p * (segment.dot(d_o, i, head, v, j, kv) - delta);
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          sum_q[at(i, shape.heads, head, d)] += ds * segment.at(k, j, kv, d);
          sum_k[at(j, shape.kv_heads, kv, d)] += ds * segment.at(q, i, head, d);
          sum_v[at(j, shape.kv_heads, kv, d)] += p * segment.at(d_o, i, head, d);
        }
      }
    }
  const auto write = [&](SegmentOperand operand, int64_t heads, const std::vector<double>& sums) {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t d = 0; d < shape.head_dim; ++d)
          segment.set(operand, i, head, d, sums[at(i, heads, head, d)]);
  };
  write(dq, shape.heads, sum_q);
  write(dk, shape.kv_heads, sum_k);
  write(dv, shape.kv_heads, sum_v);
}

// What the library demands of its tables: they lie at multiples of 16 bytes and ascend, and no
// segment is longer than was said.
bool are_tables_sound(const SegmentAttention& shape, const SegmentAddresses& addresses) {
  for (size_t i = 0; i < shape.operands(); ++i) {
    const int64_t* begins =
        addresses.begins + static_cast<int64_t>(i) * segment_table_entries(shape.segments);
    if (reinterpret_cast<uintptr_t>(begins) % 16 != 0) return false;
    if (!std::is_sorted(begins, begins + shape.segments + 1)) return false;
    if (begins[shape.segments] != shape.tokens * shape.strides[i]) return false;
    for (int64_t s = 0; s < shape.segments; ++s)
      if (begins[s] + addresses.lengths[s] * shape.strides[i] > begins[s + 1]) return false;
  }
  return std::all_of(addresses.lengths, addresses.lengths + shape.segments,
                     [&](int32_t length) { return length >= 0 && length <= shape.segment_tokens; });
}

// As the frontend of the library sizes them: f32 sums with the strides of dq, and where heads share
// keys of dk and dv too, a row for each query head; and a number for each token and head.
int64_t sums_bytes(const SegmentAttention& shape) {
  constexpr int64_t kForwardBytes = 512;
  if (!shape.is_gradient) return kForwardBytes;
  const auto sums = [&](SegmentOperand operand, int64_t heads_a_head) {
    return (shape.tokens - 1) * shape.stride(operand) * heads_a_head + shape.heads * shape.head_dim;
  };
  int64_t floats = sums(SegmentOperand::dq, 1) + shape.tokens * shape.heads;
  if (const int64_t group = shape.heads / shape.kv_heads; group > 1)
    floats += sums(SegmentOperand::dk, group) + sums(SegmentOperand::dv, group);
  return floats * int64_t{sizeof(float)};
}

// What is wrong in the results of one segment.
void spoil(const SegmentAttention& shape, const EmulatedSegment& segment, double value) {
  using enum SegmentOperand;
  for (int64_t token = 0; token < segment.length(); ++token)
    for (int64_t head = 0; head < shape.heads; ++head)
      segment.set(shape.is_gradient ? dq : o, token, head, 0, value);
}

class Plan final : public SegmentPlan {
 public:
  explicit Plan(const SegmentAttention& shape)
      : shape_(shape),
        workspace_bytes_(cuda_emulator::attention_workspace_bytes > 0
                             ? cuda_emulator::attention_workspace_bytes
                             : sums_bytes(shape)) {}
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const SegmentAddresses& addresses, void* workspace, cudaStream_t stream) const override {
    const std::string name =
        fmt::format("cuDNN {} {} {}", shape_.is_gradient ? "gradient" : "attention", shape_.tokens,
                    fmt::join(shape_.strides, " "));
    if (!cuda_emulator::Creations::all().load("library's kernel", name))
      base::throw_user_error("cuDNN has no memory for its kernel");
    cuda_emulator::submit(stream, [shape = shape_, addresses, workspace, bytes = workspace_bytes_] {
      const cuda_emulator::DeviceAccess access;
      ++cuda_emulator::library_calls;
      cuda_emulator::record_device([&] {
        return fmt::format("cuDNN {}: {}", shape.is_gradient ? "gradient" : "attention",
                           fmt::join(shape.strides, " "));
      });
      std::memset(workspace, 0xff, static_cast<size_t>(bytes));
      SNUG_CHECK(are_tables_sound(shape, addresses), "tables of segments that cuDNN does not take");
      const bool is_wrong =
          has_fault(AttentionFault::empty_segments) &&
          std::count(addresses.lengths, addresses.lengths + shape.segments, 0) > 0;
      for (int64_t s = 0; s < shape.segments; ++s) {
        const EmulatedSegment segment(shape, addresses, s);
        shape.is_gradient ? differentiate(shape, segment) : attend(shape, segment);
        if (is_wrong) spoil(shape, segment, std::numeric_limits<double>::quiet_NaN());
        if (s > 0 && has_fault(AttentionFault::later_segments)) spoil(shape, segment, 3);
      }
    });
  }

 private:
  SegmentAttention shape_;
  int64_t workspace_bytes_;
};

class Library final : public Cudnn {
 public:
  // Answers that are kept are those of a library with the same faults.
  std::string version() const override {
    return fmt::format("emulated {}", static_cast<int>(cuda_emulator::attention_fault));
  }
  std::unique_ptr<SegmentPlan> plan(const SegmentAttention& shape) override {
    if (cuda_emulator::refuses_attention) base::throw_user_error("cuDNN has no kernel");
    if (shape.window >= shape.segment_tokens)
      base::throw_user_error("cuDNN has no kernel for a bound that hides no key");
    if (shape.is_gradient && !is_without_gaps(shape))
      base::throw_user_error("cuDNN is wrong with rows of a gradient that have gaps");
    return std::make_unique<Plan>(shape);
  }

 private:
  // What 9.14 was seen to do right on a card.
  static bool is_without_gaps(const SegmentAttention& shape) {
    const auto lies_so = [&](SegmentOperand operand, int64_t heads) {
      return shape.stride(operand) == heads * shape.head_dim;
    };
    using DeviceRows = SegmentOperand;
    return lies_so(DeviceRows::q, shape.heads) && lies_so(DeviceRows::k, shape.kv_heads) &&
           lies_so(DeviceRows::v, shape.kv_heads) && lies_so(DeviceRows::dq, shape.heads) &&
           lies_so(DeviceRows::dk, shape.kv_heads) && lies_so(DeviceRows::dv, shape.kv_heads);
  }
};

}  // namespace

std::unique_ptr<Cudnn> open_cudnn() { return std::make_unique<Library>(); }

}  // namespace snug::backends::cuda
