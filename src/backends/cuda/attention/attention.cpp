#include "backends/cuda/attention/kernels/attention.h"

#include "backends/cuda/attention/attention_needs.h"
#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/attention/kernels/attention_splits.h"
#include "backends/cuda/attention/kernels/distance_biases.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "program/ir/inputs.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionBy;
using program::AttentionGrad;
using program::OperationView;

template <typename Attributes>
AttentionForm attention_form_of(const Attributes& attention) {
  return {static_cast<int32_t>(attention.heads),
          static_cast<int32_t>(attention.kv_heads),
          static_cast<int32_t>(attention.head_dim),
          attention.scale,
          attention.causal,
          attention.window,
          attention.softcap,
          attention.alibi_scale,
          {}};
}

struct PreparedAttention : Prepared {
  // The smallest distance in each bucket of a relative position bias.
  BucketBegins begins{};
  // The host copies bounds and pages to the device, so no kernel writes them: each kernel that is
  // queued after the copies begins after them.
  bool has_copied_bounds = false;
};

// Whether the attention's bounds and pages are copies of the host's.
bool has_copied_bounds(const Attention& attention, const OperationView& view) {
  const auto is_copied = [&](const program::Operand<Attention>& operand) {
    return program::host_side(view.program, id_of(view.operation, operand)) != program::kNone;
  };
  return is_copied(Attention::kQBounds) && is_copied(Attention::kKBounds) &&
         (!attention.paged || is_copied(Attention::kPages));
}

template <typename Attributes>
std::unique_ptr<PreparedAttention> prepare_biases(const Attributes& attention,
                                                  const OperationView& view) {
  auto prepared = std::make_unique<PreparedAttention>();
  if (!attention.relative_bias) return prepared;
  const int64_t rows = view[Attributes::kBias].shape[0];
  int64_t distance = 0;
  for (int64_t bucket = 0; bucket < buckets_of_direction(attention, rows); ++bucket) {
    while (program::bucket_of(-distance, attention.causal, rows, attention.max_distance) < bucket)
      ++distance;
    prepared->begins.at[bucket] = static_cast<int32_t>(distance);
  }
  return prepared;
}

// The layout of a bias's scratch.
template <typename Attributes>
BiasScratch scratch_of_bias(const Attributes& attention, const Invocation& invocation) {
  if (!attention.relative_bias) return {};
  return bias_scratch_of(attention, invocation[Attributes::kBias].shape[0],
                         invocation[Attributes::kQ].shape[0], most_keys(attention, invocation));
}

// Queues the kernel that fills the tables of a bias, in scratch from `first` on, and passes their
// addresses to the attention kernels.
template <typename Attributes>
void begin_biases(const Attributes& attention, const Invocation& invocation, std::byte* first,
                  RangesRun& ranges, CudaContext& context) {
  if (!attention.relative_bias) return;
  SNUG_CHECK(invocation.prepared != nullptr, "an attention with a bias that was not prepared");
  const Matrix bias = matrix_of(invocation[Attributes::kBias]);
  const AttentionShape& shape = ranges.shape;
  const BiasScratch scratch = scratch_of_bias(attention, invocation);
  auto* tables = reinterpret_cast<float*>(first + scratch.tables);
  auto* begins = reinterpret_cast<int32_t*>(first + scratch.begins);
  const int64_t reach =
      bias_reach(attention.max_distance, shape.q_tokens, most_keys(attention, invocation));
  const DistanceBiases biases{
      .zero = tables + reach,
      .head_step = bias_places(reach),
      .reach = static_cast<int32_t>(reach),
      .both_ways = !attention.causal,
      .buckets = static_cast<int32_t>(buckets_of_direction(attention, bias.rows)),
      .begins = begins};
  make_bias_tables({.bias = bias.operand,
                    .begins = static_cast<const PreparedAttention&>(*invocation.prepared).begins,
                    .heads = shape.form.heads,
                    .biases = biases,
                    .tables = tables,
                    .copied_begins = begins},
                   context.stream.get());
  ranges.shape.form.biases = biases;
  ranges.diagonals = reinterpret_cast<int32_t*>(first + scratch.diagonals);
  ranges.shape.diagonals = ranges.diagonals;
}

KeyPages pages_of(const Attention& attention, const Invocation& invocation) {
  if (!attention.paged) return {};
  const Buffer& pages = invocation[Attention::kPages];
  return {.table = integers_of(pages),
          .pages = static_cast<int32_t>(pages.shape[1]),
          .page_tokens = attention.page_tokens,
          .places = key_places(most_keys(attention, invocation))};
}
KeyPages pages_of(const AttentionGrad& /*grad*/, const Invocation& /*invocation*/) { return {}; }

// Scratch: the ranges of keys, those of queries or with pages the rows of keys, delta, then the
// scratch of a bias (backends/cuda/attention/attention_needs.cpp).
template <typename Attributes>
RangesRun ranges_run(const Attributes& attention, const Invocation& invocation, int64_t q_tokens,
                     int64_t k_tokens) {
  auto* ranges = invocation.workspace.as<TokenRange>();
  const KeyPages pages = pages_of(attention, invocation);
  auto* rows = reinterpret_cast<int32_t*>(ranges + q_tokens);
  return {.shape = {attention_form_of(attention), q_tokens, k_tokens, pages},
          .segments = invocation[Attributes::kQBounds].shape.rows(),
          .q_bounds = integers_of(invocation[Attributes::kQBounds]),
          .k_bounds = integers_of(invocation[Attributes::kKBounds]),
          .keys = ranges,
          .queries = ranges + q_tokens,
          .rows = pages.table == nullptr ? nullptr : rows};
}

// Fails a CHECK where the decisions of either form do not select exactly one kernel, or select one
// that cannot compute the operation. Operands are in the arena as the view's tensors say, so
// nothing needs to be checked when it runs.
template <typename Attributes>
void check_kernel(const Attributes& attention, int64_t splits, const OperationView& view,
                  const Card& card) {
  const AttentionBy by = attention.kernel.by;
  SNUG_CHECK(splits == 0 || (splits > 0 && by == AttentionBy::plain),
             "an attention in {} splits by the kernel {}, which has none", splits,
             base::word_of(by));
  SNUG_CHECK(by != AttentionBy::library || suits_cudnn(attention, view, card),
             "an attention is planned by the library, which does not compute it here");
  SNUG_CHECK(by != AttentionBy::tensor_cores || suits_tensor_cores(attention, view, card),
             "an attention is planned on the tensor cores, which do not compute it here");
}

std::unique_ptr<Prepared> prepare(const Attention& attributes, const OperationView& view,
                                  CudaContext& context) {
  SNUG_CHECK(attributes.kernel.few_queries == 0,
             "a card has no kernel for segments of few queries");
  check_kernel(attributes, attributes.kernel.splits, view, context.device.card);
  // It is split where blocks are fewer than a few for each multiprocessor.
  SNUG_CHECK(attributes.kernel.splits <= 1 ||
                 blocks_of_split(split_shape(attributes, view)) <= BlockCounters::kCount,
             "an attention in splits of more blocks than there are counters");
  if (is_by_library(attributes)) return prepare_cudnn(attributes, view, context);
  auto prepared = prepare_biases(attributes, view);
  prepared->has_copied_bounds = has_copied_bounds(attributes, view);
  return prepared;
}

std::unique_ptr<Prepared> prepare(const AttentionGrad& attributes, const OperationView& view,
                                  CudaContext& context) {
  SNUG_CHECK(attributes.kernel.few_queries == 0 && attributes.kernel.few_keys == 0,
             "a card has no kernel for segments of few queries or keys");
  SNUG_CHECK(is_by_library(attributes) || !program::copies_operands(attributes),
             "own kernels read and write what has gaps where it lies");
  check_kernel(attributes, 0, view, context.device.card);
  return is_by_library(attributes) ? prepare_cudnn(attributes, view, context)
                                   : prepare_biases(attributes, view);
}

// There is only one kernel for each operation, but the library loads its own when it is first
// called.
void tune(const Attention& attributes, const Invocation& invocation, CudaContext& context) {
  if (is_by_library(attributes)) load_cudnn(attributes, invocation, context);
}
void tune(const AttentionGrad& attributes, const Invocation& invocation, CudaContext& context) {
  if (is_by_library(attributes)) load_cudnn(attributes, invocation, context);
}

// The sinks; data is null if there are none.
DeviceRows sinks_of(const Attention& attention, const Invocation& invocation) {
  return attention.sinks ? matrix_of(invocation[Attention::kSinks]).operand : DeviceRows{};
}

// Keys or values as kernels read them: of a float type, or of 8 bits with their scales.
struct KeyOperand {
  Matrix matrix;
  KeyScales scales;
};

KeyOperand key_operand(const Attention& attention, const Invocation& invocation,
                       const program::Operand<Attention>& rows,
                       const program::Operand<Attention>& scales) {
  const Buffer& buffer = invocation[rows];
  if (!attention.quantized) return {matrix_of(buffer), {}};
  Matrix matrix{.operand = {.data = bytes_of(buffer), .stride = buffer.shape[1]},
                .rows = buffer.shape[0],
                .columns = buffer.shape[1]};
  const DeviceRows of_rows = matrix_of(invocation[scales]).operand;
  return {matrix, {static_cast<const float*>(of_rows.data), of_rows.stride}};
}
KeyOperand cached_keys(const Attention& attention, const Invocation& invocation) {
  return key_operand(attention, invocation, Attention::kK, Attention::kKScales);
}
KeyOperand cached_values(const Attention& attention, const Invocation& invocation) {
  return key_operand(attention, invocation, Attention::kV, Attention::kVScales);
}

// Records which of Snug's own kernels was queued: its number of splits (0: the kernel does not
// split), and whether it runs on the tensor cores.
void note_own(const Invocation& invocation, int64_t splits, bool on_tensor_cores) {
  const AttentionBy by = on_tensor_cores ? AttentionBy::tensor_cores : AttentionBy::plain;
  invocation.note_decision<&Attention::kernel>({.by = by, .splits = splits});
}

// For decoding: queues the attention of `segments` with the decided number of splits
// (backends/cuda/attention/attention_needs.h).
void run_in_splits(const Attention& attention, RangesRun segments, const Invocation& invocation,
                   CudaContext& context) {
  const AttentionForm& form = segments.shape.form;
  const auto [k, k_scales] = cached_keys(attention, invocation);
  const auto [v, v_scales] = cached_values(attention, invocation);
  const int64_t parts = segments.shape.q_tokens * form.heads * attention.kernel.splits;
  auto* scratch = invocation.workspace.as<float>();
  begin_biases(attention, invocation,
               reinterpret_cast<std::byte*>(scratch + parts * (form.head_dim + 2)), segments,
               context);
  AttentionSplitsRun run{.segments = segments,
                         .splits = static_cast<int32_t>(attention.kernel.splits),
                         .vectors = !attention.quantized && is_narrow(k.operand.format) &&
                                    k.operand.format == v.operand.format &&
                                    form.head_dim % kVectorElements == 0 &&
                                    walk_rows({&k, &v}).vectors,
                         .q = matrix_of(invocation[Attention::kQ]).operand,
                         .k = k.operand,
                         .v = v.operand,
                         .o = matrix_of(invocation[Attention::kO]).operand,
                         .lse = floats_of(invocation[Attention::kLse]),
                         .sinks = sinks_of(attention, invocation),
                         .k_scales = k_scales,
                         .v_scales = v_scales,
                         .peaks = scratch,
                         .totals = scratch + parts,
                         .outputs = scratch + 2 * parts,
                         .finished = context.block_counters.data()};
  run.fetches_early = run.vectors && kernels_begin_early() &&
                      static_cast<const PreparedAttention&>(*invocation.prepared).has_copied_bounds;
  attention_splits(run, context.stream.get());
  note_own(invocation, run.splits, false);
}

void run(const Attention& attributes, const Invocation& invocation, CudaContext& context) {
  if (is_by_library(attributes)) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation[Attention::kQ]);
  const int64_t numbers = key_numbers(attributes, invocation[Attention::kQBounds].shape.rows(),
                                      most_keys(attributes, invocation));
  RangesRun ranges = ranges_run(attributes, invocation, q.rows, numbers);
  if (attributes.kernel.splits > 0) return run_in_splits(attributes, ranges, invocation, context);
  begin_biases(attributes, invocation,
               invocation.workspace.data + key_ranges_bytes(attributes, q.rows, numbers), ranges,
               context);
  find_ranges(ranges, context.stream.get());
  const auto [k, k_scales] = cached_keys(attributes, invocation);
  const auto [v, v_scales] = cached_values(attributes, invocation);
  const AttentionRun run{.shape = ranges.shape,
                         .keys = ranges.keys,
                         .queries = ranges.queries,
                         .rows = ranges.rows,
                         .q = q.operand,
                         .k = k.operand,
                         .v = v.operand,
                         .o = matrix_of(invocation[Attention::kO]).operand,
                         .lse = floats_of(invocation[Attention::kLse]),
                         .sinks = sinks_of(attributes, invocation),
                         .k_scales = k_scales,
                         .v_scales = v_scales};
  if (is_on_tensor_cores(attributes)) {
    attention_matrix(run, context.stream.get());
    return note_own(invocation, 0, true);
  }
  attention(run, context.stream.get());
  note_own(invocation, 0, false);
}

// Where blocks write the sums for a bias's gradient; null where it is not wanted.
float* bias_sums_at(const AttentionGrad& grad, const Invocation& invocation, std::byte* first) {
  if (!grad.bias_gradient) return nullptr;
  return reinterpret_cast<float*>(first + scratch_of_bias(grad, invocation).sums);
}

void add_bias_sums(const AttentionGrad& grad, const AttentionGradRun& run,
                   const Invocation& invocation, CudaContext& context) {
  const Matrix dbias = matrix_of(invocation[AttentionGrad::kDBias]);
  add_bias_blocks(
      {.sums = run.bias_sums,
       .blocks = bias_blocks(run.shape.q_tokens, grad.head_dim, is_on_tensor_cores(grad)),
       .heads = run.shape.form.heads,
       .buckets = static_cast<int32_t>(dbias.rows),
       .dbias = dbias.operand},
      context.stream.get());
}

void run(const AttentionGrad& attributes, const Invocation& invocation, CudaContext& context) {
  if (is_by_library(attributes)) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation[AttentionGrad::kQ]);
  const Matrix k = matrix_of(invocation[AttentionGrad::kK]);
  RangesRun ranges = ranges_run(attributes, invocation, q.rows, k.rows);
  invocation.note_decision<&AttentionGrad::dense>({});
  auto* delta = reinterpret_cast<float*>(ranges.queries + k.rows);
  auto* of_bias = reinterpret_cast<std::byte*>(delta + q.rows * attributes.heads);
  begin_biases(attributes, invocation, of_bias, ranges, context);
  find_ranges(ranges, context.stream.get());
  const Matrix d_o = matrix_of(invocation[AttentionGrad::kDO]);
  const Matrix v = matrix_of(invocation[AttentionGrad::kV]);
  const AttentionGradRun run{.shape = ranges.shape,
                             .keys = ranges.keys,
                             .queries = ranges.queries,
                             .d_o = d_o.operand,
                             .q = q.operand,
                             .k = k.operand,
                             .v = v.operand,
                             .o = matrix_of(invocation[AttentionGrad::kO]).operand,
                             .lse = floats_of(invocation[AttentionGrad::kLse]),
                             .delta = delta,
                             .dq = matrix_of(invocation[AttentionGrad::kDQ]).operand,
                             .dk = matrix_of(invocation[AttentionGrad::kDK]).operand,
                             .dv = matrix_of(invocation[AttentionGrad::kDV]).operand,
                             .bias_sums = bias_sums_at(attributes, invocation, of_bias)};
  if (is_on_tensor_cores(attributes)) {
    attention_grad_matrix(run, context.stream.get());
    invocation.note_decision<&AttentionGrad::kernel>({.by = AttentionBy::tensor_cores});
  } else {
    attention_grad(run, context.stream.get());
    invocation.note_decision<&AttentionGrad::kernel>({});
  }
  if (attributes.bias_gradient) add_bias_sums(attributes, run, invocation, context);
}

}  // namespace

SNUG_CUDA_KIND(Attention, .prepare = prepare, .tune = tune);
SNUG_CUDA_KIND(AttentionGrad, .prepare = prepare, .tune = tune);

}  // namespace snug::backends::cuda
