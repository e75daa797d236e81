// The linear cross-entropy on the CUDA backend when the host says how many rows carry loss: fewer
// chunks, the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "../base/captured_stream.h"
#include "backends/cuda/cuda_backend.h"
#include "block_fibers.h"
#include "operation_case.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::test {
namespace {

using testing::dies;

std::vector<int32_t> targets_of(const OperationCase& made) {
  const Values& targets =
      made.inputs.at(find_operand(made.operation(), program::OperandName("targets")));
  return {targets.begin(), targets.end()};
}

int64_t trained_rows(const std::vector<int32_t>& targets) {
  return std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
}

int64_t chunk_rows(const OperationCase& made) {
  if (const auto* loss = made.operation().attributes.get_if<program::LinearCrossEntropy>())
    return loss->chunks.rows;
  return made.operation().attributes.get<program::LinearCrossEntropyTrain>().chunks.rows;
}

// Without a size, all rows are one chunk.
int64_t chunks(const OperationCase& made, int64_t rows) {
  if (chunk_rows(made) == 0) return 1;
  return std::max<int64_t>(1, (rows + chunk_rows(made) - 1) / chunk_rows(made));
}

class LossRows : public ::testing::TestWithParam<program::Kind> {};

TEST_P(LossRows, leave_chunks_out_and_change_no_bit) {
  // What is timed would be counted too.
  cuda::CudaBackend backend({.chooses_by_timing = false});
  int64_t left_out = 0;
  for (const Types& types : {kAllTypes[0], kAllTypes[1]}) {
    int told_less = 0;  // of each type some: every one is a process that ends
    for (const OperationCase& made : cases_of(GetParam(), types)) {
      SCOPED_TRACE(fmt::format("{} [{}], SNUG_TEST_SEED={}", made.name, made.types(), test_seed()));
      std::vector<int32_t> targets = targets_of(made);
      const int64_t trained = trained_rows(targets);
      program::BatchBounds bounds;
      bounds.set(find_operand(made.operation(), program::OperandName("targets")), targets);
      const auto run = [&](const program::BatchBounds* known) {
        const uint64_t before = cuda_emulator::launches();
        const RunResult result = guarded_run(backend, made.program, made.inputs, known);
        for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
        return std::pair(result.bytes, cuda_emulator::launches() - before);
      };
      run(nullptr);  // libraries are called once before the first step, which is not counted
      const auto all = run(nullptr);
      const auto said = run(&bounds);
      EXPECT_TRUE(said.first == all.first) << "other bits";
      const int64_t more =
          chunks(made,
                 made.program.tensor(find_operand(made.operation(), program::OperandName("hidden")))
                     .shape[0]) -
          chunks(made, trained);
      EXPECT_EQ(said.second<all.second, more> 0);
      left_out += more;
      if (trained > 1 && told_less++ < 2) {
        *std::find_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; }) =
            -1;
        EXPECT_TRUE(dies([&] { run(&bounds); }, "a kernel's check failed"));
      }
    }
    EXPECT_GT(told_less, 2);
  }
  EXPECT_GT(left_out, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LossRows,
                         ::testing::Values(program::Kind::linear_cross_entropy,
                                           program::Kind::linear_cross_entropy_train),
                         [](const auto& test) {
                           return std::string(program::name_of(test.param));
                         });

}  // namespace
}  // namespace snug::backends::test
