// What the first rank decides for all.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>

#include "base/error.h"
#include "comm/mesh.h"
#include "rank_runs.h"
#include "runtime/process/job_ranks.h"

namespace snug::runtime {
namespace {

TEST(RanksDecide, AsTheFirstDoesWhichAloneIsAsked) {
  std::array<std::string, 3> decided;
  std::atomic<int> asked = 0;
  const auto errors = comm::errors_of_ranks(3, {}, [&](comm::Communicator& communicator) {
    const Ranks ranks(comm::Mesh{.all = &communicator, .shards = nullptr});
    decided[static_cast<size_t>(ranks.rank())] = ranks.decided_by_first([&] {
      ++asked;
      return "rank " + std::to_string(ranks.rank());
    });
  });
  testing::expect_no_errors(errors);
  for (const std::string& each : decided) EXPECT_EQ(each, "rank 0");
  EXPECT_EQ(asked, 1);
}

TEST(RanksDecide, AloneByThemselves) {
  EXPECT_EQ(Ranks().decided_by_first([] { return std::string("own"); }), "own");
  EXPECT_THROW(
      Ranks().decided_by_first([]() -> std::string { base::throw_user_error("does not fit"); }),
      base::UserError);
}

}  // namespace
}  // namespace snug::runtime
