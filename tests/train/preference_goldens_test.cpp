// The losses of pairs, what is measured of them, and every gradient against TRL's trainers
// (tests/goldens/README.md), on every backend, in every form of the job.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden_case.h"
#include "program/ir/tensor_names.h"

namespace snug::test {
namespace {

using methods::ObjectiveKind;
using methods::ReferenceModel;
using program::ProgramName;

// A job of the pairs of a golden, which has the objective's name unless another is given.
class PairsCase {
 public:
  PairsCase(const std::string& backend, plan::TrainingSpec spec, const std::string& golden = "")
      : folder_(golden_folder(golden.empty() ? std::string(base::word_of(spec.objective.kind))
                                             : golden)),
        golden_(folder_ + "/golden.safetensors") {
    std::ifstream stream(folder_ + "/settings.json");
    settings_ = nlohmann::json::parse(stream);
    spec.objective.beta = settings_["beta"];
    spec.objective.simpo_gamma = settings_.value("simpo_gamma", 0.0);
    // Losses of dpo have another one each.
    if (settings_.contains("label_smoothing"))
      spec.objective.label_smoothing = settings_["label_smoothing"];
    spec.objective.desirable_weight = settings_.value("desirable_weight", 1.0);
    spec.objective.undesirable_weight = settings_.value("undesirable_weight", 1.0);
    spec.compute = program::DType::f32;
    spec.rows = pairs() / spec.accumulation;
    spec.row_tokens = 2 * max_length();
    spec.row_segments = 2;
    spec.longest_document = max_length();
    spec.evaluate = true;
    if (is_full()) spec.method = methods::MethodKind::full;
    loaded_.emplace(backend, settings_["model"], settings_["adapter"], std::move(spec));
  }

  const formats::SafetensorsFile& golden() const { return golden_; }
  runtime::Executor& executor() { return loaded_->executor(); }
  int64_t pairs() const { return settings_["pairs"]; }

  // A whole step without its update, or the evaluation of the pairs.
  void run_step() {
    set_scales();
    for (int64_t micro = 0; micro < loaded_->spec().accumulation; ++micro)
      run(micro == 0 ? ProgramName::micro_first : ProgramName::micro_next, micro);
  }
  // The update of AdamW after run_step().
  void update(int32_t step) {
    executor().set_input("learning_rate", settings_["learning_rate"].get<float>());
    executor().set_input("step", step);
    executor().run(ProgramName::update);
  }
  void run_evaluation() {
    set_scales();
    run(ProgramName::evaluate, 0);
  }
  // The log-probabilities of the pass before training.
  std::vector<float> kept() {
    executor().set_input("inverse_tokens", 1.0F);
    put(ProgramName::reference, 0);
    executor().run(ProgramName::reference);
    executor().await_results();
    const backends::Buffer& values = executor().tensor("host.kept.log_probabilities");
    return {values.as<const float>(), values.as<const float>() + values.elements()};
  }

  void expect_golden(double bound) {
    const auto names = methods::objective_of(loaded_->spec().objective.kind).measures;
    EXPECT_NEAR(values_of(executor(), "loss")[0], floats(golden_, "loss")[0], bound);
    const auto measures = floats(golden_, "measures");
    const auto measured = values_of(executor(), "measures");
    ASSERT_EQ(measured.size(), measures.size());
    ASSERT_EQ(measured.size(), names.size());
    // Log-probabilities are two hundred times the loss.
    for (size_t i = 0; i < measures.size(); ++i)
      EXPECT_NEAR(measured[i], measures[i], bound * std::max(1.0F, std::abs(measures[i])))
          << names[i];
  }
  double gradient_norm() {
    double sum = 0;
    for (const auto& tensor : golden_.tensors())
      if (const std::string prefix = "grad.base_model.model."; tensor.name.starts_with(prefix))
        for (const double value :
             values_of(executor(), program::gradient_name(tensor.name.substr(prefix.size()))))
          sum += value * value;
    return std::sqrt(sum);
  }
  void expect_gradients(double bound) {
    int compared = 0;
    const std::string prefix = is_full() ? "grad." : "grad.base_model.model.";
    for (const auto& tensor : golden_.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      const std::string name = tensor.name.substr(prefix.size());
      EXPECT_LT(relative_error(values_of(executor(), program::gradient_name(name)),
                               floats(golden_, tensor.name)),
                bound_of(name, bound))
          << name;
      ++compared;
    }
    EXPECT_GE(compared, 16);
  }

 private:
  int64_t max_length() const { return settings_["max_length"]; }
  // From the first token of each sequence that carries loss to its end.
  static std::vector<int32_t> answers_of(std::vector<int32_t> bounds,
                                         const std::vector<int32_t>& targets) {
    for (size_t i = 0; i < bounds.size(); i += 2)
      while (bounds[i] < bounds[i + 1] && targets[static_cast<size_t>(bounds[i])] < 0) ++bounds[i];
    return bounds;
  }
  // A bias of keys moves all scores of a query alike, but for what is rotated: its gradient is a
  // small difference.
  static double bound_of(const std::string& name, double bound) {
    return name.ends_with("k_proj.bias") ? 10 * bound : bound;
  }
  bool is_full() const { return settings_["adapter"] == ""; }

  void set_scales() {
    executor().set_input("inverse_tokens", 1.0F);
    executor().set_input("inverse_pairs", 1.0F / static_cast<float>(pairs()));
    if (executor().has("inverse_desirable")) {
      const auto labels = integers(golden_, "labels");
      const auto desirable = static_cast<float>(std::ranges::count(labels, 1));
      executor().set_input("inverse_desirable", 1.0F / desirable);
      executor().set_input("inverse_undesirable",
                           1.0F / (static_cast<float>(labels.size()) - desirable));
    }
    if (!executor().has("inverse_chosen_tokens")) return;
    const auto bounds = integers(golden_, "bounds");
    int64_t tokens = 0;  // that have one before them
    for (size_t i = 0; i < bounds.size(); i += 4) tokens += bounds[i + 1] - bounds[i] - 1;
    executor().set_input("inverse_chosen_tokens", 1.0F / static_cast<float>(tokens));
  }

  void run(ProgramName program, int64_t micro) {
    put(program, micro);
    const auto reference = loaded_->spec().objective.reference;
    if (reference == ReferenceModel::adapter_off) executor().run(ProgramName::reference);
    executor().run(program);
  }

  // The rows of a micro-batch; bounds of the golden count tokens of all rows.
  void put(ProgramName program, int64_t micro) {
    const auto& spec = loaded_->spec();
    const auto part = [&](const char* name, int64_t each) {
      const auto all = integers(golden_, name);
      const int64_t count = spec.rows * each;
      return std::vector<int32_t>(all.begin() + micro * count, all.begin() + (micro + 1) * count);
    };
    const int64_t tokens = spec.row_tokens.decoder();
    const auto bounds_of = [&](const char* name) {
      auto bounds = part(name, 4);
      for (int32_t& bound : bounds) bound -= static_cast<int32_t>(micro * spec.micro_tokens());
      return bounds;
    };
    loaded_->put_batch(program, part("ids", tokens), part("targets", tokens), bounds_of("bounds"),
                       part("positions", tokens));
    const auto give = [&](std::string_view name, const auto& values_of_micro) {
      if (!executor().has(program, program::host_name(name))) return;
      const std::vector<int32_t> values = values_of_micro();
      std::memcpy(executor().tensor(program, program::host_name(name)).data, values.data(),
                  values.size() * sizeof(int32_t));
    };
    give(program::kAnswerBoundsName, [&] {
      return golden_.find("answers") != nullptr
                 ? bounds_of("answers")
                 : answers_of(bounds_of("bounds"), part("targets", tokens));
    });
    give(program::kLabelsName, [&] { return part("labels", 1); });
    const std::string name = program::host_name(program::kReferenceName);
    if (!executor().has(program, name)) return;
    const auto reference = floats(golden_, "reference");
    const backends::Buffer& given = executor().tensor(program, name);
    std::memcpy(given.data, reference.data() + micro * given.elements(),
                static_cast<size_t>(given.bytes()));
  }

  std::string folder_;
  formats::SafetensorsFile golden_;
  nlohmann::json settings_;
  std::optional<LoadedCase> loaded_;
};

class Preference : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  }
};

plan::TrainingSpec spec_of(ObjectiveKind kind, ReferenceModel reference) {
  plan::TrainingSpec spec;
  spec.objective.kind = kind;
  spec.objective.reference = reference;
  return spec;
}
plan::TrainingSpec spec_with(ReferenceModel reference) {
  return spec_of(ObjectiveKind::dpo, reference);
}

// Every objective with every reference that it has.
std::vector<plan::TrainingSpec> all_specs() {
  return {spec_with(ReferenceModel::adapter_off),
          spec_with(ReferenceModel::kept),
          spec_of(ObjectiveKind::orpo, ReferenceModel::none),
          spec_of(ObjectiveKind::simpo, ReferenceModel::none),
          spec_of(ObjectiveKind::kto, ReferenceModel::adapter_off),
          spec_of(ObjectiveKind::kto, ReferenceModel::kept)};
}

TEST_P(Preference, LossMeasuresAndEveryGradientAreTrls) {
  for (const plan::TrainingSpec& objective : all_specs())
    for (const auto mode : {passes::RecomputeMode::none, passes::RecomputeMode::layer}) {
      SCOPED_TRACE(base::word_of(objective.objective.kind));
      auto spec = objective;
      spec.recompute = mode;
      PairsCase pairs(GetParam(), spec);
      // What a device recorded of both programs gives the same when it is repeated.
      for (int step = 0; step < 3; ++step) {
        pairs.run_step();
        pairs.expect_golden(1e-5);
        pairs.expect_gradients(1e-5);
      }
    }
}

// Each loss_type of dpo, on the pairs of its golden.
TEST_P(Preference, EveryLossOfPairsIsTrls) {
  std::ifstream stream("tests/goldens/dpo_losses.json");
  const auto losses = nlohmann::json::parse(stream);
  ASSERT_EQ(losses.size(), 12U);
  for (const auto& golden : losses) {
    const std::string word = golden["loss_type"];
    SCOPED_TRACE(word);
    plan::TrainingSpec spec = spec_with(ReferenceModel::kept);
    spec.objective.loss = base::from_word<base::PreferenceLoss>(word).value();
    spec.objective.label_smoothing = golden["label_smoothing"];
    PairsCase pairs(GetParam(), spec);
    pairs.run_step();
    const double loss = golden["loss"];
    const double norm = golden["grad_norm"];
    EXPECT_NEAR(values_of(pairs.executor(), "loss")[0], loss, 1e-5 * std::max(1.0, loss));
    EXPECT_NEAR(pairs.gradient_norm(), norm, 1e-5 * std::max(1.0, norm));
  }
}

// Of all weights: the head's gradient is a sum over rows, each weighed by what its sequence counts,
// of a head with a bias and of one that is the embedding too.
TEST_P(Preference, AHeadThatTrainsHasTrlsGradient) {
  for (const int64_t accumulation : {1, 2})
    for (const auto mode : {passes::RecomputeMode::keep_all, passes::RecomputeMode::layer}) {
      const auto expect = [&](plan::TrainingSpec spec, const char* golden) {
        SCOPED_TRACE(golden);
        spec.accumulation = accumulation;
        spec.recompute = mode;
        PairsCase pairs(GetParam(), spec, golden);
        for (int step = 0; step < 2; ++step) {
          pairs.run_step();
          pairs.expect_golden(1e-5);
          pairs.expect_gradients(1e-5);
        }
      };
      expect(spec_of(ObjectiveKind::orpo, ReferenceModel::none), "orpo_full");
      expect(spec_with(ReferenceModel::kept), "dpo_full");
    }
}

// Twenty steps on the same pairs.
TEST_P(Preference, TheCurveOfSimpoIsTrls) {
  PairsCase pairs(GetParam(), spec_of(ObjectiveKind::simpo, ReferenceModel::none));
  const auto losses = floats(pairs.golden(), "curve.loss");
  const auto norms = floats(pairs.golden(), "curve.grad_norm");
  ASSERT_EQ(losses.size(), 20U);
  for (size_t step = 0; step < losses.size(); ++step) {
    pairs.run_step();
    pairs.update(static_cast<int32_t>(step + 1));
    EXPECT_NEAR(pairs.executor().result<float>("loss"), losses[step], 1e-3 * losses[step]) << step;
    EXPECT_NEAR(pairs.executor().result<float>("gradient_norm"), norms[step], 1e-3 * norms[step])
        << step;
  }
  EXPECT_LT(losses.back(), 0.5F * losses.front());
}

// A divergence below 0 is none.
TEST_P(Preference, ADivergenceIsClampedAsTrls) {
  PairsCase examples(GetParam(), spec_of(ObjectiveKind::kto, ReferenceModel::adapter_off),
                     "kto_clamped");
  examples.run_step();
  examples.expect_golden(1e-5);
  examples.expect_gradients(1e-5);
  EXPECT_EQ(floats(examples.golden(), "measures").back(), 0.0F);
  PairsCase others(GetParam(), spec_of(ObjectiveKind::kto, ReferenceModel::adapter_off));
  EXPECT_GT(floats(others.golden(), "measures").back(), 1.0F);
}

TEST_P(Preference, MicroBatchesAddUp) {
  for (plan::TrainingSpec spec : all_specs()) {
    // A divergence is that of a micro-batch.
    if (spec.objective.kind == ObjectiveKind::kto) continue;
    SCOPED_TRACE(base::word_of(spec.objective.kind));
    spec.accumulation = 2;
    PairsCase pairs(GetParam(), spec);
    pairs.run_step();
    pairs.expect_golden(1e-5);
    pairs.expect_gradients(1e-5);
  }
}

TEST_P(Preference, EvaluationGivesTheTrainingLoss) {
  for (const plan::TrainingSpec& spec : all_specs()) {
    if (spec.objective.reference == ReferenceModel::kept) continue;
    SCOPED_TRACE(base::word_of(spec.objective.kind));
    PairsCase pairs(GetParam(), spec);
    pairs.run_evaluation();
    pairs.expect_golden(1e-5);
  }
}

// The pass before training is of the model as it begins, its adapter on: the policy of the golden.
TEST_P(Preference, ThePassBeforeTrainingIsOfTheModelAsItBegins) {
  PairsCase pairs(GetParam(), spec_with(ReferenceModel::kept));
  const std::vector<float> kept = pairs.kept();
  ASSERT_EQ(kept.size(), static_cast<size_t>(2 * pairs.pairs()));
  const auto measures = floats(pairs.golden(), "measures");
  for (const size_t side : {0U, 1U}) {
    double mean = 0;
    for (size_t i = side; i < kept.size(); i += 2)
      mean += static_cast<double>(kept[i]) / static_cast<double>(pairs.pairs());
    EXPECT_NEAR(mean, measures[4 + side], 1e-5 * std::abs(measures[4 + side]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Preference, ::testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::test
