#include "runtime/trainer_state.h"

#include <nlohmann/json.hpp>

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
  const json document{
      {"schema_version", TrainerState::kSchemaVersion},
      {"step", state.step},
      {"max_steps", state.max_steps},
      {"epoch", state.epoch},
      {"rows_consumed", state.rows_consumed},
      {"seed", state.seed},
      {"trained_tokens", state.trained_tokens},
      {"total_tokens", state.total_tokens},
      {"train_seconds", state.train_seconds},
      {"identity", {{"fixed", state.identity.fixed}, {"free", state.identity.free}}},
      {"files", state.files}};
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
  state.train_seconds = object.number("train_seconds");
  const JsonObject identity = object.object("identity");
  state.identity = {texts(identity.object("fixed")), texts(identity.object("free"))};
  const JsonObject files = object.object("files");
  for (const auto& [name, bytes] : files.value().items()) state.files[name] = count(files, name);
  return state;
}

Differences differences(const RunIdentity& saved, const RunIdentity& now) {
  return {compare(saved.fixed, now.fixed), compare(saved.free, now.free)};
}

}  // namespace snug::runtime
