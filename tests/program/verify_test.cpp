// One test for each class of problem, and programs that are close to one and right.
#include "program/verify/verify.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "program/text/text.h"
#include "random_program.h"

namespace snug::program {
namespace {

using Problems = std::vector<std::string>;

constexpr const char* kInputs =
    "program p\n"
    "tensor x (8, 4) bf16 batch step\n"
    "tensor w (4, 4) bf16 weight run\n";

Problems problems_of(const std::string& lines) { return verify(parse_text(kInputs + lines)); }

TEST(Verify, PassesWhatIsRight) {
  EXPECT_EQ(problems_of("y (8, 4) bf16 = matmul(x, w)\nz (8, 4) bf16 = add(x, y)\n"), Problems{});
  EXPECT_EQ(verify(layered_program(5)), Problems{});
  EXPECT_EQ(verify(Program{}), Problems{});
}

TEST(Verify, Constants) {
  constexpr const char* kHost =
      "tensor host (8, 4) bf16 batch pinned_host step\n"
      "tensor c (8, 4) bf16 weight run constant\n"
      "tensor part (4, 4) bf16 weight run view of c at 0\n"
      "tensor v (4, 4) bf16 weight run constant view of w at 0\n"
      "tensor d (8, 4) bf16 batch step constant\n";
  const auto problems = [&](const std::string& declared, const std::string& lines) {
    std::string tensors;
    std::istringstream all(kHost);
    for (std::string line; std::getline(all, line);)
      if (declared.find(line[7]) != std::string::npos || line[7] == 'h') tensors += line + '\n';
    return problems_of(tensors + lines);
  };
  const std::string copy = "x = copy(host)\n";
  EXPECT_EQ(problems("c", copy + "y (8, 4) bf16 = add(x, c)\n"), Problems{});
  EXPECT_EQ(problems("c", "y (8, 4) bf16 = add(x, c)\n"),
            Problems{"tensor 'c' is constant, but what ran before may still write it, for the "
                     "program copies no input first"});
  EXPECT_EQ(problems("c", copy + "c = add(x, x)\n"),
            Problems{"operation 1 (add) writes 'c', which is constant"});
  EXPECT_EQ(problems("c", copy + "accumulate(x) updates (c)\n"),
            Problems{"operation 1 (accumulate) updates 'c', which is constant"});
  EXPECT_EQ(problems("cp", copy + "part = add(w, w)\n"),
            Problems{"operation 1 (add) writes 'part', which is constant"});
  EXPECT_EQ(problems("v", copy), Problems{"tensor 'v' is constant, but is a view of one that is "
                                          "not"});
  EXPECT_EQ(problems("d", copy), Problems{"tensor 'd' is constant, but does not last through the "
                                          "run"});
}

TEST(Verify, Names) {
  Program program = parse_text(std::string(kInputs) + "y (8, 4) bf16 = add(x, x)");
  program.tensors[2].name = "x";
  EXPECT_EQ(verify(program), Problems{"tensors 0 and 2 are both named 'x'"});
  program.tensors[2].name = "";
  EXPECT_EQ(verify(program), Problems{"tensor 2 has no name"});
}

TEST(Verify, Ids) {
  Program program = parse_text(std::string(kInputs) + "y (8, 4) bf16 = add(x, x)");
  program.operations[0].reads[1] = 7;
  EXPECT_EQ(verify(program), Problems{"operation 0 (add) touches tensor 7 of 3"});
  program.operations[0].reads[1] = -2;
  EXPECT_EQ(verify(program), Problems{"operation 0 (add) touches tensor -2 of 3"});
  program.operations[0].reads[1] = 0;
  program.operations[0].workspace = 3;
  EXPECT_EQ(verify(program), Problems{"operation 0 (add) touches tensor 3 of 3"});
  program.operations[0].workspace = kNone;
  program.operations[0].channel = Channel::interconnect;
  EXPECT_EQ(verify(program), Problems{"operation 0 (add) runs on channel interconnect"});
}

TEST(Verify, NoKind) {
  Program program = parse_text(std::string(kInputs) + "y (8, 4) bf16 = add(x, x)");
  program.operations[0].attributes = Attributes{};
  EXPECT_EQ(verify(program), Problems{"operation 0 (no kind) has no kind"});
}

TEST(Verify, ShapeRules) {
  EXPECT_EQ(problems_of("y (8, 6) bf16 = matmul(x, w)"),
            Problems{"operation 0 (matmul) c 'y' has shape (8, 6), expected (8, 4)"});
}

TEST(Verify, OnlyNeighbouringStepsAreJoined) {
  const std::string scalars =
      "tensor factor (1) f32 scalar step\ntensor rate (1) f32 batch step\n"
      "tensor step (1) i32 batch step\n";
  const auto step = [](const std::string& n, const char* joined) {
    return "tensor g" + n + " (4) f32 gradient step\ntensor p" + n + " (4) f32 weight run\n" +
           "tensor m" + n + " (4) f32 moment run\ntensor v" + n + " (4) f32 moment run\n" +
           "adamw(g" + n + ", factor, rate, step) updates (p" + n + ", m" + n + ", v" + n + ")" +
           joined + "\n";
  };
  EXPECT_EQ(problems_of(scalars + step("1", "") + step("2", " joined")), Problems{});
  const char* problem = "is joined to what it cannot run with";
  EXPECT_EQ(problems_of(scalars + step("1", " joined")),
            Problems{std::string("operation 0 (adamw) ") + problem});
  EXPECT_EQ(problems_of("y (8, 4) bf16 = add(x, x)\nz (8, 4) bf16 = add(x, y) joined\n"),
            Problems{std::string("operation 1 (add) ") + problem});
  const std::string product = "y (8, 4) bf16 = matmul(x, w)\n";
  EXPECT_EQ(problems_of(product + "z (8, 4) bf16 = matmul(x, w) joined\n" +
                        "g (8, 4) bf16 = silu_mul(y, z) joined\n"),
            Problems{});
  EXPECT_EQ(problems_of(product + "z (8, 4) bf16 = add(x, y)\n" +
                        "g (8, 4) bf16 = matmul(x, w) joined\n"),
            Problems{std::string("operation 2 (matmul) ") + problem});
}

TEST(Verify, Sizes) {
  EXPECT_EQ(problems_of("tensor huge (4294967296, 4294967296) f32"),
            Problems{"tensor 'huge' of shape (4294967296, 4294967296) is larger than any memory"});
}

TEST(Verify, Views) {
  const auto view = [](const std::string& text) { return problems_of("tensor v " + text + "\n"); };
  EXPECT_EQ(view("(4, 4) bf16 weight run view of w at 0"), Problems{});
  EXPECT_EQ(view("(2, 4) bf16 weight run view of w at 8"), Problems{});
  EXPECT_EQ(view("(4, 2) bf16 weight run view of w at 2 strides (4, 1)"), Problems{});
  EXPECT_EQ(view("(0, 4) bf16 weight run view of w at 16"), Problems{});
  const Problems leaves{"tensor 'v' is a view that leaves its base 'w' of shape (4, 4)"};
  EXPECT_EQ(view("(2, 4) bf16 weight run view of w at 9"), leaves);
  EXPECT_EQ(view("(2, 4) bf16 weight run view of w at -1"), leaves);
  EXPECT_EQ(view("(4, 2) bf16 weight run view of w at 3 strides (4, 1)"), leaves);
  EXPECT_EQ(view("(2) bf16 weight run view of w at 0 strides (9223372036854775807)"), leaves);
  const Problems other{"tensor 'v' is a view of 'w' with another element type, space or lifetime"};
  EXPECT_EQ(view("(2, 4) f32 weight run view of w at 0"), other);
  EXPECT_EQ(view("(2, 4) bf16 weight step view of w at 0"), other);
  EXPECT_EQ(view("(2, 4) bf16 weight host run view of w at 0"), other);
  EXPECT_EQ(problems_of("tensor v (2, 4) bf16 weight run view of w at 0\n"
                        "tensor u (1, 4) bf16 weight run view of v at 0\n"),
            Problems{"tensor 'u' is a view of 'v', which is a view itself"});
  Program program = parse_text(kInputs);
  program.tensors[0].view.offset = 3;
  EXPECT_EQ(verify(program), Problems{"tensor 'x' has an offset or strides but no base"});
  program.tensors[0].view.base = 9;
  EXPECT_EQ(verify(program), Problems{"tensor 'x' is a view of tensor 9, which does not exist"});
}

TEST(Verify, WrittenBeforeRead) {
  EXPECT_EQ(problems_of("tensor y (8, 4) bf16\nz (8, 4) bf16 = add(x, y)\n"),
            Problems{"operation 0 (add) reads 'y' before all of it is written"});
  EXPECT_EQ(problems_of("z (8, 4) bf16 = add(x, y)\ny (8, 4) bf16 = add(x, x)\n"),
            Problems{"operation 0 (add) reads 'y' before all of it is written"});
  EXPECT_EQ(problems_of("tensor y (8, 4) bf16\naccumulate(x) updates (y)\n"),
            Problems{"operation 0 (accumulate) updates 'y' before all of it is written"});
  // Gradients of an earlier micro-batch.
  EXPECT_EQ(problems_of("tensor g (8, 4) f32 gradient step\naccumulate(x) updates (g)\n"),
            Problems{});
}

constexpr const char* kHalves =
    "tensor whole (8, 8) bf16\n"
    "tensor left (8, 4) bf16 view of whole at 0 strides (8, 1)\n"
    "tensor right (8, 4) bf16 view of whole at 4 strides (8, 1)\n"
    "tensor top (4, 8) bf16 view of whole at 0\n"
    "tensor first (1, 8) bf16 view of whole at 0\n"
    "tensor diagonal (8) bf16 view of whole at 0 strides (9)\n";

// Halves of columns, written one by one, make the whole.
TEST(Verify, WrittenInParts) {
  const std::string left = std::string(kHalves) + "left = add(x, x)\n";
  const std::string both = left + "right = add(x, x)\n";
  EXPECT_EQ(problems_of(both + "c (8, 8) f32 = cast(whole)\n"), Problems{});
  EXPECT_EQ(problems_of(both + "c (4, 8) f32 = cast(top)\n"), Problems{});
  EXPECT_EQ(problems_of(left + "c (8, 4) f32 = cast(left)\n"), Problems{});
  EXPECT_EQ(problems_of(left + "c (8, 8) f32 = cast(whole)\n"),
            Problems{"operation 1 (cast) reads 'whole' before all of it is written"});
  EXPECT_EQ(problems_of(left + "c (8, 4) f32 = cast(right)\n"),
            Problems{"operation 1 (cast) reads 'right' before all of it is written"});
  EXPECT_EQ(problems_of(left + "c (4, 8) f32 = cast(top)\n"),
            Problems{"operation 1 (cast) reads 'top' before all of it is written"});
}

TEST(Verify, WritesAndReads) {
  EXPECT_EQ(problems_of("y (8, 4) bf16 = add(x, x)\ny = matmul(y, w)\n"),
            Problems{"operation 1 (matmul) writes 'y' and reads 'y', which share bytes"});
  EXPECT_EQ(problems_of("y (8, 4) bf16 = add(x, x)\ny = add(y, x)\n"), Problems{});
  EXPECT_EQ(problems_of("y (8, 4) bf16 = add(x, x)\naccumulate(y) updates (y)\n"),
            Problems{"operation 1 (accumulate) updates 'y' and reads 'y', which share bytes"});
  EXPECT_EQ(problems_of("y (8, 4) bf16 = add(x, x)\ny, y = silu_mul_grad(x, x, x)\n"),
            Problems{"operation 1 (silu_mul_grad) writes 'y' and writes 'y', which share bytes"});
  // In place through a view of the whole input, where the kind allows it.
  const std::string alias =
      "tensor y2 (8, 4) bf16 view of y at 0\ny (8, 4) bf16 = add(x, x)\ny2 = ";
  EXPECT_EQ(problems_of(alias + "add(x, y)\n"), Problems{});
  EXPECT_EQ(problems_of(alias + "silu_mul(y, x)\n"), Problems{});
  EXPECT_EQ(problems_of(alias + "matmul(y, w)\n"),
            Problems{"operation 1 (matmul) writes 'y2' and reads 'y', which share bytes"});
}

TEST(Verify, OverlapsOfViews) {
  const std::string written = std::string(kHalves) + "left = add(x, x)\nright = add(x, x)\n";
  EXPECT_EQ(problems_of(written + "right = matmul(left, w)\n"), Problems{});
  EXPECT_EQ(problems_of(written + "left = matmul(left, w)\n"),
            Problems{"operation 2 (matmul) writes 'left' and reads 'left', which share bytes"});
  // Shifted by a row: in place is not enough.
  EXPECT_EQ(problems_of("tensor whole (9, 4) bf16 activation step\n"
                        "tensor low (8, 4) bf16 activation step view of whole at 0\n"
                        "tensor high (8, 4) bf16 activation step view of whole at 4\n"
                        "high = add(low, x)\n"),
            Problems{"operation 0 (add) writes 'high' and reads 'low', which share bytes"});
  // A diagonal may touch anything between its ends.
  EXPECT_EQ(problems_of(written + "tensor f (64) f32 batch step\nd (8) f32 = cast(diagonal)\n"),
            Problems{});
}

TEST(Verify, Spaces) {
  EXPECT_EQ(
      problems_of("tensor far (8, 4) bf16 batch pinned_host step\n"
                  "y (8, 4) bf16 = add(x, far)\n"),
      Problems{"operation 0 (add) reads 'far', which lies in pinned_host memory and cannot be "
               "reached from the device"});
}

TEST(Verify, Workspaces) {
  const std::string scratch = "tensor s (64) u8 workspace\n";
  EXPECT_EQ(problems_of(scratch + "y (8, 4) bf16 = add(x, x) workspace s\n"), Problems{});
  EXPECT_EQ(problems_of("tensor s (64) u8\ny (8, 4) bf16 = add(x, x) workspace s\n"),
            Problems{"operation 0 (add) scribbles on 's', which has role activation"});
  EXPECT_EQ(problems_of("tensor s (8, 4) bf16 workspace run\ny (8, 4) bf16 = add(x, s)\n"),
            Problems{"operation 0 (add) reads 's', which has role workspace"});
  EXPECT_EQ(problems_of("tensor s (8, 4) bf16 workspace view of y at 0\n"
                        "y (8, 4) bf16 = add(x, x) workspace s\n"),
            Problems{"operation 0 (add) writes 'y' and scribbles on 's', which share bytes"});
}

// Broken programs are described, whatever they hold.
TEST(Verify, SurvivesRandomPrograms) {
  int found = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Program program = random_program(seed);
    found += verify(program).empty() ? 0 : 1;
    for (Tensor& tensor : program.tensors) tensor.view = {};
    verify(program);
  }
  EXPECT_GT(found, 3000);
}

}  // namespace
}  // namespace snug::program
