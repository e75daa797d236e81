// A chunk by products (Yang et al. 2024). With G the sums of g, D[i, j] = exp(G[i] - G[j]) for
// j <= i, E = (K K^T) D below the diagonal, A = diag(beta) E and P = (Q K^T) D:
//
//   (I + A) W = beta (V - exp(G) (K S))        what each token writes, its chunk's tokens known
//   O = exp(G) (Q S) + P W
//   S = exp(G[last]) S + (exp(G[last] - G) K)^T W
//
// The backward pass makes these again and goes through them from the last to the first. It solves
// (I + A)^T dR = dW, and needs no inverse.
#include "backends/cpu/recurrence/kernels/gated_delta_rule.h"

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/product/kernels/block_product.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr float kNormEpsilon = 1e-6F;  // program::kDeltaNormEpsilon

// Hands out parts of a kernel's scratch.
struct Scratch {
  float* next;
  float* take(int64_t floats) {
    float* part = next;
    next += floats;
    return part;
  }
};

// c (m, n) [+]= a (m, k) b (k, n), without gaps between rows.
struct Sizes {
  int64_t m, n, k;
};
SNUG_INLINE void multiply(const float* a, const float* b, float* c, const Sizes& sizes,
                          bool accumulate = false) {
  multiply_blocks(BlockProduct<float>{.a = a,
                                      .a_stride = sizes.k,
                                      .b = b,
                                      .b_stride = sizes.n,
                                      .c = c,
                                      .c_stride = sizes.n,
                                      .m = sizes.m,
                                      .n = sizes.n,
                                      .k = sizes.k,
                                      .accumulate = accumulate});
}

// y (columns, rows) = the transpose of x (rows, columns), in squares that stay in the cache.
static void transpose(const float* x, int64_t rows, int64_t columns, float* y) {
  constexpr int64_t kSide = 16;
  for (int64_t i = 0; i < rows; i += kSide)
    for (int64_t j = 0; j < columns; j += kSide)
      for (int64_t c = j; c < j + kSide; ++c)
        for (int64_t r = i; r < i + kSide; ++r) y[c * rows + r] = x[r * columns + c];
}

SNUG_INLINE float dot(const float* a, const float* b, int64_t n) {
  Float16Lanes sum = splat(0.0F);
  for (int64_t i = 0; i < n; i += kLanes) sum = multiply_add(load(a + i), load(b + i), sum);
  return reduce_add(sum);
}

// y = factor x + addend; y may be either.
SNUG_INLINE void scale_add(const float* x, float factor, const float* addend, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes)
    store(y + i, multiply_add(load(x + i), splat(factor), load(addend + i)));
}
SNUG_INLINE void scale_row(const float* x, float factor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) store(y + i, load(x + i) * factor);
}

SNUG_INLINE float exponential(float x) { return exp(splat(x))[0]; }

// D (rows, rows): zeros above the diagonal.
static void decays_between(const DeltaChunk& chunk, float* d) {
  for (int64_t i = 0; i < chunk.rows; ++i)
    for (int64_t j = 0; j < chunk.rows; j += kLanes) {
      float* row = d + i * chunk.rows;
      store(row + j, exp(chunk.decay[i] - load(chunk.decay + j)));
      for (int64_t c = larger_of(j, i + 1); c < j + kLanes; ++c) row[c] = 0.0F;
    }
}

// y = x D; with `strict` the diagonal is zeros.
static void decay_scores(const DeltaChunk& chunk, const float* x, const float* d, bool strict,
                         float* y) {
  const int64_t rows = chunk.rows;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; j += kLanes)
      store(y + i * rows + j, load(x + i * rows + j) * load(d + i * rows + j));
    if (strict) y[i * rows + i] = 0.0F;
  }
}

// x = (I + L)^-1 x for the strict lower triangle L = diag(factors) E, or its transpose; row by row,
// with the rows that are known.
template <bool kTransposed>
static void solve(const DeltaChunk& chunk, const float* e, float* x) {
  constexpr int64_t kVectors = 2;
  const int64_t rows = chunk.tokens;
  for (int64_t step = 0; step < rows; ++step) {
    const int64_t i = kTransposed ? rows - 1 - step : step;
    const int64_t first = kTransposed ? i + 1 : 0;
    const int64_t end = kTransposed ? rows : i;
    for (int64_t column = 0; column < chunk.dv; column += kVectors * kLanes) {
      Float16Lanes sum[kVectors] = {};
      for (int64_t j = first; j < end; ++j) {
        const float factor = kTransposed ? chunk.beta[j] * e[j * chunk.rows + i]
                                         : chunk.beta[i] * e[i * chunk.rows + j];
        for (int64_t v = 0; v < kVectors; ++v)
          sum[v] =
              multiply_add(splat(factor), load(x + j * chunk.dv + column + v * kLanes), sum[v]);
      }
      float* row = x + i * chunk.dv + column;
      for (int64_t v = 0; v < kVectors; ++v)
        store(row + v * kLanes, load(row + v * kLanes) - sum[v]);
    }
  }
}

static void norm(const float* x, int64_t rows, int64_t columns, float scale, float* y,
                 float* factors) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * columns;
    factors[i] = scale / __builtin_sqrtf(dot(row, row, columns) + kNormEpsilon);
    scale_row(row, factors[i], y + i * columns, columns);
  }
}

static void norm_grad(const DeltaChunk& sizes, const float* y, const float* factors, float scale,
                      float* dx) {
  for (int64_t i = 0; i < sizes.rows; ++i) {
    float* slope = dx + i * sizes.dk;
    const float* row = y + i * sizes.dk;
    const float along = dot(row, slope, sizes.dk) / (scale * scale);
    scale_add(row, -along, slope, slope, sizes.dk);
    scale_row(slope, factors[i], slope, sizes.dk);
  }
}

static void forward(const DeltaChunk& chunk, float* state, float* o, float* scratch) {
  const auto [tokens, rows, dk, dv, q, k, v, decay, beta] = chunk;
  Scratch parts{scratch};
  float* k_across = parts.take(dk * rows);  // (dk, rows)
  float* written = parts.take(rows * dv);
  float* d = parts.take(rows * rows);
  float* e = parts.take(rows * rows);
  float* p = parts.take(rows * rows);
  transpose(k, rows, dk, k_across);
  decays_between(chunk, d);
  multiply(k, k_across, e, {rows, rows, dk});
  decay_scores(chunk, e, d, true, e);
  multiply(k, state, written, {rows, dv, dk});
  for (int64_t i = 0; i < rows; ++i) {
    float* row = written + i * dv;
    scale_add(row, -exponential(decay[i]), v + i * dv, row, dv);
    scale_row(row, beta[i], row, dv);
  }
  solve<false>(chunk, e, written);
  if (o != nullptr) {
    multiply(q, k_across, p, {rows, rows, dk});
    decay_scores(chunk, p, d, false, p);
    multiply(q, state, o, {rows, dv, dk});
    for (int64_t i = 0; i < rows; ++i) scale_row(o + i * dv, exponential(decay[i]), o + i * dv, dv);
    multiply(p, written, o, {rows, dv, rows}, true);
  }
  const float last = decay[rows - 1];
  scale_row(state, exponential(last), state, dk * dv);
  for (int64_t i = 0; i < rows; ++i)
    scale_row(written + i * dv, exponential(last - decay[i]), written + i * dv, dv);
  multiply(k_across, written, state, {dk, dv, rows}, true);
}

// The matrices of a chunk's backward pass. Those that are made again have the names above.
class Backward {
 public:
  Backward(const DeltaChunk& chunk, const DeltaChunkGrad& grad, float* scratch)
      : chunk_(chunk), grad_(grad), rows_(chunk.rows), dk_(chunk.dk), dv_(chunk.dv) {
    Scratch parts{scratch};
    k_across_ = parts.take(dk_ * rows_);
    of_state_ = parts.take(rows_ * dk_);
    keys_ = parts.take(rows_ * dk_);
    q_across_ = parts.take(dk_ * rows_);
    held_ = parts.take(rows_ * dv_);
    missing_ = parts.take(rows_ * dv_);
    written_ = parts.take(rows_ * dv_);
    slope_ = parts.take(rows_ * dv_);
    written_across_ = parts.take(dv_ * rows_);
    d_ = parts.take(rows_ * rows_);
    e_ = parts.take(rows_ * rows_);
    p_ = parts.take(rows_ * rows_);
    square_ = parts.take(rows_ * rows_);
    across_ = parts.take(rows_ * rows_);
    state_across_ = parts.take(dv_ * dk_);
    dstate_across_ = parts.take(dv_ * dk_);
    grown_ = parts.take(rows_);
  }

  void run() {
    make_again();
    last_ = chunk_.decay[rows_ - 1];
    for (int64_t i = 0; i < rows_; ++i) {
      grown_[i] = exponential(chunk_.decay[i]);
      grad_.dg[i] = 0.0F;
      grad_.dbeta[i] = 0.0F;
    }
    of_written();
    of_scores();
    of_queries();
    of_update();
    solve<true>(chunk_, e_, slope_);  // dR
    of_system();
    of_values();
    of_state();
    // What each token's decay gets is the sum over what the sums from it on get.
    for (int64_t i = rows_ - 1; i > 0; --i) grad_.dg[i - 1] += grad_.dg[i];
  }

 private:
  void make_again() {
    transpose(chunk_.k, rows_, dk_, k_across_);
    transpose(chunk_.q, rows_, dk_, q_across_);
    transpose(grad_.state, dk_, dv_, state_across_);
    transpose(grad_.dstate, dk_, dv_, dstate_across_);
    decays_between(chunk_, d_);
    multiply(chunk_.k, k_across_, e_, {rows_, rows_, dk_});
    decay_scores(chunk_, e_, d_, true, e_);
    multiply(chunk_.q, k_across_, p_, {rows_, rows_, dk_});
    decay_scores(chunk_, p_, d_, false, p_);
    multiply(chunk_.k, grad_.state, held_, {rows_, dv_, dk_});
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t at = i * dv_;
      scale_add(held_ + at, -exponential(chunk_.decay[i]), chunk_.v + at, missing_ + at, dv_);
      scale_row(missing_ + at, chunk_.beta[i], written_ + at, dv_);
    }
    solve<false>(chunk_, e_, written_);
    transpose(written_, rows_, dv_, written_across_);
  }

  // dW = P^T dO + exp(G[last] - G) (K dS).
  void of_written() {
    multiply(chunk_.k, grad_.dstate, slope_, {rows_, dv_, dk_});
    for (int64_t i = 0; i < rows_; ++i)
      scale_row(slope_ + i * dv_, exponential(last_ - chunk_.decay[i]), slope_ + i * dv_, dv_);
    transpose(p_, rows_, rows_, across_);
    multiply(across_, grad_.d_o, slope_, {rows_, dv_, rows_}, true);
  }

  // What a matrix of products of decays D, elements of a chunk's scores, gives to the sums of g:
  // `terms` has the products of elements with their gradients.
  void add_to_decays(const float* gradients, const float* scores, const float* factors) {
    for (int64_t i = 0; i < rows_; ++i) {
      const float factor = factors == nullptr ? 1.0F : factors[i];
      for (int64_t j = 0; j < i; ++j) {
        const float term = gradients[i * rows_ + j] * scores[i * rows_ + j] * factor;
        grad_.dg[i] += term;
        grad_.dg[j] -= term;
      }
    }
  }

  // P: its gradient is dO W^T; dQ and dK get (dP D) K and (dP D)^T Q.
  void of_scores() {
    multiply(grad_.d_o, written_across_, square_, {rows_, rows_, dv_});
    add_to_decays(square_, p_, nullptr);
    decay_scores(chunk_, square_, d_, false, square_);
    multiply(square_, chunk_.k, grad_.dq, {rows_, dk_, rows_}, true);
    transpose(square_, rows_, rows_, across_);
    multiply(across_, chunk_.q, grad_.dk, {rows_, dk_, rows_}, true);
  }

  // exp(G) (Q S).
  void of_queries() {
    multiply(grad_.d_o, state_across_, of_state_, {rows_, dk_, dv_});
    for (int64_t i = 0; i < rows_; ++i) {
      const float* row = of_state_ + i * dk_;
      grad_.dg[i] += grown_[i] * dot(row, chunk_.q + i * dk_, dk_);
      scale_add(row, grown_[i], grad_.dq + i * dk_, grad_.dq + i * dk_, dk_);
    }
  }

  // exp(G[last]) S + (exp(G[last] - G) K)^T W.
  void of_update() {
    multiply(written_, dstate_across_, keys_, {rows_, dk_, dv_});
    float of_last = exponential(last_) * dot(grad_.dstate, grad_.state, dk_ * dv_);
    for (int64_t i = 0; i < rows_; ++i) {
      const float left = exponential(last_ - chunk_.decay[i]);
      const float* row = keys_ + i * dk_;
      const float term = left * dot(row, chunk_.k + i * dk_, dk_);
      grad_.dg[i] -= term;
      of_last += term;
      scale_add(row, left, grad_.dk + i * dk_, grad_.dk + i * dk_, dk_);
    }
    grad_.dg[rows_ - 1] += of_last;
  }

  // A = diag(beta) E: its gradient is -dR W^T below the diagonal.
  void of_system() {
    multiply(slope_, written_across_, square_, {rows_, rows_, dv_});
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < rows_; ++j) square_[i * rows_ + j] *= -1.0F;
    add_to_decays(square_, e_, chunk_.beta);
    for (int64_t i = 0; i < rows_; ++i) {
      float* row = square_ + i * rows_;
      grad_.dbeta[i] += dot(row, e_ + i * rows_, rows_);  // E has zeros from the diagonal on
      scale_row(row, chunk_.beta[i], row, rows_);
    }
    decay_scores(chunk_, square_, d_, true, square_);
    multiply(square_, chunk_.k, grad_.dk, {rows_, dk_, rows_}, true);
    transpose(square_, rows_, rows_, across_);
    multiply(across_, chunk_.k, grad_.dk, {rows_, dk_, rows_}, true);
  }

  // R = beta (V - exp(G) (K S)). What K S gets stays in slope_.
  void of_values() {
    for (int64_t i = 0; i < rows_; ++i) {
      float* row = slope_ + i * dv_;
      grad_.dbeta[i] += dot(row, missing_ + i * dv_, dv_);
      scale_row(row, chunk_.beta[i], grad_.dv + i * dv_, dv_);
      scale_row(row, -chunk_.beta[i] * grown_[i], row, dv_);
      grad_.dg[i] += dot(row, held_ + i * dv_, dv_);
    }
    multiply(slope_, state_across_, grad_.dk, {rows_, dk_, dv_}, true);
  }

  // dS = exp(G[last]) dS + Q^T (exp(G) dO) + K^T of what K S gets.
  void of_state() {
    scale_row(grad_.dstate, exponential(last_), grad_.dstate, dk_ * dv_);
    multiply(k_across_, slope_, grad_.dstate, {dk_, dv_, rows_}, true);
    for (int64_t i = 0; i < rows_; ++i)
      scale_row(grad_.d_o + i * dv_, grown_[i], missing_ + i * dv_, dv_);
    multiply(q_across_, missing_, grad_.dstate, {dk_, dv_, rows_}, true);
  }

  const DeltaChunk& chunk_;
  const DeltaChunkGrad& grad_;
  int64_t rows_, dk_, dv_;
  float last_ = 0.0F;
  float *k_across_, *of_state_, *keys_, *q_across_;
  float *held_, *missing_, *written_, *slope_, *written_across_;
  float *d_, *e_, *p_, *square_, *across_;
  float *state_across_, *dstate_across_, *grown_;
};

static void backward(const DeltaChunk& chunk, const DeltaChunkGrad& grad, float* scratch) {
  Backward(chunk, grad, scratch).run();
}

}  // namespace

extern const DeltaRuleKernels kDeltaRuleKernels;
const DeltaRuleKernels kDeltaRuleKernels = {
    .norm = norm, .norm_grad = norm_grad, .forward = forward, .backward = backward};

}  // namespace snug::backends::cpu::SNUG_ISA
