#include "convert/folder/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/data/file_kinds.h"
#include "formats/folder/hub_cache.h"
#include "formats/recipe/recipe.h"
#include "plan/document/document.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json json_in(const std::string& text) {
  try {
    return base::parse_json(text, "what a run wrote");
  } catch (const base::UserError&) {
    return {};
  }
}

// What the keys lead to, where it is a number.
std::optional<double> number_at(const json& document, const std::vector<std::string>& keys) {
  const json* at = &document;
  for (const std::string& key : keys) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &(*at)[key];
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

int64_t count_at(const json& document, const char* key) {
  return static_cast<int64_t>(number_at(document, {key}).value_or(0));
}

void add_hub_names(const std::vector<formats::DataEntry>& entries, RunRecord& record) {
  for (const formats::DataEntry& entry : entries) {
    const std::string name = entry.path.substr(0, entry.path.find('@'));
    if (is_hub_name(entry.path) && std::ranges::count(record.hub_data_sets, name) == 0)
      record.hub_data_sets.push_back(name);
  }
}

void make_public(std::vector<formats::DataEntry>& entries) {
  for (formats::DataEntry& entry : entries) entry.path = public_name(entry.path);
}

// What says nothing of the result: places, and how the machine was used.
void leave_out_places(formats::Recipe& recipe) {
  recipe.model = public_name(recipe.model);
  recipe.adapter = public_name(recipe.adapter);
  make_public(recipe.data);
  make_public(recipe.eval_data);
  if (recipe.chat_template.find('{') == std::string::npos)
    recipe.chat_template = public_name(recipe.chat_template);
  recipe.output_dir.clear();
  recipe.overwrite_output_dir = false;
  recipe.resume_from_checkpoint = base::word_of(formats::Resume::none);
  recipe.calibration.clear();
  recipe.base = public_name(recipe.base);
}

void read_recipe_of(const fs::path& folder, RunRecord& record) {
  const fs::path file = folder / "recipe.yaml";
  if (!fs::is_regular_file(file)) return;
  try {
    formats::Recipe recipe = formats::parse_recipe(base::read_text_file(file), file.string());
    record.model = recipe.model;
    record.tags.emplace_back(base::word_of(recipe.method));
    if (recipe.use_dora) record.tags.emplace_back("dora");
    record.tags.emplace_back(recipe.objective == formats::Objective::next_token
                                 ? std::string("sft")
                                 : std::string(base::word_of(recipe.objective)));
    add_hub_names(recipe.data, record);
    leave_out_places(recipe);
    record.recipe = formats::changed_to_yaml(recipe);
  } catch (const base::UserError&) {
    // The recipe of another version of Snug, whose keys are not known.
    record = {};
  }
}

void read_sources(const json& measured, RunRecord& record) {
  if (!measured.is_object() || !measured.contains("data") || !measured["data"].is_array()) return;
  for (const json& source : measured["data"]) {
    if (!source.is_object() || !source.contains("name") || !source["name"].is_string()) continue;
    record.sources.push_back({.name = public_name(source["name"].get<std::string>()),
                              .evaluates = source.value("use", json("training")) == "evaluation",
                              .records = count_at(source, "records"),
                              .documents = count_at(source, "documents"),
                              .tokens = count_at(source, "tokens"),
                              .trained_tokens = count_at(source, "trained_tokens")});
  }
}

void read_figures(const json& plan, const json& measured, RunRecord& record) {
  const auto add = [&](const char* name, const std::vector<std::string>& keys, const auto& shown) {
    const auto text = [&](const json& document) {
      const auto number = number_at(document, keys);
      return number ? shown(*number) : std::string();
    };
    RecordedFigure figure{name, text(plan), text(measured)};
    if (!figure.measured.empty()) record.figures.push_back(std::move(figure));
  };
  const auto bytes = [](double number) {
    return plan::readable_bytes(static_cast<int64_t>(number));
  };
  add("memory of the device's arena", {"device", "peak_bytes"}, bytes);
  add("memory of the process, at its peak", {"resident", "peak_bytes"}, bytes);
  add("a step", {"step_seconds"}, [](double number) { return plan::readable_seconds(number); });
  add("tokens per second", {"tokens_per_second"},
      [](double number) { return fmt::format("{:.0f}", number); });
}

void read_metrics(const fs::path& file, RunRecord& record) {
  std::ifstream stream(file);
  std::string first;
  std::string last;
  std::string evaluation;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("\"eval_loss\"") != std::string::npos) {
      evaluation = line;
    } else if (line.find("\"loss\"") != std::string::npos) {
      if (first.empty()) first = line;
      last = std::move(line);
    }
  }
  record.first_loss = number_at(json_in(first), {"loss"});
  record.last_loss = number_at(json_in(last), {"loss"});
  record.evaluation_loss = number_at(json_in(evaluation), {"eval_loss"});
  record.steps = count_at(json_in(last), "step");
  record.epochs = number_at(json_in(last), {"epoch"}).value_or(0);
}

}  // namespace

json readable_json(const fs::path& file) {
  try {
    std::error_code error;
    return fs::is_regular_file(file, error) ? base::read_json_file(file) : json();
  } catch (const base::UserError&) {
    return {};
  }
}

bool is_hub_name(const std::string& place) {
  std::error_code error;
  const auto name = formats::parse_hub_name(place);
  return name && !name->organisation.empty() && !fs::exists(place, error) &&
         !place.starts_with('.') && !formats::is_data_file(place);
}

std::string public_name(const std::string& place) {
  if (place.empty() || is_hub_name(place)) return place;
  fs::path path = fs::path(place).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  return name.empty() ? place : name;
}

RunRecord read_run(const fs::path& folder) {
  RunRecord record;
  read_recipe_of(folder, record);
  if (record.recipe.empty()) return record;
  const json measured = readable_json(folder / "measured.json");
  read_sources(measured, record);
  read_figures(readable_json(folder / "plan.json"), measured, record);
  read_metrics(folder / "metrics.jsonl", record);
  return record;
}

}  // namespace snug::convert
