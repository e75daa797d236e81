#include <algorithm>
#include <memory>

#include "backends/cpu/attention/attention_segments.h"
#include "backends/cpu/kernels.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cpu {
namespace {

using program::Attention;

// For segments of at most this many queries, keys and values are read in place instead of being
// packed.
constexpr int64_t kFewQueries = 4;

// One key head of one segment, and a range of its queries.
struct Task {
  int64_t segment = 0;
  int64_t kv_head = 0;
  Range queries;  // query numbers within the segment
};

// The tasks of the forward pass. They do not depend on the number of threads.
class ForwardTasks {
 public:
  ForwardTasks(const Attention& attention, const Segments& segments, int64_t queries_of_tile)
      : attention_(attention), segments_(segments), queries_of_tile_(queries_of_tile) {}

  int64_t count() const {
    int64_t tasks = 0;
    for (int64_t index = 0; index < segments_.count(); ++index) tasks += count_of(index);
    return tasks;
  }

  // Later queries come first: causal ones see more keys, and the longest tasks should not start
  // last.
  Task at(int64_t number) const {
    int64_t index = 0;
    for (; number >= count_of(index); ++index) number -= count_of(index);
    const int64_t queries = segments_.queries(index).size();
    const int64_t tile = tiles_of(index) - 1 - number / attention_.kv_heads;
    return {index,
            number % attention_.kv_heads,
            {tile * queries_of_tile_, std::min(queries, (tile + 1) * queries_of_tile_)}};
  }

 private:
  int64_t tiles_of(int64_t index) const {
    return ceil_div(segments_.queries(index).size(), queries_of_tile_);
  }
  int64_t count_of(int64_t index) const { return tiles_of(index) * attention_.kv_heads; }

  const Attention& attention_;
  const Segments& segments_;
  int64_t queries_of_tile_;
};

// The scale must be positive, since the kernels find the largest score of a row before they apply
// it.
bool supports(const Attention& attention, const program::OperationView& view, const CpuContext&) {
  return attention.scale > 0 && of_one_type(view, {Attention::kO}) &&
         (attention.quantized || of_one_type(view, {Attention::kK, Attention::kV})) &&
         (!attention.sinks || of_one_type(view, {Attention::kSinks}));
}

Attention decide(const Attention& attention, const program::OperationView&, const CpuContext&) {
  Attention decided = attention;
  decided.kernel.few_queries = attention.head_dim <= kLargestHeadDim ? kFewQueries : 0;
  return decided;
}

// Refuses decisions that belong to other backends.
std::unique_ptr<Prepared> prepare(const Attention& attention, const program::OperationView& view,
                                  CpuContext&) {
  SNUG_CHECK(attention.kernel.by == program::AttentionBy::plain && attention.kernel.splits == 0,
             "an attention by other kernels than those of the cpu backend");
  SNUG_CHECK(attention.kernel.few_queries == 0 || attention.head_dim <= kLargestHeadDim,
             "heads of {} elements for the kernel of few queries", attention.head_dim);
  return prepare_biases(attention, view);
}

// The bias tables, followed by each thread's scratch.
int64_t workspace_bytes(const Attention& attention, const program::OperationView& view,
                        const CpuContext& context) {
  const program::Tensor& q = view[Attention::kQ];
  const int64_t tables = table_shape_of(attention, q.shape[0], most_keys(attention, view)).bytes();
  if (q.shape[0] <= attention.kernel.few_queries) return tables;
  const int64_t group = attention.heads / attention.kv_heads;
  return tables +
         context.threads * context.kernels.attention_tile->scratch_bytes[element_of(q.dtype)](
                               group, attention.head_dim);
}

// The tables of pages of all segments, if there are any.
class PageTables {
 public:
  PageTables(const Attention& attention, const Invocation& invocation, const Segments& segments)
      : page_tokens_(attention.page_tokens) {
    if (!attention.paged) return;
    tables_ = integers_in(invocation, Attention::kPages).data();
    pages_ = invocation[Attention::kPages].shape[1];
    const int64_t pool = invocation[Attention::kK].shape[0] / page_tokens_;
    for (int64_t segment = 0; segment < segments.count(); ++segment)
      if (segments.queries(segment).size() > 0) check(segment, segments.keys(segment), pool);
  }

  // Of a segment, whose keys begin at `first`.
  KeyPages of(int64_t segment, int64_t first) const {
    if (tables_ == nullptr) return {nullptr, 0, 0};
    return {tables_ + segment * pages_, page_tokens_, first};
  }

 private:
  void check(int64_t segment, Range keys, int64_t pool) const {
    if (keys.size() == 0) return;
    SNUG_CHECK(keys.begin >= 0 && keys.end <= pages_ * page_tokens_,
               "keys [{}, {}) of a segment that has {} pages of {}", keys.begin, keys.end, pages_,
               page_tokens_);
    for (int64_t page = keys.begin / page_tokens_; page * page_tokens_ < keys.end; ++page) {
      const int32_t place = tables_[segment * pages_ + page];
      SNUG_CHECK(place >= 0 && place < pool, "page {} of {}", place, pool);
    }
  }

  int64_t page_tokens_;
  const int32_t* tables_ = nullptr;
  int64_t pages_ = 0;
};

// Keys or values: rows of the type of the queries, or of 8 bits with their scales.
class KeyTensor {
 public:
  KeyTensor(const Buffer& rows, const Buffer* scales)
      : data_(rows.data), stride_(rows.strides[0]), element_bytes_(base::size_of(rows.dtype)) {
    SNUG_CHECK(rows.shape[1] <= 1 || rows.strides[1] == 1, "keys whose elements lie apart");
    if (scales == nullptr) return;
    SNUG_CHECK(scales->strides[1] == 1, "scales of keys that lie apart");
    scales_ = scales->as<const float>();
    scale_stride_ = scales->strides[0];
  }

  // A head's elements, from this row on.
  HeadRows at(int64_t row, int64_t head, int64_t head_dim) const {
    return {data_ + (row * stride_ + head * head_dim) * element_bytes_, stride_,
            scales_ == nullptr ? nullptr : scales_ + head * scale_stride_ + row};
  }

 private:
  const std::byte* data_;
  int64_t stride_;
  int64_t element_bytes_;
  const float* scales_ = nullptr;
  int64_t scale_stride_ = 0;
};

// The operands of a forward pass.
struct ForwardTensors {
  ForwardTensors(const Attention& attention, const Invocation& invocation, const Segments& segments)
      : biases(attention, invocation),
        pages(attention, invocation, segments),
        q(rows_of(invocation[Attention::kQ])),
        k(invocation[Attention::kK],
          attention.quantized ? &invocation[Attention::kKScales] : nullptr),
        v(invocation[Attention::kV],
          attention.quantized ? &invocation[Attention::kVScales] : nullptr),
        o(rows_of(invocation[Attention::kO])),
        lse(rows_of(invocation[Attention::kLse])),
        sinks(attention.sinks ? one_row_of(invocation[Attention::kSinks]) : Rows{}) {}
  ScoreBiases biases;
  PageTables pages;
  Rows q;
  KeyTensor k, v;
  Rows o, lse;
  Rows sinks;  // one row with the sinks of all heads; its data is null if there are none

  void zero_queries(Range gap) const {
    zero(o, gap);
    for (int64_t head = 0; head < lse.rows; ++head)
      std::fill(lse.at(head, gap.begin), lse.at(head, gap.end), std::byte{0});
  }

  AttentionTile tile(const Attention& attention, const Segments& segments, const Task& task) const {
    const Range queries = segments.queries(task.segment);
    const Range keys = segments.keys(task.segment);
    const int64_t d = attention.head_dim;
    const int64_t head = task.kv_head * (attention.heads / attention.kv_heads);
    const int64_t first_row = attention.paged ? 0 : keys.begin;
    return {.form = form_of(attention, queries, keys, biases, head),
            .begin = task.queries.begin,
            .end = task.queries.end,
            .q = {q.at(queries.begin, head * d), q.stride},
            .k = k.at(first_row, task.kv_head, d),
            .v = v.at(first_row, task.kv_head, d),
            .pages = pages.of(task.segment, keys.begin),
            .o = o.at(queries.begin, head * d),
            .o_stride = o.stride,
            .lse = reinterpret_cast<float*>(lse.at(head, queries.begin)),
            .lse_stride = lse.stride,
            .scratch = nullptr,
            .sinks = sinks.data == nullptr ? nullptr : sinks.at(0, head)};
  }
};

void run(const Attention& attention, const Invocation& invocation, CpuContext& context) {
  const Segments segments(attention, invocation);
  const ForwardTensors tensors(attention, invocation, segments);
  const Element element = tensors.q.element;
  segments.for_each_query_gap(tensors.q.rows, [&](Range gap) { tensors.zero_queries(gap); });
  const AttentionTileKernels& kernels = *context.kernels.attention_tile;
  const int64_t group = attention.heads / attention.kv_heads;
  const int64_t scratch_bytes = kernels.scratch_bytes[element](group, attention.head_dim);
  const ForwardTasks tasks(attention, segments, kernels.queries(group));
  std::byte* scratch = invocation.workspace.data + tensors.biases.shape().bytes();
  FewQueries few(invocation, attention.kv_heads);
  parallel_for(tasks.count(), [&](int64_t number) {
    AttentionTile tile = tensors.tile(attention, segments, tasks.at(number));
    if (has_few(attention, tile.form.queries, tile.form.keys)) {
      few.add(tile.end - tile.begin);
      context.kernels.attention_few->attend[attention.quantized][element](tile);
    } else {
      tile.scratch = scratch + current_thread() * scratch_bytes;
      kernels.attend[attention.quantized][element](tile);
    }
  });
  if (attention.kernel.few_queries > 0) few.note();
}

}  // namespace

SNUG_CPU_KIND(Attention, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
              .prepare = prepare);

}  // namespace snug::backends::cpu
