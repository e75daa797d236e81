// Loss and every gradient against transformers and PEFT (tests/goldens/README.md), on every
// backend.
#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "comparison.h"
#include "convert/folder/quantize_folder.h"
#include "golden_case.h"
#include "golden_models.h"
#include "program/work/target.h"

namespace snug::test {
namespace {

struct GoldenParameter {
  std::string backend;
  std::string name;     // of the golden
  std::string model;    // folder of the model, below tests/goldens
  std::string adapter;  // empty: all weights train
  // How the base is quantised while it is read.
  std::optional<passes::QuantizeOptions> quantization{};
};

void PrintTo(const GoldenParameter& parameter, std::ostream* stream) {
  *stream << parameter.name << " on " << parameter.backend;
}

plan::TrainingSpec golden_spec(program::DType compute) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.compute = compute;
  spec.rows = 2;
  spec.row_tokens = 33;
  spec.evaluate = true;
  return spec;
}

// "grad.base_model.model.X" of an adapter is the gradient of our tensor X.
std::string gradient_of(std::string name) {
  name = name.substr(std::string("grad.").size());
  const std::string peft = "base_model.model.";
  if (name.starts_with(peft)) name = name.substr(peft.size());
  if (const auto at = name.find(".default"); at != std::string::npos) name.erase(at, 8);
  return "gradient." + name;
}

class Goldens : public ::testing::TestWithParam<GoldenParameter> {
 protected:
  Goldens() : golden_(golden_folder(GetParam().name) + "/golden.safetensors") {}

  void SetUp() override {
    if (!has_device(GetParam().backend)) GTEST_SKIP() << "skipped: no CUDA device";
  }

  // Reading rounds to the compute type before it quantises, and the golden's base is quantised from
  // fp32: in bf16 it is a folder that holds those codes.
  LoadedCase load(plan::TrainingSpec spec) const {
    const auto& parameter = GetParam();
    spec.quantization = parameter.quantization;
    const testing::TemporaryFolder folder;
    std::string model = golden_folder(parameter.model);
    if (parameter.quantization && spec.compute == program::DType::bf16) {
      const convert::FolderQuantizer quantizer(
          model, {.double_quant = parameter.quantization->nested, .keep_fp32 = true});
      model = (folder / "model").string();
      quantizer.write(model);
    }
    return {parameter.backend, model,
            parameter.adapter.empty() ? "" : golden_folder(parameter.adapter), std::move(spec)};
  }

  void run(LoadedCase& loaded, program::ProgramName program) const {
    run(loaded, program, integers(golden_, "targets"));
  }
  void run(LoadedCase& loaded, program::ProgramName program,
           const std::vector<int32_t>& targets) const {
    loaded.put_batch(program, integers(golden_, "ids"), targets);
    loaded.executor().set_input("inverse_tokens",
                                1.0F / static_cast<float>(count_trained(targets)));
    loaded.executor().run(program);
  }

  // The loss, and every gradient normwise.
  void expect_golden(program::DType compute, passes::RecomputeMode mode, double loss_bound,
                     double gradient_bound) const {
    auto spec = golden_spec(compute);
    spec.recompute = mode;
    LoadedCase loaded = load(spec);
    run(loaded, program::ProgramName::micro_first);
    EXPECT_NEAR(values_of(loaded.executor(), "loss")[0], floats(golden_, "loss")[0], loss_bound);
    int compared = 0;
    for (const auto& tensor : golden_.tensors()) {
      if (!tensor.name.starts_with("grad.")) continue;
      const auto gradient = values_of(loaded.executor(), gradient_of(tensor.name));
      EXPECT_LT(relative_error(gradient, floats(golden_, tensor.name)), gradient_bound)
          << tensor.name;
      ++compared;
    }
    EXPECT_GE(compared, 2);
  }

  formats::SafetensorsFile golden_;
};

TEST_P(Goldens, LossAndEveryGradient) {
  for (const auto mode : {passes::RecomputeMode::none, passes::RecomputeMode::gate_up,
                          passes::RecomputeMode::attention,
                          passes::RecomputeMode::all_but_attention, passes::RecomputeMode::layer})
    expect_golden(program::DType::f32, mode, 1e-5, 1e-4);
}

// And counts the tokens whose target is the likeliest by transformers' logits.
TEST_P(Goldens, EvaluationGivesTheTrainingLoss) {
  LoadedCase loaded = load(golden_spec(program::DType::f32));
  run(loaded, program::ProgramName::evaluate);
  EXPECT_NEAR(values_of(loaded.executor(), "loss")[0], floats(golden_, "loss")[0], 1e-5);
  if (golden_.find("logits") == nullptr) return;
  const HalfHit half = half_hit(golden_);
  EXPECT_GE(half.hits, 25);
  run(loaded, program::ProgramName::evaluate, half.targets);
  EXPECT_EQ(values_of(loaded.executor(), "measures")[0], static_cast<float>(half.hits));
}

// Against the goldens, which are computed in fp32, so the bounds hold every rounding to bf16, that
// of the weights too: transformers' own gradients in bf16 are up to 5.2e-2 off. Without a family's
// window, norms, caps or rope factors the worst gradient is 0.35 off and more.
class Bf16Goldens : public Goldens {};

TEST_P(Bf16Goldens, LossAndEveryGradient) {
  if (GetParam().backend == "cpu" && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  for (const auto mode : {passes::RecomputeMode::none, passes::RecomputeMode::layer})
    expect_golden(program::DType::bf16, mode, 1e-3 * floats(golden_, "loss")[0], 6e-2);
}

std::vector<GoldenParameter> cases_in(program::DType compute) {
  std::vector<GoldenParameter> cases;
  for (const std::string& backend : golden_backends()) {
    if (compute == program::DType::bf16 && backend == "reference") continue;  // computes in f32
    for (const char* name : kGoldenModels)
      cases.push_back({backend, name, std::string(name) + "/model", ""});
    for (const char* name : {"lora_all_linear", "lora_qv_rslora"})
      cases.push_back({backend, name, "grouped_tied/model", std::string(name) + "/adapter"});
    for (const bool nested : {false, true})
      cases.push_back({backend, nested ? "qlora_nf4_dq" : "qlora_nf4", "grouped_tied/model",
                       "lora_all_linear/adapter", passes::QuantizeOptions{nested, {}}});
    cases.push_back({backend, "lora_phi3", "phi3/model", "lora_phi3/adapter"});
    cases.push_back({backend, "lora_saved", "stablelm/model", "lora_saved/adapter"});
    cases.push_back({backend, "lora_gpt2", "gpt2/model", "lora_gpt2/adapter"});
    cases.push_back({backend, "lora_embedding", "stablelm/model", "lora_embedding/adapter"});
    cases.push_back({backend, "lora_embedding_tied", "gemma/model", "lora_embedding_tied/adapter"});
    cases.push_back({backend, "lora_embedding_gpt2", "gpt2/model", "lora_embedding_gpt2/adapter"});
    cases.push_back(
        {backend, "lora_saved_head", "gpt_neox_in_turn/model", "lora_saved_head/adapter"});
    cases.push_back({backend, "lora_experts", "qwen3_moe/model", "lora_experts/adapter"});
    cases.push_back({backend, "lora_experts_granitemoe", "granitemoe/model",
                     "lora_experts_granitemoe/adapter"});
    // In bf16 the gradients of a clamped gate's adapters are up to 0.17 off, and those of adapters
    // of rank 1 next to gated delta nets 0.08.
    if (compute == program::DType::f32) {
      cases.push_back(
          {backend, "lora_experts_gpt_oss", "gpt_oss/model", "lora_experts_gpt_oss/adapter"});
      cases.push_back({backend, "lora_experts_qwen3_5_moe", "qwen3_5_moe/model",
                       "lora_experts_qwen3_5_moe/adapter"});
    }
    cases.push_back({backend, "lora_gpt_neox", "gpt_neox_in_turn/model", "lora_gpt_neox/adapter"});
    cases.push_back({backend, "prompt_layer", "grouped_tied/model", "prompt_layer/adapter"});
    cases.push_back({backend, "prompt_head", "qwen3/model", "prompt_head/adapter"});
    cases.push_back(
        {backend, "prompt_gpt_neox", "gpt_neox_in_turn/model", "prompt_gpt_neox/adapter"});
    cases.push_back({backend, "prompt_gpt2", "gpt2/model", "prompt_gpt2/adapter"});
    for (const auto& [name, model] :
         {std::pair{"prompt_v2_llama", "grouped_tied"}, {"prompt_v2_gpt_neox", "gpt_neox_in_turn"}})
      cases.push_back(
          {backend, name, fmt::format("{}/model", model), fmt::format("{}/adapter", name)});
    cases.push_back({backend, "dora_gpt2", "gpt2/model", "dora_gpt2/adapter"});
    cases.push_back({backend, "dora_q_down", "grouped_tied/model", "dora_q_down/adapter"});
    for (const bool nested : {false, true})
      cases.push_back({backend, nested ? "qdora_nf4_dq" : "qdora_nf4", "grouped_tied/model",
                       "dora_q_down/adapter", passes::QuantizeOptions{nested, {}}});
  }
  return cases;
}

std::string golden_name_of(const ::testing::TestParamInfo<GoldenParameter>& test) {
  return test.param.name + "_" + test.param.backend;
}

INSTANTIATE_TEST_SUITE_P(All, Goldens, ::testing::ValuesIn(cases_in(program::DType::f32)),
                         golden_name_of);
INSTANTIATE_TEST_SUITE_P(All, Bf16Goldens, ::testing::ValuesIn(cases_in(program::DType::bf16)),
                         golden_name_of);

// With the loss that balances experts. Padding counts for nothing in it.
class BalancedGoldens : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const std::string& backend() const { return std::get<0>(GetParam()); }
  const std::string& model() const { return std::get<1>(GetParam()); }

  void SetUp() override {
    if (!has_device(backend())) GTEST_SKIP() << "skipped: no CUDA device";
  }

  void expect_golden(program::DType compute, passes::RecomputeMode mode, double loss_bound,
                     double gradient_bound) const {
    const formats::SafetensorsFile golden(golden_folder("balanced_" + model()) +
                                          "/golden.safetensors");
    auto spec = golden_spec(compute);
    spec.recompute = mode;
    spec.model.router_loss = true;
    spec.model.router_coefficient = floats(golden, "coefficient")[0];
    LoadedCase loaded(backend(), golden_folder(model() + "/model"), "", spec);
    runtime::Executor& executor = loaded.executor();
    const auto targets = integers(golden, "targets");
    const auto lengths = integers(golden, "lengths");
    loaded.put_batch(program::ProgramName::micro_first, integers(golden, "ids"), targets,
                     {0, lengths[0], 33, 33 + lengths[1]});
    executor.set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
    executor.set_input("inverse_document_tokens",
                       1.0F / static_cast<float>(lengths[0] + lengths[1]));
    executor.run(program::ProgramName::micro_first);
    const double balance = values_of(executor, "router_loss")[0];
    EXPECT_NEAR(balance / spec.model.router_coefficient, floats(golden, "aux_loss")[0], loss_bound);
    EXPECT_NEAR(values_of(executor, "loss")[0] + balance, floats(golden, "loss")[0], loss_bound);
    int compared = 0;
    for (const auto& tensor : golden.tensors()) {
      if (!tensor.name.starts_with("grad.")) continue;
      const auto gradient = values_of(executor, gradient_of(tensor.name));
      EXPECT_LT(relative_error(gradient, floats(golden, tensor.name)), gradient_bound)
          << tensor.name;
      ++compared;
    }
    EXPECT_GT(compared, 5);
  }
};

TEST_P(BalancedGoldens, LossAndEveryGradient) {
  for (const auto mode : {passes::RecomputeMode::none, passes::RecomputeMode::gate_up,
                          passes::RecomputeMode::all_but_attention, passes::RecomputeMode::layer})
    expect_golden(program::DType::f32, mode, 1e-5, 1e-4);
}

// Of a step's micro-batches each counts by its share of the tokens.
TEST_P(BalancedGoldens, MicroBatchesCountByTheirTokens) {
  const formats::SafetensorsFile golden(golden_folder("balanced_" + model()) +
                                        "/golden.safetensors");
  auto spec = golden_spec(program::DType::f32);
  spec.rows = 1;
  spec.accumulation = 2;
  spec.model.router_loss = true;
  spec.model.router_coefficient = 1;
  LoadedCase loaded(backend(), golden_folder(model() + "/model"), "", spec);
  runtime::Executor& executor = loaded.executor();
  const auto ids = integers(golden, "ids");
  const auto targets = integers(golden, "targets");
  executor.set_input("inverse_tokens", 1.0F);
  const auto run = [&](program::ProgramName program, int64_t row, int32_t tokens, float inverse) {
    const auto row_of = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + row * 33, all.begin() + (row + 1) * 33);
    };
    loaded.put_batch(program, row_of(ids), row_of(targets), {0, tokens});
    executor.set_input("inverse_document_tokens", inverse);
    executor.run(program);
    return values_of(executor, "router_loss")[0];
  };
  using program::ProgramName;
  const float first = run(ProgramName::micro_first, 0, 33, 1.0F / 33);
  const float second = run(ProgramName::micro_first, 1, 10, 1.0F / 10);
  EXPECT_GT(std::abs(first - second), 1e-3);
  run(ProgramName::micro_first, 0, 33, 1.0F / 43);
  const float both = run(ProgramName::micro_next, 1, 10, 1.0F / 43);
  EXPECT_NEAR(both, (33 * first + 10 * second) / 43, 1e-5);
}

TEST_P(BalancedGoldens, Bf16) {
  if (backend() == "reference") GTEST_SKIP() << "the reference computes in f32";
  if (backend() == "cpu" && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  expect_golden(program::DType::bf16, passes::RecomputeMode::none, 5e-3, 6e-2);
}

INSTANTIATE_TEST_SUITE_P(All, BalancedGoldens,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::Values("mixtral", "qwen3_moe", "gpt_oss")),
                         [](const auto& test) {
                           return std::get<1>(test.param) + "_" + std::get<0>(test.param);
                         });

TEST(Packing, PackedRowsEqualDocumentsAlone) {
  const formats::SafetensorsFile golden(golden_folder("packing") + "/golden.safetensors");
  const auto documents = integers(golden, "documents");  // (6, 3): row, start, length
  std::vector<int32_t> bounds;
  for (size_t i = 0; i + 2 < documents.size(); i += 3) {
    const int32_t begin = documents[i] * 33 + documents[i + 1];
    bounds.insert(bounds.end(), {begin, begin + documents[i + 2]});
  }
  for (const std::string& backend : golden_backends()) {
    if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
    auto spec = golden_spec(program::DType::f32);
    spec.row_segments = 4;
    LoadedCase loaded(backend, golden_folder("rope_llama3/model"), "", spec);
    const auto targets = integers(golden, "targets");
    loaded.put_batch(program::ProgramName::micro_first, integers(golden, "ids"), targets, bounds,
                     integers(golden, "positions"));
    loaded.executor().set_input("inverse_tokens",
                                1.0F / static_cast<float>(count_trained(targets)));
    loaded.executor().run(program::ProgramName::micro_first);
    EXPECT_NEAR(values_of(loaded.executor(), "loss")[0], floats(golden, "loss")[0], 1e-5);
    for (const auto& tensor : golden.tensors()) {
      if (!tensor.name.starts_with("grad.")) continue;
      const auto gradient = values_of(loaded.executor(), gradient_of(tensor.name));
      EXPECT_LT(relative_error(gradient, floats(golden, tensor.name)), 1e-4) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace snug::test
