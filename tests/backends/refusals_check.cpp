#include "refusals_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/grouped_matmul.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text.h"

namespace snug::backends::test {
namespace {

using program::DType;

// An operation, and a tensor of it that is to have a type that it may not have.
struct WrongType {
  std::string_view text;
  std::string_view operand;
  DType type;
};

constexpr std::string_view kMatrix =
    "program refusals\ntensor w (8, 64) f32\ntensor g (8, 64) f32\ntensor m (8, 64) f32\ntensor v "
    "(8, 64) f32\n"
    "tensor f (1) f32\ntensor l (1) f32\ntensor s (1) i32\ntensor r (8) f32\ntensor c (64) f32\n"
    "tensor b (8, 64) u8\ntensor d (8, 64) u8\ntensor p (2) f32\ntensor q (2) f32\n"
    "tensor k (8, 2) i32\ntensor bounds (4, 2) i32\ntensor e (4, 64, 32) f32\n"
    "tensor i (8, 2) i32\ntensor x (8, 2) f32\ntensor logits (8, 4) f32\n"
    "tensor y (8, 32) f32\ntensor targets (8) i32\ntensor n (4) i32\ntensor u (4) f32\n";
constexpr std::string_view kAdamW = "adamw(g, f, l, s) updates (w, m, v)";
constexpr std::string_view kAdamW8bit = "adamw_8bit(g, f, l, s) updates (w, b, d, p, q)";
constexpr std::string_view kLion = "lion(g, f, l) updates (w, m)";
constexpr std::string_view kAdafactor = "adafactor(g, f, l, s) updates (w, r, c) {factored}";
constexpr std::string_view kMomentum = "d2 (8, 64) f32 = muon_momentum(g, f) updates (m)";
constexpr std::string_view kMuonStep = "muon_step(g, f, l) updates (w) {elements 512}";
constexpr std::string_view kRoute = "x, i, k, bounds = route(logits) {k 2}";
constexpr std::string_view kRouteGrad = "dlogits (8, 4) f32 = route_grad(x, logits, i)";
constexpr std::string_view kBalancedRoute =
    "x, i, k, bounds, n, u = route(logits, bounds) {k 2, balance}";
constexpr std::string_view kBalancedGrad =
    "dlogits (8, 4) f32 = route_grad(x, logits, i, u, bounds) {balance}";
constexpr std::string_view kBalanceLoss = "l, u = balance_loss_train(f, n, u) {k 2}";
constexpr std::string_view kGrouped = "y = grouped_matmul(g, e, bounds)";
constexpr std::string_view kGroupedGrad = "e = grouped_matmul_grad(g, y, bounds)";

constexpr WrongType kWrongTypes[]{{kAdamW, "gradient", DType::i32},
                                  {kAdamW, "first_moment", DType::i32},
                                  {kAdamW8bit, "gradient", DType::u8},
                                  {kAdamW8bit, "first_scale", DType::bf16},
                                  {kLion, "gradient", DType::i32},
                                  {kLion, "momentum", DType::bf16},
                                  {kAdafactor, "gradient", DType::i32},
                                  {kAdafactor, "row_moment", DType::bf16},
                                  {kMomentum, "gradient", DType::i32},
                                  {kMomentum, "momentum", DType::bf16},
                                  {kMuonStep, "direction", DType::i32},
                                  {"norm (1) f32 = global_norm(g, w)", "gradients", DType::i32},
                                  {kRoute, "logits", DType::i32},
                                  {kRoute, "weights", DType::bf16},
                                  {kRouteGrad, "dweights", DType::bf16},
                                  {kRouteGrad, "dlogits", DType::i32},
                                  {kBalancedRoute, "sums", DType::bf16},
                                  {kBalancedGrad, "dsums", DType::bf16},
                                  {kBalanceLoss, "loss", DType::bf16},
                                  {kBalanceLoss, "dsums", DType::bf16},
                                  {kGrouped, "b", DType::i32},
                                  {kGroupedGrad, "c", DType::u8}};

// As the backend decides it, with the scratch that it asks for.
program::Program lowered(const Backend& backend, std::string_view text) {
  program::Program program = program::parse_text(std::string(kMatrix) + std::string(text));
  program::Operation& operation = program.operations[0];
  const program::OperationView view{program, operation};
  EXPECT_EQ(program::shape_error(view), "");
  EXPECT_TRUE(backend.runs(view)) << text;
  operation.attributes = backend.decide(view);
  operation.launches = backend.launches(view);
  program::Tensor workspace;
  workspace.name = "workspace";
  workspace.dtype = DType::u8;
  workspace.role = program::Role::workspace;
  workspace.shape = {backend.workspace(view).bytes};
  if (workspace.shape[0] == 0) return program;
  operation.workspace = static_cast<program::TensorId>(program.tensors.size());
  program.tensors.push_back(workspace);
  return program;
}

program::OperationView view_of(const program::Program& program) {
  return {program, program.operations[0]};
}

}  // namespace

void check_refused_types(Backend& backend) {
  for (const WrongType& wrong : kWrongTypes) {
    SCOPED_TRACE(fmt::format("{} of {}", wrong.operand, wrong.text));
    program::Program program = lowered(backend, wrong.text);
    (void)backend.prepare(view_of(program));
    const program::TensorId id =
        program::find_operand(program.operations[0], program::OperandName(wrong.operand));
    ASSERT_NE(id, program::kNone);
    program.tensors[static_cast<size_t>(id)].dtype = wrong.type;
    EXPECT_FALSE(backend.runs(view_of(program)));
    EXPECT_TRUE(testing::dies([&] { (void)backend.prepare(view_of(program)); }, "does not run"));
  }
}

void check_refused_tensors(Backend& backend) {
  const auto expect_refused = [&](std::string_view text, std::string_view why, auto&& change) {
    SCOPED_TRACE(text);
    program::Program program = lowered(backend, text);
    (void)backend.prepare(view_of(program));
    change(program);
    EXPECT_TRUE(testing::dies([&] { (void)backend.prepare(view_of(program)); }, why));
  };
  const auto as_view = [](std::string_view name, int64_t of_rows, int64_t of_columns) {
    return [=](program::Program& program) {
      program.tensor(program.find(name)).view = {.base = program.find("e"),
                                                 .strides = {of_rows, of_columns}};
    };
  };
  expect_refused("sum (8, 64) f32 = add(g, m)", "lie 8 apart", as_view("g", 1, 8));
  expect_refused("sum (8, 64) f32 = add(g, m)", "lie 2 apart", as_view("m", 128, 2));
  expect_refused(kAdamW, "lie 128 apart", as_view("w", 128, 1));
  expect_refused(kGrouped, "lie 3 apart", as_view("bounds", 3, 1));
  expect_refused(kAdamW, "CHECK failed", [](program::Program& program) {
    program.tensor(program.find("m")).shape = {512};
  });
}

void check_refused_decisions(Backend& backend) {
  const auto expect_refused = [&](std::string_view text, auto&& change) {
    SCOPED_TRACE(text);
    program::Program program = lowered(backend, text);
    (void)backend.prepare(view_of(program));
    change(program.operations[0].attributes);
    EXPECT_TRUE(testing::dies([&] { (void)backend.prepare(view_of(program)); }, "CHECK failed"));
  };
  using program::ProductAlgorithm;
  expect_refused(
      "product (8, 8) f32 = matmul(g, w) {transpose_b}", [](program::Attributes& attributes) {
        auto& matmul = attributes.get<program::Matmul>();
        // What nothing here computes: cards have no loops, the others no tensor cores.
        matmul.choice.main.algorithm = matmul.choice.main.algorithm == ProductAlgorithm::loops
                                           ? ProductAlgorithm::few_rows_tensor_cores
                                           : ProductAlgorithm::loops;
      });
  expect_refused(kGrouped, [](program::Attributes& attributes) {
    auto& grouped = attributes.get<program::GroupedMatmul>();
    grouped.choice.block_rows = grouped.choice.block_rows == 0 ? 4 : 0;
  });
  expect_refused(
      "losses (8) f32, loss (1) f32, dh (8, 64) f32 = "
      "linear_cross_entropy_train(g, w, targets, f)",
      [](program::Attributes& attributes) {
        using program::LossAlgorithm;
        auto& loss = attributes.get<program::LinearCrossEntropyTrain>();
        loss.chunks.algorithm = loss.chunks.algorithm == LossAlgorithm::whole
                                    ? LossAlgorithm::chunks
                                    : LossAlgorithm::whole;
      });
}

}  // namespace snug::backends::test
