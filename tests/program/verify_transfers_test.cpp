// What must hold of copies that go on next to other operations, one broken rule at a time.
#include <gtest/gtest.h>

#include "program/text/text.h"
#include "program/verify/verify.h"

namespace snug::program {
namespace {

using Problems = std::vector<std::string>;

Problems problems_of(const std::string& lines) {
  return verify(
      parse_text("program p\n"
                 "tensor a (8, 4) bf16 batch step\n"
                 "x (8, 4) bf16 = add(a, a)\n" +
                 lines));
}

constexpr const char* kOut = "x.out (8, 4) bf16 pinned_host = transfer(x)\n";
constexpr const char* kBack = "x.back (8, 4) bf16 = transfer(x.out)\n";

TEST(VerifyTransfers, PassesWhatIsRight) {
  EXPECT_EQ(problems_of(std::string(kOut) +
                        "y (8, 4) bf16 = add(x, a)\nawait(x) updates (x.out)\n" + kBack +
                        "z (8, 4) bf16 = add(y, a)\nawait(x.out) updates (x.back)\n"
                        "u (8, 4) bf16 = add(x.back, z)\n"),
            Problems{});
}

TEST(VerifyTransfers, EachIsAwaited) {
  EXPECT_EQ(problems_of(kOut),
            Problems{"operation 1 (transfer) begins to copy 'x', which is never awaited"});
}

TEST(VerifyTransfers, OnlyWhatWasBegunIsAwaited) {
  EXPECT_EQ(problems_of(std::string(kOut) + "await(x) updates (x.out)\nawait(x) updates (x.out)\n"),
            Problems{"operation 3 (await) awaits a copy of 'x' that was not begun"});
}

TEST(VerifyTransfers, NothingReadsTheTargetBefore) {
  EXPECT_EQ(problems_of(std::string(kOut) + "await(x) updates (x.out)\n" + kBack +
                        "y (8, 4) bf16 = add(x.back, a)\nawait(x.out) updates (x.back)\n"),
            Problems{"operation 4 (add) touches 'x.back' before its copy is awaited"});
}

TEST(VerifyTransfers, NothingWritesTheSourceMeanwhile) {
  EXPECT_EQ(
      problems_of(std::string(kOut) + "accumulate(a) updates (x)\nawait(x) updates (x.out)\n"),
      Problems{"operation 2 (accumulate) writes 'x' while it is copied"});
}

TEST(VerifyTransfers, OnlyCopiesReachOtherSpaces) {
  const Problems problems =
      problems_of(std::string(kOut) + "await(x) updates (x.out)\ny (8, 4) bf16 = add(x.out, a)\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("lies in pinned_host memory and cannot be reached"),
            std::string::npos);
}

TEST(VerifyTransfers, EndsLieInTwoSpacesAndAreDense) {
  EXPECT_EQ(problems_of("y (8, 4) bf16 = transfer(x)\nawait(x) updates (y)\n"),
            (Problems{"operation 1 (transfer) copies within one space"}));
  EXPECT_EQ(problems_of("y (8, 4) bf16 host = transfer(x)\nawait(x) updates (y)\n")[0],
            "operation 1 (transfer) reaches host memory that is not pinned");
  EXPECT_EQ(problems_of("y (8, 4) f32 pinned_host = transfer(x)\nawait(x) updates (y)\n")[0],
            "operation 1 (transfer) y 'y' is f32, expected bf16");
  EXPECT_EQ(problems_of("tensor v (8, 2) bf16 view of x at 0 strides (4, 1)\n"
                        "y (8, 2) bf16 pinned_host = transfer(v)\nawait(v) updates (y)\n")[0],
            "operation 1 (transfer) copies a view that is not dense");
}

}  // namespace
}  // namespace snug::program
