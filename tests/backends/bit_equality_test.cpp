// The same inputs give the same bits: from run to run for everything, and for Snug's own kernels
// whatever the number of threads. A library may choose its blocks by the number of threads, so
// matrix products are held only to the first.
#include <gtest/gtest.h>

#include <iostream>

#include "comparison.h"
#include "program/kind.h"

namespace snug::backends::test {
namespace {

class BitEquality : public testing::TestWithParam<program::Kind> {
 protected:
  static bool multiplies_matrices() {
    using program::Kind;
    return GetParam() == Kind::matmul || GetParam() == Kind::linear_cross_entropy ||
           GetParam() == Kind::linear_cross_entropy_train;
  }

  static std::map<program::TensorId, std::vector<std::byte>> bits(
      int threads, const OperationCase& operation_case) {
    const auto backend = open_backend("cpu", {.threads = threads});
    return guarded_run(*backend, operation_case.program, operation_case.inputs).bytes;
  }
};

TEST_P(BitEquality, does_not_depend_on_run_or_threads) {
  const auto cpu = open_backend("cpu", {.threads = 2});
  int runs = 0;
  int same_on_other_threads = 0;
  for (const Types& types : kAllTypes)
    for (const OperationCase& operation_case : cases_of(GetParam(), types)) {
      if (!cpu->runs(operation_case.view())) continue;
      SCOPED_TRACE(fmt::format("{} [{}], SNUG_TEST_SEED={}", operation_case.name,
                               operation_case.types(), test_seed()));
      const auto first = bits(2, operation_case);
      EXPECT_EQ(first, bits(2, operation_case)) << "two runs on two threads differ";
      bool same = true;
      for (const int threads : {1, 3}) same = same && first == bits(threads, operation_case);
      same_on_other_threads += same ? 1 : 0;
      EXPECT_TRUE(same || multiplies_matrices()) << "one, two and three threads differ";
      ++runs;
    }
  EXPECT_GT(runs, 0);
  std::cout << fmt::format("{:<28} {} of {} cases have the same bits on 1, 2 and 3 threads\n",
                           program::name_of(GetParam()), same_on_other_threads, runs);
}

std::vector<program::Kind> all_kinds() {
  std::vector<program::Kind> kinds;
  for (int i = 0; i < program::kKindCount; ++i) kinds.push_back(static_cast<program::Kind>(i));
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(, BitEquality, testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
