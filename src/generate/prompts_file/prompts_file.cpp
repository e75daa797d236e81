#include "generate/prompts_file/prompts_file.h"

#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/console.h"
#include "engine/engine.h"
#include "engine/questions/prompt.h"
#include "generate/folder_sampling.h"
#include "generate/prompts_file/answer_file.h"
#include "generate/prompts_file/answer_job.h"
#include "generate/prompts_file/answer_line.h"
#include "generate/prompts_file/answers_progress.h"
#include "generate/prompts_file/prompt_lines.h"
#include "generate/prompts_file/prompts_survey.h"
#include "generate/recipe_request.h"
#include "text/chat/folder_stop_ids.h"

namespace snug::generate {
namespace {

void check_keys(const formats::Recipe& recipe) {
  if (!recipe.prompt.empty() || !recipe.ids.empty())
    recipe.fail("prompts", fmt::format("is given next to {}; give one of the two",
                                       recipe.prompt.empty() ? "ids" : "prompt"));
  std::error_code error;
  if (!recipe.output.empty() && std::filesystem::equivalent(recipe.prompts, recipe.output, error))
    recipe.fail("output", "is the file of the prompts; give another one");
}

// Where answers go: a file, or standard output.
class AnswerOutput {
 public:
  AnswerOutput(const formats::Recipe& recipe, const models::ModelSource& model,
               const PromptsSurvey& survey) {
    if (!recipe.output.empty()) file_.emplace(recipe.output, answer_job(recipe, model, survey));
  }
  int64_t lines() const { return file_ ? file_->lines() : printed_; }
  void write(const std::string& line) {
    if (file_) return file_->write(line);
    ++printed_;
    base::print("{}\n", line);
    base::flush_output();
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::optional<AnswerFile> file_;
  int64_t printed_ = 0;
};

// Lines that were read and not written yet, in order: the first of them is next. Others may be
// whole before it.
class AnswerRun {
 public:
  AnswerRun(engine::Engine& engine, const text::Tokenizer* tokenizer, PromptLines& lines,
            AnswerOutput& output, int64_t total)
      : engine_(engine),
        tokenizer_(tokenizer),
        lines_(lines),
        output_(output),
        progress_(output.lines(), total) {}

  void run(int64_t batch) {
    lines_.skip(output_.lines());
    for (bool may_follow = true; may_follow || !open_.empty();) {
      // One batch waits next to the one that runs, so that prompts are held of no more lines.
      while (may_follow && engine_.waiting() < batch && std::ssize(open_) < kMostOpen)
        may_follow = take_line();
      write_whole();
      if (!open_.empty()) engine_.step();
      write_whole();
      progress_.show(output_.lines());
    }
    output_.finish();
    progress_.finish(output_.lines(), errors_);
  }

  const AnswersProgress& progress() const { return progress_; }
  int64_t errors() const { return errors_; }

 private:
  // Answers that are whole wait for those before them; so many of all are held.
  static constexpr int64_t kMostOpen = 4096;

  struct OpenLine {
    LineAnswer answer;
    bool is_whole = false;
  };

  bool take_line() {
    PromptLine line;
    if (!lines_.next(line)) return false;
    OpenLine& open = open_.emplace_back();
    open.answer.index = line.index;
    open.answer.passed_on = std::move(line.asked.passed_on);
    open.answer.wants_ids = line.asked.wants_ids;
    open.answer.prompt_tokens = std::ssize(line.asked.request.prompt);
    if (line.error) {
      fail(open, line.error->what());
      return true;
    }
    try {
      engine_.submit(std::move(line.asked.request), [this, &open](const auto& event) {
        add_event(open.answer, event);
        progress_.add_tokens(event.id ? 1 : 0);
        open.is_whole = event.finish.has_value();
      });
    } catch (const base::UserError& error) {
      fail(open, error.what());
    }
    return true;
  }

  void fail(OpenLine& open, const std::string& why) {
    open.answer.error = why;
    open.is_whole = true;
    ++errors_;
  }

  void write_whole() {
    while (!open_.empty() && open_.front().is_whole) {
      output_.write(answer_line(open_.front().answer, tokenizer_));
      open_.pop_front();
    }
  }

  engine::Engine& engine_;
  const text::Tokenizer* tokenizer_;
  PromptLines& lines_;
  AnswerOutput& output_;
  AnswersProgress progress_;
  std::deque<OpenLine> open_;
  int64_t errors_ = 0;
};

// What this process did of a job that has so many answers now.
nlohmann::json answers_json(int64_t lines, int64_t errors, int64_t tokens, double seconds) {
  return {{"answers", lines},
          {"errors", errors},
          {"new_tokens", tokens},
          {"seconds", seconds},
          {"tokens_per_second", seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0},
          {"device", nullptr}};
}

}  // namespace

int answer_prompts(const formats::Recipe& given, bool json) {
  check_keys(given);
  const models::ModelSource model = runtime::open_model(given);
  const formats::Recipe recipe = with_folder_sampling(given, model);
  std::optional<text::Tokenizer> tokenizer;
  if (has_tokenizer(model)) tokenizer.emplace(engine::open_tokenizer(recipe, model));
  const text::Tokenizer* const texts = tokenizer ? &*tokenizer : nullptr;
  if (!recipe.stop.empty() && texts == nullptr)
    recipe.fail("stop", "is compared with text, but the model folder has no tokenizer");
  LineReader reader(recipe, model, texts);
  const PromptsSurvey survey =
      survey_prompts(recipe, model.config, PromptLines(recipe.prompts, reader));
  for (const std::string& note : reader.notes(recipe.prompts)) base::say("{}", note);
  if (survey.bad.count() > 0)
    base::say("WARNING: {}: {} of {} lines cannot be asked:\n{}", recipe.prompts,
              survey.bad.count(), survey.lines, survey.bad.list());
  if (const std::string ignored = text::ignored_stop_ids(model.folder, recipe.adapter);
      !ignored.empty())
    base::say("{}", ignored);
  AnswerOutput output(recipe, model, survey);
  if (output.lines() >= survey.lines) {
    base::say("{} has all {} answers already", recipe.output, survey.lines);
    if (json) base::print("{}\n", answers_json(survey.lines, 0, 0, 0).dump());
    return 0;
  }
  engine::Inference inference(recipe, model, survey.shape);
  engine::Engine engine(inference, texts);
  PromptLines lines(recipe.prompts, reader);
  AnswerRun run(engine, texts, lines, output, survey.lines);
  run.run(recipe.batch);
  if (!json || recipe.output.empty()) return 0;
  nlohmann::json result =
      answers_json(output.lines(), run.errors(), run.progress().tokens(), run.progress().seconds());
  result["device"] = inference.device_json();
  base::print("{}\n", result.dump());
  return 0;
}

}  // namespace snug::generate
