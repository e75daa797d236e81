#include "comm/agreement.h"

#include <gtest/gtest.h>

#include "ranks.h"

namespace snug::comm {
namespace {

std::vector<std::string> errors(const std::function<std::vector<NamedValue>(int)>& values) {
  return errors_of_ranks(3, {}, [&](Communicator& communicator) {
    require_agreement(communicator, values(communicator.rank()));
  });
}

TEST(Agreement, RanksWithTheSameValuesAgree) {
  for (const std::string& error : errors([](int) {
         return std::vector<NamedValue>{{"recipe", "a: 1\n"}, {"data", std::string("5:\0x", 4)}};
       }))
    EXPECT_EQ(error, "");
}

TEST(Agreement, ADifferenceIsNamedOnAllRanks) {
  const auto found = errors([](int rank) {
    return std::vector<NamedValue>{{"the version", "1"}, {"lr", rank == 2 ? "0.2" : "0.1"}};
  });
  for (const std::string& error : found)
    for (const char* word : {"lr", "'0.1' on rank 0", "'0.2' on rank 2"})
      EXPECT_NE(error.find(word), std::string::npos) << error;
}

TEST(Agreement, AMissingValueIsADifference) {
  const auto found = errors([](int rank) {
    std::vector<NamedValue> values{{"the version", "1"}};
    if (rank == 1) values.push_back({"seed", "3"});
    return values;
  });
  for (const std::string& error : found)
    for (const char* word : {"seed", "missing on rank 0", "'3' on rank 1"})
      EXPECT_NE(error.find(word), std::string::npos) << error;
}

}  // namespace
}  // namespace snug::comm
