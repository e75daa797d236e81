// Twenty steps of LoRA, of prompts, and of all weights or some, with AdamW, Lion, Adafactor and
// Muon, against PEFT, PyTorch, transformers and bitsandbytes, loss and gradient norm within 1e-3,
// or within what the golden says; with smoothed labels and noise on embeddings; in fp16 with
// PyTorch's GradScaler, the scale the same; and learning rates against transformers' schedules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/adapter/peft_adapter.h"
#include "formats/recipe/recipe.h"
#include "golden_case.h"
#include "plan/spec/frozen_weights.h"
#include "plan/spec/spec.h"
#include "program/ir/tensor_names.h"
#include "train/lr_schedule.h"

namespace snug::test {
namespace {

using Json = nlohmann::json;

Json read_json(const std::string& path) {
  std::ifstream stream(path);
  return Json::parse(stream);
}

std::vector<std::string> frozen_weights(const Json& settings) {
  formats::Recipe recipe;
  recipe.freeze_modules = settings.value("freeze_modules", std::vector<std::string>{});
  return plan::frozen_weights(recipe, models::find_model(settings["model"]).config);
}

// Muon's products are bf16 where the machine has such, whatever the rest computes in.
bool multiplies_bf16(const std::string& backend) {
  formats::Recipe recipe;
  recipe.compute_dtype = formats::ComputeDtype::automatic;
  return plan::compute_type(recipe, *backends::open_backend(backend, {})) == program::DType::bf16;
}

bool is_fp16(const Json& settings) { return settings.contains("loss_scale_window"); }

plan::TrainingSpec curve_spec(const Json& settings) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.compute = is_fp16(settings) ? program::DType::f16 : program::DType::f32;
  spec.frozen = frozen_weights(settings);
  if (settings["method"] == "qlora") spec.quantization.emplace();
  spec.model.router_loss = settings.value("output_router_logits", false);
  spec.model.router_coefficient = settings.value("router_aux_loss_coef", 0.0);
  spec.rows = settings["per_device_train_batch_size"];
  const auto max_length = settings["max_length"].get<int64_t>();
  spec.row_tokens = max_length;
  if (settings.contains("max_target_length"))
    spec.row_tokens = {settings["max_target_length"].get<int64_t>(), max_length};
  spec.accumulation = settings["gradient_accumulation_steps"];
  spec.update.weight_decay = settings["weight_decay"];
  spec.update.max_grad_norm = settings["max_grad_norm"];
  methods::UpdateOptions& update = spec.update;
  const std::string optimizer = settings.value("optim", std::string("adamw"));
  update.optimizer = base::from_word<methods::OptimizerKind>(optimizer).value();
  update.beta1 = settings.value("adam_beta1", update.beta1);
  update.beta2 = settings.value("adam_beta2", update.beta2);
  update.epsilon = settings.value("adam_epsilon", update.epsilon);
  update.decay_rate = settings.value("decay_rate", update.decay_rate);
  update.clip_threshold = settings.value("clip_threshold", update.clip_threshold);
  update.ema_decay = settings.value("ema_decay", 0.0);
  update.lora_b_rate = settings.value("loraplus_lr_ratio", update.lora_b_rate);
  update.muon.momentum = settings.value("muon_momentum", update.muon.momentum);
  update.muon.steps = settings.value("ns_steps", update.muon.steps);
  spec.objective.label_smoothing_factor = settings.value("label_smoothing_factor", 0.0);
  spec.neftune_alpha = settings.value("neftune_noise_alpha", 0.0);
  if (is_fp16(settings))
    update.loss_scale = {.first = std::ldexp(1.0, settings["initial_scale_power"]),
                         .window = settings["loss_scale_window"]};
  return spec;
}

std::vector<int32_t> slice(const std::vector<int32_t>& all, int64_t index, int64_t size) {
  return {all.begin() + index * size, all.begin() + (index + 1) * size};
}

// Doubles of a golden file.
std::vector<double> doubles(const formats::SafetensorsFile& file, const std::string& name) {
  const auto& tensor = file.at(name);
  std::vector<double> values(static_cast<size_t>(tensor.bytes()) / sizeof(double));
  file.read(tensor, values.data());
  return values;
}

std::vector<float> values_of(runtime::Executor& executor, const std::string& tensor) {
  const backends::Buffer& values = executor.tensor(tensor);
  return {values.as<const float>(), values.as<const float>() + values.elements()};
}

// How far the average lies behind what was trained, whose place it then takes.
void expect_average(const formats::SafetensorsFile& golden, const plan::Job& job,
                    runtime::Executor& executor) {
  std::vector<std::vector<float>> trained;
  for (const program::Tensor& tensor : job.trainables)
    trained.push_back(values_of(executor, tensor.name));
  executor.run(program::ProgramName::average);
  for (size_t i = 0; i < trained.size(); ++i) {
    const std::string& name = job.trainables[i].name;
    const std::vector<float> average = values_of(executor, name);
    EXPECT_EQ(average, values_of(executor, program::average_name(name))) << name;
    double squares = 0;
    for (size_t k = 0; k < average.size(); ++k) {
      const double lag = double{trained[i][k]} - average[k];
      squares += lag * lag;
    }
    const double expected = doubles(golden, "average_lag." + formats::adapter_key(name)).front();
    EXPECT_NEAR(std::sqrt(squares), expected, 1e-3 * expected) << name;
  }
}

void follow(const std::string& backend, const std::string& name) {
  const Json settings = read_json(golden_folder(name) + "/settings.json");
  const formats::SafetensorsFile golden(golden_folder(name) + "/golden.safetensors");
  const std::string adapter =
      settings.contains("adapter") ? settings["adapter"].get<std::string>() : "";
  plan::TrainingSpec curve = curve_spec(settings);
  curve.update.muon.bf16 = multiplies_bf16(backend);
  LoadedCase loaded(backend, settings["model"], adapter, std::move(curve));
  const auto& spec = loaded.spec();
  const train::LrSchedule schedule{formats::Schedule::cosine, settings["learning_rate"],
                                   settings["warmup_steps"], settings["max_steps"]};
  // The same batches as another curve's, or its own.
  const formats::SafetensorsFile batches(settings.value("batches", golden_folder(name)) +
                                         "/golden.safetensors");
  const auto ids = integers(batches, "ids");
  const auto targets = integers(batches, "targets");
  const auto losses = doubles(golden, "loss");
  const auto norms = doubles(golden, "grad_norm");
  const auto rates = doubles(golden, "learning_rate");
  const bool has_encoder = spec.row_tokens.has_encoder();
  const auto encoder_ids = has_encoder ? integers(batches, "encoder_ids") : std::vector<int32_t>();
  const int64_t micro_tokens = spec.rows * spec.row_tokens.decoder();
  auto& executor = loaded.executor();
  const double balance = spec.model.router_loss_factor();
  const double tolerance = settings.value("tolerance", 1e-3);
  if (spec.update.ema_decay > 0) executor.run(program::ProgramName::initialise);
  if (balance > 0)
    executor.set_input("inverse_document_tokens",
                       1.0F / static_cast<float>(micro_tokens * spec.accumulation));
  for (int64_t step = 0; step < 20; ++step) {
    const auto of_step = slice(targets, step, micro_tokens * spec.accumulation);
    executor.set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(of_step)));
    for (int64_t micro = 0; micro < spec.accumulation; ++micro) {
      const auto program =
          micro == 0 ? program::ProgramName::micro_first : program::ProgramName::micro_next;
      const int64_t index = step * spec.accumulation + micro;
      loaded.put_batch(program, slice(ids, index, micro_tokens),
                       slice(targets, index, micro_tokens));
      if (executor.has("random"))
        executor.set_input("random", std::array{static_cast<int32_t>(step + 1),
                                                static_cast<int32_t>(micro * spec.rows)});
      if (has_encoder)
        loaded.put_encoder_batch(
            program,
            slice(encoder_ids, index, spec.rows * spec.row_tokens[base::TokenStream::encoder]));
      executor.run(program);
    }
    const auto at = static_cast<size_t>(step);
    EXPECT_NEAR(schedule.at(step + 1), rates[at], 1e-9);
    executor.set_input("learning_rate", static_cast<float>(schedule.at(step + 1)));
    if (executor.has("step")) executor.set_input("step", static_cast<int32_t>(step + 1));
    executor.run(program::ProgramName::update);
    double loss = executor.result<float>("loss");
    if (balance > 0) {
      const double of_balance = executor.result<float>("router_loss");
      const double expected = balance * doubles(golden, "aux_loss")[at];
      EXPECT_NEAR(of_balance, expected, tolerance * expected) << "step " << step;
      loss += of_balance;
    }
    EXPECT_NEAR(loss, losses[at], tolerance * losses[at]) << "step " << step;
    EXPECT_NEAR(executor.result<float>("gradient_norm"), norms[at], tolerance * norms[at])
        << "step " << step;
  }
  if (spec.update.ema_decay > 0) expect_average(golden, executor.job(), executor);
}

// In fp16 PyTorch rounds gradients of weights too. Tolerances are some three times what its own
// fp16 curve is away from its fp32 one over the finite steps.
void follow_fp16(const std::string& backend, const std::string& name) {
  constexpr double kLossTolerance = 2e-3;
  constexpr double kNormTolerance = 3e-2;
  const Json settings = read_json(golden_folder(name) + "/settings.json");
  const formats::SafetensorsFile golden(golden_folder(name) + "/golden.safetensors");
  LoadedCase loaded(backend, settings["model"], settings.value("adapter", std::string()),
                    curve_spec(settings));
  const auto& spec = loaded.spec();
  const train::LrSchedule schedule{formats::Schedule::cosine, settings["learning_rate"],
                                   settings["warmup_steps"], settings["max_steps"]};
  const formats::SafetensorsFile batches(settings["batches"].get<std::string>() +
                                         "/golden.safetensors");
  const auto ids = integers(batches, "ids");
  const auto targets = integers(batches, "targets");
  const auto losses = doubles(golden, "loss");
  const auto norms = doubles(golden, "grad_norm");
  const auto rates = doubles(golden, "learning_rate");
  const auto scales = doubles(golden, "loss_scale");
  const auto bad_steps = settings["bad_steps"].get<std::vector<int64_t>>();
  const int64_t tokens = spec.micro_tokens();
  auto& executor = loaded.executor();
  int64_t updates = 0;
  for (int64_t step = 0; step < 20; ++step) {
    const auto at = static_cast<size_t>(step);
    const bool is_bad = std::find(bad_steps.begin(), bad_steps.end(), step) != bad_steps.end();
    const auto of_step = slice(targets, step, tokens);
    const float factor = is_bad ? settings["bad_factor"].get<float>() : 1.0F;
    executor.set_input("inverse_tokens", factor / static_cast<float>(count_trained(of_step)));
    loaded.put_batch(program::ProgramName::micro_first, slice(ids, step, tokens), of_step);
    executor.run(program::ProgramName::micro_first);
    EXPECT_NEAR(schedule.at(updates + 1), rates[at], 1e-9);
    executor.set_input("learning_rate", static_cast<float>(schedule.at(updates + 1)));
    executor.set_input("step", static_cast<int32_t>(updates + 1));
    executor.run(program::ProgramName::update);
    EXPECT_NEAR(executor.result<float>("loss"), losses[at], kLossTolerance * losses[at])
        << "step " << step;
    const double norm = executor.result<float>("gradient_norm");
    EXPECT_EQ(std::isfinite(norm), !is_bad) << "step " << step;
    if (!is_bad) {
      EXPECT_NEAR(norm, norms[at], kNormTolerance * norms[at]) << "step " << step;
    }
    EXPECT_EQ(executor.result<float>("loss_scale"), scales[at]) << "step " << step;
    updates += is_bad ? 0 : 1;
  }
}

class Curves : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Curves, FollowThePeer) {
  const auto& [backend, name] = GetParam();
  if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
  follow(backend, name);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::string, std::string>>& test) {
  return std::get<1>(test.param) + "_" + std::get<0>(test.param);
}

class Fp16Curves : public Curves {};

TEST_P(Fp16Curves, FollowThePeer) {
  const auto& [backend, name] = GetParam();
  if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
  follow_fp16(backend, name);
}

INSTANTIATE_TEST_SUITE_P(All, Fp16Curves,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::Values("curve_lora_fp16",
                                                              "curve_full_fp16")),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    All, Curves,
    ::testing::Combine(
        ::testing::ValuesIn(golden_backends()),
        ::testing::Values("curve_lora", "curve_lora_accumulated", "curve_qlora", "curve_full",
                          "curve_full_accumulated", "curve_full_frozen", "curve_lora_lion",
                          "curve_lora_adafactor", "curve_full_lion", "curve_full_adafactor",
                          "curve_lora_muon", "curve_loraplus", "curve_ema", "curve_full_muon",
                          "curve_dora", "curve_prompt", "curve_prompt_v2", "curve_smoothed",
                          "curve_smoothed_gemma2", "curve_noisy", "curve_noisy_gemma",
                          "curve_mixtral_balanced", "curve_qwen3_moe_balanced")),
    name_of);

// All weights and LoRA of each; of some all weights alone.
std::vector<std::string> family_curves() {
  std::vector<std::string> names{
      "curve_mixtral_full",     "curve_qwen3_moe_full",  "curve_granite_full",
      "curve_smollm3_full",     "curve_olmo3_full",      "curve_ministral3_full",
      "curve_ernie4_5_full",    "curve_glm4_full",       "curve_seed_oss_full",
      "curve_qwen2_moe_full",   "curve_olmoe_full",      "curve_granitemoe_full",
      "curve_glm4_moe_full",    "curve_gemma4_full",     "curve_gemma4_moe_full",
      "curve_qwen3_5_moe_full", "curve_qwen3_next_full", "curve_apertus_full",
      "curve_stablelm_12b_full"};
  for (const char* family :
       {"gpt2", "gemma", "gemma2", "gemma3", "phi", "gpt_neox", "stablelm", "falcon", "bloom",
        "gpt_oss", "hunyuan", "exaone4", "cohere2", "gemma4_sharing", "lfm2"})
    for (const char* method : {"full", "lora"})
      names.push_back(fmt::format("curve_{}_{}", family, method));
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    EncoderDecoders, Curves,
    ::testing::Combine(::testing::ValuesIn(golden_backends()),
                       ::testing::Values("curve_t5_full", "curve_t5_gated_full", "curve_t5_lora")),
    name_of);

INSTANTIATE_TEST_SUITE_P(Families, Curves,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::ValuesIn(family_curves())),
                         name_of);

train::LrSchedule schedule_of(const Json& table, const Json& run, double learning_rate) {
  std::vector<std::string> words{"lr_scheduler_type=" + table["type"].get<std::string>(),
                                 "lr_scheduler_kwargs=" + table["kwargs"].dump(),
                                 fmt::format("learning_rate={}", learning_rate),
                                 fmt::format("warmup_steps={}", run[0].get<double>())};
  return train::schedule_of(formats::load_recipe("", words), run[1]);
}

TEST(Schedules, EqualTransformers) {
  const Json golden = read_json("tests/goldens/schedules.json");
  const double learning_rate = golden["learning_rate"];
  ASSERT_GE(golden["schedules"].size(), 20U);
  for (const Json& table : golden["schedules"])
    for (const Json& run : table["runs"]) {
      const train::LrSchedule schedule = schedule_of(table, run, learning_rate);
      ASSERT_EQ(run[2].size(), run[1].get<size_t>() + 1);
      for (size_t i = 0; i < run[2].size(); ++i)
        EXPECT_NEAR(schedule.at(static_cast<int64_t>(i) + 1) / learning_rate,
                    run[2][i].get<double>(), 1e-7)
            << table.dump().substr(0, 160) << run.dump() << " step " << i + 1;
    }
}

}  // namespace
}  // namespace snug::test
