// Loss and every gradient of encoder-decoders against transformers (tests/goldens/README.md), on
// every backend.
#include <gtest/gtest.h>

#include "comparison.h"
#include "golden_case.h"
#include "program/work/target.h"

namespace snug::test {
namespace {

using passes::RecomputeMode;
using program::ProgramName;

plan::TrainingSpec encoder_decoder_spec(program::DType compute) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.compute = compute;
  spec.rows = 2;
  spec.row_tokens = {33, 37};
  spec.evaluate = true;
  return spec;
}

void expect_gradients(LoadedCase& loaded, const formats::SafetensorsFile& golden, double bound,
                      const std::string& prefix = "grad.") {
  int compared = 0;
  for (const auto& tensor : golden.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    const auto gradient =
        values_of(loaded.executor(), "gradient." + tensor.name.substr(prefix.size()));
    EXPECT_LT(relative_error(gradient, floats(golden, tensor.name)), bound) << tensor.name;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

using Parameter = std::tuple<std::string, std::string>;  // a backend and a golden

class EncoderDecoderGoldens : public ::testing::TestWithParam<Parameter> {
 protected:
  EncoderDecoderGoldens()
      : backend_(std::get<0>(GetParam())),
        model_(golden_folder(std::get<1>(GetParam()) + "/model")),
        golden_(golden_folder(std::get<1>(GetParam())) + "/golden.safetensors") {}

  void SetUp() override {
    if (!has_device(backend_)) GTEST_SKIP() << "skipped: no CUDA device";
  }

  void run(LoadedCase& loaded, ProgramName program) const {
    run(loaded, program, integers(golden_, "targets"));
  }
  void run(LoadedCase& loaded, ProgramName program, const std::vector<int32_t>& targets) const {
    loaded.put_batch(program, integers(golden_, "ids"), targets);
    loaded.put_encoder_batch(program, integers(golden_, "encoder_ids"));
    loaded.executor().set_input("inverse_tokens",
                                1.0F / static_cast<float>(count_trained(targets)));
    loaded.executor().run(program);
  }

  double loss_of(LoadedCase& loaded) const { return values_of(loaded.executor(), "loss")[0]; }
  double golden_loss() const { return floats(golden_, "loss")[0]; }

  const std::string backend_;
  const std::string model_;
  const formats::SafetensorsFile golden_;
};

TEST_P(EncoderDecoderGoldens, LossAndEveryGradient) {
  for (const auto mode :
       {RecomputeMode::keep_all, RecomputeMode::none, RecomputeMode::gate_up,
        RecomputeMode::attention, RecomputeMode::all_but_attention, RecomputeMode::layer}) {
    auto spec = encoder_decoder_spec(program::DType::f32);
    spec.recompute = mode;
    LoadedCase loaded(backend_, model_, "", spec);
    run(loaded, ProgramName::micro_first);
    EXPECT_NEAR(loss_of(loaded), golden_loss(), 1e-5);
    expect_gradients(loaded, golden_, 1e-4);
  }
}

TEST_P(EncoderDecoderGoldens, OffloadedActivationsChangeNothing) {
  auto spec = encoder_decoder_spec(program::DType::f32);
  spec.recompute = RecomputeMode::layer;
  spec.activation_offloading = true;
  LoadedCase loaded(backend_, model_, "", spec);
  run(loaded, ProgramName::micro_first);
  expect_gradients(loaded, golden_, 1e-4);
}

TEST_P(EncoderDecoderGoldens, EvaluationGivesTheTrainingLoss) {
  LoadedCase loaded(backend_, model_, "", encoder_decoder_spec(program::DType::f32));
  run(loaded, ProgramName::evaluate);
  EXPECT_NEAR(loss_of(loaded), golden_loss(), 1e-5);
  const HalfHit half = half_hit(golden_);
  EXPECT_GE(half.hits, 25);
  run(loaded, ProgramName::evaluate, half.targets);
  EXPECT_EQ(values_of(loaded.executor(), "measures")[0], static_cast<float>(half.hits));
}

// Against goldens in fp32: transformers' own gradients in bf16 are up to 6.4e-2 off.
TEST_P(EncoderDecoderGoldens, Bf16) {
  if (backend_ == "reference") GTEST_SKIP() << "the reference computes in f32";
  if (backend_ == "cpu" && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  for (const auto mode : {RecomputeMode::none, RecomputeMode::layer}) {
    auto spec = encoder_decoder_spec(program::DType::bf16);
    spec.recompute = mode;
    LoadedCase loaded(backend_, model_, "", spec);
    run(loaded, ProgramName::micro_first);
    EXPECT_NEAR(loss_of(loaded), golden_loss(), 1e-3 * golden_loss());
    expect_gradients(loaded, golden_, 7.5e-2);
  }
}

// Of two micro-batches of one row each, the second adds to the gradients of the first.
TEST_P(EncoderDecoderGoldens, AccumulatedGradients) {
  auto spec = encoder_decoder_spec(program::DType::f32);
  spec.rows = 1;
  spec.accumulation = 2;
  LoadedCase loaded(backend_, model_, "", spec);
  const auto row_of = [](const std::vector<int32_t>& all, size_t row) {
    const size_t length = all.size() / 2;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * length);
    return std::vector<int32_t>(begin, begin + static_cast<std::ptrdiff_t>(length));
  };
  const auto targets = integers(golden_, "targets");
  loaded.executor().set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
  for (size_t row = 0; row < 2; ++row) {
    const ProgramName program = row == 0 ? ProgramName::micro_first : ProgramName::micro_next;
    loaded.put_batch(program, row_of(integers(golden_, "ids"), row), row_of(targets, row));
    loaded.put_encoder_batch(program, row_of(integers(golden_, "encoder_ids"), row));
    loaded.executor().run(program);
  }
  EXPECT_NEAR(loss_of(loaded), golden_loss(), 1e-5);
  expect_gradients(loaded, golden_, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoderGoldens,
                         ::testing::Combine(::testing::ValuesIn(golden_backends()),
                                            ::testing::Values("t5", "t5_gated", "mt5", "codet5p")),
                         [](const auto& test) {
                           return std::get<1>(test.param) + "_" + std::get<0>(test.param);
                         });

// PEFT's adapter of every linear, the one between the stacks too; rows of fused projections lie as
// in the files.
TEST(CodeT5pAdapter, LossAndEveryGradient) {
  const std::string name = "lora_codet5p";
  const formats::SafetensorsFile golden(golden_folder(name) + "/golden.safetensors");
  for (const std::string& backend : golden_backends()) {
    if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
    for (const auto mode : {RecomputeMode::none, RecomputeMode::layer}) {
      auto spec = encoder_decoder_spec(program::DType::f32);
      spec.recompute = mode;
      LoadedCase loaded(backend, golden_folder("codet5p/model"), golden_folder(name + "/adapter"),
                        spec);
      const auto targets = integers(golden, "targets");
      loaded.put_batch(ProgramName::micro_first, integers(golden, "ids"), targets);
      loaded.put_encoder_batch(ProgramName::micro_first, integers(golden, "encoder_ids"));
      loaded.executor().set_input("inverse_tokens",
                                  1.0F / static_cast<float>(count_trained(targets)));
      loaded.executor().run(ProgramName::micro_first);
      EXPECT_NEAR(values_of(loaded.executor(), "loss")[0], floats(golden, "loss")[0], 1e-5);
      expect_gradients(loaded, golden, 1e-4, "grad.base_model.model.");
    }
  }
}

// Document i of a row is segment i of both streams, and sees nothing of the others.
TEST(EncoderDecoderPacking, PackedRowsEqualDocumentsAlone) {
  const formats::SafetensorsFile golden(golden_folder("t5_packing") + "/golden.safetensors");
  // (5, 5): row, and in the encoder's and the decoder's stream begin and length.
  const auto documents = integers(golden, "documents");
  std::vector<int32_t> bounds;
  std::vector<int32_t> encoder_bounds;
  for (size_t i = 0; i + 4 < documents.size(); i += 5) {
    const int32_t encoder_begin = documents[i] * 37 + documents[i + 1];
    encoder_bounds.insert(encoder_bounds.end(), {encoder_begin, encoder_begin + documents[i + 2]});
    const int32_t begin = documents[i] * 33 + documents[i + 3];
    bounds.insert(bounds.end(), {begin, begin + documents[i + 4]});
  }
  for (const std::string& backend : golden_backends()) {
    if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
    auto spec = encoder_decoder_spec(program::DType::f32);
    spec.row_segments = 4;
    LoadedCase loaded(backend, golden_folder("t5/model"), "", spec);
    const auto targets = integers(golden, "targets");
    loaded.put_batch(ProgramName::micro_first, integers(golden, "ids"), targets, bounds);
    loaded.put_encoder_batch(ProgramName::micro_first, integers(golden, "encoder_ids"),
                             encoder_bounds);
    loaded.executor().set_input("inverse_tokens",
                                1.0F / static_cast<float>(count_trained(targets)));
    loaded.executor().run(ProgramName::micro_first);
    EXPECT_NEAR(values_of(loaded.executor(), "loss")[0], floats(golden, "loss")[0], 1e-5);
    expect_gradients(loaded, golden, 1e-4);
  }
}

}  // namespace
}  // namespace snug::test
