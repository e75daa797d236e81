// Products and losses of the CPU backend against naive loops in fp64: odd sizes, every transpose,
// operands with gaps, sums into what is there, workspaces poisoned. SNUG_ISA selects the path that
// is tested.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/isa.h"
#include "backends/random_bits.h"
#include "base/error.h"
#include "program/builder.h"

namespace snug::backends::cpu {
namespace {

using base::DType;
using program::Shape;
using program::TensorId;

constexpr double kTolerance[2] = {1e-5, 1e-2};  // fp32, bf16

// Values of a matrix in fp64, exactly those that its element type holds.
using Values = std::vector<double>;

CpuBackend& backend() {
  static CpuBackend instance({.threads = 2, .device_memory_bytes = 0});
  return instance;
}

// A matrix with `gap` unused elements behind each row, which nobody may touch.
struct Matrix {
  std::vector<std::byte> bytes;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t gap = 0;
  DType dtype = DType::f32;

  int64_t stride() const { return columns + gap; }
  double at(int64_t row, int64_t column) const {
    const std::byte* from = bytes.data() + (row * stride() + column) * base::size_of(dtype);
    if (dtype == DType::f32) {
      float value = 0;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    base::BFloat16 value;
    std::memcpy(&value, from, sizeof value);
    return base::to_float(value);
  }
  void set(int64_t row, int64_t column, float value) {
    std::byte* to = bytes.data() + (row * stride() + column) * base::size_of(dtype);
    if (dtype == DType::f32) {
      std::memcpy(to, &value, sizeof value);
      return;
    }
    const base::BFloat16 rounded = base::to_bfloat16(value);
    std::memcpy(to, &rounded, sizeof rounded);
  }
  Buffer buffer() {
    Buffer result;
    result.data = bytes.data();
    result.dtype = dtype;
    result.shape = Shape{rows, columns};
    result.strides = {stride(), 1};
    return result;
  }
};

Matrix empty_matrix(int64_t rows, int64_t columns, DType dtype, int64_t gap = 0) {
  Matrix matrix{{}, rows, columns, gap, dtype};
  matrix.bytes.assign(static_cast<size_t>(rows * matrix.stride() * base::size_of(dtype)),
                      std::byte{0xff});  // NaN in every type
  return matrix;
}

Matrix random_matrix(int64_t rows, int64_t columns, DType dtype, int64_t gap = 0) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Matrix matrix = empty_matrix(rows, columns, dtype, gap);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) matrix.set(i, j, normal(generator));
  return matrix;
}

double error_against(const Values& expected, const Matrix& actual) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < actual.rows; ++i)
    for (int64_t j = 0; j < actual.columns; ++j) {
      const double wanted = expected[static_cast<size_t>(i * actual.columns + j)];
      difference += (actual.at(i, j) - wanted) * (actual.at(i, j) - wanted);
      norm += wanted * wanted;
    }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
}

bool gaps_untouched(const Matrix& matrix) {
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.gap; ++j)
      if (!std::isnan(matrix.at(i, matrix.columns + j))) return false;
  return true;
}

// Builds a program of one operation around matrices and runs it with a workspace of exactly the
// promised bytes, full of NaN, between guards.
class OneOperation {
 public:
  OneOperation() : builder_("test") {}

  TensorId tensor(const Matrix& matrix) {
    program::Tensor tensor;
    tensor.name = "t" + std::to_string(builder_.program().tensors.size());
    tensor.shape = Shape{matrix.rows, matrix.columns};
    tensor.dtype = matrix.dtype;
    if (matrix.gap == 0) return builder_.add(tensor);
    program::Tensor base = tensor;
    base.name += ".base";
    base.shape = Shape{matrix.rows, matrix.stride()};
    tensor.view = {builder_.add(base), 0, {matrix.stride(), 1}};
    return builder_.add(tensor);
  }
  TensorId vector(int64_t size, DType dtype) {
    program::Tensor tensor;
    tensor.name = "t" + std::to_string(builder_.program().tensors.size());
    tensor.shape = Shape{size};
    tensor.dtype = dtype;
    return builder_.add(tensor);
  }
  void emit(const program::Attributes& attributes, const std::vector<TensorId>& reads,
            const std::vector<TensorId>& writes, const std::vector<TensorId>& updates) {
    builder_.emit(attributes, reads, writes, updates);
    program_ = builder_.program();
    if (!backend().runs(view())) return;
    program::Tensor workspace;
    workspace.name = "workspace";
    workspace.role = program::Role::workspace;
    workspace.dtype = DType::u8;
    workspace.shape = Shape{backend().workspace(view()).bytes};
    program_.operations[0].workspace = static_cast<TensorId>(program_.tensors.size());
    program_.tensors.push_back(workspace);
  }
  // One byte less than the backend asked for.
  void shrink_workspace() {
    program::Tensor& workspace = program_.tensors.back();
    workspace.shape = Shape{workspace.shape[0] - 1};
  }
  program::OperationView view() const { return {program_, program_.operations[0]}; }

  void run(const std::vector<Buffer>& reads, const std::vector<Buffer>& writes,
           const std::vector<Buffer>& updates) {
    ASSERT_TRUE(backend().runs(view()));
    constexpr int64_t kGuard = 256;
    const int64_t bytes = backend().workspace(view()).bytes;
    const auto prepared = backend().prepare(view());
    auto arena = backend().allocate(program::Space::host, bytes + 2 * kGuard);
    std::memset(arena->data(), 0xff, static_cast<size_t>(arena->bytes()));
    Invocation invocation;
    invocation.attributes = &program_.operations[0].attributes;
    invocation.reads = reads;
    invocation.writes = writes;
    invocation.updates = updates;
    invocation.workspace.data = arena->data() + kGuard;
    invocation.workspace.shape = Shape{bytes};
    invocation.workspace.dtype = DType::u8;
    invocation.prepared = prepared.get();
    backend().run(invocation);
    for (int64_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(arena->data()[i], std::byte{0xff}) << "before the workspace";
      ASSERT_EQ(arena->data()[kGuard + bytes + i], std::byte{0xff}) << "behind the workspace";
    }
  }

 private:
  program::Builder builder_;
  program::Program program_;
};

struct MatmulCase {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  DType factors, result;
  float alpha = 1.0F;
  enum Sum { nothing, addend, addend_in_place, accumulate } sum = nothing;
  int64_t gap_a = 0, gap_b = 0, gap_c = 0;
};

std::string describe(const MatmulCase& c) {
  return fmt::format(
      "({} x {}) ({} x {}) transposed {} {}, {} -> {}, alpha {}, sum {}, gaps {} {} {}", c.m, c.k,
      c.k, c.n, c.transpose_a, c.transpose_b, base::name_of(c.factors), base::name_of(c.result),
      c.alpha, static_cast<int>(c.sum), c.gap_a, c.gap_b, c.gap_c);
}

Values product_of(const MatmulCase& c, const Matrix& a, const Matrix& b, const Matrix* addend) {
  Values expected(static_cast<size_t>(c.m * c.n));
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < c.k; ++p)
        sum +=
            (c.transpose_a ? a.at(p, i) : a.at(i, p)) * (c.transpose_b ? b.at(j, p) : b.at(p, j));
      expected[static_cast<size_t>(i * c.n + j)] =
          static_cast<double>(c.alpha) * sum + (addend == nullptr ? 0.0 : addend->at(i, j));
    }
  return expected;
}

void check(const MatmulCase& c) {
  SCOPED_TRACE(describe(c));
  Matrix a = c.transpose_a ? random_matrix(c.k, c.m, c.factors, c.gap_a)
                           : random_matrix(c.m, c.k, c.factors, c.gap_a);
  Matrix b = c.transpose_b ? random_matrix(c.n, c.k, c.factors, c.gap_b)
                           : random_matrix(c.k, c.n, c.factors, c.gap_b);
  Matrix addend = random_matrix(c.m, c.n, c.result, c.gap_c);
  Matrix result = c.sum == MatmulCase::addend_in_place || c.sum == MatmulCase::accumulate
                      ? addend
                      : empty_matrix(c.m, c.n, c.result, c.gap_c);
  const Values expected = product_of(c, a, b, c.sum == MatmulCase::nothing ? nullptr : &addend);
  OneOperation operation;
  program::Matmul matmul{
      .transpose_a = c.transpose_a, .transpose_b = c.transpose_b, .alpha = c.alpha};
  matmul.accumulate = c.sum == MatmulCase::accumulate;
  matmul.addend = c.sum == MatmulCase::addend || c.sum == MatmulCase::addend_in_place;
  std::vector<TensorId> reads{operation.tensor(a), operation.tensor(b)};
  std::vector<Buffer> read_buffers{a.buffer(), b.buffer()};
  if (matmul.addend) {
    reads.push_back(operation.tensor(addend));
    read_buffers.push_back(c.sum == MatmulCase::addend ? addend.buffer() : result.buffer());
  }
  const TensorId to = operation.tensor(result);
  if (matmul.accumulate) {
    operation.emit(matmul, reads, {}, {to});
    operation.run(read_buffers, {}, {result.buffer()});
  } else {
    operation.emit(matmul, reads, {to}, {});
    operation.run(read_buffers, {result.buffer()}, {});
  }
  EXPECT_LE(error_against(expected, result), kTolerance[c.result == DType::bf16 ? 1 : 0]);
  EXPECT_TRUE(gaps_untouched(result));
}

// Factor and result types that run on this machine.
std::vector<std::pair<DType, DType>> type_pairs() {
  std::vector<std::pair<DType, DType>> pairs{{DType::f32, DType::f32}};
  if (has_bf16_products(detect_isa())) {
    pairs.emplace_back(DType::bf16, DType::bf16);
    pairs.emplace_back(DType::bf16, DType::f32);
  }
  return pairs;
}

constexpr int64_t kSizes[][3] = {{1, 1, 1},     {1, 131, 16},  {7, 16, 131},  {131, 1, 33},
                                 {16, 576, 64}, {64, 16, 576}, {33, 65, 257}, {129, 200, 300}};

TEST(CpuMatmul, EveryTransposeAndSum) {
  for (const auto& [factors, result] : type_pairs())
    for (const auto& [m, n, k] : kSizes)
      for (int flags = 0; flags < 16; ++flags)
        check({.m = m,
               .n = n,
               .k = k,
               .transpose_a = (flags & 1) != 0,
               .transpose_b = (flags & 2) != 0,
               .factors = factors,
               .result = result,
               .alpha = (flags & 3) == 2 ? 1.0F : 0.37F,
               .sum = static_cast<MatmulCase::Sum>(flags >> 2)});
}

TEST(CpuMatmul, OperandsWithGaps) {
  for (const auto& [factors, result] : type_pairs())
    for (int flags = 0; flags < 16; ++flags)
      for (const int64_t gap : {1, 32})
        check({.m = 37,
               .n = 48,
               .k = 29,
               .transpose_a = (flags & 1) != 0,
               .transpose_b = (flags & 2) != 0,
               .factors = factors,
               .result = result,
               .sum = static_cast<MatmulCase::Sum>(flags >> 2),
               .gap_a = gap,
               .gap_b = gap == 1 ? 0 : 3,
               .gap_c = gap});
}

TEST(CpuMatmul, StochasticAccumulationRoundsByItsBits) {
  if (!has_bf16_products(detect_isa())) GTEST_SKIP() << "no bf16 products on this machine";
  // 1 MiB of fp32 rows is 1024 of these: one block and a rest.
  constexpr int64_t kRows = 1100;
  constexpr int64_t kColumns = 256;
  constexpr int64_t kInner = 8;
  Matrix a = random_matrix(kInner, kRows, DType::bf16);
  Matrix b = random_matrix(kInner, kColumns, DType::bf16);
  Matrix c = random_matrix(kRows, kColumns, DType::bf16);
  const Matrix before = c;
  OneOperation operation;
  const program::Matmul matmul{
      .transpose_a = true, .accumulate = true, .stochastic = true, .seed = 11, .site = 3};
  std::vector<int32_t> random{5, 2};
  Buffer random_buffer;
  random_buffer.data = reinterpret_cast<std::byte*>(random.data());
  random_buffer.dtype = DType::i32;
  random_buffer.shape = Shape{2};
  random_buffer.strides = {1};
  operation.emit(matmul,
                 {operation.tensor(a), operation.tensor(b), operation.vector(2, DType::i32)}, {},
                 {operation.tensor(c)});
  operation.run({a.buffer(), b.buffer(), random_buffer}, {}, {c.buffer()});
  const base::PhiloxKey key =
      stream_key({.seed = 11, .site = 3, .step = 5, .first_row = 2}, RandomPurpose::rounding);
  int64_t different = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < kInner; ++p)
        sum += static_cast<float>(a.at(p, i)) * static_cast<float>(b.at(p, j));
      const base::BFloat16 wanted = round_stochastically(sum + static_cast<float>(before.at(i, j)),
                                                         rounding_bits(key, 0, i * kColumns + j));
      if (static_cast<double>(base::to_float(wanted)) != c.at(i, j)) ++different;
    }
  // Another order of fp32 summation turns some roundings: 2^-8 of those that differ in the last
  // place.
  EXPECT_LE(different, kRows * kColumns / 1000);
}

TEST(CpuMatmul, RefusesBf16WhereTheProcessorHasNone) {
  Matrix a = random_matrix(4, 4, DType::bf16);
  OneOperation operation;
  operation.emit(program::Matmul{}, {operation.tensor(a), operation.tensor(a)},
                 {operation.tensor(a)}, {});
  EXPECT_EQ(backend().runs(operation.view()), has_bf16_products(detect_isa()));
}

struct LossCase {
  int64_t tokens, width, vocab, chunk_rows;
  int trained_percent;
  bool weight_gradient = true;
  bool accumulate = false;
};

// Losses, loss, dhidden and dweight in fp64.
struct ExpectedLoss {
  Values losses, loss, dhidden, dweight;
};

ExpectedLoss expected_loss(const Matrix& hidden, const Matrix& weight,
                           const std::vector<int32_t>& targets, double inverse_tokens,
                           const Values& dweight_before) {
  const int64_t width = hidden.columns;
  ExpectedLoss expected{Values(targets.size()), Values(1),
                        Values(targets.size() * static_cast<size_t>(width)), dweight_before};
  for (int64_t t = 0; t < hidden.rows; ++t) {
    const int64_t target = targets[static_cast<size_t>(t)];
    if (target < 0) continue;
    Values p(static_cast<size_t>(weight.rows));
    double sum = 0;
    for (int64_t v = 0; v < weight.rows; ++v) {
      double logit = 0;
      for (int64_t j = 0; j < width; ++j) logit += hidden.at(t, j) * weight.at(v, j);
      p[static_cast<size_t>(v)] = std::exp(logit);
      sum += p[static_cast<size_t>(v)];
    }
    const double loss = std::log(sum) - std::log(p[static_cast<size_t>(target)]);
    expected.losses[static_cast<size_t>(t)] = loss;
    expected.loss[0] += loss * inverse_tokens;
    for (int64_t v = 0; v < weight.rows; ++v) {
      const double gradient =
          (p[static_cast<size_t>(v)] / sum - (v == target ? 1.0 : 0.0)) * inverse_tokens;
      for (int64_t j = 0; j < width; ++j) {
        expected.dhidden[static_cast<size_t>(t * width + j)] += gradient * weight.at(v, j);
        expected.dweight[static_cast<size_t>(v * width + j)] += gradient * hidden.at(t, j);
      }
    }
  }
  return expected;
}

Buffer vector_buffer(void* data, int64_t size, DType dtype) {
  Buffer buffer;
  buffer.data = static_cast<std::byte*>(data);
  buffer.dtype = dtype;
  buffer.shape = Shape{size};
  buffer.strides = {1};
  return buffer;
}

Values values_of(const Matrix& matrix) {
  Values values;
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.columns; ++j) values.push_back(matrix.at(i, j));
  return values;
}

std::vector<int32_t> random_targets(const LossCase& c) {
  std::mt19937 generator(static_cast<uint32_t>(c.tokens));
  std::vector<int32_t> targets;
  for (int64_t t = 0; t < c.tokens; ++t) {
    const bool trained = static_cast<int>(generator() % 100) < c.trained_percent;
    const auto target = static_cast<int32_t>(generator() % static_cast<uint64_t>(c.vocab));
    targets.push_back(trained ? target : -100);
  }
  return targets;
}

void check(const LossCase& c, DType type) {
  SCOPED_TRACE(fmt::format("{} tokens, width {}, vocab {}, chunk {}, {} % trained, {}, {} {}",
                           c.tokens, c.width, c.vocab, c.chunk_rows, c.trained_percent,
                           base::name_of(type), c.weight_gradient, c.accumulate));
  Matrix hidden = random_matrix(c.tokens, c.width, type);
  Matrix weight = random_matrix(c.vocab, c.width, type);
  Matrix dweight = c.accumulate ? random_matrix(c.vocab, c.width, DType::f32)
                                : empty_matrix(c.vocab, c.width, DType::f32);
  std::vector<int32_t> targets = random_targets(c);
  const Values before =
      c.accumulate ? values_of(dweight) : Values(static_cast<size_t>(c.vocab * c.width));
  float inverse_tokens = 0.125F;
  const ExpectedLoss expected =
      expected_loss(hidden, weight, targets, static_cast<double>(inverse_tokens), before);

  Matrix losses = empty_matrix(1, c.tokens, DType::f32);
  Matrix loss = empty_matrix(1, 1, DType::f32);
  Matrix dhidden = empty_matrix(c.tokens, c.width, type);
  OneOperation operation;
  std::vector<TensorId> writes{operation.vector(c.tokens, DType::f32),
                               operation.vector(1, DType::f32), operation.tensor(dhidden)};
  std::vector<Buffer> write_buffers{vector_buffer(losses.bytes.data(), c.tokens, DType::f32),
                                    vector_buffer(loss.bytes.data(), 1, DType::f32),
                                    dhidden.buffer()};
  std::vector<TensorId> updates;
  std::vector<Buffer> update_buffers;
  if (c.weight_gradient) {
    (c.accumulate ? updates : writes).push_back(operation.tensor(dweight));
    (c.accumulate ? update_buffers : write_buffers).push_back(dweight.buffer());
  }
  operation.emit(program::LinearCrossEntropyTrain{.chunk_rows = c.chunk_rows,
                                                  .weight_gradient = c.weight_gradient,
                                                  .accumulate = c.accumulate},
                 {operation.tensor(hidden), operation.tensor(weight),
                  operation.vector(c.tokens, DType::i32), operation.vector(1, DType::f32)},
                 writes, updates);
  operation.run(
      {hidden.buffer(), weight.buffer(), vector_buffer(targets.data(), c.tokens, DType::i32),
       vector_buffer(&inverse_tokens, 1, DType::f32)},
      write_buffers, update_buffers);
  const double tolerance = kTolerance[type == DType::bf16 ? 1 : 0];
  EXPECT_LE(error_against(expected.losses, losses), 1e-5);
  EXPECT_LE(error_against(expected.loss, loss), 1e-5);
  EXPECT_LE(error_against(expected.dhidden, dhidden), tolerance);
  if (c.weight_gradient) {
    EXPECT_LE(error_against(expected.dweight, dweight), tolerance);
  }
}

TEST(CpuLinearCrossEntropy, ChunksAndRests) {
  for (const auto& [type, result] : type_pairs()) {
    if (result != type) continue;
    check({.tokens = 37, .width = 24, .vocab = 131, .chunk_rows = 8, .trained_percent = 60}, type);
    check({.tokens = 300, .width = 16, .vocab = 97, .chunk_rows = 128, .trained_percent = 100},
          type);
    check({.tokens = 300,
           .width = 16,
           .vocab = 97,
           .chunk_rows = 128,
           .trained_percent = 70,
           .accumulate = true},
          type);
    check({.tokens = 90, .width = 16, .vocab = 2500, .chunk_rows = 64, .trained_percent = 80},
          type);
    check({.tokens = 5,
           .width = 33,
           .vocab = 17,
           .chunk_rows = 0,
           .trained_percent = 50,
           .weight_gradient = false},
          type);
    check({.tokens = 9, .width = 8, .vocab = 12, .chunk_rows = 4, .trained_percent = 0}, type);
  }
}

TEST(CpuBackendDeathTest, PreparingWithLessWorkspaceThanAskedFails) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Matrix a = random_matrix(64, 256, DType::f32);
  OneOperation operation;
  operation.emit(program::Matmul{.transpose_b = true}, {operation.tensor(a), operation.tensor(a)},
                 {operation.tensor(empty_matrix(64, 64, DType::f32))}, {});
  operation.shrink_workspace();
  EXPECT_DEATH(backend().prepare(operation.view()), "matmul now asks for");
}

TEST(CpuBackend, ChunkOfLogitsStaysBelowItsBytes) {
  EXPECT_EQ(backend().loss_chunk_rows(49152, 2048), 512);
  EXPECT_EQ(backend().loss_chunk_rows(128256, 16384), 256);
  EXPECT_EQ(backend().loss_chunk_rows(1000, 10), 64);
  EXPECT_EQ(backend().loss_chunk_rows(1000, 100000), 2048);
}

TEST(CpuBackend, AnArenaLargerThanTheMachineIsTheUsersMistake) {
  EXPECT_THROW(backend().allocate(program::Space::device, int64_t{1} << 50), base::UserError);
}

}  // namespace
}  // namespace snug::backends::cpu
