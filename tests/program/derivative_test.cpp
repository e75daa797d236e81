// The form of derivatives: for every choice of inputs that want a gradient, what is emitted obeys
// the shape rules, writes each contribution once, and writes nothing for inputs that want none.
// That the numbers are right is shown on the reference backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "program/kind.h"
#include "program/tape.h"
#include "program/text.h"

namespace snug::program {
namespace {

class RecordingTape : public Tape {
 public:
  RecordingTape(Program program, std::set<TensorId> wanted)
      : program_(std::move(program)), wanted_(std::move(wanted)) {}

  const Program& program() const override { return program_; }
  bool wants(TensorId tensor) const override { return wanted_.contains(tensor); }
  // Every floating-point output of the operation has one, but for measures.
  TensorId gradient(TensorId output) const override {
    const auto found = gradients.find(output);
    return found == gradients.end() ? kNone : found->second;
  }
  TensorId contribute(TensorId input) override {
    EXPECT_TRUE(wants(input)) << program_.tensor(input).name;
    const Tensor like = program_.tensor(input);
    contributions.emplace_back(input, add(like.name + ".contribution", like.shape, like.dtype));
    return contributions.back().second;
  }
  void pass_through(TensorId input, TensorId passed) override {
    EXPECT_TRUE(wants(input));
    EXPECT_EQ(program_.tensor(input).shape, program_.tensor(passed).shape);
    passed_through.push_back(input);
  }
  void emit(Attributes attributes, std::vector<TensorId> reads,
            std::vector<TensorId> writes) override {
    Operation operation;
    operation.attributes = std::move(attributes);
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    EXPECT_EQ(shape_error({program_, operation}), "") << name_of(operation.kind());
    emitted.push_back(operation);
  }
  TensorId temporary(const char* suffix, const Shape& shape, DType dtype) override {
    temporaries.push_back(add(suffix, shape, dtype));
    return temporaries.back();
  }

  TensorId add(std::string name, const Shape& shape, DType dtype) {
    Tensor tensor;
    tensor.name = std::move(name) + std::to_string(program_.tensors.size());
    tensor.shape = shape;
    tensor.dtype = dtype;
    program_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }

  std::map<TensorId, TensorId> gradients;
  std::vector<std::pair<TensorId, TensorId>> contributions;
  std::vector<TensorId> passed_through;
  std::vector<TensorId> temporaries;
  std::vector<Operation> emitted;

 private:
  Program program_;
  std::set<TensorId> wanted_;
};

constexpr const char* kTensors = R"(program derivatives
tensor x (8, 4) bf16
tensor x2 (8, 4) bf16
tensor xt (4, 8) bf16
tensor b (4, 6) bf16
tensor bt (6, 4) bf16
tensor addend (8, 6) bf16
tensor flat (4) f32
tensor head (16, 4) bf16
tensor logits (8, 16) f32
tensor ids (8) i32
tensor random (2) i32
tensor bounds (3, 2) i32
tensor k (8, 2) bf16
tensor v (8, 2) bf16
tensor one (1) f32
tensor table (8, 2) f32
)";

struct Case {
  const char* name;
  const char* operation;
};

class Derivatives : public testing::TestWithParam<Case> {};

// Contributions and inputs passed through are together the wanted inputs, and all that was asked of
// the tape is written by exactly one operation.
void check(const RecordingTape& tape, const std::multiset<TensorId>& wanted) {
  std::multiset<TensorId> reached(tape.passed_through.begin(), tape.passed_through.end());
  std::multiset<TensorId> asked(tape.temporaries.begin(), tape.temporaries.end());
  for (const auto& [input, contribution] : tape.contributions) {
    reached.insert(input);
    asked.insert(contribution);
  }
  EXPECT_EQ(reached, wanted);
  std::multiset<TensorId> written;
  for (const Operation& operation : tape.emitted)
    for (const TensorId id : operation.writes)
      if (!tape.gradients.contains(id)) written.insert(id);  // a training form writes outputs too
  EXPECT_EQ(written, asked);
}

TEST_P(Derivatives, WriteWhatIsWanted) {
  const Program program = parse_text(std::string(kTensors) + GetParam().operation);
  const Operation operation = program.operations[0];
  ASSERT_EQ(shape_error({program, operation}), "");
  std::vector<TensorId> inputs;
  for (const TensorId id : operation.reads) {
    const Tensor& tensor = program.tensor(id);
    // The scale of the loss and the table of angles are constants.
    if (base::is_float(tensor.dtype) && tensor.name != "one" && tensor.name != "table")
      inputs.push_back(id);
  }
  for (unsigned choice = 0; choice < 1U << inputs.size(); ++choice) {
    std::multiset<TensorId> wanted;
    for (size_t i = 0; i < inputs.size(); ++i)
      if ((choice >> i & 1U) != 0) wanted.insert(inputs[i]);
    RecordingTape tape(program, {wanted.begin(), wanted.end()});
    for (const TensorId output : operation.writes) {
      const Tensor like = program.tensor(output);
      tape.gradients[output] = tape.add("d" + like.name, like.shape, like.dtype);
    }
    differentiate(operation, tape);
    const bool replaces = traits_of(operation).has_training_form;
    EXPECT_TRUE(choice != 0 || replaces || tape.emitted.empty());
    check(tape, wanted);
    if (choice == 0 || replaces || operation.kind() == Kind::cross_entropy) continue;
    RecordingTape nothing_flows(program, {wanted.begin(), wanted.end()});
    differentiate(operation, nothing_flows);
    EXPECT_TRUE(nothing_flows.emitted.empty());
    EXPECT_TRUE(nothing_flows.passed_through.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Derivatives,
    testing::Values(
        Case{"Matmul", "y (8, 6) bf16 = matmul(x, b)"},
        Case{"MatmulB", "y (8, 6) bf16 = matmul(x, bt) {transpose_b, alpha 0.5}"},
        Case{"MatmulA", "y (8, 6) bf16 = matmul(xt, b) {transpose_a}"},
        Case{"MatmulAB", "y (8, 6) bf16 = matmul(xt, bt) {transpose_a, transpose_b}"},
        Case{"MatmulAddend", "y (8, 6) bf16 = matmul(x, b, addend) {addend}"},
        Case{"Add", "y (8, 4) bf16 = add(x, x2)"},
        Case{"AddBias", "y (8, 4) bf16 = add_bias(x, flat)"},
        Case{"Dropout", "y (8, 4) bf16 = dropout(x, random) {probability 0.5}"},
        Case{"Cast", "y (8, 4) f32 = cast(x)"},
        Case{"Embedding", "y (8, 4) bf16 = embedding(head, ids)"},
        Case{"RmsNorm", "y (8, 4) bf16 = rms_norm(x, flat) {epsilon 0.5}"},
        Case{"Rope", "y (8, 4) bf16 = rope(x, table) {head_dim 2}"},
        Case{"SiluMul", "y (8, 4) bf16 = silu_mul(x, x2)"},
        Case{"Attention",
             "y (8, 4) bf16, l (2, 8) f32 = attention(x, k, v, bounds, bounds) "
             "{heads 2, kv_heads 1, head_dim 2, scale 0.5, causal false, window 3}"},
        Case{"CrossEntropy", "l (8) f32, s (1) f32 = cross_entropy(logits, ids, one)"},
        Case{"LinearCrossEntropy",
             "l (8) f32, s (1) f32 = linear_cross_entropy(x, head, ids, one) {chunk_rows 3}"}),
    [](const auto& derivative) { return derivative.param.name; });

// What one operation emits when all its inputs want a gradient.
std::vector<Operation> emitted_by(const std::string& line) {
  const Program program = parse_text(std::string(kTensors) + line);
  const Operation operation = program.operations[0];
  RecordingTape tape(program, {operation.reads.begin(), operation.reads.end()});
  for (const TensorId output : operation.writes) {
    const Tensor like = program.tensor(output);
    tape.gradients[output] = tape.add("d" + like.name, like.shape, like.dtype);
  }
  differentiate(operation, tape);
  return tape.emitted;
}

TEST(Derivative, CarriesItsAttributes) {
  const auto matmul = emitted_by("y (8, 6) bf16 = matmul(x, bt) {transpose_b, alpha 0.5}");
  ASSERT_EQ(matmul.size(), 2U);
  for (const Operation& operation : matmul)
    EXPECT_EQ(std::get<Matmul>(operation.attributes).alpha, 0.5F);

  const auto rope = emitted_by("y (8, 4) bf16 = rope(x, table) {head_dim 2}");
  EXPECT_EQ(std::get<Rope>(rope.at(0).attributes), (Rope{.head_dim = 2, .inverse = true}));

  const auto dropout =
      emitted_by("y (8, 4) bf16 = dropout(x, random) {probability 0.5, seed 9, site 4}");
  EXPECT_EQ(std::get<Dropout>(dropout.at(0).attributes),
            (Dropout{.probability = 0.5F, .row_length = 1, .seed = 9, .site = 4}));

  const auto norm = emitted_by("y (8, 4) bf16 = rms_norm(x, flat) {epsilon 0.5}");
  EXPECT_EQ(std::get<RmsNormGrad>(norm.at(0).attributes),
            (RmsNormGrad{.epsilon = 0.5F, .weight_gradient = true}));

  const auto attention = emitted_by(
      "y (8, 4) bf16, l (2, 8) f32 = attention(x, k, v, bounds, bounds) "
      "{heads 2, kv_heads 1, head_dim 2, scale 0.5, causal false, window 3}");
  EXPECT_EQ(
      std::get<AttentionGrad>(attention.at(0).attributes),
      (AttentionGrad{
          .heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.5F, .causal = false, .window = 3}));
}

TEST(DerivativeDeathTest, KindsWithoutOneAreABug) {
  EXPECT_DEATH(emitted_by("y (4) f32 = sum_rows(x)"), "sum_rows has no derivative");
}

}  // namespace
}  // namespace snug::program
