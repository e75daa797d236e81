#include "train/data_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/threads.h"
#include "formats/data/data_files.h"
#include "methods/objective.h"
#include "plan/spec/data_keys.h"
#include "plan/spec/objective_spec.h"

namespace snug::train {
namespace {

using formats::DataEntry;
using formats::Recipe;

// An objective says of which form the records must be.
std::optional<text::RecordForm> wanted_form(const Recipe& recipe, const DataEntry& entry) {
  const formats::DataFormat own = methods::objective_of(recipe.objective).data;
  return plan::record_form(own == formats::DataFormat::automatic ? plan::data_format(recipe, entry)
                                                                 : own);
}

text::RecordSource source_of(const Recipe& recipe, const char* key, const DataEntry& entry,
                             const text::DatasetOptions& options) {
  const bool trains = std::string_view(key) == "data";
  formats::DataFiles found = formats::data_files(
      recipe, key, entry, trains ? formats::DataUse::training : formats::DataUse::evaluation);
  text::RecordSource source{.name = std::move(found.description),
                            .files = std::move(found.files),
                            .options = options,
                            .limit = found.limit,
                            .notes = std::move(found.notes)};
  source.options.form = wanted_form(recipe, entry);
  source.options.ignored_fields = plan::ignored_fields(recipe, entry);
  source.options.mapping = plan::record_mapping(recipe, entry);
  return source;
}

void check_weights(const Recipe& recipe) {
  const auto has_weight = [](const DataEntry& entry) { return entry.weight > 0; };
  const auto without = std::ranges::find_if_not(recipe.data, has_weight);
  if (without == recipe.data.end() || std::ranges::none_of(recipe.data, has_weight)) return;
  recipe.fail("data", fmt::format("gives some entries a weight, and none to {}; give one to each, "
                                  "or repeats in place of weights",
                                  without->path));
}

// The tokens that a document has room for; those of a group share a row.
int64_t document_tokens(const Recipe& recipe, const base::PerStream<int64_t>& row_tokens) {
  return row_tokens.has_encoder() ? row_tokens.decoder() : recipe.max_length;
}

int64_t encoder_tokens(const base::PerStream<int64_t>& row_tokens) {
  return row_tokens.has_encoder() ? row_tokens[base::TokenStream::encoder] : 0;
}

}  // namespace

text::DatasetOptions document_options(const Recipe& recipe, const models::ModelConfig& model) {
  const base::PerStream<int64_t> row_tokens = plan::row_tokens(recipe, model.has_encoder());
  return {.max_length = static_cast<int32_t>(document_tokens(recipe, row_tokens)),
          .encoder_length = static_cast<int32_t>(encoder_tokens(row_tokens)),
          .padding_id = static_cast<int32_t>(model.padding_id),
          .repeats_prompt = model.repeats_prompt,
          .train_on_prompt = recipe.train_on_prompt,
          .learning = plan::learning_rules(recipe),
          .train_on_chosen_prompt = methods::objective_of(recipe.objective).learns_prompts,
          .chat_template = recipe.chat_template,
          .skips = plan::skip_limits(recipe),
          .truncation = recipe.truncation,
          .mismatch_batch = plan::mismatch_batch(recipe),
          .positions = model.max_position,
          .vocabulary = model.vocab_size,
          .threads = base::thread_count(recipe.threads)};
}

std::vector<text::RecordSource> training_sources(const Recipe& recipe,
                                                 const text::DatasetOptions& options) {
  check_weights(recipe);
  std::vector<text::RecordSource> sources;
  for (const DataEntry& entry : recipe.data)
    sources.push_back(source_of(recipe, "data", entry, options));
  if (sources.size() == 1 && recipe.data.front().weight > 0)
    sources.front().notes.push_back(
        "it is the only source, so that its weight changes nothing; repeats says how often an "
        "epoch takes a record");
  return sources;
}

std::vector<EvaluationSources> evaluation_sources(const Recipe& recipe,
                                                  const text::DatasetOptions& options) {
  std::vector<EvaluationSources> sets;
  for (const DataEntry& entry : recipe.eval_data) {
    const std::string name = formats::data_name(entry);
    if (entry.weight > 0 || entry.repeats != 1)
      recipe.fail("eval_data",
                  fmt::format("gives {} a weight or repeats, and each record evaluates "
                              "once; leave them out",
                              entry.path));
    // Sets of one name that the user gave are one; names of files may be equal by chance.
    auto set =
        entry.name.empty() ? sets.end() : std::ranges::find(sets, name, &EvaluationSources::name);
    if (set == sets.end()) set = sets.insert(set, {name, {}});
    set->sources.push_back(source_of(recipe, "eval_data", entry, options));
  }
  return sets;
}

std::optional<text::HeldOut> held_out_records(const Recipe& recipe,
                                              const std::vector<text::RecordSource>& training,
                                              const text::TokenizerOpener& open) {
  if (recipe.val_set_size == 0) return std::nullopt;
  if (recipe.val_set_size == 1)
    recipe.fail("val_set_size",
                "is 1, which would be a single record; give a share, which is below "
                "1, or 2 records or more");
  const auto seed = static_cast<uint64_t>(recipe.seed);
  if (recipe.val_set_size < 1) return text::held_out_share(recipe.val_set_size, seed);
  return text::held_out_number(training, open, static_cast<int64_t>(recipe.val_set_size), seed);
}

std::vector<text::EpochPart> epoch_parts(const Recipe& recipe, const text::Dataset& training,
                                         int64_t group) {
  const auto is_plain = [](const DataEntry& entry) {
    return entry.weight == 0 && entry.repeats == 1;
  };
  if (std::ranges::all_of(recipe.data, is_plain)) return {};
  std::vector<text::EntryShare> shares;
  for (size_t i = 0; i < recipe.data.size(); ++i)
    shares.push_back({.groups = training.sources[i].audit.documents / group,
                      .weight = recipe.data[i].weight,
                      .repeats = recipe.data[i].repeats});
  return text::epoch_shares(shares);
}

std::string describe_parts(const std::vector<text::EpochPart>& parts,
                           const text::Dataset& training) {
  if (parts.empty()) return "";
  int64_t all = 0;
  for (const text::EpochPart& part : parts) all += part.taken;
  std::string text = fmt::format("an epoch has {} examples", all);
  for (size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("{} {} of {} ({:.3g} times each, {:.3g} %)", i == 0 ? ":" : ",",
                        parts[i].taken, training.sources[i].name,
                        static_cast<double>(parts[i].taken) /
                            static_cast<double>(std::max<int64_t>(1, parts[i].groups)),
                        100 * static_cast<double>(parts[i].taken) / static_cast<double>(all));
  return text;
}

}  // namespace snug::train
