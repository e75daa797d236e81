#include "train/resume.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "formats/folder/checksums.h"
#include "methods/objective.h"
#include "plan/choice/choose_length.h"
#include "plan/choice/choose_rows.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/checkpoint_folders.h"
#include "train/run_identity.h"
#include "train/run_length.h"

namespace snug::train {
namespace {

using runtime::TrainerState;

// What the data says of the numbers that a state may have.
void check_position(const TrainerState& state, const formats::Recipe& recipe, text::RowSource& rows,
                    const std::string& checkpoint) {
  const auto fail = [&](const std::string& what) {
    base::throw_user_error(
        "{}: its trainer_state.json says {}, which no run over this data does; resume from another "
        "checkpoint",
        checkpoint, what);
  };
  const auto rows_per_epoch = static_cast<double>(rows.rows_until(1) * step_rows(recipe).uses);
  if (state.epoch != static_cast<double>(state.rows_consumed) / rows_per_epoch)
    fail(fmt::format("epoch = {} after {} rows of {} an epoch", state.epoch, state.rows_consumed,
                     rows_per_epoch));
  if (methods::objective_of(recipe.objective).makes_answers) return;  // of any length
  const int64_t row_tokens = rows.options().max_length.sum();
  const auto most_tokens =
      static_cast<double>(state.rows_consumed) * static_cast<double>(row_tokens);
  if (static_cast<double>(state.total_tokens) > most_tokens)
    fail(fmt::format("total_tokens = {} in {} rows of {} tokens", state.total_tokens,
                     state.rows_consumed, row_tokens));
}

std::optional<runtime::CheckpointFolder> newest_before(const std::filesystem::path& output_dir,
                                                       int64_t step) {
  std::optional<runtime::CheckpointFolder> newest;
  for (const auto& checkpoint : runtime::list_checkpoints(output_dir).complete)
    if (checkpoint.step < step && !checkpoint.only_model) newest = checkpoint;
  return newest;
}

// Rows of a micro-batch of the run that made the checkpoint, if its steps have as many rows.
std::optional<int64_t> earlier_rows(const RunFolder& folder, const formats::Recipe& recipe) {
  if (!folder.checkpoint) return std::nullopt;
  const auto identity = runtime::read_checkpoint_state(*folder.checkpoint).identity.free;
  const auto count_of = [&](const char* key) {
    const auto found = identity.find(key);
    return found == identity.end() ? 0 : std::atoll(found->second.c_str());
  };
  const int64_t rows = count_of("per_device_train_batch_size");
  if (rows * count_of("gradient_accumulation_steps") != recipe.gradient_accumulation_steps)
    return std::nullopt;
  return rows;
}

// Rows of the run that made the checkpoint, in longest documents. Nothing where they are of no
// length that this recipe could take.
std::optional<int64_t> earlier_times(const RunFolder& folder, const plan::TrainingInputs& inputs,
                                     int64_t longest) {
  if (!folder.checkpoint) return std::nullopt;
  const auto identity = runtime::read_checkpoint_state(*folder.checkpoint).identity.fixed;
  const auto found = identity.find("max_length");
  const int64_t tokens = found == identity.end() ? 0 : std::atoll(found->second.c_str());
  const int64_t times = tokens / longest;
  if (times < 1 || times * longest != tokens || tokens > plan::most_tokens(inputs.model.config) ||
      inputs.recipe.gradient_accumulation_steps % times != 0)
    return std::nullopt;
  return times;
}

// Rows of other data would be of other lengths.
void require_same_data(const RunData& data, const runtime::Ranks& ranks) {
  std::vector<comm::NamedValue> values{
      {"the data", data.training->dataset.documents.fingerprint()}};
  for (comm::NamedValue& value : data.evaluation_fingerprints()) values.push_back(std::move(value));
  ranks.require_same(values);
}

}  // namespace

formats::Recipe with_settled_length(const RunFolder& folder, const plan::TrainingInputs& inputs,
                                    RunData& data, const plan::MeasureProcess& measure,
                                    const runtime::Ranks& ranks) {
  require_same_data(data, ranks);
  const int64_t longest = plan::of_max_length(data.documents.shortest_rows());
  const std::optional<int64_t> earlier = earlier_times(folder, inputs, longest);
  const std::string times = ranks.decided_by_first(
      [&] { return std::to_string(earlier ? *earlier : best_times(inputs, data, measure)); });
  return with_length_of_data(inputs, data, std::stoll(times), earlier ? ", as the run began" : "");
}

formats::Recipe with_settled_rows(const RunFolder& folder, const plan::TrainingInputs& inputs,
                                  const plan::MeasureProcess& measure,
                                  const runtime::Ranks& ranks) {
  const std::optional<int64_t> earlier = earlier_rows(folder, inputs.recipe);
  const std::string rows = ranks.decided_by_first([&] {
    return std::to_string(
        earlier ? *earlier : plan::with_chosen_rows(inputs, measure).per_device_train_batch_size);
  });
  formats::Recipe recipe = plan::with_rows(inputs.recipe, std::stoll(rows));
  base::say("per_device_train_batch_size=auto: {}{}", plan::rows_text(recipe),
            earlier ? ", as the run began" : "");
  return recipe;
}

void check_checkpoint(const RunFolder& folder, const formats::Recipe& recipe,
                      const runtime::RunIdentity& now, text::RowSource& rows) {
  const std::string name = folder.checkpoint->string();
  const TrainerState state = runtime::read_checkpoint_state(*folder.checkpoint);
  check_identity(state.identity, now, name);
  check_position(state, recipe, rows, name);
}

TrainerState restore(RunFolder& folder, const formats::Recipe& recipe,
                     const runtime::RunIdentity& now, text::RowSource& rows,
                     const models::ModelConfig& config, runtime::Executor& executor) {
  while (true) {
    const TrainerState saved = runtime::read_checkpoint_state(*folder.checkpoint);
    check_read_identity(saved.identity, now, folder.checkpoint->string());
    try {
      return runtime::restore_checkpoint(*folder.checkpoint, config, executor);
    } catch (const base::DamagedFile& damage) {
      const auto older = recipe.resume() == formats::Resume::automatic
                             ? newest_before(folder.path, folder.step)
                             : std::nullopt;
      if (!older) throw;
      base::say("passed over: {}", damage.what());
      folder.checkpoint = older->path;
      folder.step = older->step;
      check_checkpoint(folder, recipe, now, rows);
    }
  }
}

}  // namespace snug::train
