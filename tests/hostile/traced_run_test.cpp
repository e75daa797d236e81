// The tracer sees calls and disturbs the one that it is told to.
#include "traced_run.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "../base/temporary_folder.h"
#include "../cli/binary_run.h"

namespace snug::hostile {
namespace {

using cli::contents_of;

class TracedShell : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_trace()) GTEST_SKIP() << "processes cannot be traced here";
  }
  TracedRun run(const Disturbance& disturbance) {
    const std::string script =
        "cd '" + folder_.path().string() + "' && echo before >a && echo after >b && mv a c";
    return run_traced({.words = {"/bin/sh", "-c", script}, .streams = streams_.path()},
                      folder_.path(), disturbance);
  }
  // Of the call on this file; -1 where there is none.
  int64_t call(const std::string& name, const std::string& file) {
    const std::vector<FileCall> calls = run({}).calls;
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const FileCall& each) {
      return each.name == name && each.path == folder_ / file;
    });
    for (const char* each : {"b", "c"}) std::filesystem::remove(folder_ / each);
    return found == calls.end() ? -1 : found - calls.begin();
  }

  testing::TemporaryFolder folder_;
  testing::TemporaryFolder streams_;
};

TEST_F(TracedShell, IsLeftAlone) {
  EXPECT_EQ(run({}).end.exit_code, 0);
  EXPECT_EQ(contents_of(folder_ / "c"), "before\n");
  EXPECT_EQ(contents_of(folder_ / "b"), "after\n");
}

TEST_F(TracedShell, IsKilledBeforeACall) {
  const int64_t at = call("openat", "b");
  ASSERT_GE(at, 0);
  EXPECT_EQ(run({.way = Way::kill, .call = at}).end.exit_code, 128 + SIGKILL);
  EXPECT_EQ(contents_of(folder_ / "a"), "before\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

// What the shell writes goes through a copied descriptor.
TEST_F(TracedShell, IsKilledInTheMiddleOfAWrite) {
  const int64_t at = call("write", "b");
  ASSERT_GE(at, 0);
  EXPECT_EQ(run({.way = Way::torn, .call = at}).end.exit_code, 128 + SIGKILL);
  EXPECT_EQ(contents_of(folder_ / "b"), "aft");
}

TEST_F(TracedShell, IsToldOfAnErrorThatDidNotHappen) {
  const int64_t at = call("openat", "b");
  ASSERT_GE(at, 0);
  const Ended end = run({.way = Way::fail, .call = at, .error_number = ENOSPC}).end;
  EXPECT_NE(end.exit_code, 0);
  EXPECT_NE(end.err.find("No space left"), std::string::npos) << end.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

// A child of the shell is followed too.
TEST_F(TracedShell, FollowsProcessesThatItStarts) {
  const std::vector<FileCall> calls = run({}).calls;
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&](const FileCall& each) {
    return each.name.starts_with("rename") && each.path == folder_ / "a";
  }));
}

TEST(Child, ThatHangsIsEnded) {
  const testing::TemporaryFolder folder;
  const Ended end =
      run({.words = {"/bin/sleep", "100"}, .streams = folder.path(), .limit_seconds = 1});
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
}

}  // namespace
}  // namespace snug::hostile
