// DoRA as a rewrite: what it adds to each linear, with dropout and without, and what magnitudes
// begin as.
#include <gtest/gtest.h>

#include <algorithm>

#include "methods/lora.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/column_scale.h"
#include "program/verify/verify.h"

namespace snug::methods {
namespace {

using program::Kind;
using program::Operation;
using program::Program;
using program::RowNorms;
using program::ScaleColumns;
using program::Tensor;

Program forward(const char* model, program::DType compute) {
  models::ModelConfig config = *models::preset(model);
  config.num_layers = 2;
  return models::forward(models::stack_of(config), {.program = program::ProgramName::evaluate,
                                                    .compute = compute,
                                                    .tokens = 16,
                                                    .segments = 2,
                                                    .head = models::Head::loss,
                                                    .outputs = 0,
                                                    .cache = {}});
}

LoraOptions dora() {
  LoraOptions options;
  options.r = 4;
  options.alpha = 8;
  options.dora = true;
  return options;
}

std::vector<Operation> of_kind(const Program& program, Kind kind) {
  std::vector<Operation> found;
  std::ranges::copy_if(program.operations, std::back_inserter(found),
                       [&](const Operation& operation) { return operation.kind() == kind; });
  return found;
}

TEST(Dora, GivesEachOutputAMagnitude) {
  const Program adapted = lora(forward("llama-2-7b", program::DType::bf16), dora());
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  const std::vector<Operation> norms = of_kind(adapted, Kind::row_norms);
  const std::vector<Operation> scaled = of_kind(adapted, Kind::scale_columns);
  ASSERT_EQ(norms.size(), 2U * 7);
  ASSERT_EQ(scaled.size(), norms.size());
  for (size_t i = 0; i < norms.size(); ++i) {
    EXPECT_EQ(norms[i].attributes.get<RowNorms>(),
              (RowNorms{.transposed = false, .low_rank = true, .alpha = 2.0F}));
    EXPECT_TRUE(scaled[i].attributes.get<ScaleColumns>().divided);
    EXPECT_EQ(norms[i].writes[0], id_of(scaled[i], ScaleColumns::kDivisor));
    const Tensor& weight = adapted.tensor(id_of(norms[i], RowNorms::kW));
    const Tensor& magnitude = adapted.tensor(id_of(scaled[i], ScaleColumns::kGain));
    EXPECT_EQ(weight.name, std::string(lora_tensor(magnitude.name).module) + ".weight");
    EXPECT_EQ(magnitude.name.substr(magnitude.name.rfind('.')), ".lora_magnitude_vector");
    EXPECT_EQ(magnitude.shape, program::Shape{weight.shape[0]});
    EXPECT_EQ(magnitude.dtype, program::DType::f32);
    EXPECT_EQ(magnitude.role, program::Role::adapter);
    EXPECT_EQ(adapted.tensor(id_of(norms[i], RowNorms::kA)).dtype, program::DType::bf16);
  }
}

// W is multiplied with what is dropped and with what is left, as PEFT has it.
TEST(Dora, MultipliesWhatDropoutLeavesOut) {
  LoraOptions options = dora();
  options.target_modules = {"q_proj"};
  options.dropout = 0.25;
  const Program plain = forward("llama-2-7b", program::DType::f32);
  const Program adapted = lora(plain, options);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  EXPECT_EQ(of_kind(adapted, Kind::dropout).size(), 2U);
  EXPECT_EQ(of_kind(adapted, Kind::scale).size(), 2U);
  EXPECT_EQ(of_kind(adapted, Kind::matmul).size(), of_kind(plain, Kind::matmul).size() + 2 * 3);
  EXPECT_EQ(of_kind(adapted, Kind::row_norms).size(), 2U);
}

TEST(Dora, MagnitudesBeginAsNormsOfTheWeightsRows) {
  for (const char* model : {"llama-2-7b", "gpt2"}) {
    const Program adapted = lora(forward(model, program::DType::bf16), dora());
    const Program initial = initial_magnitudes(adapted);
    EXPECT_EQ(program::verify(initial), std::vector<std::string>{});
    EXPECT_EQ(initial.name, "initialise");
    EXPECT_EQ(initial.operations.size(), of_kind(adapted, Kind::row_norms).size());
    for (const Operation& operation : initial.operations) {
      const bool transposed = model == std::string("gpt2");
      EXPECT_EQ(operation.attributes.get<RowNorms>(), (RowNorms{.transposed = transposed}));
      const std::string& magnitude = initial.tensor(operation.writes[0]).name;
      EXPECT_EQ(initial.tensor(operation.reads[0]).name,
                std::string(lora_tensor(magnitude).module) + ".weight");
    }
  }
  LoraOptions plain = dora();
  plain.dora = false;
  EXPECT_TRUE(
      initial_magnitudes(lora(forward("gpt2", program::DType::f32), plain)).operations.empty());
}

}  // namespace
}  // namespace snug::methods
