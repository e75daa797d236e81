// On a device that works by itself a step's loss is read while the next step runs: the numbers are
// the same, and a step whose numbers are not finite stops the run under its own number. On the
// emulated device, which does nothing before somebody waits for it.
#include <gtest/gtest.h>

#include <limits>

#include "../base/temporary_folder.h"
#include "backends/backend.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "plan/spec/spec.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "train/batch_loader.h"
#include "train/data.h"
#include "train/document_steps.h"
#include "train/trainer.h"

namespace snug::train {
namespace {

constexpr int64_t kSteps = 4;

class EmulatedRun {
 public:
  EmulatedRun()
      : recipe_(formats::load_recipe(
            "", std::vector<std::string>{"model=examples/wordnet",
                                         "data=examples/wordnet/train.jsonl", "init=random",
                                         "max_length=64", "method=lora", "max_steps=4"})),
        model_(models::find_model(recipe_.model)),
        backend_(backends::open_backend("cuda", {})),
        spec_(plan::training_spec(recipe_, model_.config, *backend_)),
        data_(load_data(recipe_, model_, *backend_)),
        job_(plan_job()),
        executor_(job_, *backend_),
        options_{.total_steps = kSteps,
                 .schedule = {.learning_rate = 1e-2, .total_steps = kSteps},
                 .checkpoint = {}},
        loader_(data_.training->rows, spec_.rows, spec_.row_tokens, executor_),
        metrics_(formats::JsonLines::create(folder_ / "metrics.jsonl")),
        progress_(0, kSteps),
        steps_(loader_, {.rows = spec_.rows, .accumulation = spec_.accumulation}),
        trainer_(options_, executor_, steps_, nullptr, &metrics_, &progress_) {
    runtime::random_weights(model_.config, executor_);
    runtime::initialise_adapter(executor_);
    executor_.run(program::ProgramName::prepare);
  }

  Trainer& trainer() { return trainer_; }
  runtime::Executor& executor() { return executor_; }
  const plan::Job& job() const { return job_; }
  runtime::TrainerState state;

  // Of the lines so far, without times.
  std::vector<std::string> losses() {
    metrics_.sync();
    std::vector<std::string> found;
    const std::string text = base::read_text_file(folder_ / "metrics.jsonl");
    for (size_t at = text.find("\"loss\":"); at != std::string::npos;
         at = text.find("\"loss\":", at + 1))
      found.push_back(text.substr(at, text.find(',', at) - at));
    return found;
  }

 private:
  plan::Job plan_job() {
    data_.documents.shape_rows(spec_);
    return plan::plan_training(spec_, *backend_);
  }

  testing::TemporaryFolder folder_;
  formats::Recipe recipe_;
  models::ModelSource model_;
  std::unique_ptr<backends::Backend> backend_;
  plan::TrainingSpec spec_;
  RunData data_;
  plan::Job job_;
  runtime::Executor executor_;
  TrainerOptions options_;
  BatchLoader loader_;
  formats::JsonLines metrics_;
  Progress progress_;
  DocumentSteps steps_;
  Trainer trainer_;
};

const std::atomic<int> kNoSignal{0};

TEST(LateResults, AreThoseOfAStepThatIsAwaited) {
  EmulatedRun late;
  EmulatedRun awaited;
  for (int64_t step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(late.trainer().begin_step(late.state, kNoSignal));
    EXPECT_FALSE(late.executor().has_results()) << "the device finished step " << step;
    EXPECT_EQ(late.state.step, step - 1);
    ASSERT_TRUE(awaited.trainer().begin_step(awaited.state, kNoSignal));
    awaited.trainer().finish_step(awaited.state);
    EXPECT_EQ(awaited.state.step, step);
  }
  late.trainer().finish_step(late.state);
  EXPECT_EQ(late.state.step, kSteps);
  EXPECT_EQ(late.state.rows_consumed, awaited.state.rows_consumed);
  ASSERT_EQ(late.losses().size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(late.losses(), awaited.losses());
}

TEST(LateResults, AStepThatIsNotFiniteIsNamedBeforeTheNextUpdate) {
  EmulatedRun run;
  ASSERT_TRUE(run.trainer().begin_step(run.state, kNoSignal));
  ASSERT_TRUE(run.trainer().begin_step(run.state, kNoSignal));
  const std::string& name = run.job().trainables.front().name;
  const backends::Buffer& master = run.executor().tensor(program::master_name(name));
  // After step 2: step 3 reads its values, step 4 finds out.
  const std::vector<float> infinities(static_cast<size_t>(master.elements()),
                                      std::numeric_limits<float>::infinity());
  run.executor().backend().copy(master.data, infinities.data(), master.bytes());
  run.executor().run(program::ProgramName::prepare);
  ASSERT_TRUE(run.trainer().begin_step(run.state, kNoSignal));
  try {
    run.trainer().begin_step(run.state, kNoSignal);
    FAIL() << "step 3 was taken for finite";
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("step 3: "), 0U) << error.what();
  }
  EXPECT_EQ(run.state.step, 2);
}

}  // namespace
}  // namespace snug::train
