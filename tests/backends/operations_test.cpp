// Every kind on every backend that needs no card, against the reference in fp64
// (operation_check.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "comparison.h"
#include "operation_check.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"
#include "refusals_check.h"
#include "transfers_check.h"

namespace snug::backends::test {
namespace {

constexpr int kThreads = 2;

using BackendAndKind = std::tuple<std::string, program::Kind>;

bool multiplies_matrices(program::Kind kind) {
  using program::Kind;
  return kind == Kind::matmul || kind == Kind::linear_cross_entropy ||
         kind == Kind::linear_cross_entropy_train || kind == Kind::grouped_matmul ||
         kind == Kind::grouped_matmul_grad;
}

// The declared table of the cpu backend: everything, but matrix products of bf16 only where the
// processor has them.
bool cpu_must_run(const OperationCase& operation_case) {
  // Products of many rows, and of rows that end within a block, take the expansion; sums are made
  // apart.
  if (operation_case.operation().kind() == program::Kind::matmul_nf4) {
    const program::Tensor& x = operation_case.view()[program::MatmulNf4::kX];
    const bool is_bf16 = !operation_case.is_f32() && !operation_case.has_f16();
    const int64_t most_rows = !is_bf16                   ? 4
                              : cpu_must_use_tiles()     ? 32
                              : cpu_must_multiply_bf16() ? 16
                                                         : 4;
    return x.shape.rows() <= most_rows && x.shape.columns() % program::kNf4BlockSize == 0 &&
           !operation_case.operation().attributes.get<program::MatmulNf4>().addend;
  }
  // One call makes an augmented product where tiles do, and where it is wide.
  if (const auto* matmul = operation_case.operation().attributes.get_if<program::Matmul>();
      matmul != nullptr && matmul->augmented) {
    const program::Shape& a = operation_case.view()[program::Matmul::kA].shape;
    const program::Shape& b = operation_case.view()[program::Matmul::kB].shape;
    constexpr int64_t kWide = 128;
    return !operation_case.is_f32() && !operation_case.has_f16() && cpu_must_use_tiles() &&
           std::min({a[0], a[1], b[0], b[1]}) >= kWide;
  }
  // Its rounding is of bf16; jobs in fp16 step the masters.
  if (operation_case.operation().kind() == program::Kind::adamw_8bit && operation_case.has_f16())
    return false;
  if (!multiplies_matrices(operation_case.operation().kind()) || operation_case.is_f32() ||
      operation_case.has_f16())
    return true;
  return cpu_must_multiply_bf16();
}

// Of each instruction set below the processor's own (SNUG_ISA) half of the cases, of neighbouring
// ones the other half: what differs between them is the width of vectors, and each case meets two
// of them.
std::function<bool(const OperationCase&)> cases_of_isa() {
  const char* isa = std::getenv("SNUG_ISA");
  if (isa == nullptr || std::getenv("SNUG_ALL_CASES") != nullptr) return {};
  const bool is_odd = isa == std::string("v3") || isa == std::string("v4_bf16");
  // Multiples of the golden ratio: cases come in patterns of two and four, of which half would be
  // all of a form.
  constexpr uint32_t kGolden = 0x9e3779b9U;
  return [is_odd, count = 0U](const OperationCase&) mutable {
    return ((count++ * kGolden) >> 31U == 1) == is_odd;
  };
}

class Operations : public ::testing::TestWithParam<BackendAndKind> {};

TEST_P(Operations, agree_with_fp64) {
  const auto& [name, kind] = GetParam();
  const auto backend = open_backend(name, {.threads = kThreads});
  const auto always = [](const OperationCase&) { return true; };
  check_kind(*backend, kind, name == "cpu" ? MustRun(cpu_must_run) : MustRun(always), false,
             cases_of_isa());
  // A kernel for which tiny numbers are zeros gives the thread back as it was.
  volatile float smallest_normal = std::numeric_limits<float>::min();
  EXPECT_GT(smallest_normal / 2, 0.0F);
}

TEST(Refusals, come_before_anything_runs) {
  const auto backend = open_backend("cpu", {.threads = kThreads});
  check_refused_types(*backend);
  check_refused_tensors(*backend);
  check_refused_decisions(*backend);
}

TEST(Transfers, bring_what_was_there) {
  for (const char* name : {"reference", "cpu"})
    check_transfers(*open_backend(name, {.threads = kThreads}));
}

INSTANTIATE_TEST_SUITE_P(, Operations,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::ValuesIn(all_kinds())),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              program::name_of(std::get<1>(test.param)));
                         });

}  // namespace
}  // namespace snug::backends::test
