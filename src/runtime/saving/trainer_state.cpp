#include "runtime/saving/trainer_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"

namespace snug::runtime {
namespace {

using base::JsonObject;
using nlohmann::json;

std::map<std::string, std::string> texts(const JsonObject& object) {
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : object.value().items()) result[name] = object.text(name);
  return result;
}

std::vector<std::string> compare(const std::map<std::string, std::string>& saved,
                                 const std::map<std::string, std::string>& now) {
  const auto value_in = [](const auto& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() || found->second.empty() ? std::string("not set") : found->second;
  };
  std::map<std::string, std::string> all = saved;
  all.insert(now.begin(), now.end());
  std::vector<std::string> found;
  for (const auto& [name, value] : all) {
    const std::string then = value_in(saved, name);
    const std::string current = value_in(now, name);
    if (then != current) found.push_back(fmt::format("{} was {} and is {}", name, then, current));
  }
  return found;
}

// The largest count that a double holds exactly, so that sums and products of counts do not
// overflow.
constexpr int64_t kMaxCount = int64_t{1} << 53;

int64_t count(const JsonObject& object, std::string_view key) {
  const int64_t value = object.integer(key);
  if (value < 0 || value > kMaxCount)
    object.fail(key, fmt::format("is {}; expected a count", value));
  return value;
}

double amount(const JsonObject& object, std::string_view key) {
  const double value = object.number(key);
  if (!std::isfinite(value) || value < 0)
    object.fail(key, fmt::format("is {}; expected a number from 0 on", value));
  return value;
}

// Other trainers' states have the same file name.
void check_schema(const JsonObject& object) {
  if (!object.has("schema_version"))
    base::throw_user_error(
        "{}: this is not a checkpoint of Snug (it has no schema_version); other trainers write "
        "files of this name too. To go on from its weights, give its folder as model= or adapter=",
        object.file());
  const int64_t version = object.integer("schema_version");
  if (version != TrainerState::kSchemaVersion)
    object.fail("schema_version",
                fmt::format("is {}; this Snug reads {}{}. Resume with the Snug that wrote it",
                            version, TrainerState::kSchemaVersion,
                            version < 3 ? ", in which every file has checksums" : ""));
}

// The checksum of the document without its own key `checksum`, independent of white space.
std::string checksum_of(const json& document) {
  json stripped = document;
  stripped.erase("checksum");
  return base::checksum_text(base::checksum(stripped.dump()));
}

void check_at_most(const JsonObject& object, std::string_view key, int64_t value,
                   std::string_view limit, int64_t most) {
  if (value > most)
    object.fail(key, fmt::format("is {}, more than {} = {}; the file was changed or is damaged",
                                 value, limit, most));
}

// Checks relations between the numbers that hold in every run.
void check_numbers(const JsonObject& object, const TrainerState& state) {
  check_at_most(object, "step", state.step, "max_steps", state.max_steps);
  check_at_most(object, "resumed_step", state.resumed_step, "step", state.step);
  check_at_most(object, "skipped_steps", state.skipped_steps, "step", state.step);
  for (const int64_t step : state.history.kept_checkpoints())
    check_at_most(object, "history", step, "step", state.step);
  check_at_most(object, "resumed_step", state.resumed_step, "resumed_rows", state.resumed_rows);
  check_at_most(object, "trained_tokens", state.trained_tokens, "total_tokens", state.total_tokens);
  const int64_t steps = state.step - state.resumed_step;
  const int64_t rows = state.rows_consumed - state.resumed_rows;
  // The last step of a run may have fewer rows.
  const bool fits = state.rows_per_step > 0 && rows >= 0 &&
                    rows / state.rows_per_step + (rows % state.rows_per_step > 0 ? 1 : 0) == steps;
  if (!fits)
    object.fail(
        "rows_consumed",
        fmt::format("is {}, and {} rows and {} steps of at most {} rows do not make that; the file "
                    "was changed or is damaged",
                    state.rows_consumed, state.resumed_rows, steps, state.rows_per_step));
}

// The fields of a history, each with its name in the file.
template <typename History, typename Count, typename Number>
void for_each_field(History& history, Count&& count_field, Number&& number) {
  count_field("worse_evaluations", history.worse_evaluations);
  count_field("best_checkpoint", history.best_checkpoint);
  count_field("sound_checkpoint", history.sound_checkpoint);
  count_field("evaluations_above_start", history.evaluations_above_start);
  count_field("steps_above_best", history.steps_above_best);
  count_field("steps_of_zero_loss", history.steps_of_zero_loss);
  count_field("steps_of_zero_norm", history.steps_of_zero_norm);
  count_field("generations_of_equal_rewards", history.generations_of_equal_rewards);
  count_field("generations_of_cut_answers", history.generations_of_cut_answers);
  count_field("generations_of_low_entropy", history.generations_of_low_entropy);
  count_field("updates_of_high_kl", history.updates_of_high_kl);
  number("best_metric", history.best_metric);
  number("best_saved_metric", history.best_saved_metric);
  number("start_evaluation", history.start_evaluation);
  number("first_loss", history.first_loss);
  number("mean_loss", history.mean_loss);
  number("best_mean_loss", history.best_mean_loss);
}

// Numbers that are not there are left out; those that are none in JSON do not come here.
json history_json(const RunHistory& history) {
  json document{{"ranked_by", history.ranked_by}};
  for_each_field(
      history, [&](const char* key, int64_t value) { document[key] = value; },
      [&](const char* key, const std::optional<double>& value) {
        if (value && std::isfinite(*value)) document[key] = *value;
      });
  return document;
}

RunHistory history_in(const JsonObject& object) {
  RunHistory history;
  history.ranked_by = object.text("ranked_by");
  for_each_field(
      history,
      [&](const char* key, int64_t& value) {
        // Files that are older than a count do not have it.
        if (object.has(key)) value = count(object, key);
      },
      [&](const char* key, std::optional<double>& value) {
        if (object.has(key)) value = object.number(key);
      });
  return history;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  json document{{"schema_version", TrainerState::kSchemaVersion},
                {"step", state.step},
                {"max_steps", state.max_steps},
                {"epoch", state.epoch},
                {"rows_consumed", state.rows_consumed},
                {"rows_per_step", state.rows_per_step},
                {"resumed_step", state.resumed_step},
                {"resumed_rows", state.resumed_rows},
                {"seed", state.seed},
                {"trained_tokens", state.trained_tokens},
                {"total_tokens", state.total_tokens},
                {"skipped_steps", state.skipped_steps},
                {"train_seconds", state.train_seconds},
                {"only_model", state.only_model},
                {"history", history_json(state.history)},
                {"identity", {{"fixed", state.identity.fixed}, {"free", state.identity.free}}},
                {"files", state.files},
                {"checksums", state.checksums}};
  if (!state.data.empty()) document["data"] = state.data;
  document["checksum"] = checksum_of(document);
  return document.dump(2) + "\n";
}

TrainerState parse_trainer_state(std::string_view text, const std::string& file) {
  const json document = base::parse_json(text, file);
  const JsonObject object(document, file);
  check_schema(object);
  TrainerState state;
  state.step = count(object, "step");
  state.max_steps = count(object, "max_steps");
  state.epoch = amount(object, "epoch");
  state.rows_consumed = count(object, "rows_consumed");
  state.rows_per_step = count(object, "rows_per_step");
  state.resumed_step = count(object, "resumed_step");
  state.resumed_rows = count(object, "resumed_rows");
  state.seed = object.integer("seed");
  state.trained_tokens = count(object, "trained_tokens");
  state.total_tokens = count(object, "total_tokens");
  // Absent in runs without loss scaling, which skip no steps, and in older files.
  if (object.has("skipped_steps")) state.skipped_steps = count(object, "skipped_steps");
  state.train_seconds = amount(object, "train_seconds");
  // Absent in older files, as is the history.
  if (object.has("only_model")) state.only_model = object.boolean("only_model");
  if (object.has("history")) state.history = history_in(object.object("history"));
  if (object.has("data")) state.data = object.text("data");
  const JsonObject identity = object.object("identity");
  state.identity = {texts(identity.object("fixed")), texts(identity.object("free"))};
  const JsonObject files = object.object("files");
  for (const auto& [name, bytes] : files.value().items()) state.files[name] = count(files, name);
  state.checksums = object.text("checksums");
  if (object.text("checksum") != checksum_of(document))
    object.fail("checksum",
                "is not that of the file's contents; the file was changed or is "
                "damaged, resume from an earlier checkpoint");
  check_numbers(object, state);
  return state;
}

Differences differences(const RunIdentity& saved, const RunIdentity& now) {
  return {compare(saved.fixed, now.fixed), compare(saved.free, now.free)};
}

}  // namespace snug::runtime
