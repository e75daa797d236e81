#include "backends/cuda/attention/library_check.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "backends/cuda/attention/check_difference.h"
#include "backends/cuda/attention/check_program.h"
#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/attention/segment_buckets.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::DType;
using program::OperationView;
using program::TensorId;

constexpr double kMaxDifference = 2e-2;
constexpr int64_t kCheckTokens = 4096;
constexpr int64_t kCheckSegments = 16;
constexpr int64_t kCheckKeyHeads = 2;

// The length of the check's first segment: with others it leaves room for them.
int64_t first_length(int64_t segments, int64_t longest, int64_t tokens) {
  return segments == 1 ? longest : std::min(longest, tokens / 2);
}

// Fewer tokens, segments and heads, in as many calls of the library: one, or one for each bucket.
// A window that hides keys from the job's longest segment hides as large a share of them here.
template <typename Attributes>
void shrink(Attributes& attention, CheckForm& form, bool in_buckets) {
  const int64_t group = attention.heads / attention.kv_heads;
  attention.kv_heads = std::min(attention.kv_heads, kCheckKeyHeads);
  attention.heads = group * attention.kv_heads;
  form.segments = std::min(form.segments, kCheckSegments);
  form.tokens = std::min(form.tokens, kCheckTokens);
  int64_t longest = std::min(attention.segment_tokens, form.tokens);
  if (in_buckets)
    form.tokens = std::min(form.tokens, (form.segments * longest - 1) / kMaxIdle);
  else
    longest = std::min(longest, kMaxIdle * form.tokens / form.segments);
  const int64_t of_job = attention.segment_tokens;
  attention.segment_tokens = std::max<int64_t>(1, std::min(longest, form.tokens));
  if (attention.window >= of_job) attention.window = 0;
  if (attention.window > 0) {
    const int64_t first = first_length(form.segments, attention.segment_tokens, form.tokens);
    attention.window = std::clamp<int64_t>(attention.window * first / of_job, 1, attention.window);
  }
  attention.kernel = {};
  form.no_empty_segments = attention.no_empty_segments;
}

template <typename Attributes>
CheckForm form_of_check(const Attributes& attention, const OperationView& view) {
  using OfGradient = std::is_same<Attributes, AttentionGrad>;
  CheckForm form{.is_gradient = OfGradient::value,
                 .dtype = view[Attributes::kQ].dtype,
                 .segments = view[Attributes::kKBounds].shape[0],
                 .tokens = view[Attributes::kQ].shape[0]};
  const std::vector<SegmentAttention> shapes = segments_of(attention, view);
  for (size_t i = 0; i < shapes[0].operands(); ++i) {
    const auto operand = static_cast<SegmentOperand>(i);
    const bool is_of_keys = operand == SegmentOperand::k || operand == SegmentOperand::v ||
                            operand == SegmentOperand::dk || operand == SegmentOperand::dv;
    const int64_t heads = is_of_keys ? attention.kv_heads : attention.heads;
    form.gaps[i] =
        operand != SegmentOperand::lse && shapes[0].stride(operand) != heads * attention.head_dim;
  }
  Attributes small = attention;
  shrink(small, form, shapes.size() > 1);
  if constexpr (OfGradient::value) {
    form.gradient = small;
    form.gradient.dense = {};
  }
  form.forward = {.heads = small.heads,
                  .kv_heads = small.kv_heads,
                  .head_dim = small.head_dim,
                  .scale = small.scale,
                  .causal = small.causal,
                  .window = small.window,
                  .softcap = small.softcap,
                  .segment_tokens = small.segment_tokens,
                  .no_empty_segments = small.no_empty_segments,
                  .deterministic = small.deterministic};
  return form;
}

// Segments of many lengths, the first the longest, some without tokens or none, and tokens that
// belong to no segment.
std::vector<int32_t> bounds_of_check(const CheckForm& form, bool with_empty) {
  const int64_t longest = form.forward.segment_tokens;
  const int64_t first = first_length(form.segments, longest, form.tokens);
  const std::array<int64_t, 6> lengths{first, 1, 77, longest / 3 + 1, 129, 600};
  std::vector<int32_t> bounds(static_cast<size_t>(2 * form.segments), 0);
  int64_t begin = 0;
  for (int64_t s = 0; s < form.segments; ++s) {
    const int64_t kept = with_empty ? 0 : form.segments - s - 1;
    const int64_t room = std::min(longest, form.tokens - begin - kept);
    const bool is_empty = with_empty && (s % 4 == 2 || s + 1 == form.segments);
    const int64_t length = is_empty ? 0 : std::min(room, lengths[static_cast<size_t>(s % 6)]);
    if (length <= 0) continue;
    bounds[static_cast<size_t>(2 * s)] = static_cast<int32_t>(begin);
    bounds[static_cast<size_t>(2 * s + 1)] = static_cast<int32_t>(begin + length);
    begin += length;
    if (s % 5 == 3 && begin + kept < form.tokens) ++begin;
  }
  return bounds;
}

// Scores have a deviation of 2; with a soft cap of half of it, where it bends them.
double deviation_of_queries(const Attention& attention) {
  const double scores = attention.softcap > 0.0F ? attention.softcap / 2.0 : 2.0;
  return scores / (attention.scale * std::sqrt(static_cast<double>(attention.head_dim)));
}

// The largest difference of what the check's last two operations make; of a gradient, the library's
// forward pass is another check.
double difference_of(const CheckForm& form, const CheckProgram& of, const CheckMemory& memory,
                     const std::vector<int32_t>& bounds) {
  memory.fill_with_nan();
  memory.write(of.bounds, bounds.data());
  const auto fill = [&](TensorId id, double deviation, uint32_t stream) {
    memory.write(id, random_matrix(memory.buffer(id), deviation, stream).data());
  };
  fill(of.q, deviation_of_queries(form.forward), 1);
  fill(of.k, 1, 2);
  fill(of.v, 1, 3);
  if (form.is_gradient) fill(of.d_o, 1, 4);
  for (size_t i = 0; i < of.program.operations.size(); ++i)
    if (!form.is_gradient || i != 1) memory.run(of.program.operations[i]);
  const auto& [own, library] = form.is_gradient ? of.gradients : of.attended;
  double largest = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const double difference = largest_difference(memory.buffer(own[i]), memory.read(own[i]),
                                                 memory.read(library[i]), bounds);
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

LibraryAnswer check(const CheckForm& form, const CheckProgram& of, CudaContext& context) {
  context.device.use();
  const CheckMemory memory(of.program, context);
  if (!memory.is_there()) return {.why = "the GPU has no memory to check it", .is_kept = false};
  LibraryAnswer answer{.agrees = true};
  // Two segments are first both there, then one; of more, some are and some are not.
  const bool may_be_empty = !form.no_empty_segments && form.segments > 1;
  for (const bool with_empty : {false, true}) {
    if (with_empty ? !may_be_empty : may_be_empty && form.segments > 2) continue;
    const char* const where = with_empty ? " next to segments without tokens" : "";
    try {
      const double difference = difference_of(form, of, memory, bounds_of_check(form, with_empty));
      if (std::isnan(difference))
        return {.difference = -1, .why = fmt::format("its results are no numbers{}", where)};
      answer.difference = std::max(answer.difference, difference);
    } catch (const base::UserError& error) {
      return {.difference = -1, .why = error.what(), .is_kept = false};
    }
    answer.agrees = answer.difference <= kMaxDifference;
    if (answer.agrees) continue;
    answer.why = fmt::format("it differs from own kernels by {:.2g}{}", answer.difference, where);
    return answer;
  }
  return answer;
}

template <typename Attributes>
std::string why_unlike(const Attributes& attention, const OperationView& view,
                       CudaContext& context) {
  const std::pair key{segments_of(attention, view), attention.no_empty_segments};
  if (const auto known = context.checked_segments.find(key);
      known != context.checked_segments.end())
    return known->second.why;
  const CheckForm form = form_of_check(attention, view);
  const CheckProgram of(form, context.device.card);
  LibraryAnswer answer =
      context.library_checks.ask(of.text(), [&] { return check(form, of, context); });
  if (!answer.agrees)
    answer.why = fmt::format("cuDNN {} is not taken for {}: {}", context.cudnn->version(),
                             of.text(), answer.why);
  return context.checked_segments.emplace(key, std::move(answer)).first->second.why;
}

}  // namespace

std::string why_unlike_own(const Attention& attention, const OperationView& view,
                           CudaContext& context) {
  return why_unlike(attention, view, context);
}

std::string why_unlike_own(const AttentionGrad& grad, const OperationView& view,
                           CudaContext& context) {
  return why_unlike(grad, view, context);
}

}  // namespace snug::backends::cuda
