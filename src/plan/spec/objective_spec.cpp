#include "plan/spec/objective_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "formats/recipe/recipe_keys.h"
#include "plan/spec/rollout_spec.h"

namespace snug::plan {
namespace {

using formats::PreferenceLoss;
using formats::Recipe;
using methods::Objective;
using methods::ReferenceModel;

constexpr int64_t kUsualLength = 1024;  // a default for users who do not set a length

const Objective& objective_row(const Recipe& recipe) {
  return methods::objective_of(recipe.objective);
}

bool learns_from_groups(const Objective& objective) { return objective.group > 1; }
bool compares(const Objective& objective) { return objective.compares; }
bool makes_answers(const Objective& objective) { return objective.makes_answers; }
bool has_beta(const Objective& objective) {
  return learns_from_groups(objective) || objective.makes_answers;
}
bool has_margins(const Objective& objective) { return objective.has_margin; }
bool chooses_loss(const Objective& objective) {
  return (objective.has_margin && objective.compares) || objective.makes_answers;
}
bool asks_margin(const Objective& objective) { return objective.has_margin && !objective.compares; }
bool is_token_mean(const Objective& objective) { return objective.is_token_mean; }
bool is_labelled(const Objective& objective) { return objective.is_labelled; }

// A key that only some objectives use, and these objectives.
struct OwnKey {
  std::string_view key;
  bool (*is_of)(const Objective& objective);
  const char* objectives;
};
constexpr OwnKey kOwnKeys[]{{"beta", has_beta, "dpo, orpo, kto, simpo or grpo"},
                            {"loss_type", chooses_loss, "dpo or grpo"},
                            {"rewards", makes_answers, "grpo"},
                            {"reward_fields", makes_answers, "grpo"},
                            {"num_generations", makes_answers, "grpo"},
                            {"max_completion_length", makes_answers, "grpo"},
                            {"steps_per_generation", makes_answers, "grpo"},
                            {"num_iterations", makes_answers, "grpo"},
                            {"epsilon", makes_answers, "grpo"},
                            {"epsilon_high", makes_answers, "grpo"},
                            {"delta", makes_answers, "grpo"},
                            {"scale_rewards", makes_answers, "grpo"},
                            {"advantage", makes_answers, "grpo"},
                            {"importance_sampling_level", makes_answers, "grpo"},
                            {"mask_truncated_completions", makes_answers, "grpo"},
                            {"top_entropy_quantile", makes_answers, "grpo"},
                            {"old_logprobs", makes_answers, "grpo"},
                            {"max_resamples", makes_answers, "grpo"},
                            {"min_entropy", makes_answers, "grpo"},
                            {"max_kl", makes_answers, "grpo"},
                            {"label_smoothing", has_margins, "dpo or simpo"},
                            {"simpo_gamma", asks_margin, "simpo"},
                            {"label_smoothing_factor", is_token_mean, "next_token"},
                            {"precompute_ref_log_probs", compares, "dpo or kto"},
                            {"desirable_weight", is_labelled, "kto"},
                            {"undesirable_weight", is_labelled, "kto"}};

// Where the command line chooses another objective than the file, the file's keys for its own
// objective are ignored.
bool is_overruled(const Recipe& recipe, const OwnKey& own) {
  const auto objective = recipe.given.find("objective");
  const auto found = recipe.given.find(own.key);
  return !own.is_of(objective_row(recipe)) && objective != recipe.given.end() &&
         objective->second.line == 0 && found != recipe.given.end() && found->second.line > 0;
}

// A key that holds its default is accepted, since the recipe that a run writes has all keys.
void refuse_keys_of_others(const Recipe& recipe) {
  for (const OwnKey& own : kOwnKeys) {
    if (own.is_of(objective_row(recipe)) || recipe.given.find(own.key) == recipe.given.end() ||
        is_overruled(recipe, own) || formats::holds_default(recipe, own.key))
      continue;
    recipe.fail(own.key, fmt::format("is a key of objective={0}, which objective={1} does not "
                                     "use; leave it out, or set objective={0}",
                                     own.objectives, base::word_of(recipe.objective)));
  }
}

void check_rows(const Recipe& recipe, const Objective& objective) {
  const std::string_view word = base::word_of(recipe.objective);
  if (recipe.max_segments > 0 && recipe.max_segments % objective.group != 0)
    recipe.fail("max_segments",
                fmt::format("is {}, but with objective={} the {} sequences of a record share a "
                            "row; give a multiple of {}",
                            recipe.max_segments, word, objective.group, objective.group));
  if (recipe.train_on_prompt)
    recipe.fail("train_on_prompt",
                fmt::format("is true, but objective={} compares answers; leave it out", word));
  for (const char* key : {"roles_to_train", "train_on_turns"})
    if (!formats::holds_default(recipe, key))
      recipe.fail(key, fmt::format("is given, but objective={} compares all that follows the "
                                   "prompt; leave it out",
                                   word));
  using formats::DataFormat;
  if (recipe.data_format != DataFormat::automatic && recipe.data_format != objective.data)
    recipe.fail("data_format",
                fmt::format("is {}, but objective={} learns from {}; leave it out, or set "
                            "objective=next_token",
                            base::word_of(recipe.data_format), word,
                            objective.is_labelled
                                ? "answers with a label, records with prompt, completion and "
                                  "label, or pairs with chosen and rejected"
                                : "pairs of answers, records with chosen and rejected"));
}

// Without packing, answers are exchanged among the rows of a batch, so there must be at least two.
void check_batch(const Recipe& recipe, const Objective& objective) {
  if (!objective.is_labelled || recipe.packing || recipe.per_device_train_batch_size >= 2) return;
  recipe.fail("per_device_train_batch_size",
              fmt::format("is {}, but with objective={} and packing=false each prompt of a "
                          "micro-batch is compared with the answer of another row of it; give 2 "
                          "or more, or set packing=true",
                          recipe.per_device_train_batch_size == 0
                              ? "auto"
                              : std::to_string(recipe.per_device_train_batch_size),
                          base::word_of(recipe.objective)));
}

// The balancing loss is a mean over all tokens of a step, while the loss of such an objective is a
// mean over groups of documents.
void check_balance(const Recipe& recipe, const TrainingSpec& spec) {
  if (spec.model.router_loss_factor() == 0) return;
  recipe.fail("output_router_logits",
              fmt::format("is true{}, but with objective={} the use of experts is not balanced "
                          "yet; set output_router_logits=false",
                          recipe.is_given("output_router_logits") ? "" : " in the model's config",
                          base::word_of(recipe.objective)));
}

ReferenceModel reference_of(const Recipe& recipe, const TrainingSpec& spec) {
  if (recipe.precompute_ref_log_probs) return ReferenceModel::kept;
  const std::string_view word = base::word_of(recipe.objective);
  if (!spec.is_adapted())
    recipe.fail("method",
                fmt::format("is full, and objective={} compares with the model as it begins, which "
                            "is gone after the first step; set precompute_ref_log_probs=true, or "
                            "use method=lora",
                            word));
  if (!recipe.adapter.empty())
    recipe.fail("adapter",
                fmt::format("is given, and objective={} compares with the model as it begins, "
                            "that adapter on; set precompute_ref_log_probs=true",
                            word));
  if (!spec.lora.modules_to_save.empty())
    recipe.fail("modules_to_save",
                fmt::format("is given, and objective={} compares with the model as it begins, "
                            "whose weights are those that modules_to_save trains; set "
                            "precompute_ref_log_probs=true",
                            word));
  return ReferenceModel::adapter_off;
}

int64_t decoder_tokens(const Recipe& recipe) {
  const bool is_given = recipe.max_target_length > 0;
  const int64_t length = is_given ? recipe.max_target_length : recipe.max_length;
  return length * objective_row(recipe).group;
}

// The loss of a pair, by the same word.
PreferenceLoss preference_loss(const Recipe& recipe) {
  if (recipe.loss_type == formats::LossType::automatic) return PreferenceLoss::sigmoid;
  const auto loss = base::from_word<PreferenceLoss>(base::word_of(recipe.loss_type));
  if (!loss)
    recipe.fail("loss_type",
                fmt::format("is {}, a loss of objective=grpo; objective={} has {}",
                            base::word_of(recipe.loss_type), base::word_of(recipe.objective),
                            fmt::join(base::all_words<PreferenceLoss>(), ", ")));
  return *loss;
}

// Only some losses of pairs read it, and one cannot be computed without it.
void check_label_smoothing(const Recipe& recipe) {
  const PreferenceLoss loss = preference_loss(recipe);
  const bool is_read = loss == PreferenceLoss::sigmoid || loss == PreferenceLoss::sigmoid_norm ||
                       loss == PreferenceLoss::robust || loss == PreferenceLoss::exo_pair;
  if (recipe.label_smoothing > 0 && !is_read)
    recipe.fail("label_smoothing",
                fmt::format("is {}, which loss_type={} does not use; leave it out, or use "
                            "loss_type=sigmoid or robust",
                            recipe.label_smoothing, base::word_of(loss)));
  if (recipe.label_smoothing == 0 && loss == PreferenceLoss::exo_pair)
    recipe.fail("loss_type",
                "is exo_pair, which needs a share of wrong labels above 0, as in "
                "label_smoothing=0.001");
}

}  // namespace

base::PerStream<int64_t> row_tokens(const Recipe& recipe, bool has_encoder) {
  if (!has_encoder) return decoder_tokens(recipe);
  return {decoder_tokens(recipe), recipe.max_length};
}

int64_t mismatch_batch(const Recipe& recipe) {
  const bool is_of_batch = objective_row(recipe).is_labelled && !recipe.packing;
  return is_of_batch ? recipe.per_device_train_batch_size : 0;
}

int64_t row_segments(const Recipe& recipe) {
  const int64_t group = objective_row(recipe).group;
  if (!recipe.packing) return group;
  if (recipe.max_segments > 0) return std::min(recipe.max_segments, decoder_tokens(recipe));
  // Without data, a plan assumes documents of at least this many tokens, and at most this many
  // documents per row.
  constexpr int64_t kMinTokens = 16;
  constexpr int64_t kMaxSegments = 512;
  // For an encoder-decoder, whose answers are short, the longer of its two streams counts.
  const int64_t tokens = std::max(decoder_tokens(recipe), recipe.max_length * group);
  return std::clamp<int64_t>(tokens / kMinTokens / group, 1, kMaxSegments / group) * group;
}

methods::ObjectiveOptions objective_options(const Recipe& recipe, const TrainingSpec& spec) {
  const Objective& objective = objective_row(recipe);
  refuse_keys_of_others(recipe);
  if (objective.makes_answers) return rollout_options(recipe, spec);
  if (!learns_from_groups(objective)) {
    using formats::DataFormat;
    if (recipe.data_format == DataFormat::preference || recipe.data_format == DataFormat::unpaired)
      recipe.fail(
          "data_format",
          fmt::format(
              "is {}, which objective={} does not learn from; set objective={}, or "
              "leave it out",
              base::word_of(recipe.data_format), base::word_of(recipe.objective),
              recipe.data_format == DataFormat::unpaired ? "kto" : "dpo, orpo, kto or simpo"));
    return {.kind = recipe.objective, .label_smoothing_factor = recipe.label_smoothing_factor};
  }
  if (recipe.beta == 0)
    recipe.fail("beta", fmt::format("is 0, with which objective={} learns nothing of the answers; "
                                    "expected above 0",
                                    base::word_of(recipe.objective)));
  check_rows(recipe, objective);
  if (has_margins(objective)) check_label_smoothing(recipe);
  check_batch(recipe, objective);
  check_balance(recipe, spec);
  if (spec.lora.dropout > 0)
    recipe.fail("lora_dropout",
                fmt::format("is {}, but objective={} compares log-probabilities, which are made "
                            "without dropout, as TRL's trainer makes them; set lora_dropout=0",
                            recipe.lora_dropout, base::word_of(recipe.objective)));
  if (methods::method_of(spec.method).trains_head)
    recipe.fail("method",
                fmt::format("is {}, which objective={} is not built for; use method=adapter, or "
                            "lora",
                            base::word_of(spec.method), base::word_of(recipe.objective)));
  return {.kind = recipe.objective,
          .reference = objective.compares ? reference_of(recipe, spec) : ReferenceModel::none,
          .beta = recipe.beta,
          .loss = preference_loss(recipe),
          .label_smoothing = recipe.label_smoothing,
          .simpo_gamma = recipe.simpo_gamma,
          .desirable_weight = recipe.desirable_weight,
          .undesirable_weight = recipe.undesirable_weight};
}

bool is_key_of_rewards(std::string_view key) {
  const auto own = std::ranges::find(kOwnKeys, key, &OwnKey::key);
  return own != std::end(kOwnKeys) && own->is_of == makes_answers;
}

void settle_objective(Recipe& recipe, int64_t max_position) {
  const Objective& objective = objective_row(recipe);
  for (const OwnKey& own : kOwnKeys) {
    if (!is_overruled(recipe, own)) continue;
    const formats::RecipeKey& key = *formats::find_recipe_key(own.key);
    key.field.set(
        recipe,
        parse_value(key, {std::string(own.key), {std::string(key.default_text)}, false, {}}));
  }
  if (objective.makes_answers) settle_rollouts(recipe);
  if (learns_from_groups(objective) && !recipe.is_given("lora_dropout")) recipe.lora_dropout = 0;
  if (learns_from_groups(objective) && recipe.max_length == 0)
    recipe.fail("max_length",
                fmt::format("is auto, which objective={} does not choose yet: give the tokens of "
                            "the longest sequence, such as max_length={}",
                            base::word_of(recipe.objective),
                            std::min<int64_t>(kUsualLength, max_position)));
}

}  // namespace snug::plan
