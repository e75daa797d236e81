// Mistakes in program text: each is a UserError that names line and column, and none is a crash.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "program/text/text.h"
#include "random_program.h"

namespace snug::program {
namespace {

struct Mistake {
  const char* name;
  const char* text;
  const char* message;  // the whole of it up to here
};

class TextMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(TextMistake, NamesThePlace) {
  try {
    parse_text(GetParam().text, "t");
    FAIL() << "was parsed";
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(GetParam().message, 0), 0U) << error.what();
  }
}

constexpr const char* kX = "program p\ntensor x (2) f32 batch step\n";

std::string after_x(const char* lines) { return std::string(kX) + lines; }

INSTANTIATE_TEST_SUITE_P(
    All, TextMistake,
    ::testing::Values(
        Mistake{"Empty", "", "t:1:1: expected 'program NAME'"},
        Mistake{"NoProgram", "tensor x (2) f32", "t:1:1: expected 'program NAME' first"},
        Mistake{"NoName", "program", "t:1:8: expected the program's name, found the end"},
        Mistake{"TwoNames", "program a b", "t:1:11: expected the end of the line, found 'b'"},
        Mistake{"DType", "program p\ntensor x (2) f31", "t:2:14: unknown element type 'f31'"},
        Mistake{"Role", "program p\ntensor x (2) f32 wieght",
                "t:2:18: 'wieght' is no role, space, lifetime or stream"},
        Mistake{"Rank", "program p\ntensor x (1, 2, 3, 4, 5) f32",
                "t:2:23: more than 4 dimensions"},
        Mistake{"Negative", "program p\ntensor x (-2) f32", "t:2:11: expected a dimension from 0"},
        Mistake{"Huge", "program p\ntensor x (9223372036854775808) f32",
                "t:2:11: expected a dimension from 0"},
        Mistake{"Unclosed", "program p\ntensor x (2 f32", "t:2:13: expected ')'"},
        Mistake{"Quote", "program p\ntensor \"x (2) f32", "t:2:8: this quoted name is not closed"},
        Mistake{"Twice", "program p\ntensor x (2) f32\ntensor x (2) f32",
                "t:3:8: tensor 'x' is declared twice"},
        Mistake{"IdTaken", "program p\ntensor x (2) f32\ntensor %0 y (2) f32",
                "t:3:11: tensor 'y' has id 0, which is taken"},
        Mistake{"IdRange", "program p\ntensor %1 x (2) f32",
                "t:2:11: tensor 'x' has id 1, but there are 1 tensors"},
        Mistake{"Base", "program p\ntensor x (2) f32 view of y",
                "t:2:26: tensor 'y' is not declared"},
        Mistake{"Strides", "program p\ntensor x (2) f32 view of x strides (1, 2)",
                "t:2:28: 2 strides for 1 dimensions"},
        Mistake{"Kind", "program p\n\n  y (2) f32 = matmull()",
                "t:3:15: unknown kind of operation 'matmull'"},
        Mistake{"Read", "program p\ny (2) f32 = cast(x)", "t:2:18: tensor 'x' is not declared"},
        Mistake{"Result", "program p\ny = cast(y)", "t:2:10: tensor 'y' is not declared"},
        Mistake{"Attribute", "program p\nmatmul() {transpose}",
                "t:2:11: unknown attribute 'transpose'; this kind has: transpose_a, transpose_b"},
        Mistake{"Value", "program p\nmatmul() {alpha big}", "t:2:17: expected a number"},
        Mistake{"Integer", "program p\nmatmul() {site 3000000000}",
                "t:2:16: expected an integer from -2147483648 to 2147483647, found 3000000000"},
        Mistake{"OpenBrace", "program p\nmatmul() {alpha 1", "t:2:18: expected ',' or '}'"},
        Mistake{"Part", "program p\nmatmul() {algorithm wide step 4}",
                "t:2:26: expected a part of 'algorithm': block_rows, rest_algorithm, sum_step, "
                "rest_sum_step"},
        Mistake{"NoPart", "program p\nmatmul() {dense}",
                "t:2:16: expected a part of 'dense': a, b, addend, c"},
        Mistake{"Phase", "program p\nmatmul() backwards", "t:2:10: 'backwards' is no phase"},
        Mistake{"Operand",
                "program p\ntensor x (2) f32\ntensor y (2) f32\nz (2) f32 = add(a=x, c=y)",
                "t:4:22: 'c' is not operand 2 of add"},
        Mistake{"Channel", "program p\nmatmul() channel 2", "t:2:18: expected a channel"},
        Mistake{"NoChannel", "program p\nmatmul() channel side", "t:2:18: 'side' is no channel"},
        Mistake{"Block", "program p\nlayer x2 from 0 {\n", "t:2:1: this block of layers is not"},
        Mistake{"Count", "program p\nlayer x0 from 0 {\n}",
                "t:2:7: expected x1 to x100000 layers, found 'x0'"},
        Mistake{"Below", "program p\nlayer x3 from 1 down {\n}",
                "t:2:22: 3 layers down from 1 end below layer 0"},
        Mistake{"Index", "program p\nlayer x2 from 0 {\n  tensor x<*+> (2) f32\n}",
                "t:3:11: expected an index"},
        Mistake{"NegativeIndex", "program p\nlayer x2 from 0 {\n  tensor x.<*-1> (2) f32\n}",
                "t:3:12: is -1 in layer 0"},
        Mistake{"InBlock", "program p\nlayer x12 from 0 {\n  tensor x.* (2) f32 wieght\n}",
                "t:3:22: 'wieght' is no role"},
        Mistake{"InLongIndex", "program p\nlayer x1 from 12 {\n  tensor x.<1000*> (2) f32 oh\n}",
                "t:3:28: 'oh' is no role"},
        Mistake{"StarOutside", "program p\ntensor x.* (2) f32", "t:2:10: expected '('"}),
    [](const auto& mistake) { return mistake.param.name; });

TEST(TextErrors, QuotedEqualsSignIsPartOfTheName) {
  const Program program = parse_text(after_x("\"a=b\" (2) f32 = cast(x)\ncast(\"a=b\")"));
  EXPECT_EQ(program.find("a=b"), 1);
  EXPECT_TRUE(program.operations[1].writes.empty());
}

// Text that was damaged is parsed or refused; it neither crashes nor hangs.
TEST(TextErrors, SurvivesDamage) {
  std::mt19937 random(7);
  const std::string alphabet = "abx019 .,()<>*{}=%\"\\#\n-+";
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = round % 2 == 0 ? to_text(layered_program(3))
                                      : to_text(random_program(static_cast<uint64_t>(round)));
    for (int edits = 1 + round % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        default:
          text.insert(at, 1, c);
      }
      if (text.empty()) text += alphabet;
    }
    try {
      const Program program = parse_text(text);
      EXPECT_TRUE(parse_text(to_text(program)) == program) << text;
    } catch (const base::UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace snug::program
