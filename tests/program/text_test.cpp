#include "program/text/text.h"

#include <gtest/gtest.h>
#include "../source_folder.h"

#include <fstream>
#include <iterator>

#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text_attributes.h"
#include "program/verify/verify.h"
#include "random_program.h"

namespace snug::program {
namespace {

TEST(Text, ReadsAsWritten) {
  const std::string text =
      "program micro\n"
      "tensor x (8, 4) bf16 batch step\n"
      "tensor layers.0.w (6, 4) bf16 weight run layer 0\n"
      "layers.0.y (8, 6) bf16 = matmul(a=x, b=layers.0.w) {transpose_b, alpha 0.5} workspace "
      "scratch "
      "(128) u8 "
      "layer 0\n"
      "layers.0.z (8, 6) f32 gradient layer none = cast(x=layers.0.y) backward channel "
      "device_to_host layer 0\n"
      "half (4, 6) bf16 view of layers.0.y at 24, row (8) bf16 view of layers.0.y at 0 strides (6) "
      "= "
      "silu_mul_grad(dy=x, gate=x, up=x)\n"
      "accumulate(layers.0.z) updates (y=layers.0.y) {stochastic, seed 7} recompute\n";
  const Program program = parse_text(text);
  EXPECT_EQ(to_text(program), text);
  EXPECT_EQ(program.name, "micro");
  ASSERT_EQ(program.tensors.size(), 7U);
  ASSERT_EQ(program.operations.size(), 4U);
  const Operation& matmul = program.operations[0];
  EXPECT_EQ(matmul.attributes.get<Matmul>().alpha, 0.5F);
  EXPECT_TRUE(matmul.attributes.get<Matmul>().transpose_b);
  EXPECT_EQ(matmul.workspace, program.find("scratch"));
  EXPECT_EQ(program.tensor(matmul.workspace).role, Role::workspace);
  EXPECT_EQ(program.tensor(matmul.workspace).layer, 0);
  EXPECT_EQ(matmul.layer, 0);
  const Tensor& z = program.tensor(program.find("layers.0.z"));
  EXPECT_EQ(z.layer, -1);
  EXPECT_EQ(z.role, Role::gradient);
  EXPECT_EQ(program.operations[1].channel, Channel::device_to_host);
  EXPECT_EQ(program.operations[1].phase, Phase::backward);
  const Tensor& row = program.tensor(program.find("row"));
  EXPECT_EQ(row.view.base, program.find("layers.0.y"));
  EXPECT_EQ(row.view.strides[0], 6);
  EXPECT_EQ(program.tensor(program.find("half")).view.offset, 24);
  EXPECT_EQ(program.operations[3].updates, std::vector<TensorId>{program.find("layers.0.y")});
}

// The example in docs/program_text.md, which prints as it stands there.
// A part that is called as its decision comes first, and has no name; the others are in any order.
TEST(Text, ReadsThePartsOfADecision) {
  const auto attributes_of = [](const std::string& text) {
    return parse_text("program p\nmatmul() {" + text + "}\n").operations[0].attributes;
  };
  Matmul matmul;
  matmul.choice = {.block_rows = 256,
                   .main = {ProductAlgorithm::wide, 512},
                   .rest = {.algorithm = ProductAlgorithm::thin}};
  matmul.dense = {.a = true, .c = true};
  const std::string printed =
      "algorithm wide block_rows 256 rest_algorithm thin sum_step 512, dense a c";
  EXPECT_EQ(attributes_text(matmul), printed);
  EXPECT_EQ(attributes_of(printed), Attributes(matmul));
  EXPECT_EQ(attributes_of("dense c a, algorithm wide sum_step 512 rest_algorithm thin block_rows "
                          "256"),
            Attributes(matmul));
  EXPECT_EQ(attributes_of("algorithm block_rows 256"),
            Attributes(Matmul{.choice = {.block_rows = 256}}));
  EXPECT_EQ(attributes_text(Matmul{.choice = {.block_rows = 256}}),
            "algorithm loops block_rows 256");
}

TEST(Text, ReadsTheDocumentedExample) {
  std::ifstream file(test::source_folder() + "/docs/program_text.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find("```\n") + 4;
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  const Program program = parse_text(text);
  EXPECT_EQ(program.operations.size(), 4U);
  EXPECT_EQ(to_text(program), text);
  EXPECT_EQ(verify(program), std::vector<std::string>{});
}

TEST(Text, KeepsIdsThatAreOutOfOrder) {
  const Program program = parse_text(
      "program p\n"
      "%1 y (2) f32 = cast(x)  # made first, second in the table\n"
      "\n"
      "tensor %0 x (2) bf16 batch step\n");
  EXPECT_EQ(program.find("x"), 0);
  EXPECT_EQ(program.find("y"), 1);
  EXPECT_EQ(to_text(program),
            "program p\n"
            "tensor x (2) bf16 batch step\n"
            "y (2) f32 = cast(x=x)\n");
}

TEST(Text, RoundTripsRandomPrograms) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Program program = random_program(seed);
    for (const bool fold : {true, false}) {
      const std::string text = to_text(program, {.fold = fold});
      const Program parsed = parse_text(text);
      ASSERT_TRUE(parsed == program) << "seed " << seed << "\n" << text;
      ASSERT_EQ(to_text(parsed, {.fold = fold}), text);
    }
  }
}

TEST(Text, WithoutIdsParsesToTheSameProgramRenumbered) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = random_program(seed);
    const std::string text = to_text(program, {.ids = false});
    const Program parsed = parse_text(text);
    ASSERT_EQ(to_text(parsed, {.ids = false}), text);
    ASSERT_EQ(parsed.tensors.size(), program.tensors.size());
    for (size_t i = 0; i < program.operations.size(); ++i) {
      const Operation& before = program.operations[i];
      const Operation& after = parsed.operations[i];
      ASSERT_EQ(before.attributes, after.attributes);
      for (size_t j = 0; j < before.reads.size(); ++j)
        ASSERT_EQ(program.tensor(before.reads[j]).name, parsed.tensor(after.reads[j]).name);
    }
  }
}

TEST(Text, FoldsEqualLayers) {
  const std::string text = to_text(layered_program(32));
  EXPECT_EQ(
      text,
      "program layered\n"
      "tensor random (2) i32 scalar step\n"
      "tensor all_weights (128, 4) bf16 weight run\n"
      "tensor x (8, 4) bf16 batch step\n"
      "layer x32 from 0 {\n"
      "  tensor %<3*+3> model.layers.*.weight (4, 4) bf16 weight run layer * view of "
      "all_weights at <16*>\n"
      "}\n"
      "%4 layers.0.dropped (8, 4) bf16 = dropout(x=x, random=random) {probability 0.1, row_length "
      "8, "
      "site 3} layer 0\n"
      "layers.0.output (8, 4) bf16 = matmul(a=layers.0.dropped, b=model.layers.0.weight) "
      "{transpose_b} layer 0\n"
      "layer x31 from 1 {\n"
      "  %<3*+4> layers.*.dropped (8, 4) bf16 = dropout(x=layers.<*-1>.output, random=random) "
      "{probability 0.1, row_length 8, site <7*+3>} layer *\n"
      "  layers.*.output (8, 4) bf16 = matmul(a=layers.*.dropped, b=model.layers.*.weight) "
      "{transpose_b} layer *\n"
      "}\n"
      "output.grad (8, 4) bf16 = cast(x=layers.31.output) backward\n"
      "layers.31.output.grad (8, 4) bf16 = matmul(a=output.grad, "
      "b=model.layers.31.weight) backward layer 31\n"
      "layers.31.input.grad (8, 4) bf16 = dropout(x=layers.31.output.grad, random=random) "
      "{probability 0.1, row_length 8, site 220} backward layer 31\n"
      "layer x31 from 30 down {\n"
      "  layers.*.output.grad (8, 4) bf16 = matmul(a=layers.<*+1>.input.grad, "
      "b=model.layers.*.weight) backward layer *\n"
      "  layers.*.input.grad (8, 4) bf16 = dropout(x=layers.*.output.grad, random=random) "
      "{probability 0.1, row_length 8, site <7*+3>} backward layer *\n"
      "}\n");
}

TEST(Text, RoundTripsFoldedPrograms) {
  for (const int32_t layers : {1, 2, 3, 4, 11, 101}) {
    const Program program = layered_program(layers);
    const Program parsed = parse_text(to_text(program));
    EXPECT_TRUE(parsed == program) << to_text(program);
    EXPECT_TRUE(parse_text(to_text(program, {.fold = false})) == program);
  }
}

// One layer that differs is printed by itself, and those around it stay folded.
TEST(Text, DoesNotFoldALayerThatDiffers) {
  Program program = layered_program(12);
  for (Operation& operation : program.operations)
    if (auto* dropout = operation.attributes.get_if<Dropout>();
        dropout != nullptr && operation.layer == 5)
      dropout->probability = 0.25F;
  const std::string text = to_text(program);
  EXPECT_TRUE(parse_text(text) == program) << text;
  EXPECT_NE(text.find("layer x4 from 1 {"), std::string::npos) << text;
  EXPECT_NE(text.find("layer x6 from 6 {"), std::string::npos) << text;
  EXPECT_NE(text.find("layers.5.dropped"), std::string::npos) << text;
}

TEST(Text, PrintsAndParsesALargeProgramQuickly) {
  const Program program = layered_program(2000);
  EXPECT_TRUE(parse_text(to_text(program)) == program);
}

}  // namespace
}  // namespace snug::program
