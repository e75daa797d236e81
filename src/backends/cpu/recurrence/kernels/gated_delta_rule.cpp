// A chunk by products (Yang et al. 2024). With G the sums of g, D[i, j] = exp(G[i] - G[j]) for
// j <= i, E = (K K^T) D below the diagonal, A = diag(beta) E and P = (Q K^T) D:
//
//   (I + A) W = beta (V - exp(G) (K S))        what each token writes, its chunk's tokens known
//   O = exp(G) (Q S) + P W
//   S = exp(G[last]) S + (exp(G[last] - G) K)^T W
//
// The backward pass makes these again and goes through them from the last to the first. It solves
// (I + A)^T dR = dW, and needs no inverse.
//
// D, E, A, P and their gradients are lower triangular (chunk_matrices.h).
#include "backends/cpu/recurrence/kernels/gated_delta_rule.h"

#include <xmmintrin.h>

#include "backends/cpu/recurrence/kernels/chunk_matrices.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr float kNormEpsilon = 1e-6F;  // program::kDeltaNormEpsilon

// While it lives, numbers below the smallest normal one (1e-38) are zeros, as operands and as
// results. States that are forgotten fast make many of them, and a vector with one takes a
// processor more than a hundred cycles.
class TinyAreZeros {
 public:
  TinyAreZeros() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kOperands | kResults); }
  ~TinyAreZeros() { _mm_setcsr(before_); }
  TinyAreZeros(const TinyAreZeros&) = delete;
  TinyAreZeros& operator=(const TinyAreZeros&) = delete;

 private:
  static constexpr unsigned kOperands = 0x0040;
  static constexpr unsigned kResults = 0x8000;
  unsigned before_;
};

// Hands out parts of a kernel's scratch.
struct Scratch {
  float* next;
  float* take(int64_t floats) {
    float* part = next;
    next += floats;
    return part;
  }
};

// What is left at each token of the state before the chunk, exp(G), of what each token writes after
// the chunk, exp(G[last] - G), and of the state over the whole chunk, exp(G[last]).
struct Decays {
  Decays(const DeltaChunk& chunk, Scratch& parts)
      : from_start(parts.take(chunk.rows)), to_end(parts.take(chunk.rows)) {
    const float last = chunk.decay[chunk.rows - 1];
    for (int64_t i = 0; i < chunk.rows; i += kLanes) {
      store(from_start + i, exp(load(chunk.decay + i)));
      store(to_end + i, exp(last - load(chunk.decay + i)));
    }
    whole = from_start[chunk.rows - 1];
  }
  float* from_start;
  float* to_end;
  float whole;
};

// D (rows, rows), with zeros above the diagonal.
static void decays_between(const DeltaChunk& chunk, float* d) {
  for (int64_t i = 0; i < chunk.rows; ++i) {
    float* row = d + i * chunk.rows;
    for (int64_t j = 0; j <= i; j += kLanes)
      store(row + j, exp(chunk.decay[i] - load(chunk.decay + j)));
    for (int64_t j = i + 1; j < lower_columns(i); ++j) row[j] = 0.0F;
  }
}

// P = (Q K^T) D, from the product.
static void decay_query_scores(const float* d, int64_t rows, float* p) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < lower_columns(i); j += kLanes)
      store(p + i * rows + j, load(p + i * rows + j) * load(d + i * rows + j));
}

// E = (K K^T) D below the diagonal, from the product, and -A = -diag(beta) E.
static void decay_key_scores(const DeltaChunk& chunk, const float* d, float* e, float* minus_a) {
  for (int64_t i = 0; i < chunk.rows; ++i) {
    const int64_t row = i * chunk.rows;
    e[row + i] = 0.0F;
    for (int64_t j = 0; j < lower_columns(i); j += kLanes) {
      const Float16Lanes decayed = load(e + row + j) * load(d + row + j);
      store(e + row + j, decayed);
      store(minus_a + row + j, decayed * -chunk.beta[i]);
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
  const TinyAreZeros mode;
  const auto [rows, dk, dv, q, k, v, decay, beta] = chunk;
  Scratch parts{scratch};
  float* keys_t = parts.take(dk * rows);  // (dk, rows)
  float* written = parts.take(rows * dv);
  float* d = parts.take(rows * rows);
  float* e = parts.take(rows * rows);
  float* square = parts.take(rows * rows);
  const Decays decays(chunk, parts);
  transpose(k, rows, dk, keys_t);
  decays_between(chunk, d);
  multiply_to_lower(k, keys_t, e, rows, dk);
  decay_key_scores(chunk, d, e, square);
  multiply(k, state, written, {rows, dv, dk});
  for (int64_t i = 0; i < rows; ++i) {
    float* row = written + i * dv;
    scale_add(row, -decays.from_start[i], v + i * dv, row, dv);
    scale_row(row, beta[i], row, dv);
  }
  solve<false>(square, rows, written, dv);
  if (o != nullptr) {
    multiply_to_lower(q, keys_t, square, rows, dk);
    decay_query_scores(d, rows, square);
    multiply(q, state, o, {rows, dv, dk});
    for (int64_t i = 0; i < rows; ++i) scale_row(o + i * dv, decays.from_start[i], o + i * dv, dv);
    add_lower_product<false>(square, written, o, rows, dv);
  }
  scale_row(state, decays.whole, state, dk * dv);
  for (int64_t i = 0; i < rows; ++i)
    scale_row(written + i * dv, decays.to_end[i], written + i * dv, dv);
  multiply<true>(k, written, state, {dk, dv, rows}, true);
}

// The matrices of a chunk's backward pass. Those that are made again have the names above.
class Backward {
 public:
  Backward(const DeltaChunk& chunk, const DeltaChunkGrad& grad, Scratch parts)
      : chunk_(chunk),
        grad_(grad),
        rows_(chunk.rows),
        dk_(chunk.dk),
        dv_(chunk.dv),
        decays_(chunk, parts) {
    keys_t_ = parts.take(dk_ * rows_);
    of_keys_ = parts.take(rows_ * dk_);
    held_ = parts.take(rows_ * dv_);
    missing_ = parts.take(rows_ * dv_);
    written_ = parts.take(rows_ * dv_);
    slope_ = parts.take(rows_ * dv_);
    written_t_ = parts.take(dv_ * rows_);
    d_ = parts.take(rows_ * rows_);
    e_ = parts.take(rows_ * rows_);
    minus_a_ = parts.take(rows_ * rows_);
    p_ = parts.take(rows_ * rows_);
    square_ = parts.take(rows_ * rows_);
    state_t_ = parts.take(dv_ * dk_);
    dstate_t_ = parts.take(dv_ * dk_);
  }

  void run() {
    make_again();
    for (int64_t i = 0; i < rows_; ++i) {
      grad_.dg[i] = 0.0F;
      grad_.dbeta[i] = 0.0F;
    }
    of_written();
    of_scores();
    of_queries();
    of_update();
    solve<true>(minus_a_, rows_, slope_, dv_);  // dR
    of_system();
    of_values();
    of_state();
    // What each token's decay gets is the sum over what the sums from it on get.
    for (int64_t i = rows_ - 1; i > 0; --i) grad_.dg[i - 1] += grad_.dg[i];
  }

 private:
  void make_again() {
    transpose(chunk_.k, rows_, dk_, keys_t_);
    transpose(grad_.state, dk_, dv_, state_t_);
    transpose(grad_.dstate, dk_, dv_, dstate_t_);
    decays_between(chunk_, d_);
    multiply_to_lower(chunk_.k, keys_t_, e_, rows_, dk_);
    decay_key_scores(chunk_, d_, e_, minus_a_);
    multiply_to_lower(chunk_.q, keys_t_, p_, rows_, dk_);
    decay_query_scores(d_, rows_, p_);
    multiply(chunk_.k, grad_.state, held_, {rows_, dv_, dk_});
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t at = i * dv_;
      scale_add(held_ + at, -decays_.from_start[i], chunk_.v + at, missing_ + at, dv_);
      scale_row(missing_ + at, chunk_.beta[i], written_ + at, dv_);
    }
    solve<false>(minus_a_, rows_, written_, dv_);
    transpose(written_, rows_, dv_, written_t_);
  }

  // dW = P^T dO + exp(G[last] - G) (K dS).
  void of_written() {
    multiply(chunk_.k, grad_.dstate, slope_, {rows_, dv_, dk_});
    for (int64_t i = 0; i < rows_; ++i)
      scale_row(slope_ + i * dv_, decays_.to_end[i], slope_ + i * dv_, dv_);
    add_lower_product<true>(p_, grad_.d_o, slope_, rows_, dv_);
  }

  // From the gradient of row i of scores, times `factor`, to that of the products that D decays.
  // Adds what the decays get from it, and returns the sum of the row's scores times their
  // gradients.
  float of_decayed_row(const float* scores, int64_t i, float factor) {
    float* gradients = square_ + i * rows_;
    Float16Lanes sum = splat(0.0F);
    for (int64_t j = 0; j < lower_columns(i); j += kLanes) {
      const Float16Lanes gradient = load(gradients + j);
      const Float16Lanes term = gradient * load(scores + i * rows_ + j);
      sum = sum + term;
      store(grad_.dg + j, multiply_add(term, splat(-factor), load(grad_.dg + j)));
      store(gradients + j, gradient * load(d_ + i * rows_ + j) * factor);
    }
    const float of_row = reduce_add(sum);
    grad_.dg[i] += of_row * factor;
    return of_row;
  }

  // P: its gradient is dO W^T; dQ and dK get (dP D) K and (dP D)^T Q.
  void of_scores() {
    multiply_to_lower(grad_.d_o, written_t_, square_, rows_, dv_);
    for (int64_t i = 0; i < rows_; ++i) of_decayed_row(p_, i, 1.0F);
    add_lower_product<false>(square_, chunk_.k, grad_.dq, rows_, dk_);
    add_lower_product<true>(square_, chunk_.q, grad_.dk, rows_, dk_);
  }

  // exp(G) (Q S).
  void of_queries() {
    multiply(grad_.d_o, state_t_, of_keys_, {rows_, dk_, dv_});
    for (int64_t i = 0; i < rows_; ++i) {
      const float* row = of_keys_ + i * dk_;
      grad_.dg[i] += decays_.from_start[i] * dot(row, chunk_.q + i * dk_, dk_);
      scale_add(row, decays_.from_start[i], grad_.dq + i * dk_, grad_.dq + i * dk_, dk_);
    }
  }

  // exp(G[last]) S + (exp(G[last] - G) K)^T W.
  void of_update() {
    multiply(written_, dstate_t_, of_keys_, {rows_, dk_, dv_});
    float of_last = decays_.whole * dot(grad_.dstate, grad_.state, dk_ * dv_);
    for (int64_t i = 0; i < rows_; ++i) {
      const float* row = of_keys_ + i * dk_;
      const float term = decays_.to_end[i] * dot(row, chunk_.k + i * dk_, dk_);
      grad_.dg[i] -= term;
      of_last += term;
      scale_add(row, decays_.to_end[i], grad_.dk + i * dk_, grad_.dk + i * dk_, dk_);
    }
    grad_.dg[rows_ - 1] += of_last;
  }

  // A = diag(beta) E: its gradient is -dR W^T below the diagonal.
  void of_system() {
    multiply_to_lower(slope_, written_t_, square_, rows_, dv_);
    for (int64_t i = 0; i < rows_; ++i) {
      square_[i * rows_ + i] = 0.0F;
      grad_.dbeta[i] -= of_decayed_row(e_, i, -chunk_.beta[i]);
    }
    add_lower_product<false>(square_, chunk_.k, grad_.dk, rows_, dk_);
    add_lower_product<true>(square_, chunk_.k, grad_.dk, rows_, dk_);
  }

  // R = beta (V - exp(G) (K S)). What K S gets stays in slope_.
  void of_values() {
    for (int64_t i = 0; i < rows_; ++i) {
      float* row = slope_ + i * dv_;
      grad_.dbeta[i] += dot(row, missing_ + i * dv_, dv_);
      scale_row(row, chunk_.beta[i], grad_.dv + i * dv_, dv_);
      scale_row(row, -chunk_.beta[i] * decays_.from_start[i], row, dv_);
      grad_.dg[i] += dot(row, held_ + i * dv_, dv_);
    }
    multiply(slope_, state_t_, grad_.dk, {rows_, dk_, dv_}, true);
  }

  // dS = exp(G[last]) dS + Q^T (exp(G) dO) + K^T of what K S gets.
  void of_state() {
    scale_row(grad_.dstate, decays_.whole, grad_.dstate, dk_ * dv_);
    multiply<true>(chunk_.k, slope_, grad_.dstate, {dk_, dv_, rows_}, true);
    for (int64_t i = 0; i < rows_; ++i)
      scale_row(grad_.d_o + i * dv_, decays_.from_start[i], missing_ + i * dv_, dv_);
    multiply<true>(chunk_.q, missing_, grad_.dstate, {dk_, dv_, rows_}, true);
  }

  const DeltaChunk& chunk_;
  const DeltaChunkGrad& grad_;
  int64_t rows_, dk_, dv_;
  Decays decays_;
  float *keys_t_, *of_keys_;
  float *held_, *missing_, *written_, *slope_, *written_t_;
  float *d_, *e_, *minus_a_, *p_, *square_;
  float *state_t_, *dstate_t_;
};

static void backward(const DeltaChunk& chunk, const DeltaChunkGrad& grad, float* scratch) {
  const TinyAreZeros mode;
  Backward(chunk, grad, Scratch{scratch}).run();
}

}  // namespace

extern const DeltaRuleKernels kDeltaRuleKernels;
const DeltaRuleKernels kDeltaRuleKernels = {
    .norm = norm, .norm_grad = norm_grad, .forward = forward, .backward = backward};

}  // namespace snug::backends::cpu::SNUG_ISA
