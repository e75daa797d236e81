// The event files of a run: their order, their tags, and what a run that goes on says of earlier
// ones. scripts/oracles/check_tensorboard has TensorBoard read them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "report/event_record.h"
#include "train/tensorboard_log.h"

namespace snug::train {
namespace {

using snug::testing::contains;

std::string bytes_in(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(TensorBoardLogs, HaveTheNumbersOfEachLineUnderTheTrainersNames) {
  const testing::TemporaryFolder folder;
  TensorBoardLog log(folder.path(), "model: a\nseed: 1\n", std::nullopt);
  const size_t begun = bytes_in(log.path()).size();
  log.add("{\"step\":3,\"loss\":2.5,\"grad_norm\":null,\"rewards/margins\":1}");
  log.add("{\"step\":3,\"eval_loss\":2,\"eval_a_loss\":4}");
  const std::string bytes = bytes_in(log.path());
  EXPECT_TRUE(contains(bytes.substr(0, begun), "brain.Event:2"));
  EXPECT_TRUE(contains(bytes.substr(0, begun), "    model: a\n    seed: 1\n"));
  for (const char* tag : {"train/loss", "train/rewards/margins", "eval/loss", "eval/a_loss"})
    EXPECT_TRUE(contains(bytes.substr(begun), tag)) << tag;
  EXPECT_FALSE(contains(bytes, "grad_norm")) << "it was no number";
  EXPECT_FALSE(contains(bytes, "step"));
}

TEST(TensorBoardLogs, OfARunThatGoesOnComeLaterAndTakeStepsBack) {
  const testing::TemporaryFolder folder;
  const auto first = TensorBoardLog(folder.path(), "", std::nullopt).path();
  const auto second = TensorBoardLog(folder.path(), "", 41).path();
  EXPECT_LT(first.filename(), second.filename()) << "though both began within a second";
  EXPECT_TRUE(TensorBoardLog::is_event_file(second.filename().string()));
  // Without its time and checksum.
  const std::string restart = report::restart_record(0, 41).substr(21, 6);
  EXPECT_TRUE(contains(bytes_in(second), restart));
  EXPECT_FALSE(contains(bytes_in(first), restart));
}

TEST(TensorBoardLogs, ThatCannotBeginAreAnError) {
  EXPECT_THROW(TensorBoardLog("no/such/folder", "", std::nullopt), base::UserError);
}

}  // namespace
}  // namespace snug::train
