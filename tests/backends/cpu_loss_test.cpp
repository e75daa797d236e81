// The head's loss and gradients on the CPU backend against naive loops in fp64: chunks, rests,
// blocks of columns, rows without loss, workspaces poisoned.
#include "backends/cpu/loss/loss_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "base/error.h"
#include "one_operation.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

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
  operation.emit(program::LinearCrossEntropyTrain{.chunks = {.rows = c.chunk_rows},
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

// Without a gradient of the weight: several blocks of the vocabulary with a rest, several blocks
// and chunks of rows, widths that are no whole panels.
TEST(CpuLinearCrossEntropy, HiddenGradientAlone) {
  for (const auto& [type, result] : type_pairs()) {
    if (result != type) continue;
    for (const auto& [tokens, width, vocab] : {std::array<int64_t, 3>{37, 24, 131},
                                               {1, 64, 33},
                                               {300, 100, 1100},
                                               {130, 33, 2500},
                                               {1500, 40, 600}})
      check({.tokens = tokens,
             .width = width,
             .vocab = vocab,
             .chunk_rows = 0,  // the backend decides: online where it can
             .trained_percent = 80,
             .weight_gradient = false},
            type);
  }
}

TEST(CpuBackend, ChunkOfLogitsStaysBelowItsBytes) {
  EXPECT_EQ(default_chunk_rows(49152, 2048), 512);
  EXPECT_EQ(default_chunk_rows(128256, 16384), 256);
  EXPECT_EQ(default_chunk_rows(1000, 10), 64);
  EXPECT_EQ(default_chunk_rows(1000, 100000), 2048);
}

TEST(CpuBackend, AnArenaLargerThanTheMachineIsTheUsersMistake) {
  EXPECT_THROW(backend().allocate(program::Space::device, int64_t{1} << 50), base::UserError);
}

}  // namespace
}  // namespace snug::backends::cpu
