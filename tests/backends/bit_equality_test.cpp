// The same inputs give the same bits: from run to run for everything, and for Snug's own kernels
// whatever the number of threads. A library may choose its blocks by the number of threads, so
// matrix products are held only to the first.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "comparison.h"
#include "operation_check.h"
#include "program/kinds/kind.h"

namespace snug::backends::test {
namespace {

class BitEquality : public ::testing::TestWithParam<program::Kind> {
 protected:
  static bool multiplies_matrices() {
    using program::Kind;
    return GetParam() == Kind::matmul || GetParam() == Kind::linear_cross_entropy ||
           GetParam() == Kind::linear_cross_entropy_train;
  }

  // Cases of all types that the backend runs, each once.
  static std::vector<OperationCase> all_cases(const Backend& backend) {
    std::vector<OperationCase> cases;
    std::set<std::string> seen;
    for (const Types& types : kAllTypes)
      for (OperationCase& operation_case : cases_of(GetParam(), types))
        if (backend.runs(operation_case.view()) &&
            seen.insert(operation_case.name + operation_case.types()).second)
          cases.push_back(std::move(operation_case));
    return cases;
  }

  using Bits = std::map<program::TensorId, std::vector<std::byte>>;
  static std::vector<Bits> bits(int threads, const std::vector<OperationCase>& cases) {
    const auto backend = open_backend("cpu", {.threads = threads});
    std::vector<Bits> results;
    for (const OperationCase& operation_case : cases)
      results.push_back(guarded_run(*backend, operation_case.program, operation_case.inputs).bytes);
    return results;
  }
};

TEST_P(BitEquality, does_not_depend_on_run_or_threads) {
  const auto cases = all_cases(*open_backend("cpu", {.threads = 2}));
  const auto two = bits(2, cases);
  const auto again = bits(2, cases);
  const auto one = bits(1, cases);
  const auto three = bits(3, cases);
  size_t same = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(
        fmt::format("{} [{}], SNUG_TEST_SEED={}", cases[i].name, cases[i].types(), test_seed()));
    EXPECT_EQ(two[i], again[i]) << "two runs on two threads differ";
    const bool equal = two[i] == one[i] && two[i] == three[i];
    EXPECT_TRUE(equal || multiplies_matrices()) << "one, two and three threads differ";
    same += equal ? 1 : 0;
  }
  EXPECT_FALSE(cases.empty());
  std::cout << fmt::format("{:<28} {} of {} cases have the same bits on 1, 2 and 3 threads\n",
                           program::name_of(GetParam()), same, cases.size());
}

INSTANTIATE_TEST_SUITE_P(, BitEquality, ::testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

}  // namespace
}  // namespace snug::backends::test
