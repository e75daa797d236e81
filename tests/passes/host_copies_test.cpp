// The pass that makes operations of what the host gives a program and takes from it.
#include "passes/memory/host_copies.h"
#include "passes/memory/mark_constants.h"

#include <gtest/gtest.h>

#include "program/ir/inputs.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;

constexpr std::string_view kBefore = R"(program update
tensor rate (1) f32 batch step
tensor unused (1) f32 batch step
tensor w (4, 4) f32 weight run
y (1) f32 scalar step = add(rate, rate) update
)";

constexpr std::string_view kAfter = R"(program update
tensor rate (1) f32 batch step
tensor unused (1) f32 batch step
tensor w (4, 4) f32 weight run
tensor y (1) f32 scalar step
tensor host.rate (1) f32 batch pinned_host step
tensor host.y (1) f32 scalar pinned_host step
tensor loss (1) f32 scalar step
tensor host.loss (1) f32 scalar pinned_host step
rate = copy(host.rate) update
y = add(rate, rate) update
host.y = copy(y) update
host.loss = copy(loss) update
)";

Program with_copies() {
  const Program before = parse(kBefore);
  program::Tensor loss = before.tensor(before.find("y"));
  loss.name = "loss";
  return host_copies(before, std::vector{before.tensor(before.find("y")), loss});
}

TEST(HostCopies, InputsComeFirstAndResultsLast) {
  const Program result = with_copies();
  EXPECT_EQ(print(result), print(parse(kAfter)));
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
}

constexpr std::string_view kStep = R"(program update
tensor rate (1) f32 batch step
tensor host.rate (1) f32 batch pinned_host step
tensor w (4, 4) f32 weight run
tensor row (4) f32 weight run view of w at 0
tensor changed (4, 4) f32 weight run
tensor part (4) f32 weight run view of changed at 0
tensor total (1) f32 gradient step
rate = copy(host.rate)
y (1) f32 = add(rate, total)
part = add(row, row)
)";

TEST(MarkConstants, AreWhatTheProgramLeavesAloneAndFindsComplete) {
  const Program result = mark_constants(parse(kStep));
  std::vector<std::string> constants;
  for (const program::Tensor& tensor : result.tensors)
    if (tensor.constant) constants.push_back(tensor.name);
  EXPECT_EQ(constants, (std::vector<std::string>{"w", "row"}));
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  EXPECT_EQ(parse(print(result)), parse(print(parse(print(result)))));
  EXPECT_NE(print(result).find("tensor w (4, 4) f32 weight run constant\n"), std::string::npos);
  EXPECT_NE(print(result).find("tensor changed (4, 4) f32 weight run\n"), std::string::npos);
}

// Without a copy from the host at its beginning a program may begin before another has ended.
TEST(MarkConstants, AreNoneWhereTheProgramDoesNotWait) {
  Program program = parse(kStep);
  program.operations.erase(program.operations.begin());
  EXPECT_EQ(mark_constants(program), program);
}

TEST(HostCopies, TheHostSideOfAnInputIsKnown) {
  const Program result = with_copies();
  EXPECT_EQ(program::host_side(result, result.find("rate")), result.find("host.rate"));
  EXPECT_EQ(program::host_side(result, result.find("w")), program::kNone);
}

}  // namespace
}  // namespace snug::passes
