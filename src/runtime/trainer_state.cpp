#include "runtime/trainer_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace snug::runtime {
namespace {

using base::JsonObject;
using nlohmann::json;

json identity_json(const RunIdentity& identity) {
  return {{"recipe_fingerprint", identity.recipe_fingerprint},
          {"data_fingerprint", identity.data_fingerprint},
          {"backend", identity.backend},
          {"library", identity.library},
          {"threads", identity.threads}};
}

RunIdentity parse_identity(const JsonObject& object) {
  return {.recipe_fingerprint = object.text("recipe_fingerprint"),
          .data_fingerprint = object.text("data_fingerprint"),
          .backend = object.text("backend"),
          .library = object.text("library"),
          .threads = object.integer("threads")};
}

int64_t count(const JsonObject& object, std::string_view key) {
  const int64_t value = object.integer(key);
  if (value < 0) object.fail(key, fmt::format("is {}; expected a count", value));
  return value;
}

// The states of other trainers carry the same file name.
void check_schema(const JsonObject& object) {
  if (!object.has("schema_version"))
    base::throw_user_error(
        "{}: this is not a checkpoint of Snug (it has no schema_version); other trainers write "
        "files of this name too. To go on from its weights, give its folder as model= or adapter=",
        object.file());
  const int64_t version = object.integer("schema_version");
  if (version != TrainerState::kSchemaVersion)
    object.fail("schema_version",
                fmt::format("is {}; this Snug reads {}. Resume with the Snug that wrote it",
                            version, TrainerState::kSchemaVersion));
}

}  // namespace

std::string to_json(const TrainerState& state) {
  json document{{"schema_version", TrainerState::kSchemaVersion},
                {"step", state.step},
                {"max_steps", state.max_steps},
                {"epoch", state.epoch},
                {"rows_consumed", state.rows_consumed},
                {"seed", state.seed},
                {"trained_tokens", state.trained_tokens},
                {"total_tokens", state.total_tokens},
                {"skipped_steps", state.skipped_steps},
                {"loss_sum", state.loss_sum},
                {"loss_weight", state.loss_weight},
                {"train_seconds", state.train_seconds},
                {"best_eval_loss", nullptr},
                {"best_eval_step", state.best_eval_step},
                {"identity", identity_json(state.identity)},
                {"files", state.files}};
  if (state.best_eval_loss) document["best_eval_loss"] = *state.best_eval_loss;
  return document.dump(2) + "\n";
}

TrainerState parse_trainer_state(std::string_view text, const std::string& file) {
  const json document = base::parse_json(text, file);
  const JsonObject object(document, file);
  check_schema(object);
  TrainerState state;
  state.step = count(object, "step");
  state.max_steps = count(object, "max_steps");
  state.epoch = object.number("epoch");
  state.rows_consumed = count(object, "rows_consumed");
  state.seed = object.integer("seed");
  state.trained_tokens = count(object, "trained_tokens");
  state.total_tokens = count(object, "total_tokens");
  state.skipped_steps = count(object, "skipped_steps");
  state.loss_sum = object.number("loss_sum");
  state.loss_weight = object.number("loss_weight");
  state.train_seconds = object.number("train_seconds");
  if (object.has("best_eval_loss")) state.best_eval_loss = object.number("best_eval_loss");
  state.best_eval_step = count(object, "best_eval_step");
  state.identity = parse_identity(object.object("identity"));
  const JsonObject files = object.object("files");
  for (const auto& [name, bytes] : files.value().items()) state.files[name] = count(files, name);
  return state;
}

std::vector<std::string> differences(const RunIdentity& saved, const RunIdentity& now) {
  std::vector<std::string> found;
  const auto compare = [&](const char* what, const auto& then, const auto& current) {
    if (then != current) found.push_back(fmt::format("{} was {} and is {}", what, then, current));
  };
  if (saved.recipe_fingerprint != now.recipe_fingerprint)
    found.emplace_back("the recipe differs in keys that change the numbers");
  if (saved.data_fingerprint != now.data_fingerprint) found.emplace_back("the data differ");
  compare("the backend", saved.backend, now.backend);
  compare("the library", saved.library, now.library);
  compare("the number of threads", saved.threads, now.threads);
  return found;
}

}  // namespace snug::runtime
