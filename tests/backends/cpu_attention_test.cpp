// Attention on the CPU backend against naive loops in fp64, at lengths and groups that cross the
// tiles and blocks of its kernels, and what packing promises: a segment's bits do not depend on
// where it lies.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "../base/captured_stream.h"
#include "one_operation.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cpu {
namespace {

struct AttentionCase {
  int64_t heads, kv_heads, head_dim;
  int64_t queries, keys;
  bool causal = true;
  int64_t window = 0;

  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }
  bool sees(int64_t i, int64_t j) const {
    const int64_t last = i + keys - queries;
    return (!causal || j <= last) && (window == 0 || j > last - window);
  }
};

std::string name_of(const AttentionCase& c) {
  return fmt::format("{} heads on {} of {}, {} queries on {} keys{}, window {}", c.heads,
                     c.kv_heads, c.head_dim, c.queries, c.keys, c.causal ? "" : ", not causal",
                     c.window);
}

// The first two cross tiles of 256 rows and blocks of 256 keys; then groups that no tile divides
// into evenly, groups wider than a tile, few queries with more heads than go together, heads wider
// than the kernel for few queries takes, and queries that see nothing.
constexpr AttentionCase kCases[]{{2, 1, 64, 700, 700},          {2, 2, 64, 530, 530, true, 300},
                                 {3, 1, 64, 330, 600},          {9, 1, 40, 300, 300},
                                 {40, 2, 16, 70, 70},           {300, 1, 8, 33, 40},
                                 {12, 1, 72, 2, 600},           {2, 1, 260, 3, 90},
                                 {2, 1, 128, 90, 50},           {4, 2, 10, 65, 65, false},
                                 {2, 1, 128, 4, 300, false, 70}};

Values values_of(const Matrix& matrix) {
  Values values;
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.columns; ++j) values.push_back(matrix.at(i, j));
  return values;
}

// A tensor's head as rows of doubles.
struct Head {
  const double* data;
  int64_t stride;
  const double* row(int64_t i) const { return data + i * stride; }
};
Head head_of(const Values& values, int64_t heads, int64_t head, int64_t head_dim) {
  return {values.data() + head * head_dim, heads * head_dim};
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

struct Expected {
  Values o, lse, dq, dk, dv;
};

// Forward and backward of one head's query.
class Naive {
 public:
  Naive(const AttentionCase& c, const Values& q, const Values& k, const Values& v,
        const Values& d_o)
      : case_(c), q_(q), k_(k), v_(v), d_o_(d_o) {
    expected_.o.resize(q.size());
    expected_.lse.resize(static_cast<size_t>(c.heads * c.queries));
    expected_.dq.resize(q.size());
    expected_.dk.resize(k.size());
    expected_.dv.resize(k.size());
    for (int64_t head = 0; head < c.heads; ++head)
      for (int64_t i = 0; i < c.queries; ++i) add_query(head, i);
  }
  const Expected& expected() const { return expected_; }

 private:
  void add_query(int64_t head, int64_t i) {
    const int64_t d = case_.head_dim;
    const int64_t kv_head = head / (case_.heads / case_.kv_heads);
    const Head k = head_of(k_, case_.kv_heads, kv_head, d);
    const Head v = head_of(v_, case_.kv_heads, kv_head, d);
    const double* q = head_of(q_, case_.heads, head, d).row(i);
    const double* d_o = head_of(d_o_, case_.heads, head, d).row(i);
    const auto scale = static_cast<double>(case_.scale());
    Values p(static_cast<size_t>(case_.keys));
    double sum = 0;
    for (int64_t j = 0; j < case_.keys; ++j) {
      p[static_cast<size_t>(j)] = case_.sees(i, j) ? std::exp(scale * dot(q, k.row(j), d)) : 0.0;
      sum += p[static_cast<size_t>(j)];
    }
    if (sum == 0) return;
    expected_.lse[static_cast<size_t>(head * case_.queries + i)] = std::log(sum);
    const auto at = static_cast<size_t>((i * case_.heads + head) * d);
    for (int64_t j = 0; j < case_.keys; ++j) {
      double& weight = p[static_cast<size_t>(j)];
      weight /= sum;
      for (int64_t c = 0; c < d; ++c)
        expected_.o[at + static_cast<size_t>(c)] += weight * v.row(j)[c];
    }
    const double mean = dot(d_o, expected_.o.data() + at, d);
    for (int64_t j = 0; j < case_.keys; ++j) {
      const double weight = p[static_cast<size_t>(j)];
      const double d_score = scale * weight * (dot(d_o, v.row(j), d) - mean);
      const auto key = static_cast<size_t>((j * case_.kv_heads + kv_head) * d);
      for (int64_t c = 0; c < d; ++c) {
        expected_.dq[at + static_cast<size_t>(c)] += d_score * k.row(j)[c];
        expected_.dk[key + static_cast<size_t>(c)] += d_score * q[c];
        expected_.dv[key + static_cast<size_t>(c)] += weight * d_o[c];
      }
    }
  }

  const AttentionCase& case_;
  const Values &q_, &k_, &v_, &d_o_;
  Expected expected_;
};

// Bounds of segments whose queries and keys are the same rows, or of one segment.
struct BoundsPair {
  std::vector<int32_t> queries, keys;
};

Buffer bounds_buffer(std::vector<int32_t>& bounds) {
  Buffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(bounds.data());
  buffer.dtype = DType::i32;
  buffer.shape = Shape{static_cast<int64_t>(bounds.size()) / 2, 2};
  buffer.strides = {2, 1, 0, 0};
  return buffer;
}

TensorId bounds_tensor(OneOperation& operation, const std::vector<int32_t>& bounds) {
  Matrix shape;
  shape.rows = static_cast<int64_t>(bounds.size()) / 2;
  shape.columns = 2;
  shape.dtype = DType::i32;
  return operation.tensor(shape);
}

struct Outputs {
  Matrix o, lse;
};

Outputs forward(const AttentionCase& c, Matrix& q, Matrix& k, Matrix& v, BoundsPair bounds) {
  Outputs out{empty_matrix(q.rows, q.columns, q.dtype, 3),
              empty_matrix(c.heads, q.rows, DType::f32)};
  OneOperation operation;
  operation.emit(program::Attention{c.heads, c.kv_heads, c.head_dim, c.scale(), c.causal, c.window},
                 {operation.tensor(q), operation.tensor(k), operation.tensor(v),
                  bounds_tensor(operation, bounds.queries), bounds_tensor(operation, bounds.keys)},
                 {operation.tensor(out.o), operation.tensor(out.lse)}, {});
  operation.run({q.buffer(), k.buffer(), v.buffer(), bounds_buffer(bounds.queries),
                 bounds_buffer(bounds.keys)},
                {out.o.buffer(), out.lse.buffer()}, {});
  return out;
}

struct Gradients {
  Matrix dq, dk, dv;
};

struct Inputs {
  Matrix q, k, v, d_o;
};

Gradients backward(const AttentionCase& c, Inputs& in, Outputs& out, BoundsPair bounds) {
  Gradients gradients{empty_matrix(in.q.rows, in.q.columns, in.q.dtype),
                      empty_matrix(in.k.rows, in.k.columns, in.k.dtype, 5),
                      empty_matrix(in.k.rows, in.k.columns, in.k.dtype)};
  OneOperation operation;
  operation.emit(
      program::AttentionGrad{c.heads, c.kv_heads, c.head_dim, c.scale(), c.causal, c.window},
      {operation.tensor(in.d_o), operation.tensor(in.q), operation.tensor(in.k),
       operation.tensor(in.v), operation.tensor(out.o), operation.tensor(out.lse),
       bounds_tensor(operation, bounds.queries), bounds_tensor(operation, bounds.keys)},
      {operation.tensor(gradients.dq), operation.tensor(gradients.dk),
       operation.tensor(gradients.dv)},
      {});
  operation.run({in.d_o.buffer(), in.q.buffer(), in.k.buffer(), in.v.buffer(), out.o.buffer(),
                 out.lse.buffer(), bounds_buffer(bounds.queries), bounds_buffer(bounds.keys)},
                {gradients.dq.buffer(), gradients.dk.buffer(), gradients.dv.buffer()}, {});
  return gradients;
}

Inputs random_inputs(const AttentionCase& c, DType dtype) {
  return {random_matrix(c.queries, c.heads * c.head_dim, dtype, 2),
          random_matrix(c.keys, c.kv_heads * c.head_dim, dtype, 4),
          random_matrix(c.keys, c.kv_heads * c.head_dim, dtype),
          random_matrix(c.queries, c.heads * c.head_dim, dtype)};
}

TEST(CpuAttention, agrees_with_naive_loops) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const AttentionCase& c : kCases) {
      SCOPED_TRACE(name_of(c) + " in " + std::string(base::name_of(dtype)));
      const double tolerance = kTolerance[dtype == DType::bf16 ? 1 : 0];
      Inputs in = random_inputs(c, dtype);
      const BoundsPair bounds{{0, static_cast<int32_t>(c.queries)},
                              {0, static_cast<int32_t>(c.keys)}};
      Outputs out = forward(c, in.q, in.k, in.v, bounds);
      const Gradients gradients = backward(c, in, out, bounds);
      const Values q = values_of(in.q);
      const Values k = values_of(in.k);
      const Values v = values_of(in.v);
      const Values d_o = values_of(in.d_o);
      const Naive naive(c, q, k, v, d_o);
      EXPECT_LE(error_against(naive.expected().o, out.o), tolerance);
      EXPECT_LE(error_against(naive.expected().lse, out.lse), tolerance);
      EXPECT_LE(error_against(naive.expected().dq, gradients.dq), tolerance);
      EXPECT_LE(error_against(naive.expected().dk, gradients.dk), tolerance);
      EXPECT_LE(error_against(naive.expected().dv, gradients.dv), tolerance);
      EXPECT_TRUE(gaps_untouched(out.o));
      EXPECT_TRUE(gaps_untouched(gradients.dk));
    }
}

// The same rows, after `before` others, in a matrix as long as both.
Matrix moved(const Matrix& matrix, int64_t before) {
  Matrix result = random_matrix(before + matrix.rows, matrix.columns, matrix.dtype);
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.columns; ++j)
      result.set(before + i, j, static_cast<float>(matrix.at(i, j)));
  return result;
}

Values rows_from(const Matrix& matrix, int64_t begin) {
  Values values = values_of(matrix);
  values.erase(values.begin(), values.begin() + begin * matrix.columns);
  return values;
}

TEST(CpuAttention, of_a_segment_has_the_same_bits_wherever_it_lies) {
  constexpr AttentionCase kCase{6, 2, 24, 270, 270};
  constexpr int64_t kBefore = 77;
  constexpr auto kEnd = static_cast<int32_t>(kBefore + kCase.queries);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Inputs alone = random_inputs(kCase, dtype);
    Inputs packed{moved(alone.q, kBefore), moved(alone.k, kBefore), moved(alone.v, kBefore),
                  moved(alone.d_o, kBefore)};
    const BoundsPair one{{0, kCase.queries}, {0, kCase.keys}};
    const BoundsPair two{{0, kBefore, kBefore, kEnd, 0, 0}, {0, kBefore, kBefore, kEnd, 0, 0}};
    Outputs out_alone = forward(kCase, alone.q, alone.k, alone.v, one);
    Outputs out_packed = forward(kCase, packed.q, packed.k, packed.v, two);
    EXPECT_EQ(values_of(out_alone.o), rows_from(out_packed.o, kBefore));
    const Gradients grad_alone = backward(kCase, alone, out_alone, one);
    const Gradients grad_packed = backward(kCase, packed, out_packed, two);
    EXPECT_EQ(values_of(grad_alone.dq), rows_from(grad_packed.dq, kBefore));
    EXPECT_EQ(values_of(grad_alone.dk), rows_from(grad_packed.dk, kBefore));
    EXPECT_EQ(values_of(grad_alone.dv), rows_from(grad_packed.dv, kBefore));
  }
}

// By the plan's question and by prepare(), and not by the first step.
TEST(CpuAttention, of_a_scale_that_is_not_positive_is_refused_before_it_runs) {
  const AttentionCase c{2, 1, 32, 8, 8};
  const Inputs in = random_inputs(c, DType::f32);
  const std::vector<int32_t> bounds{0, 8};
  for (const float scale : {c.scale(), 0.0F, -1.0F}) {
    OneOperation operation;
    operation.emit(program::Attention{c.heads, c.kv_heads, c.head_dim, scale},
                   {operation.tensor(in.q), operation.tensor(in.k), operation.tensor(in.v),
                    bounds_tensor(operation, bounds), bounds_tensor(operation, bounds)},
                   {operation.tensor(in.d_o), operation.tensor(empty_matrix(2, 8, DType::f32))},
                   {});
    EXPECT_EQ(backend().runs(operation.view()), scale > 0);
    if (scale > 0) continue;
    EXPECT_TRUE(
        testing::dies([&] { (void)backend().prepare(operation.view()); }, "cpu does not run"));
  }
}

// A NaN must not be lost on the way: it is how a broken step is seen.
TEST(CpuAttention, hands_a_nan_on) {
  // A NaN of f32 may have any digits; of 16 bits the lowest are zeros.
  const auto with_low_digits = std::bit_cast<float>(0x7fc00001U);
  for (const int64_t queries : {2, 300}) {
    const AttentionCase c{2, 1, 32, queries, 300};
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Inputs in = random_inputs(c, dtype);
      in.k.set(0, 5, with_low_digits);
      const BoundsPair bounds{{0, static_cast<int32_t>(queries)}, {0, 300}};
      const Outputs out = forward(c, in.q, in.k, in.v, bounds);
      for (int64_t i = 0; i < queries; ++i) EXPECT_TRUE(std::isnan(out.o.at(i, 0))) << i;
    }
  }
}

}  // namespace
}  // namespace snug::backends::cpu
