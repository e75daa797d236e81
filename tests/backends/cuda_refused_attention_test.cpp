// Attention that the library refuses: before the plan, and after it.
#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "backends/cuda/attention/attention_note.h"
#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
#include "base/error.h"
#include "operation_check.h"
#include "program/kinds/attention/attention.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

bool suits_cudnn(const OperationCase& made, const cuda::Card& card) {
  const program::OperationView view = made.view();
  if (const auto* attention = view.operation.attributes.get_if<program::Attention>())
    return cuda::suits_cudnn(*attention, view, card);
  return cuda::suits_cudnn(view.operation.attributes.get<program::AttentionGrad>(), view, card);
}

// Own kernels are planned for it then, and a line says so.
class RefusedAttention : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    cuda_emulator::refuses_attention = GetParam();
    cuda_emulator::attention_workspace_bytes = int64_t{1} << 40;  // of what is not refused
  }
  void TearDown() override {
    cuda_emulator::refuses_attention = false;
    cuda_emulator::attention_workspace_bytes = 0;
  }
};

TEST_P(RefusedAttention, runs_on_own_kernels) {
  cuda::CudaBackend backend({});
  cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  card.asks_cudnn = true;
  cuda::CudaContext context;
  for (const program::Kind kind : {program::Kind::attention, program::Kind::attention_grad}) {
    const auto is_asked_for = [&](const OperationCase& made) {
      program::Operation decided = made.operation();
      decided.attributes = backend.decide(made.view());
      EXPECT_FALSE(cuda::is_by_cudnn({made.program, decided})) << made.name;
      if (suits_cudnn(made, card)) {
        program::Program program = made.program;
        program.operations[0] = decided;
        cuda::note_attention({program, program.operations[0]}, context);
      }
      return suits_cudnn(made, card);
    };
    // Why own kernels are taken changes nothing of what they compute. What the library is never
    // asked for they compute in cuda_emulator_test.cpp.
    if (GetParam())
      check_kind(backend, kind, cuda_must_run, true, is_asked_for);
    else
      for (const Types& types : kAllTypes)
        for (const OperationCase& made : cases_of(kind, types)) is_asked_for(made);
  }
  const snug::testing::CapturedStream said(stderr);
  context.library_checks.say_notes();
  EXPECT_TRUE(snug::testing::contains(
      said.text(), GetParam() ? "own kernels are planned for it, since cuDNN has no kernel"
                              : "bytes of scratch for attention"));
}

INSTANTIATE_TEST_SUITE_P(NoKernelOrNoScratch, RefusedAttention, ::testing::Bool());

// What was given to the library is done by the library or not at all.
TEST(CudaBackend, refuses_an_attention_that_was_planned_for_the_library) {
  int refused = 0;
  for (const OperationCase& made : cases_of(program::Kind::attention, kAllTypes[1])) {
    cuda::CudaBackend planner({});
    program::Program program = made.program;
    program::Operation& operation = program.operations[0];
    operation.attributes = planner.decide({program, operation});
    operation.launches = planner.launches({program, operation});
    if (!is_by_library(operation.attributes.get<program::Attention>())) continue;
    program::Tensor scratch;
    scratch.name = "scratch";
    scratch.shape = {planner.workspace({program, operation}).bytes};
    scratch.dtype = base::DType::u8;
    scratch.role = program::Role::workspace;
    program.tensors.push_back(scratch);
    operation.workspace = static_cast<program::TensorId>(program.tensors.size() - 1);
    EXPECT_NE(planner.prepare({program, operation}), nullptr);
    cuda_emulator::refuses_attention = true;
    cuda::CudaBackend runner({});
    EXPECT_THROW(runner.prepare({program, operation}), base::UserError);
    cuda_emulator::refuses_attention = false;
    ++refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace snug::backends::test
