// The pass that makes operations of what the host gives a program and takes from it.
#include "passes/host_copies.h"

#include <gtest/gtest.h>

#include "program/inputs.h"
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

TEST(HostCopies, TheHostSideOfAnInputIsKnown) {
  const Program result = with_copies();
  EXPECT_EQ(program::host_side(result, result.find("rate")), result.find("host.rate"));
  EXPECT_EQ(program::host_side(result, result.find("w")), program::kNone);
}

}  // namespace
}  // namespace snug::passes
