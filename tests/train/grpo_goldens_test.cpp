// The loss of rewarded answers, what is measured of them, and its gradients against TRL's
// GRPOTrainer (tests/goldens/README.md), on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "golden_case.h"
#include "program/ir/tensor_names.h"
#include "train/rewards/answer_batches.h"
#include "train/rewards/token_weights.h"

namespace snug::test {
namespace {

using methods::ReferenceModel;
using program::ProgramName;

nlohmann::json parsed(const std::string& file) {
  std::ifstream stream(golden_folder("grpo/" + file));
  return nlohmann::json::parse(stream);
}

// How the answers lie: side by side in rows of two, as the golden has them, or one after another.
enum class Rows : uint8_t { of_two, packed };

// A job of the golden's answers with the options of one of its cases.
class AnswersCase {
 public:
  AnswersCase(const std::string& backend, const nlohmann::json& options, int64_t accumulation = 1,
              Rows rows = Rows::of_two)
      : options_(options), golden_(golden_folder("grpo/golden.safetensors")) {
    plan::TrainingSpec spec;
    const bool compares = options["beta"] > 0.0;
    spec.objective = {.kind = methods::ObjectiveKind::grpo,
                      .reference = compares ? ReferenceModel::adapter_off : ReferenceModel::none,
                      .beta = options["beta"],
                      .epsilon = settings_["epsilon"],
                      .epsilon_high = settings_["epsilon_high"],
                      .delta = options["delta"],
                      .sequence_ratio = options["importance_sampling_level"] == "sequence",
                      .on_policy = options["on_policy"],
                      .corrects_divergence = options["use_bias_correction_kl"],
                      .temperature = options["temperature"]};
    spec.compute = program::DType::f32;
    spec.accumulation = accumulation;
    spec.rows = answers() / 2 / accumulation;
    spec.row_tokens = 2 * settings_["max_length"].get<int64_t>();
    spec.row_segments = 2;
    spec.longest_document = settings_["max_length"].get<int64_t>();
    if (rows == Rows::packed) {
      spec.rows = 1;
      spec.row_segments = answers();
      spec.row_tokens =
          (answers() + accumulation - 1) / accumulation * spec.longest_document.decoder();
    }
    loaded_.emplace(backend, settings_["model"], settings_["adapter"], std::move(spec));
  }

  runtime::Executor& executor() { return loaded_->executor(); }
  const formats::SafetensorsFile& golden() const { return golden_; }
  int64_t answers() const { return settings_["answers"]; }

  // A whole step without its update.
  void run_step() {
    const std::vector<int64_t> learned = learned_tokens();
    set_inputs(learned);
    const std::vector<float> weights = weights_of_tokens(learned);
    for (int64_t micro = 0; micro < loaded_->spec().accumulation; ++micro)
      run(micro == 0 ? ProgramName::micro_first : ProgramName::micro_next, micro, weights);
  }

  // The same of the golden's answers as a run has them.
  void run_packed_step() {
    const std::vector<int64_t> learned = learned_tokens();
    set_inputs(learned);
    const std::vector<Given> given = given_answers();
    const std::vector<double> weights = weights_of_answers(learned);
    std::vector<train::PackedAnswer> packed;
    packed.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i)
      packed.push_back({.prompt = given[i].prompt,
                        .answer = &given[i].answer,
                        .is_learned = learned[i] > 0,
                        .weight = weights[i]});
    EXPECT_EQ(train::counts_of(packed).trained_tokens,
              std::accumulate(learned.begin(), learned.end(), int64_t{0}));
    train::AnswerBatches batches(loaded_->spec(), executor());
    batches.pack(std::move(packed), 1);
    for (int64_t micro = 0; micro < batches.count(); ++micro) {
      const ProgramName program = micro == 0 ? ProgramName::micro_first : ProgramName::micro_next;
      batches.load(program, micro);
      if (loaded_->spec().objective.reference == ReferenceModel::adapter_off)
        executor().run(ProgramName::reference);
      executor().run(program);
    }
  }

  void expect_golden(double bound) {
    const double loss = options_["loss"];
    EXPECT_NEAR(values_of(executor(), "loss")[0], loss, bound * std::max(1.0, std::abs(loss)));
    const double norm = options_["grad_norm"];
    EXPECT_NEAR(gradient_norm(), norm, bound * std::max(1.0, norm));
    const std::vector<float> measured = values_of(executor(), "measures");
    ASSERT_EQ(measured.size(), options_["measures"].size());
    for (size_t i = 0; i < measured.size(); ++i) {
      const nlohmann::json& expected = options_["measures"][i];
      if (expected.is_null())
        EXPECT_TRUE(std::isnan(measured[i])) << i;
      else
        EXPECT_NEAR(measured[i], expected.get<double>(), bound) << i;
    }
  }
  void expect_gradients(double bound) {
    int compared = 0;
    for_each_gradient([&](const std::string& file_name, const std::string& name) {
      EXPECT_LT(relative_error(values_of(executor(), program::gradient_name(name)),
                               floats(golden_, file_name)),
                bound)
          << name;
      ++compared;
    });
    EXPECT_GE(compared, 16);
  }

 private:
  template <typename F>
  void for_each_gradient(F&& f) {
    const std::string prefix = "grad.base_model.model.";
    for (const auto& tensor : golden_.tensors())
      if (tensor.name.starts_with(prefix)) f(tensor.name, tensor.name.substr(prefix.size()));
  }
  double gradient_norm() {
    double sum = 0;
    for_each_gradient([&](const std::string&, const std::string& name) {
      for (const double value : values_of(executor(), program::gradient_name(name)))
        sum += value * value;
    });
    return std::sqrt(sum);
  }

  void set_inputs(const std::vector<int64_t>& learned) {
    const auto tokens = std::accumulate(learned.begin(), learned.end(), int64_t{0});
    executor().set_input(program::kInverseTokensName, 1.0F);
    executor().set_input(program::kInverseLearnedTokensName, 1.0F / static_cast<float>(tokens));
    executor().set_input(program::kInversePairsName, 1.0F / static_cast<float>(answers()));
  }

  struct Given {
    std::vector<int32_t> prompt;
    train::LearnedAnswer answer;
  };
  // An answer begins where the first token is learned, and its last id is none of its segment.
  std::vector<Given> given_answers() const {
    const auto ids = integers(golden_, "ids");
    const auto targets = integers(golden_, "targets");
    const auto bounds = integers(golden_, "bounds");
    const auto advantages = floats(golden_, "advantages");
    const auto old = floats(golden_, "old");
    std::vector<Given> all(bounds.size() / 2);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto end = static_cast<size_t>(bounds[2 * i + 1]);
      auto first = static_cast<size_t>(bounds[2 * i]);
      while (targets[first] < 0) all[i].prompt.push_back(ids[first++]);
      all[i].prompt.push_back(ids[first]);
      all[i].answer.advantage = advantages[i];
      for (size_t t = first; t < end && targets[t] >= 0; ++t) {
        all[i].answer.ids.push_back(targets[t]);
        all[i].answer.log_probabilities.push_back(old[t]);
      }
    }
    return all;
  }

  std::vector<int64_t> learned_tokens() const {
    const auto targets = integers(golden_, "targets");
    const auto bounds = integers(golden_, "bounds");
    std::vector<int64_t> learned(bounds.size() / 2);
    for (size_t i = 0; i < learned.size(); ++i)
      learned[i] =
          std::count_if(targets.begin() + bounds[2 * i], targets.begin() + bounds[2 * i + 1],
                        [](int32_t target) { return target >= 0; });
    if (options_["masked"]) learned[settings_["masked"].get<size_t>()] = 0;
    return learned;
  }
  std::vector<double> weights_of_answers(const std::vector<int64_t>& learned) const {
    const std::string word = options_["loss_type"];
    const auto loss = base::from_word<train::AnswerLoss>(word).value();
    return train::token_weights(loss,
                                {.learned = learned,
                                 .per_micro_batch = answers(),
                                 .max_completion_length = settings_["max_completion_length"]});
  }
  std::vector<float> weights_of_tokens(const std::vector<int64_t>& learned) const {
    const std::vector<double> of_answers = weights_of_answers(learned);
    const auto targets = integers(golden_, "targets");
    const auto bounds = integers(golden_, "bounds");
    std::vector<float> weights(targets.size());
    for (size_t i = 0; i < learned.size(); ++i)
      for (auto t = static_cast<size_t>(bounds[2 * i]); t < static_cast<size_t>(bounds[2 * i + 1]);
           ++t)
        if (learned[i] > 0 && targets[t] >= 0) weights[t] = static_cast<float>(of_answers[i]);
    return weights;
  }

  // The rows of a micro-batch; bounds of the golden count tokens of all rows.
  void run(ProgramName program, int64_t micro, const std::vector<float>& weights) {
    const auto part = [&](const auto& all) {
      const auto parts = static_cast<int64_t>(all.size()) / loaded_->spec().accumulation;
      return std::decay_t<decltype(all)>(all.begin() + micro * parts,
                                         all.begin() + (micro + 1) * parts);
    };
    std::vector<int32_t> bounds = part(integers(golden_, "bounds"));
    for (int32_t& bound : bounds)
      bound -= static_cast<int32_t>(micro * loaded_->spec().micro_tokens());
    loaded_->put_batch(program, part(integers(golden_, "ids")), part(integers(golden_, "targets")),
                       bounds, part(integers(golden_, "positions")));
    const auto give = [&](std::string_view name, const std::vector<float>& values) {
      const backends::Buffer& given = executor().tensor(program, program::host_name(name));
      ASSERT_EQ(given.elements(), static_cast<int64_t>(values.size())) << name;
      std::memcpy(given.data, values.data(), values.size() * sizeof(float));
    };
    give(program::kAdvantagesName, part(floats(golden_, "advantages")));
    give(program::kTokenWeightsName, part(weights));
    if (!loaded_->spec().objective.on_policy) give(program::kOldName, part(floats(golden_, "old")));
    if (loaded_->spec().objective.reference == ReferenceModel::adapter_off)
      executor().run(ProgramName::reference);
    executor().run(program);
  }

  nlohmann::json options_;
  nlohmann::json settings_ = parsed("settings.json");
  formats::SafetensorsFile golden_;
  std::optional<LoadedCase> loaded_;
};

class RewardedAnswers : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  }
};

// Each loss_type, level of the ratio, cap and reference, with and without answers that are masked,
// at two temperatures, and of answers that the step's own weights have made.
TEST_P(RewardedAnswers, LossNormAndMeasuresAreTrls) {
  const nlohmann::json cases = parsed("cases.json");
  ASSERT_EQ(cases.size(), 34U);
  for (const nlohmann::json& options : cases) {
    SCOPED_TRACE(options.dump());
    AnswersCase answers(GetParam(), options);
    answers.run_step();
    answers.expect_golden(1e-5);
  }
}

TEST_P(RewardedAnswers, EveryGradientIsTrls) {
  const size_t with_gradients = parsed("settings.json")["with_gradients"];
  AnswersCase answers(GetParam(), parsed("cases.json")[with_gradients]);
  // What a device recorded of the programs gives the same when it is repeated.
  for (int step = 0; step < 2; ++step) {
    answers.run_step();
    answers.expect_gradients(1e-5);
  }
}

// A row in each micro-batch. The mean over a micro-batch's tokens (bnpo) is another loss there.
TEST_P(RewardedAnswers, MicroBatchesAddUp) {
  for (const nlohmann::json& options : parsed("cases.json")) {
    if (options["beta"] == 0.0 || options["delta"] == 0.0) continue;
    SCOPED_TRACE(options.dump());
    AnswersCase answers(GetParam(), options, 3);
    answers.run_step();
    answers.expect_golden(1e-5);
  }
}

// As a run packs them, into as many micro-batches as they fill.
TEST_P(RewardedAnswers, PackedAnswersAreLearnedAsTrlsAre) {
  for (const nlohmann::json& options : parsed("cases.json"))
    for (const int64_t accumulation : {1, 3}) {
      SCOPED_TRACE(options.dump());
      AnswersCase answers(GetParam(), options, accumulation, Rows::packed);
      answers.run_packed_step();
      answers.expect_golden(1e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(All, RewardedAnswers, ::testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::test
