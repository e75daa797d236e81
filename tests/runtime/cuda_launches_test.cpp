// How many kernels the emulated device is given for a program.
#include <gtest/gtest.h>

#include "block_fibers.h"
#include "runtime/adapter.h"
#include "runtime/random_weights.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using testing::TinyRun;

// Two layers of seven linears with two factors each: one sum of squares, one norm, one factor and
// one step for all, not one a tensor.
TEST(CudaLaunches, AnUpdateStepsItsTensorsTogether) {
  for (const auto optimizer : {methods::OptimizerKind::adamw, methods::OptimizerKind::adamw_bf16}) {
    TinyRun run({.method = plan::MethodKind::lora,
                 .compute = base::DType::bf16,
                 .optimizer = optimizer,
                 .init_seed = 1});
    random_weights(run.spec().model, run.executor());
    initialise_adapter(run.executor());
    run.executor().run(program::ProgramName::prepare);
    run.executor().set_input("learning_rate", 1e-3F);
    run.executor().set_input("step", int32_t{1});
    run.executor().backend().synchronise();
    const uint64_t before = cuda_emulator::launches();
    run.executor().run(program::ProgramName::update);
    run.executor().backend().synchronise();
    EXPECT_GE(run.job().find(program::ProgramName::update)->operations.size(), 28U);
    EXPECT_EQ(cuda_emulator::launches() - before, 4U);
  }
}

}  // namespace
}  // namespace snug::runtime
