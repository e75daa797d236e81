// Several evaluation sets with names: what each loses is what it loses alone, all together are the
// mean over their targets, and a run that goes on evaluates as one that was not interrupted.
#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../cli/tiny_model.h"
#include "backends/backend.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "plan/spec/spec.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/checkpoint.h"
#include "train/batch_loader.h"
#include "train/document_steps.h"
#include "train/evaluation_names.h"
#include "train/kept_reference.h"
#include "train/trainer.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kAnswers[] = {
    "{\"prompt\": \"Say a.\", \"completion\": \"a\"}\n"
    "{\"prompt\": \"Say b.\", \"completion\": \"b, and then some more of it\"}\n",
    "{\"prompt\": \"Cold?\", \"completion\": \"icy\"}\n"
    "{\"prompt\": \"What do bees make?\", \"completion\": \"honey\"}\n"
    "{\"prompt\": \"A river is\", \"completion\": \"a stream of water\"}\n",
    "{\"prompt\": \"x\", \"completion\": \"y\"}\n"};
constexpr const char* kPairs[] = {
    R"({"prompt": "Say a.", "chosen": " a", "rejected": " never, that is too much"}
{"prompt": "Name a tree, please.", "chosen": " oak", "rejected": " red"}
)",
    R"({"prompt": "Cold?", "chosen": " icy, and then some", "rejected": " no"}
{"prompt": "What do bees make?", "chosen": " honey", "rejected": " a noise"}
{"prompt": "x", "chosen": "y", "rejected": "zz"}
)",
    R"({"prompt": "A river", "chosen": " of water", "rejected": " of stone"}
)"};

// A job of a few thousand weights with as many evaluation sets as it is given files.
class EvaluatedJob {
 public:
  EvaluatedJob(const testing::TemporaryFolder& folder, std::string_view more,
               const std::vector<std::string>& files)
      : recipe_(recipe_of(folder, more, files.front())),
        model_(models::find_model(recipe_.model)),
        backend_(backends::open_backend("cpu", {.threads = 1})),
        spec_(plan::training_spec(recipe_, model_.config, *backend_)),
        data_(load_data(recipe_, model_, *backend_)) {
    for (size_t i = 1; i < files.size(); ++i) {
      RunData other = load_data(recipe_of(folder, more, files[i]), model_, *backend_);
      data_.evaluation.push_back(std::move(other.evaluation.front()));
      data_.documents.files.push_back(other.documents.files.back());
    }
    data_.documents.shape_rows(spec_);
    data_.make_rows(spec_);
    job_ = plan::plan_training(spec_, *backend_);
    executor_.emplace(job_, *backend_);
    runtime::random_weights(model_.config, *executor_);
    runtime::initialise_adapter(*executor_);
  }

  Evaluation evaluation_of(size_t first, size_t count) {
    return {std::span(data_.evaluation).subspan(first, count), spec_, *executor_, nullptr};
  }
  void prepare() { executor_->run(program::ProgramName::prepare); }

  const formats::Recipe& recipe() const { return recipe_; }
  const models::ModelSource& model() const { return model_; }
  const plan::TrainingSpec& spec() const { return spec_; }
  const plan::Job& job() const { return job_; }
  RunData& data() { return data_; }
  runtime::Executor& executor() { return *executor_; }

  // Trains to step `steps` of four; each is evaluated.
  void train(runtime::TrainerState& state, int64_t steps, const std::filesystem::path& folder) {
    runtime::CheckpointOptions checkpoint;
    checkpoint.output_dir = folder;
    checkpoint.model = model_;
    checkpoint.adapter = runtime::adapter_config(recipe_, model_.config, job_);
    const TrainerOptions options{.total_steps = steps,
                                 .eval_steps = 1,
                                 .schedule = {.learning_rate = 1e-2, .total_steps = 4},
                                 .checkpoint = checkpoint};
    BatchLoader loader(data_.training->rows, spec_.rows, spec_.row_tokens, *executor_,
                       data_.training->reference);
    Evaluation evaluation(data_.evaluation, spec_, *executor_, nullptr);
    auto metrics = formats::JsonLines::create(folder / "metrics.jsonl");
    DocumentSteps batches(loader, {.rows = spec_.rows, .accumulation = spec_.accumulation});
    Trainer trainer(options, *executor_, batches, &evaluation, &metrics, nullptr);
    state.max_steps = 4;
    state.rows_per_step = spec_.rows * spec_.accumulation;
    const std::atomic<int> no_signal{0};
    const TrainerOutcome outcome = trainer.run(state, no_signal);
    EXPECT_EQ(outcome.eval_loss, evaluation.loss());
  }

 private:
  static formats::Recipe recipe_of(const testing::TemporaryFolder& folder, std::string_view more,
                                   const std::string& file) {
    Names words{"model=" + (folder / "shape").string(),
                "data=" + (folder / "train.jsonl").string(),
                "eval_data=" + (folder / file).string(),
                "init=random",
                "method=lora",
                "max_length=64",
                "compute_dtype=fp32",
                "lr_scheduler_type=constant",
                "per_device_train_batch_size=2"};
    std::istringstream stream{std::string(more)};
    for (std::string word; stream >> word;) words.push_back(word);
    return formats::load_recipe("", words);
  }

  formats::Recipe recipe_;
  models::ModelSource model_;
  std::unique_ptr<backends::Backend> backend_;
  plan::TrainingSpec spec_;
  RunData data_;
  plan::Job job_;
  std::optional<runtime::Executor> executor_;
};

// Records for next_token or for dpo.
testing::TemporaryFolder& write_sets(testing::TemporaryFolder& folder, bool are_pairs) {
  const auto& sets = are_pairs ? kPairs : kAnswers;
  cli::write_tiny_shape(folder, "shape");
  folder.write("train.jsonl", std::string(sets[0]) + sets[1]);
  folder.write("first.jsonl", sets[0]);
  folder.write("second.jsonl", sets[1]);
  folder.write("third.jsonl", sets[2]);
  return folder;
}

// The losses of each set and of all, which must be those in the line of metrics.
std::vector<double> losses_of(EvaluatedJob& job, const Json& line) {
  std::vector<double> losses;
  for (size_t set = 0; set < job.data().evaluation.size(); ++set) {
    Evaluation alone = job.evaluation_of(set, 1);
    alone.run();
    losses.push_back(alone.loss());
    const std::string key = evaluation_key(job.data().evaluation[set].name, "loss");
    EXPECT_EQ(line.at(key).get<double>(), alone.loss()) << key;
    EXPECT_EQ(Json::parse(alone.json(3)).at("eval_loss").get<double>(), alone.loss());
  }
  return losses;
}

TEST(EvaluationSets, LoseWhatEachLosesAloneAndTogetherTheMeanOverTargets) {
  testing::TemporaryFolder folder;
  EvaluatedJob job(write_sets(folder, false), "", {"first.jsonl", "second.jsonl", "third.jsonl"});
  job.prepare();
  Evaluation all = job.evaluation_of(0, 3);
  all.run();
  const Json line = Json::parse(all.json(3));
  const std::vector<double> losses = losses_of(job, line);
  double sum = 0;
  double targets = 0;
  for (size_t set = 0; set < 3; ++set) {
    text::RowSource& rows = job.data().evaluation[set].source->rows;
    const auto count = static_cast<double>(rows.trained_tokens(0, rows.rows_until(1)));
    sum += count * losses[set];
    targets += count;
  }
  EXPECT_NEAR(all.loss(), sum / targets, 1e-12);
  EXPECT_EQ(line.at("eval_loss").get<double>(), all.loss());
  EXPECT_EQ(line.at("step"), 3);
  EXPECT_EQ(line.size(), 12U) << line.dump();
  EXPECT_EQ(line.at("eval_perplexity").get<double>(), std::exp(all.loss()));
  EXPECT_EQ(line.at("eval_second_perplexity").get<double>(), std::exp(losses[1]));
  EXPECT_GT(std::abs(losses[0] - losses[1]), 1e-4);
  EXPECT_NE(all.text(3).find("eval_second_loss"), std::string::npos) << all.text(3);
  // One set has no name there, as before.
  Evaluation one = job.evaluation_of(1, 1);
  one.run();
  EXPECT_EQ(one.text(3).find("second"), std::string::npos);
  EXPECT_EQ(Json::parse(one.json(3)).size(), 4U);
  EXPECT_EQ(one.metric("eval_perplexity"), std::exp(losses[1]));
  EXPECT_TRUE(std::isnan(one.metric("eval_second_loss")));
  EXPECT_EQ(job.data().facts().rows.evaluation, (std::vector<int64_t>{1, 1, 1}));
}

// All three in one file lose the same.
// What a recipe may name as its metric is what metrics.jsonl has.
TEST(EvaluationSets, HaveTheKeysThatAreTold) {
  testing::TemporaryFolder folder;
  EvaluatedJob job(write_sets(folder, false), "", {"first.jsonl", "second.jsonl"});
  job.prepare();
  for (const size_t count : {1, 2}) {
    Evaluation sets = job.evaluation_of(0, count);
    sets.run();
    Names names;
    for (size_t set = 0; set < count; ++set) names.push_back(job.data().evaluation[set].name);
    Names keys;
    for (const EvaluationMetric& metric : sets.metrics()) keys.push_back(metric.key);
    const std::vector<std::string_view> measures{"accuracy"};
    EXPECT_EQ(keys, evaluation_keys(names, measures_of_all(methods::kNextToken), measures));
  }
}

TEST(EvaluationSets, TogetherAreOneSetOfAllRecords) {
  testing::TemporaryFolder folder;
  write_sets(folder, false);
  folder.write("all.jsonl", std::string(kAnswers[0]) + kAnswers[1] + kAnswers[2]);
  EvaluatedJob job(folder, "", {"first.jsonl", "second.jsonl", "third.jsonl", "all.jsonl"});
  job.prepare();
  Evaluation sets = job.evaluation_of(0, 3);
  Evaluation all = job.evaluation_of(3, 1);
  sets.run();
  all.run();
  EXPECT_NEAR(sets.loss(), all.loss(), 1e-6);
}

// The share of a set's targets that are the likeliest tokens: what tells them from others is tested
// with the losses (tests/backends/cases_loss.cpp, tests/train/goldens_test.cpp).
TEST(EvaluationSets, HaveTheAccuracyOfTheirTargets) {
  testing::TemporaryFolder folder;
  write_sets(folder, false);
  folder.write("all.jsonl", std::string(kAnswers[0]) + kAnswers[1] + kAnswers[2]);
  EvaluatedJob job(folder, "", {"first.jsonl", "second.jsonl", "third.jsonl", "all.jsonl"});
  job.prepare();
  const backends::Buffer& weights = job.executor().tensor("lm_head.weight");
  ASSERT_EQ(weights.dtype, base::DType::f32);
  const auto targets_of = [&](size_t set) {
    text::RowSource& rows = job.data().evaluation[set].source->rows;
    return static_cast<double>(rows.trained_tokens(0, rows.rows_until(1)));
  };
  const auto hits_of = [&](const Evaluation& evaluation, const std::string& key, size_t set) {
    const double hits = evaluation.metric(key) * targets_of(set);
    EXPECT_NEAR(hits, std::round(hits), 1e-9) << key;
    return std::round(hits);
  };
  Evaluation sets = job.evaluation_of(0, 3);
  Evaluation all = job.evaluation_of(3, 1);
  const auto expect_sums = [&] {
    sets.run();
    all.run();
    double sum = 0;
    for (size_t set = 0; set < 3; ++set)
      sum += hits_of(sets, evaluation_key(job.data().evaluation[set].name, "accuracy"), set);
    EXPECT_EQ(sum, hits_of(all, "eval_accuracy", 3));
    EXPECT_TRUE(std::isnan(sets.metric("eval_accuracy"))) << "each set has its own";
    return sum;
  };
  EXPECT_LT(expect_sums(), targets_of(3));
  // All tokens are as likely, and none is likelier than the target.
  std::fill_n(weights.as<float>(), weights.elements(), 0.0F);
  EXPECT_EQ(expect_sums(), targets_of(3));
}

TEST(EvaluationSets, OfPairsHaveMeasuresOfTheirOwn) {
  testing::TemporaryFolder folder;
  write_sets(folder, true);
  folder.write("all.jsonl", std::string(kPairs[0]) + kPairs[1] + kPairs[2]);
  EvaluatedJob job(folder, "objective=dpo beta=0.5 learning_rate=0.05 packing=false",
                   {"first.jsonl", "second.jsonl", "third.jsonl", "all.jsonl"});
  job.prepare();
  runtime::TrainerState state;
  std::filesystem::create_directory(folder / "run");
  job.train(state, 2, folder / "run");
  Evaluation sets = job.evaluation_of(0, 3);
  Evaluation all = job.evaluation_of(3, 1);
  sets.run();
  all.run();
  EXPECT_NEAR(sets.loss(), all.loss(), 1e-6);
  const Json line = Json::parse(sets.json(2));
  const std::vector<double> pairs{2, 3, 1};
  const Json whole = Json::parse(all.json(2));
  for (const char* measure : {"rewards/chosen", "rewards/margins", "logps/rejected"}) {
    double mean = 0;
    for (size_t set = 0; set < 3; ++set)
      mean += pairs[set] / 6 *
              line.at(evaluation_key(job.data().evaluation[set].name, measure)).get<double>();
    EXPECT_NEAR(mean, whole.at(std::string("eval_") + measure).get<double>(), 1e-5) << measure;
    EXPECT_FALSE(line.contains(std::string("eval_") + measure));
  }
  EXPECT_FALSE(line.contains("eval_perplexity")) << "the loss is not that of tokens";
  EXPECT_GT(std::abs(whole.at("eval_rewards/margins").get<double>()), 1e-4);
}

// JSON has no word for what is no number, and a run that goes on reads the file.
TEST(EvaluationSets, ALossThatIsNoNumberIsNullInMetrics) {
  testing::TemporaryFolder folder;
  EvaluatedJob job(write_sets(folder, false), "", {"first.jsonl", "second.jsonl"});
  job.prepare();
  const backends::Buffer& weights = job.executor().tensor("lm_head.weight");
  std::fill_n(weights.as<uint8_t>(), weights.bytes(), uint8_t{0xff});
  Evaluation sets = job.evaluation_of(0, 2);
  sets.run();
  const Json line = Json::parse(sets.json(1));
  EXPECT_TRUE(line.at("eval_loss").is_null());
  EXPECT_TRUE(line.at("eval_first_loss").is_null());
}

std::vector<Json> evaluations_in(const std::filesystem::path& folder) {
  std::vector<Json> lines;
  std::istringstream text(base::read_text_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);)
    if (const Json record = Json::parse(line); record.contains("eval_loss"))
      lines.push_back(record);
  return lines;
}

TEST(EvaluationSets, GoOnWithTheSameBits) {
  testing::TemporaryFolder folder;
  write_sets(folder, true);
  for (const char* name : {"whole", "parts", "rest"})
    std::filesystem::create_directory(folder / name);
  const std::string more = "objective=dpo precompute_ref_log_probs=true";
  const std::vector<std::string> files{"first.jsonl", "second.jsonl"};
  const auto run = [&](const char* name, int64_t steps, bool goes_on) {
    EvaluatedJob job(folder, more, files);
    make_reference({}, job.spec(), job.data(), job.executor());
    runtime::TrainerState state;
    if (goes_on)
      state = runtime::restore_checkpoint(folder / "parts/checkpoint-2", job.model().config,
                                          job.executor());
    job.prepare();
    job.train(state, steps, folder / name);
  };
  run("whole", 4, false);
  run("parts", 2, false);
  run("rest", 4, true);
  const std::vector<Json> whole = evaluations_in(folder / "whole");
  const std::vector<Json> rest = evaluations_in(folder / "rest");
  ASSERT_EQ(whole.size(), 4U);
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(whole[2], rest[0]);
  EXPECT_EQ(whole[3], rest[1]);
  EXPECT_TRUE(whole[3].contains("eval_second_rewards/margins")) << whole[3].dump();
  EXPECT_NE(whole[3]["eval_second_loss"], whole[3]["eval_first_loss"]);
}

TEST(EvaluationSets, KeepTheReferenceOfEach) {
  testing::TemporaryFolder folder;
  write_sets(folder, true);
  const std::string more = "objective=dpo precompute_ref_log_probs=true";
  EvaluatedJob job(folder, more, {"first.jsonl", "second.jsonl"});
  make_reference({}, job.spec(), job.data(), job.executor());
  std::filesystem::create_directories(folder / "run/checkpoint-2");
  save_reference(folder / "run" / RunFolder::kReference, job.data());
  EvaluatedJob again(folder, more, {"first.jsonl", "second.jsonl"});
  RunFolder run_folder;
  run_folder.checkpoint = folder / "run/checkpoint-2";
  EXPECT_FALSE(make_reference(run_folder, again.spec(), again.data(), again.executor()));
  for (size_t set = 0; set < 2; ++set) {
    const std::vector<float>& kept = again.data().evaluation[set].source->reference;
    EXPECT_EQ(kept, job.data().evaluation[set].source->reference);
    EXPECT_TRUE(std::ranges::none_of(kept, [](float value) { return value == 0; }));
  }
  // Of other sets they are made anew.
  EvaluatedJob swapped(folder, more, {"first.jsonl", "third.jsonl"});
  EXPECT_TRUE(make_reference(run_folder, swapped.spec(), swapped.data(), swapped.executor()));
}

// An epoch that takes a part of the documents leaves none without a reference.
TEST(EvaluationSets, AMixKeepsTheReferenceOfEveryDocument) {
  testing::TemporaryFolder folder;
  write_sets(folder, true);
  const std::string more = "objective=dpo precompute_ref_log_probs=true";
  EvaluatedJob plain(folder, more, {"first.jsonl"});
  make_reference({}, plain.spec(), plain.data(), plain.executor());
  EvaluatedJob mixed(folder, more, {"first.jsonl"});
  DataSource& training = *mixed.data().training;
  text::RowOptions options = training.rows.options();
  options.parts = {{2, 1}, {3, 5}};
  auto source = std::make_unique<DataSource>(std::move(training.dataset), options);
  const int64_t before = source->host_bytes();
  source->keep_reference();
  EXPECT_GT(source->host_bytes(), before + 10 * 4);
  mixed.data().training = std::move(source);
  EXPECT_EQ(mixed.data().facts().rows.training, plain.data().facts().rows.training);
  make_reference({}, mixed.spec(), mixed.data(), mixed.executor());
  EXPECT_EQ(mixed.data().training->reference, plain.data().training->reference);
}

TEST(EvaluationSets, RanksCompareTheDocumentsOfEach) {
  testing::TemporaryFolder folder;
  EvaluatedJob job(write_sets(folder, false), "", {"first.jsonl", "second.jsonl"});
  const std::vector<comm::NamedValue> values = job.data().evaluation_fingerprints();
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[1].name, "the evaluation data second");
  EXPECT_NE(values[0].value, values[1].value);
}

TEST(EvaluationNames, AreUniqueAndSafe) {
  const auto names = [](const Names& wanted) { return evaluation_names(wanted, {}); };
  EXPECT_EQ(names({"gsm8k", "mmlu"}), (Names{"gsm8k", "mmlu"}));
  EXPECT_EQ(names({"test", "test", "test"}), (Names{"test", "test_2", "test_3"}));
  EXPECT_EQ(names({"test_2", "test", "test"}), (Names{"test_2", "test", "test_3"}));
  EXPECT_EQ(names({"openai/gsm8k", "a \"b\"\n\\", ""}), (Names{"openai_gsm8k", "a__b___", "data"}));
  EXPECT_EQ(names({"v1.2-test", "Prüfung", "评估"}), (Names{"v1.2-test", "Prüfung", "评估"}));
  EXPECT_EQ(names({"a\xff"}), (Names{"a\xEF\xBF\xBD"}));
  EXPECT_EQ(names({"a b", "a/b"}), (Names{"a_b", "a_b_2"}));
}

// Of a set x, and of a set x_nll, eval_x_nll_loss would be two things.
TEST(EvaluationNames, HaveKeysOfTheirOwn) {
  const std::vector<std::string_view> measures{"nll_loss", "rewards/chosen"};
  EXPECT_EQ(evaluation_names(Names{"x", "x_nll"}, measures), (Names{"x", "x_nll_2"}));
  EXPECT_EQ(evaluation_names(Names{"x_nll", "x"}, measures), (Names{"x_nll", "x_2"}));
  EXPECT_EQ(evaluation_key("gsm8k", "rewards/chosen"), "eval_gsm8k_rewards/chosen");
}

}  // namespace
}  // namespace snug::train
