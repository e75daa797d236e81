// What a run does before anything large is allocated: it reads the data, plans, refuses what does
// not fit, and checks that what it goes on from is its own.
#include <fmt/format.h>

#include <utility>

#include "base/console.h"
#include "models/config/config.h"
#include "plan/spec/resolve.h"
#include "runtime/execution/rehearsal.h"
#include "runtime/process/process_memory.h"
#include "runtime/saving/adapter.h"
#include "train/asked_questions.h"
#include "train/audit.h"
#include "train/data_sources.h"
#include "train/evaluation.h"
#include "train/evaluation_names.h"
#include "train/files_fingerprint.h"
#include "train/resume.h"
#include "train/rewards/prompt_documents.h"
#include "train/run/run.h"
#include "train/run_identity.h"

namespace snug::train {

void Run::read_data() {
  ranks_.on_all([&] { data_ = load_data(recipe_, model_, session_.backend()); });
  const bool has_prompts = !data_.prompts.empty();
  for (const text::LoadedSource& source : data_.training->dataset.sources)
    base::say("{}",
              has_prompts ? describe_prompts(source) : text::describe(source.audit, source.name));
  const std::string parts =
      describe_parts(data_.training->rows.options().parts, data_.training->dataset);
  if (!parts.empty()) base::say("{}", parts);
  for (const EvaluationSet& set : data_.evaluation)
    for (const text::LoadedSource& source : set.source->dataset.sources)
      base::say("{}",
                has_prompts ? describe_prompts(source) : text::describe(source.audit, source.name));
  runtime::release_freed_memory();
  if (ranks_.is_first() && !has_prompts)
    base::say("{}", short_text(audit({recipe_, recipe_, model_, data_}, text::kQuickAudit)));
  // What answers are made of texts by stays.
  if (recipe_.eval_generate == 0 && !has_prompts) data_.tokenizer.reset();
  runtime::release_freed_memory();
  measured_.reading_bytes = runtime::process_memory().resident_peak_bytes;
}

void Run::make_plan() {
  // Ranks that chose by memory of their own would not run the same program.
  const int64_t capacity = ranks_.least(session_.backend().capacity_bytes(program::Space::device));
  const auto measure = [&](const plan::Job& job) {
    return runtime::rehearse(job, session_.backend());
  };
  if (recipe_.max_length == 0)
    recipe_ =
        with_settled_length(folder_, {recipe_, model_, session_.backend(), {}, false, capacity},
                            data_, measure, ranks_);
  length_ = run_length(recipe_, data_.training->rows);
  const plan::TrainingInputs inputs{recipe_,       model_, session_.backend(),
                                    data_.facts(), false,  capacity};
  if (recipe_.per_device_train_batch_size == 0)
    recipe_ = with_settled_rows(folder_, inputs, measure, ranks_);
  plan_as_first(inputs, measure);
  refuse_misfit();
  if (is_adapted() && !recipe_.adapter.empty())
    runtime::check_adapter(recipe_.adapter, runtime::to_train_on(*planned_), planned_->job);
  base::say("{}\n{}", plan::parameter_line(planned_->document), plan::summary(planned_->document));
  for (const std::string& notice : planned_->notices()) base::say("{}", notice);
}

void Run::plan_as_first(plan::TrainingInputs inputs, const plan::MeasureProcess& measure) {
  const std::string chosen = ranks_.decided_by_first([&] {
    planned_.emplace(plan::assemble_training(inputs, measure));
    return plan::chosen_text(planned_->chosen());
  });
  if (planned_) return;
  inputs.chosen = plan::chosen_from_text(chosen);
  planned_.emplace(plan::assemble_training(inputs, measure));
}

void Run::refuse_misfit() const {
  ranks_.on_all([&] {
    const plan::Verdict verdict = planned_->verdict();
    if (!verdict.fits) plan::refuse(recipe_, verdict);
  });
}

BestRule Run::best_rule() const {
  std::vector<std::string> sets;
  for (const EvaluationSet& set : data_.evaluation) sets.push_back(set.name);
  const std::vector<std::string> measures = evaluation_measures(
      recipe_, data_.rewards ? data_.rewards->names() : std::vector<std::string>());
  return best_rule_of(
      recipe_, evaluation_keys(sets, measures_of_all(methods::objective_of(recipe_.objective)),
                               std::vector<std::string_view>(measures.begin(), measures.end())));
}

void Run::identify() {
  best_rule_ = best_rule();
  take_rule(best_rule_, state_.history);
  state_.seed = recipe_.seed;
  state_.max_steps = length_.steps;
  state_.identity = identity_of(recipe_, model_, data_.training->rows);
  state_.identity.fixed["compute_dtype"] = planned_->document.compute_dtype;
  state_.identity.free["backend"] = session_.backend().name();
  state_.identity.free["library"] = session_.backend().library_versions();
  ranks_.require_same(agreed_values());
  state_.rows_per_step = step_rows(recipe_).step;
  if (folder_.checkpoint) check_checkpoint(folder_, recipe_, state_.identity, data_.training->rows);
}

std::vector<comm::NamedValue> Run::agreed_values() const {
  std::vector<comm::NamedValue> values;
  if (ranks_.size() > 1 && recipe_.init != formats::Init::random)
    values.push_back({"the files of the model", files_fingerprint(model_.folder, "model")});
  if (ranks_.size() > 1 && is_adapted() && !recipe_.adapter.empty())
    values.push_back({"the adapter", files_fingerprint(recipe_.adapter, "adapter_model")});
  for (comm::NamedValue& value : data_.evaluation_fingerprints())
    values.push_back(std::move(value));
  for (const auto& [name, value] : state_.identity.fixed) values.push_back({name, value});
  for (const auto& [name, value] : state_.identity.free) values.push_back({name, value});
  return values;
}

}  // namespace snug::train
