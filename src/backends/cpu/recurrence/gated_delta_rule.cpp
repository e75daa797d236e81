// Segments and heads in tasks for the threads, and their rows in fp32 and in chunks for the kernel.
// The backward pass of a segment first makes its states between chunks, which it keeps in the
// workspace at the multiples of a chunk's tokens, and then goes through the chunks from the last.
#include "program/kinds/recurrence/gated_delta_rule.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using program::DeltaShape;
using program::GatedDeltaRule;
using program::GatedDeltaRuleGrad;

static_assert(kDeltaRows == program::kDeltaChunkTokens);
constexpr int64_t kFloatBytes = int64_t{sizeof(float)};

// Sizes of a head in whole blocks, and of what is kept of it.
struct PaddedHead {
  explicit PaddedHead(const DeltaShape& shape)
      : dk(round_up(shape.dk, kDeltaBlock)), dv(round_up(shape.dv, kDeltaBlock)) {}
  int64_t dk;
  int64_t dv;

  int64_t state() const { return dk * dv; }
  int64_t keys() const { return kDeltaRows * dk; }
  int64_t values() const { return kDeltaRows * dv; }
  // q, k, v of a chunk, and g, beta and the two factors of the norms of its tokens.
  int64_t chunk() const { return 2 * keys() + values() + 4 * kDeltaRows; }
};

// A part of a segment that is one chunk.
struct ChunkRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t tokens() const { return end - begin; }
};

// The chunk of a segment that begins at `begin`.
ChunkRange chunk_from(int64_t begin, int64_t segment_end) {
  return {begin, std::min(segment_end, (begin / kDeltaRows + 1) * kDeltaRows)};
}
// The one that ends at `end`.
ChunkRange chunk_until(int64_t end, int64_t segment_begin) {
  return {std::max(segment_begin, (end - 1) / kDeltaRows * kDeltaRows), end};
}

// Rows of a tensor that hold heads side by side, from and to fp32 with padded columns.
struct HeadRows {
  Rows rows;
  int64_t width;  // of a head

  void load(const Kernels& kernels, int64_t head, ChunkRange range, int64_t padded,
            float* to) const {
    const auto convert = kernels.elementwise->convert[rows.element][kF32];
    for (int64_t i = 0; i < range.tokens(); ++i) {
      convert(rows.at(range.begin + i, head * width), to + i * padded, width);
      std::fill_n(to + i * padded + width, padded - width, 0.0F);
    }
    const int64_t missing = round_up(range.tokens(), kDeltaBlock) - range.tokens();
    std::fill_n(to + range.tokens() * padded, missing * padded, 0.0F);
  }
  void store(const Kernels& kernels, int64_t head, ChunkRange range, int64_t padded,
             const float* from) const {
    const auto convert = kernels.elementwise->convert[kF32][rows.element];
    for (int64_t i = 0; i < range.tokens(); ++i)
      convert(from + i * padded, rows.at(range.begin + i, head * width), width);
  }
};

// A chunk in a thread's memory, and what the norms of its rows multiplied them by.
struct LoadedChunk {
  DeltaChunk chunk;
  float* query_factors = nullptr;
  float* key_factors = nullptr;
};

// The operands that the forward pass reads, and the chunk that a thread has of them.
template <typename Struct>
class DeltaInputs {
 public:
  DeltaInputs(const Struct& rule, const Invocation& invocation, const Kernels& kernels)
      : shape(program::delta_shape(rule, invocation)),
        padded(shape),
        q{rows_of(invocation[Struct::kQ]), shape.dk},
        k{rows_of(invocation[Struct::kK]), shape.dk},
        v{rows_of(invocation[Struct::kV]), shape.dv},
        g(rows_of(invocation[Struct::kG])),
        beta(rows_of(invocation[Struct::kBeta])),
        segments(invocation[Struct::kBounds].shape[0]),
        bounds(integers_of(invocation[Struct::kBounds])),
        kernels_(kernels) {}

  int64_t begin(int64_t segment) const { return bounds[2 * segment]; }
  int64_t end(int64_t segment) const { return bounds[2 * segment + 1]; }
  // What queries are multiplied by next to the root of their squares.
  float query_scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.dk)); }

  // Reads a chunk of a value head into `memory` (padded.chunk()).
  LoadedChunk load(int64_t value_head, ChunkRange range, float* memory) const {
    const int64_t key_head = value_head / shape.heads_per_key();
    float* queries = memory;
    float* keys = queries + padded.keys();
    float* values = keys + padded.keys();
    float* decay = values + padded.values();
    float* betas = decay + kDeltaRows;
    float* query_factors = betas + kDeltaRows;
    float* key_factors = query_factors + kDeltaRows;
    DeltaChunk chunk{.rows = round_up(range.tokens(), kDeltaBlock),
                     .dk = padded.dk,
                     .dv = padded.dv,
                     .q = queries,
                     .k = keys,
                     .v = values,
                     .decay = decay,
                     .beta = betas};
    q.load(kernels_, key_head, range, padded.dk, queries);
    k.load(kernels_, key_head, range, padded.dk, keys);
    v.load(kernels_, value_head, range, padded.dv, values);
    const DeltaRuleKernels& delta = *kernels_.delta_rule;
    delta.norm(queries, chunk.rows, padded.dk, query_scale(), queries, query_factors);
    delta.norm(keys, chunk.rows, padded.dk, 1.0F, keys, key_factors);
    float sum = 0.0F;
    for (int64_t i = 0; i < chunk.rows; ++i) {
      const bool is_token = i < range.tokens();
      if (is_token) sum += value_at(g.at(range.begin + i), g.element, value_head);
      decay[i] = sum;
      betas[i] = is_token ? value_at(beta.at(range.begin + i), beta.element, value_head) : 0.0F;
    }
    return {chunk, query_factors, key_factors};
  }
  // Clears rows if some are in no segment; whoever fills the others does so afterwards.
  void clear_gaps(const Rows& rows) const {
    int64_t covered = 0;
    for (int64_t segment = 0; segment < segments; ++segment)
      covered += end(segment) - begin(segment);
    if (covered < shape.tokens) zero_rows(rows);
  }

  DeltaShape shape;
  PaddedHead padded;
  HeadRows q, k, v;
  Rows g, beta;
  int64_t segments;
  const int32_t* bounds;

 private:
  const Kernels& kernels_;
};

// The states that sequences keep, without padding. Without data: none are kept.
struct KeptStates {
  KeptStates(const GatedDeltaRule& rule, const Invocation& invocation, const DeltaShape& of)
      : shape(of) {
    if (!rule.cached) return;
    states = rows_of(invocation[GatedDeltaRule::kState]);
    SNUG_CHECK(states.element == kF32, "states that are not f32");
    slots = integers_of(invocation[GatedDeltaRule::kSlots]);
  }
  float* at(int64_t segment, int64_t head) const {
    return reinterpret_cast<float*>(states.at(slots[2 * segment], head * shape.dk * shape.dv));
  }

  // A segment's state before its first token, padded.
  void load(int64_t segment, int64_t head, const PaddedHead& padded, float* state) const {
    std::fill_n(state, padded.state(), 0.0F);
    if (slots == nullptr || slots[2 * segment + 1] == 0) return;
    for (int64_t i = 0; i < shape.dk; ++i)
      std::copy_n(at(segment, head) + i * shape.dv, shape.dv, state + i * padded.dv);
  }
  void store(int64_t segment, int64_t head, const PaddedHead& padded, const float* state) const {
    for (int64_t i = 0; i < shape.dk && slots != nullptr; ++i)
      std::copy_n(state + i * padded.dv, shape.dv, at(segment, head) + i * shape.dv);
  }

  DeltaShape shape;
  Rows states;
  const int32_t* slots = nullptr;
};

// Floats of a thread: a chunk, a state, o, and what the kernel needs.
int64_t forward_floats(const PaddedHead& head) {
  return head.chunk() + head.state() + head.values() + delta_forward_floats(head.dk, head.dv);
}

int64_t workspace_bytes(const GatedDeltaRule& rule, const program::OperationView& view,
                        const CpuContext& context) {
  const PaddedHead head(program::delta_shape(rule, view));
  return context.threads * whole_lines(forward_floats(head) * kFloatBytes);
}

void run(const GatedDeltaRule& rule, const Invocation& invocation, CpuContext& context) {
  const Kernels& kernels = context.kernels;
  const DeltaInputs inputs(rule, invocation, kernels);
  const HeadRows o{rows_of(invocation[GatedDeltaRule::kO]), inputs.shape.dv};
  const PaddedHead& head = inputs.padded;
  const int64_t floats = whole_lines(forward_floats(head) * kFloatBytes) / kFloatBytes;
  auto* memory = invocation.workspace.as<float>();
  inputs.clear_gaps(o.rows);
  const KeptStates kept(rule, invocation, inputs.shape);
  const int64_t heads = inputs.shape.value_heads;
  parallel_for(inputs.segments * heads, [&](int64_t task) {
    const int64_t segment = task / heads;
    if (inputs.begin(segment) == inputs.end(segment)) return;
    float* chunk_memory = memory + current_thread() * floats;
    float* state = chunk_memory + head.chunk();
    float* values = state + head.state();
    float* scratch = values + head.values();
    kept.load(segment, task % heads, head, state);
    ChunkRange range;
    for (int64_t at = inputs.begin(segment); at < inputs.end(segment); at = range.end) {
      range = chunk_from(at, inputs.end(segment));
      const LoadedChunk loaded = inputs.load(task % heads, range, chunk_memory);
      kernels.delta_rule->forward(loaded.chunk, state, values, scratch);
      o.store(kernels, task % heads, range, head.dv, values);
    }
    kept.store(segment, task % heads, head, state);
  });
}

// Floats of a thread: a chunk, dO and dV, dQ and dK of a key head, dg and dbeta, a state, the
// gradients of the states of a key head's value heads, and what the kernel needs.
int64_t backward_floats(const PaddedHead& head, const DeltaShape& shape) {
  return head.chunk() + 2 * head.values() + 2 * head.keys() + 2 * kDeltaRows +
         (1 + shape.heads_per_key()) * head.state() + delta_backward_floats(head.dk, head.dv);
}

int64_t states_bytes(const PaddedHead& head, const DeltaShape& shape) {
  return whole_lines(shape.chunks() * shape.value_heads * head.state() * kFloatBytes);
}

int64_t workspace_bytes(const GatedDeltaRuleGrad& rule, const program::OperationView& view,
                        const CpuContext& context) {
  const DeltaShape shape = program::delta_shape(rule, view);
  const PaddedHead head(shape);
  return states_bytes(head, shape) +
         context.threads * whole_lines(backward_floats(head, shape) * kFloatBytes);
}

// The backward pass of one segment of one key head, by one thread.
class DeltaTask {
 public:
  DeltaTask(const DeltaInputs<GatedDeltaRuleGrad>& inputs, const Invocation& invocation,
            const Kernels& kernels)
      : inputs_(inputs),
        head_(inputs.padded),
        kernels_(kernels),
        d_o_{rows_of(invocation[GatedDeltaRuleGrad::kDO]), inputs.shape.dv},
        dq_{rows_of(invocation[GatedDeltaRuleGrad::kDQ]), inputs.shape.dk},
        dk_{rows_of(invocation[GatedDeltaRuleGrad::kDK]), inputs.shape.dk},
        dv_{rows_of(invocation[GatedDeltaRuleGrad::kDV]), inputs.shape.dv},
        dg_(rows_of(invocation[GatedDeltaRuleGrad::kDG])),
        dbeta_(rows_of(invocation[GatedDeltaRuleGrad::kDBeta])),
        states_(invocation.workspace.as<float>()) {}

  void clear_gaps() const {
    for (const Rows* rows : {&dq_.rows, &dk_.rows, &dv_.rows, &dg_, &dbeta_})
      inputs_.clear_gaps(*rows);
  }

  void run(int64_t segment, int64_t key_head, float* memory) const {
    const Parts parts(head_, memory);
    const int64_t shared = inputs_.shape.heads_per_key();
    for (int64_t i = 0; i < shared; ++i) keep_states(segment, key_head * shared + i, parts);
    std::fill_n(parts.dstates, shared * head_.state(), 0.0F);
    ChunkRange range;
    for (int64_t at = inputs_.end(segment); at > inputs_.begin(segment); at = range.begin) {
      range = chunk_until(at, inputs_.begin(segment));
      back(segment, key_head, range, parts);
    }
  }

 private:
  struct Parts {
    Parts(const PaddedHead& head, float* memory)
        : chunk(memory),
          d_o(chunk + head.chunk()),
          dv(d_o + head.values()),
          dq(dv + head.values()),
          dk(dq + head.keys()),
          dg(dk + head.keys()),
          dbeta(dg + kDeltaRows),
          state(dbeta + kDeltaRows),
          scratch(state + head.state()),
          dstates(scratch + delta_backward_floats(head.dk, head.dv)) {}
    float *chunk, *d_o, *dv, *dq, *dk, *dg, *dbeta, *state, *scratch, *dstates;
  };

  float* state_at(int64_t token, int64_t value_head) const {
    return states_ + (token / kDeltaRows * inputs_.shape.value_heads + value_head) * head_.state();
  }

  // Keeps the states before all chunks of a segment but the first, whose state is zeros.
  void keep_states(int64_t segment, int64_t value_head, const Parts& parts) const {
    const int64_t end = inputs_.end(segment);
    std::fill_n(parts.state, head_.state(), 0.0F);
    ChunkRange range = chunk_from(inputs_.begin(segment), end);
    while (range.end < end) {
      const LoadedChunk loaded = inputs_.load(value_head, range, parts.chunk);
      kernels_.delta_rule->forward(loaded.chunk, parts.state, nullptr, parts.scratch);
      std::copy_n(parts.state, head_.state(), state_at(range.end, value_head));
      range = chunk_from(range.end, end);
    }
  }

  void back(int64_t segment, int64_t key_head, ChunkRange range, const Parts& parts) const {
    const DeltaRuleKernels& delta = *kernels_.delta_rule;
    const int64_t shared = inputs_.shape.heads_per_key();
    const bool is_first = range.begin == inputs_.begin(segment);
    if (is_first) std::fill_n(parts.state, head_.state(), 0.0F);
    std::fill_n(parts.dq, head_.keys(), 0.0F);
    std::fill_n(parts.dk, head_.keys(), 0.0F);
    LoadedChunk loaded;
    for (int64_t i = 0; i < shared; ++i) {
      const int64_t value_head = key_head * shared + i;
      loaded = inputs_.load(value_head, range, parts.chunk);
      d_o_.load(kernels_, value_head, range, head_.dv, parts.d_o);
      delta.backward(loaded.chunk,
                     {.state = is_first ? parts.state : state_at(range.begin, value_head),
                      .dstate = parts.dstates + i * head_.state(),
                      .d_o = parts.d_o,
                      .dq = parts.dq,
                      .dk = parts.dk,
                      .dv = parts.dv,
                      .dg = parts.dg,
                      .dbeta = parts.dbeta},
                     parts.scratch);
      dv_.store(kernels_, value_head, range, head_.dv, parts.dv);
      for (int64_t row = 0; row < range.tokens(); ++row) {
        set_value(dg_.at(range.begin + row), dg_.element, value_head, parts.dg[row]);
        set_value(dbeta_.at(range.begin + row), dbeta_.element, value_head, parts.dbeta[row]);
      }
    }
    const DeltaChunk& chunk = loaded.chunk;
    delta.norm_grad(chunk, chunk.q, loaded.query_factors, inputs_.query_scale(), parts.dq);
    delta.norm_grad(chunk, chunk.k, loaded.key_factors, 1.0F, parts.dk);
    dq_.store(kernels_, key_head, range, head_.dk, parts.dq);
    dk_.store(kernels_, key_head, range, head_.dk, parts.dk);
  }

  const DeltaInputs<GatedDeltaRuleGrad>& inputs_;
  const PaddedHead& head_;
  const Kernels& kernels_;
  HeadRows d_o_, dq_, dk_, dv_;
  Rows dg_, dbeta_;
  float* states_;
};

void run(const GatedDeltaRuleGrad& rule, const Invocation& invocation, CpuContext& context) {
  const DeltaInputs inputs(rule, invocation, context.kernels);
  const DeltaTask work(inputs, invocation, context.kernels);
  const int64_t floats =
      whole_lines(backward_floats(inputs.padded, inputs.shape) * kFloatBytes) / kFloatBytes;
  float* memory =
      invocation.workspace.as<float>() + states_bytes(inputs.padded, inputs.shape) / kFloatBytes;
  work.clear_gaps();
  const int64_t heads = inputs.shape.key_heads;
  parallel_for(inputs.segments * heads, [&](int64_t task) {
    work.run(task / heads, task % heads, memory + current_thread() * floats);
  });
}

}  // namespace

SNUG_CPU_KIND(GatedDeltaRule, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(GatedDeltaRuleGrad, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
