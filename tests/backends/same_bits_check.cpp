#include <gtest/gtest.h>

#include "operation_case.h"
#include "program/kinds/kind.h"
#include "weights_check.h"

namespace snug::backends::test {

void check_same_bits(Backend& one, Backend& other, std::initializer_list<program::Kind> kinds) {
  int64_t compared = 0;
  for (const program::Kind kind : kinds)
    for (const Types& types : kAllTypes)
      for (const OperationCase& operation_case : cases_of(kind, types)) {
        if (!one.runs(operation_case.view()) || !other.runs(operation_case.view())) continue;
        SCOPED_TRACE(fmt::format("{} [{}], SNUG_TEST_SEED={}", operation_case.name,
                                 operation_case.types(), test_seed()));
        const auto run = [&](Backend& backend) {
          return guarded_run(backend, operation_case.program, operation_case.inputs).bytes;
        };
        EXPECT_EQ(run(one), run(other));
        ++compared;
      }
  EXPECT_GT(compared, 50);
}

}  // namespace snug::backends::test
