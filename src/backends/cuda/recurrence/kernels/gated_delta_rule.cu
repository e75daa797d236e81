// The chunked form, with the names and the order of the CPU's kernel
// (backends/cpu/recurrence/kernels/gated_delta_rule.cpp), which has the formulas.
#include "backends/cuda/recurrence/kernels/gated_delta_rule.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/recurrence/kernels/block_product.cuh"
#include "backends/cuda/recurrence/kernels/segment_taps.h"

namespace snug::backends::cuda {
namespace {

constexpr float kNormEpsilon = 1e-6F;  // program::kDeltaNormEpsilon

// Calls f(i) for i below `count`, shared among the threads, and waits for all of them.
template <typename F>
__device__ void for_block(int64_t count, const F& f) {
  for (int64_t i = threadIdx.x; i < count; i += kDeltaThreads) f(i);
  __syncthreads();
}

// Calls f(row, sum) in one thread for each row below `rows`, where sum is that of term(row, i) for
// i below `count`. Waits for all.
template <typename Term, typename F>
__device__ void for_row_sums(int64_t rows, int64_t count, const Term& term, const F& f) {
  for (int64_t row = threadIdx.x / kLanes; row < rows; row += kDeltaThreads / kLanes) {
    float sum = 0.0F;
    for (int64_t i = threadIdx.x % kLanes; i < count; i += kLanes) sum += term(row, i);
    sum = warp_sum(sum);
    if (threadIdx.x % kLanes == 0) f(row, sum);
  }
  __syncthreads();
}

// Hands out parts of a block's scratch.
struct Scratch {
  float* next;
  __device__ float* take(int64_t floats) {
    float* const part = next;
    next += floats;
    return part;
  }
};

// A part of a segment, within the multiples of a chunk's tokens.
struct ChunkRange {
  int64_t begin;
  int64_t end;
};
__device__ ChunkRange chunk_from(int64_t begin, int64_t segment_end) {
  const int64_t border = (begin / kDeltaTokens + 1) * kDeltaTokens;
  return {begin, border < segment_end ? border : segment_end};
}
__device__ ChunkRange chunk_until(int64_t end, int64_t segment_begin) {
  const int64_t border = (end - 1) / kDeltaTokens * kDeltaTokens;
  return {border > segment_begin ? border : segment_begin, end};
}

// A chunk of one value head in fp32, and what both passes make of it.
struct Chunk {
  __device__ Chunk(const DeltaRuleRun& of_run, int64_t head, Scratch& scratch)
      : run(of_run),
        value_head(head),
        key_head(head / (of_run.sizes.value_heads / of_run.sizes.key_heads)),
        dk(of_run.sizes.dk),
        dv(of_run.sizes.dv),
        q(scratch.take(kDeltaTokens * dk)),
        k(scratch.take(kDeltaTokens * dk)),
        v(scratch.take(kDeltaTokens * dv)),
        written(scratch.take(kDeltaTokens * dv)),
        d(scratch.take(kDeltaTokens * kDeltaTokens)),
        e(scratch.take(kDeltaTokens * kDeltaTokens)),
        p(scratch.take(kDeltaTokens * kDeltaTokens)),
        decay(scratch.take(kDeltaTokens)),
        beta(scratch.take(kDeltaTokens)),
        q_factors(scratch.take(kDeltaTokens)),
        k_factors(scratch.take(kDeltaTokens)) {}

  __device__ __attribute__((noinline)) void load(const ChunkRange& range) {
    n = range.end - range.begin;
    read(run.q, range.begin, key_head * dk, dk, q);
    read(run.k, range.begin, key_head * dk, dk, k);
    read(run.v, range.begin, value_head * dv, dv, v);
    for_block(n, [&](int64_t i) {
      const int64_t token = range.begin + i;
      beta[i] = load_one(run.beta, token * run.beta.stride + value_head);
      decay[i] = load_one(run.g, token * run.g.stride + value_head);
    });
    if (threadIdx.x == 0)
      for (int64_t i = 1; i < n; ++i) decay[i] += decay[i - 1];
    norm(q, query_scale(), q_factors);
    norm(k, 1.0F, k_factors);
    for_block(n * n, [&](int64_t at) {
      const int64_t i = at / n;
      const int64_t j = at % n;
      d[at] = j <= i ? expf(decay[i] - decay[j]) : 0.0F;
    });
  }

  __device__ float query_scale() const { return rsqrtf(static_cast<float>(dk)); }
  __device__ float grown(int64_t i) const { return expf(decay[i]); }
  __device__ float left(int64_t i) const { return expf(decay[n - 1] - decay[i]); }

  // E.
  __device__ void key_scores() {
    multiply({k, dk, 1}, {k, 1, dk}, e, {n, n, dk});
    for_block(n * n, [&](int64_t at) { e[at] = at / n == at % n ? 0.0F : e[at] * d[at]; });
  }
  // P.
  __device__ void query_scores() {
    multiply({q, dk, 1}, {k, 1, dk}, p, {n, n, dk});
    for_block(n * n, [&](int64_t at) { p[at] *= d[at]; });
  }
  // x = (I + diag(beta) E)^-1 x, or with the transpose. Each thread has columns of its own.
  template <bool kTransposed>
  __device__ void solve(float* x) {
    for_block(dv, [&](int64_t column) {
      for (int64_t step = 0; step < n; ++step) {
        const int64_t i = kTransposed ? n - 1 - step : step;
        const int64_t end = kTransposed ? n : i;
        float sum = 0.0F;
        for (int64_t j = kTransposed ? i + 1 : 0; j < end; ++j)
          sum +=
              (kTransposed ? beta[j] * e[j * n + i] : beta[i] * e[i * n + j]) * x[j * dv + column];
        x[i * dv + column] -= sum;
      }
    });
  }
  // exp(G[last]) S + (exp(G[last] - G) K)^T W. Scales W.
  __device__ void step(float* state) {
    const float of_state = grown(n - 1);
    for_block(n * dv, [&](int64_t at) { written[at] *= left(at / dv); });
    for_block(dk * dv, [&](int64_t at) { state[at] *= of_state; });
    multiply_add({k, 1, dk}, {written, dv, 1}, state, {dk, dv, n});
  }
  // W before it is solved, from `held` = K S, which may be W's place.
  __device__ void right_side(const float* held) {
    for_block(n * dv, [&](int64_t at) {
      const int64_t i = at / dv;
      written[at] = beta[i] * (v[at] - grown(i) * held[at]);
    });
  }

  __device__ void read(const DeviceRows& rows, int64_t token, int64_t column, int64_t width,
                       float* to) const {
    for_block(n * width, [&](int64_t at) {
      to[at] = load_one(rows, (token + at / width) * rows.stride + column + at % width);
    });
  }

  __device__ void norm(float* x, float scale, float* factors) {
    const auto square = [&](int64_t row, int64_t i) { return x[row * dk + i] * x[row * dk + i]; };
    for_row_sums(n, dk, square,
                 [&](int64_t row, float sum) { factors[row] = scale / sqrtf(sum + kNormEpsilon); });
    for_block(n * dk, [&](int64_t at) { x[at] *= factors[at / dk]; });
  }

  const DeltaRuleRun& run;
  int64_t value_head, key_head;
  int64_t dk, dv;
  float *q, *k, *v, *written, *d, *e, *p, *decay, *beta, *q_factors, *k_factors;
  int64_t n = 0;  // its tokens
};

// Steps a state over a chunk that is loaded; without o only the state is made.
__device__ __attribute__((noinline)) void forward_chunk(Chunk& chunk, float* state, float* o) {
  const int64_t n = chunk.n;
  const int64_t dv = chunk.dv;
  chunk.key_scores();
  multiply({chunk.k, chunk.dk, 1}, {state, dv, 1}, chunk.written, {n, dv, chunk.dk});
  chunk.right_side(chunk.written);
  chunk.solve<false>(chunk.written);
  if (o != nullptr) {
    chunk.query_scores();
    multiply({chunk.q, chunk.dk, 1}, {state, dv, 1}, o, {n, dv, chunk.dk});
    for_block(n * dv, [&](int64_t at) { o[at] *= chunk.grown(at / dv); });
    multiply_add({chunk.p, n, 1}, {chunk.written, dv, 1}, o, {n, dv, n});
  }
  chunk.step(state);
}

// Where the state of a segment's head is kept for later; null where none is.
__device__ float* kept_state(const DeltaRuleRun& run, int64_t segment, int64_t head) {
  if (run.slots == nullptr) return nullptr;
  return static_cast<float*>(run.state.data) + run.slots[2 * segment] * run.state.stride +
         head * run.sizes.state();
}

// Blocks (head, part): every so many segments of a head.
__global__ void __launch_bounds__(kDeltaThreads) delta_rule_kernel(DeltaRuleRun run) {
  const DeltaSizes& sizes = run.sizes;
  const int64_t head = blockIdx.x;
  const int64_t block = head * gridDim.y + blockIdx.y;
  Scratch scratch{run.scratch + block * sizes.forward_floats()};
  Chunk chunk(run, head, scratch);
  float* const o = scratch.take(kDeltaTokens * sizes.dv);
  float* const state = scratch.take(sizes.state());
  for (int64_t segment = blockIdx.y; segment < sizes.segments; segment += gridDim.y) {
    const int64_t end = run.bounds[2 * segment + 1];
    if (run.bounds[2 * segment] == end) continue;
    float* const kept = kept_state(run, segment, head);
    const bool is_known = kept != nullptr && run.slots[2 * segment + 1] > 0;
    for_block(sizes.state(), [&](int64_t at) { state[at] = is_known ? kept[at] : 0.0F; });
    ChunkRange range{0, run.bounds[2 * segment]};
    while (range.end < end) {
      range = chunk_from(range.end, end);
      chunk.load(range);
      forward_chunk(chunk, state, o);
      for_block(chunk.n * sizes.dv, [&](int64_t at) {
        const int64_t row = range.begin + at / sizes.dv;
        store_one(run.o, row * run.o.stride + head * sizes.dv + at % sizes.dv, o[at]);
      });
    }
    if (kept != nullptr) for_block(sizes.state(), [&](int64_t at) { kept[at] = state[at]; });
  }
}

// The parts of the scratch that all blocks share, after those of each.
struct SharedParts {
  float* states;  // (chunks, value_heads, dk, dv)
  float* dq;      // (tokens, value_heads, dk)
  float* dk;
};
__host__ __device__ SharedParts shared_parts(const DeltaRuleRun& run) {
  float* const states = run.scratch + run.sizes.blocks() * run.sizes.backward_floats();
  float* const dq = states + run.sizes.states();
  return {states, dq, dq + run.sizes.key_gradients()};
}

// The backward pass of a value head's segments.
class HeadGradient {
 public:
  __device__ HeadGradient(const DeltaRuleGradRun& run, int64_t head, Scratch scratch)
      : run_(run),
        shared_(shared_parts(run.inputs)),
        head_(head),
        chunk_(run.inputs, head, scratch),
        dk_(chunk_.dk),
        dv_(chunk_.dv),
        of_state_(scratch.take(kDeltaTokens * dk_)),
        keys_(scratch.take(kDeltaTokens * dk_)),
        dq_(scratch.take(kDeltaTokens * dk_)),
        dkeys_(scratch.take(kDeltaTokens * dk_)),
        d_o_(scratch.take(kDeltaTokens * dv_)),
        held_(scratch.take(kDeltaTokens * dv_)),
        missing_(scratch.take(kDeltaTokens * dv_)),
        slope_(scratch.take(kDeltaTokens * dv_)),
        square_(scratch.take(kDeltaTokens * kDeltaTokens)),
        dg_(scratch.take(kDeltaTokens)),
        dbeta_(scratch.take(kDeltaTokens)),
        first_state_(scratch.take(run.inputs.sizes.state())),
        dstate_(scratch.take(run.inputs.sizes.state())) {}

  __device__ void segment(int64_t begin, int64_t end) {
    if (begin >= end) return;
    const int64_t state = run_.inputs.sizes.state();
    keep_states(begin, end);
    for_block(state, [&](int64_t at) { dstate_[at] = first_state_[at] = 0.0F; });
    ChunkRange range{end, end};
    while (range.begin > begin) {
      range = chunk_until(range.begin, begin);
      back(range, range.begin == begin ? first_state_ : state_at(range.begin));
    }
  }

 private:
  __device__ float* state_at(int64_t token) const {
    const DeltaSizes& sizes = run_.inputs.sizes;
    return shared_.states + (token / kDeltaTokens * sizes.value_heads + head_) * sizes.state();
  }

  // Keeps the states before all chunks but the first, whose state is zeros.
  __device__ void keep_states(int64_t begin, int64_t end) {
    const int64_t state = run_.inputs.sizes.state();
    for_block(state, [&](int64_t at) { first_state_[at] = 0.0F; });
    ChunkRange range = chunk_from(begin, end);
    while (range.end < end) {
      chunk_.load(range);
      forward_chunk(chunk_, first_state_, nullptr);
      float* const kept = state_at(range.end);
      for_block(state, [&](int64_t at) { kept[at] = first_state_[at]; });
      range = chunk_from(range.end, end);
    }
  }

  __device__ void back(const ChunkRange& range, const float* state) {
    make_again(range, state);
    const int64_t n = chunk_.n;
    of_written();
    of_scores();
    of_queries(state);
    of_update(state);
    chunk_.solve<true>(slope_);  // dR
    of_system();
    of_values(range, state);
    of_state();
    if (threadIdx.x == 0)
      for (int64_t i = n - 1; i > 0; --i) dg_[i - 1] += dg_[i];
    __syncthreads();
    store(range);
  }

  __device__ void make_again(const ChunkRange& range, const float* state) {
    chunk_.load(range);
    const int64_t n = chunk_.n;
    chunk_.read(run_.d_o, range.begin, head_ * dv_, dv_, d_o_);
    chunk_.key_scores();
    chunk_.query_scores();
    multiply({chunk_.k, dk_, 1}, {state, dv_, 1}, held_, {n, dv_, dk_});
    for_block(n * dv_, [&](int64_t at) {
      missing_[at] = chunk_.v[at] - chunk_.grown(at / dv_) * held_[at];
    });
    chunk_.right_side(held_);
    chunk_.solve<false>(chunk_.written);
    for_block(n, [&](int64_t i) { dg_[i] = dbeta_[i] = 0.0F; });
  }

  __device__ void of_written() {
    const int64_t n = chunk_.n;
    multiply({chunk_.k, dk_, 1}, {dstate_, dv_, 1}, slope_, {n, dv_, dk_});
    for_block(n * dv_, [&](int64_t at) { slope_[at] *= chunk_.left(at / dv_); });
    multiply_add({chunk_.p, 1, n}, {d_o_, dv_, 1}, slope_, {n, dv_, n});
  }

  // What square_, the gradient of `scores`, gives to the sums of g. Factors belong to rows.
  template <typename Factor>
  __device__ void add_to_decays(const float* scores, const Factor& factor) {
    const int64_t n = chunk_.n;
    const auto term = [&](int64_t row, int64_t i) {
      if (i == row) return 0.0F;
      const int64_t at = i < row ? row * n + i : i * n + row;
      const float product = square_[at] * scores[at] * factor(i < row ? row : i);
      return i < row ? product : -product;
    };
    for_row_sums(n, n, term, [&](int64_t row, float sum) { dg_[row] += sum; });
  }

  __device__ void of_scores() {
    const int64_t n = chunk_.n;
    multiply({d_o_, dv_, 1}, {chunk_.written, 1, dv_}, square_, {n, n, dv_});
    add_to_decays(chunk_.p, [](int64_t) { return 1.0F; });
    for_block(n * n, [&](int64_t at) { square_[at] *= chunk_.d[at]; });
    multiply({square_, n, 1}, {chunk_.k, dk_, 1}, dq_, {n, dk_, n});
    multiply({square_, 1, n}, {chunk_.q, dk_, 1}, dkeys_, {n, dk_, n});
  }

  __device__ void of_queries(const float* state) {
    const int64_t n = chunk_.n;
    multiply({d_o_, dv_, 1}, {state, 1, dv_}, of_state_, {n, dk_, dv_});
    const auto term = [&](int64_t row, int64_t i) {
      return of_state_[row * dk_ + i] * chunk_.q[row * dk_ + i];
    };
    for_row_sums(n, dk_, term,
                 [&](int64_t row, float sum) { dg_[row] += chunk_.grown(row) * sum; });
    for_block(n * dk_, [&](int64_t at) { dq_[at] += chunk_.grown(at / dk_) * of_state_[at]; });
  }

  __device__ void of_update(const float* state) {
    const int64_t n = chunk_.n;
    multiply({chunk_.written, dv_, 1}, {dstate_, 1, dv_}, keys_, {n, dk_, dv_});
    const auto term = [&](int64_t row, int64_t i) {
      return keys_[row * dk_ + i] * chunk_.k[row * dk_ + i];
    };
    // One row more, for the state itself; what the tokens lose, the last sum gains.
    float* const lost = square_;
    for_row_sums(n, dk_, term, [&](int64_t row, float sum) {
      lost[row] = chunk_.left(row) * sum;
      dg_[row] -= lost[row];
    });
    const auto kept = [&](int64_t, int64_t at) { return dstate_[at] * state[at]; };
    for_row_sums(1, dk_ * dv_, kept, [&](int64_t, float sum) {
      float of_last = chunk_.grown(n - 1) * sum;
      for (int64_t i = 0; i < n; ++i) of_last += lost[i];
      dg_[n - 1] += of_last;
    });
    for_block(n * dk_, [&](int64_t at) { dkeys_[at] += chunk_.left(at / dk_) * keys_[at]; });
  }

  __device__ void of_system() {
    const int64_t n = chunk_.n;
    multiply({slope_, dv_, 1}, {chunk_.written, 1, dv_}, square_, {n, n, dv_});
    for_block(n * n, [&](int64_t at) { square_[at] = -square_[at]; });
    add_to_decays(chunk_.e, [&](int64_t row) { return chunk_.beta[row]; });
    const auto term = [&](int64_t row, int64_t i) {
      return i < row ? square_[row * n + i] * chunk_.e[row * n + i] : 0.0F;
    };
    for_row_sums(n, n, term, [&](int64_t row, float sum) { dbeta_[row] += sum; });
    for_block(n * n, [&](int64_t at) {
      square_[at] = at / n == at % n ? 0.0F : square_[at] * chunk_.beta[at / n] * chunk_.d[at];
    });
    multiply_add({square_, n, 1}, {chunk_.k, dk_, 1}, dkeys_, {n, dk_, n});
    multiply_add({square_, 1, n}, {chunk_.k, dk_, 1}, dkeys_, {n, dk_, n});
  }

  __device__ void of_values(const ChunkRange& range, const float* state) {
    const int64_t n = chunk_.n;
    const auto of_beta = [&](int64_t row, int64_t i) {
      return slope_[row * dv_ + i] * missing_[row * dv_ + i];
    };
    for_row_sums(n, dv_, of_beta, [&](int64_t row, float sum) { dbeta_[row] += sum; });
    for_block(n * dv_, [&](int64_t at) {
      const int64_t i = at / dv_;
      const float of_value = chunk_.beta[i] * slope_[at];
      store_one(run_.dv, (range.begin + i) * run_.dv.stride + head_ * dv_ + at % dv_, of_value);
      slope_[at] = -of_value * chunk_.grown(i);
    });
    const auto of_decay = [&](int64_t row, int64_t i) {
      return slope_[row * dv_ + i] * held_[row * dv_ + i];
    };
    for_row_sums(n, dv_, of_decay, [&](int64_t row, float sum) { dg_[row] += sum; });
    multiply_add({slope_, dv_, 1}, {state, 1, dv_}, dkeys_, {n, dk_, dv_});
  }

  __device__ void of_state() {
    const int64_t n = chunk_.n;
    const float of_last = chunk_.grown(n - 1);
    for_block(dk_ * dv_, [&](int64_t at) { dstate_[at] *= of_last; });
    for_block(n * dv_, [&](int64_t at) { missing_[at] = chunk_.grown(at / dv_) * d_o_[at]; });
    multiply_add({chunk_.k, 1, dk_}, {slope_, dv_, 1}, dstate_, {dk_, dv_, n});
    multiply_add({chunk_.q, 1, dk_}, {missing_, dv_, 1}, dstate_, {dk_, dv_, n});
  }

  // Through the norm, dx = f (dy - y (y dy) / scale^2), to the value head's place.
  __device__ void store_keys(const ChunkRange& range, const float* y, const float* factors,
                             float scale, float* dy, float* to) {
    const auto term = [&](int64_t row, int64_t i) { return y[row * dk_ + i] * dy[row * dk_ + i]; };
    float* const along = square_;
    for_row_sums(chunk_.n, dk_, term,
                 [&](int64_t row, float sum) { along[row] = sum / (scale * scale); });
    for_block(chunk_.n * dk_, [&](int64_t at) {
      const int64_t i = at / dk_;
      const int64_t row = (range.begin + i) * run_.inputs.sizes.value_heads + head_;
      to[row * dk_ + at % dk_] = factors[i] * (dy[at] - y[at] * along[i]);
    });
  }

  __device__ void store(const ChunkRange& range) {
    store_keys(range, chunk_.q, chunk_.q_factors, chunk_.query_scale(), dq_, shared_.dq);
    store_keys(range, chunk_.k, chunk_.k_factors, 1.0F, dkeys_, shared_.dk);
    for_block(chunk_.n, [&](int64_t i) {
      const int64_t row = range.begin + i;
      store_one(run_.dg, row * run_.dg.stride + head_, dg_[i]);
      store_one(run_.dbeta, row * run_.dbeta.stride + head_, dbeta_[i]);
    });
  }

  const DeltaRuleGradRun& run_;
  SharedParts shared_;
  int64_t head_;
  Chunk chunk_;
  int64_t dk_, dv_;
  float *of_state_, *keys_, *dq_, *dkeys_, *d_o_, *held_, *missing_, *slope_, *square_;
  float *dg_, *dbeta_, *first_state_, *dstate_;
};

__global__ void __launch_bounds__(kDeltaThreads) delta_rule_grad_kernel(DeltaRuleGradRun run) {
  const DeltaSizes& sizes = run.inputs.sizes;
  const int64_t head = blockIdx.x;
  const int64_t block = head * gridDim.y + blockIdx.y;
  HeadGradient gradient(run, head, Scratch{run.inputs.scratch + block * sizes.backward_floats()});
  for (int64_t segment = blockIdx.y; segment < sizes.segments; segment += gridDim.y)
    gradient.segment(run.inputs.bounds[2 * segment], run.inputs.bounds[2 * segment + 1]);
}

// Zeros for tokens in no segment.
struct ClearOutside {
  DeltaRuleRun run;
  DeviceRows rows;
  __device__ void operator()(int64_t token, int64_t column) const {
    if (run.taps[token] == 0) store_one(rows, token * rows.stride + column, 0.0F);
  }
};

// dq or dk of a key head: the sum over the value heads that share it.
struct AddHeads {
  DeltaRuleRun run;
  const float* of_heads;
  DeviceRows sum;
  __device__ void operator()(int64_t token, int64_t column) const {
    const DeltaSizes& sizes = run.sizes;
    const int64_t shared = sizes.value_heads / sizes.key_heads;
    float total = 0.0F;
    if (run.taps[token] > 0) {
      const int64_t head = token * sizes.value_heads + column / sizes.dk * shared;
      for (int64_t i = 0; i < shared; ++i)
        total += of_heads[(head + i) * sizes.dk + column % sizes.dk];
    }
    store_one(sum, token * sum.stride + column, total);
  }
};

LaunchShape shape_of(const DeltaSizes& sizes) {
  LaunchShape shape;
  shape.block.x = kDeltaThreads;
  shape.grid.x = static_cast<uint32_t>(sizes.value_heads);
  shape.grid.y = static_cast<uint32_t>(sizes.blocks_of_head());
  return shape;
}

void find_segments(const DeltaRuleRun& run, cudaStream_t stream) {
  count_segment_taps({run.bounds, run.sizes.segments, run.sizes.tokens, 1, run.taps}, stream);
}

}  // namespace

void gated_delta_rule(const DeltaRuleRun& run, cudaStream_t stream) {
  const DeltaSizes& sizes = run.sizes;
  find_segments(run, stream);
  over_items(ClearOutside{run, run.o}, sizes.tokens, sizes.value_heads * sizes.dv, stream);
  if (sizes.blocks() > 0) launch(delta_rule_kernel, shape_of(sizes), stream, run);
}

void gated_delta_rule_grad(const DeltaRuleGradRun& run, cudaStream_t stream) {
  const DeltaRuleRun& inputs = run.inputs;
  const DeltaSizes& sizes = inputs.sizes;
  find_segments(inputs, stream);
  over_items(ClearOutside{inputs, run.dv}, sizes.tokens, sizes.value_heads * sizes.dv, stream);
  over_items(ClearOutside{inputs, run.dg}, sizes.tokens, sizes.value_heads, stream);
  over_items(ClearOutside{inputs, run.dbeta}, sizes.tokens, sizes.value_heads, stream);
  if (sizes.blocks() > 0) launch(delta_rule_grad_kernel, shape_of(sizes), stream, run);
  const SharedParts parts = shared_parts(inputs);
  over_items(AddHeads{inputs, parts.dq, run.dq}, sizes.tokens, sizes.key_heads * sizes.dk, stream);
  over_items(AddHeads{inputs, parts.dk, run.dk}, sizes.tokens, sizes.key_heads * sizes.dk, stream);
}

}  // namespace snug::backends::cuda
