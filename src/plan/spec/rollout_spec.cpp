#include "plan/spec/rollout_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/recipe/guard_keys.h"
#include "formats/recipe/recipe_keys.h"
#include "methods/method.h"
#include "models/families/families.h"
#include "plan/job/rank_grid.h"

namespace snug::plan {
namespace {

using formats::AnswerLoss;
using formats::Recipe;
using methods::ReferenceModel;

// Micro-batches have about this many tokens, as far as their answers fill them: matrix products of
// more rows are hardly faster, and smaller ones follow the lengths of answers more closely.
constexpr int64_t kMicroTokens = 2048;

void check_divisible(const Recipe& recipe, const RolloutSizes& sizes) {
  const int64_t micro_batches = std::max<int64_t>(1, recipe.gradient_accumulation_steps);
  if (sizes.answers % sizes.update_answers != 0)
    recipe.fail(
        "steps_per_generation",
        fmt::format("is {}, which is no multiple of gradient_accumulation_steps={}, so that "
                    "the last update of a generation would lack answers; give a multiple",
                    recipe.steps_per_generation, micro_batches));
  if (sizes.answers % sizes.group == 0) return;
  recipe.fail(
      recipe.is_given("num_generations") ? "num_generations" : "per_device_train_batch_size",
      fmt::format(
          "gives {} answers at once, which are no whole groups of num_generations={}: "
          "per_device_train_batch_size={} x {}={}{}; make one of them a multiple, such as "
          "per_device_train_batch_size={}",
          sizes.answers, sizes.group, sizes.micro_answers,
          recipe.steps_per_generation > 0 ? "steps_per_generation" : "gradient_accumulation_steps",
          sizes.rank_answers() / sizes.micro_answers,
          sizes.ranks > 1 ? fmt::format(" x {} devices", sizes.ranks) : "",
          (sizes.micro_answers + sizes.group - 1) / sizes.group * sizes.group));
}

// A prompt's document has one token more (train/rewards/prompt_documents.h).
int64_t longest_prompt(const text::DocumentLengths& documents) {
  return std::max<int64_t>(1, documents.longest().decoder() - 1);
}

// The longest prompt that is learned from, or all that there is room for.
int64_t prompt_tokens(const Recipe& recipe, const JobDocuments& documents) {
  const int64_t room = most_prompt_tokens(recipe);
  return documents.files.empty() ? room : std::min(longest_prompt(documents.files.front()), room);
}

// The refusals say what to do instead.
void refuse(const Recipe& recipe, const TrainingSpec& spec) {
  if (spec.model.has_encoder())
    recipe.fail("objective",
                "is grpo, which is not built for models with an encoder; use a decoder, or "
                "objective=next_token");
  if (recipe.eval_generate > 0)
    recipe.fail("eval_generate",
                "asks some of the evaluation data, and with objective=grpo each evaluation asks "
                "all of it, by rewards; leave it out");
  if (recipe.neftune_noise_alpha > 0)
    recipe.fail("neftune_noise_alpha",
                "is above 0, but answers are made without noise, and are learned by the same "
                "log-probabilities; leave it out");
  if (methods::method_of(spec.method).trains_head)
    recipe.fail("method",
                fmt::format("is {}, which objective=grpo is not built for; use method=adapter, or "
                            "lora",
                            base::word_of(spec.method)));
  if (spec.model.router_loss_factor() > 0)
    recipe.fail("output_router_logits",
                "is true, but with objective=grpo the use of experts is not balanced yet; set "
                "output_router_logits=false");
  if (recipe.max_segments > 0)
    recipe.fail(
        "max_segments",
        "says how many documents share a row, and answers are packed as they fill it; leave "
        "it out");
  for (const char* key : {"train_on_prompt", "roles_to_train", "train_on_turns", "truncation"})
    if (!formats::holds_default(recipe, key))
      recipe.fail(key,
                  "is given, but with objective=grpo all that the model answers is learned, and "
                  "prompts that are too long are left out; leave it out");
  if (recipe.optim_in_backward)
    recipe.fail("optim_in_backward",
                "updates weights within one micro-batch, and the answers of a step may need "
                "several; leave it out");
}

void check_sampling(const Recipe& recipe, const TrainingSpec& spec) {
  if (recipe.temperature == 0)
    recipe.fail("temperature",
                "is 0, so that all answers to a prompt would be the same, and nothing is learned; "
                "TRL's default is 1");
  if (recipe.temperature != 1 && models::stack_of(spec.model).head_bias)
    recipe.fail("temperature",
                fmt::format("is {}, which is not built for a model whose head has a bias; set "
                            "temperature=1",
                            recipe.temperature));
  if (recipe.max_new_tokens > 0 && recipe.is_given("max_new_tokens") &&
      recipe.given.find("max_new_tokens")->second.file == formats::kCommandLine)
    recipe.fail("max_new_tokens",
                "is about answers of generate and of evaluations; the key of answers that are "
                "learned from is max_completion_length");
  if (recipe.is_given("eval_metrics") &&
      recipe.given.find("eval_metrics")->second.file == formats::kCommandLine)
    recipe.fail("eval_metrics",
                "says what answers are worth that eval_generate asks for; with objective=grpo "
                "evaluations take rewards, as training does; leave it out");
}

void check_loss(const Recipe& recipe) {
  if (recipe.top_entropy_quantile < 1 && recipe.beta > 0)
    recipe.fail(
        "top_entropy_quantile",
        "is below 1, which leaves tokens out of the loss, and beta holds all of them to the "
        "model as training began; leave one of them out");
  if (recipe.delta > 0 && recipe.delta <= 1 + recipe.epsilon_high)
    recipe.fail("delta", fmt::format("is {}, but it is to be above 1 + epsilon_high = {}, where "
                                     "the ratio is cut already",
                                     recipe.delta, 1 + recipe.epsilon_high));
}

// Keys of guards that could never stop the run.
void check_guard_keys(const Recipe& recipe) {
  const formats::GuardSet guards = formats::guards_of(recipe);
  const auto check = [&](const char* key, double bound, formats::Guard guard) {
    const std::string_view word = base::word_of(guard);
    if (bound > 0 && recipe.is_given(key) && !formats::holds_default(recipe, key) &&
        !guards.has(guard))
      recipe.fail(key, fmt::format("is {}, the bound of the guard {}, which guards leaves out; "
                                   "leave one of them out",
                                   bound, word));
    if (bound == 0 && std::ranges::find(recipe.guards, word) != recipe.guards.end())
      recipe.fail("guards", fmt::format("names {}, which has no bound; give {} too", word, key));
  };
  check("max_kl", recipe.max_kl, formats::Guard::high_kl);
  check("min_entropy", recipe.min_entropy, formats::Guard::low_entropy);
  if (recipe.max_kl > 0 && recipe.beta == 0)
    recipe.fail("max_kl",
                fmt::format("is {}, but with beta=0 nobody measures how far the model is from the "
                            "one that training began with; give a small beta, such as beta=0.001, "
                            "or leave max_kl out",
                            recipe.max_kl));
}

ReferenceModel model_held_to(const Recipe& recipe, const TrainingSpec& spec) {
  if (recipe.beta == 0) return ReferenceModel::none;
  const auto fail = [&](const char* why) {
    recipe.fail("beta", fmt::format("is {}, which holds the model to the one that it was as "
                                    "training began, and {}; leave beta out, which is TRL's "
                                    "default",
                                    recipe.beta, why));
  };
  if (!spec.is_adapted()) fail("with method=full that one is gone after the first step");
  if (!recipe.adapter.empty()) fail("that one has the adapter, which trains on");
  if (!spec.lora.modules_to_save.empty()) fail("modules_to_save trains weights of it");
  return ReferenceModel::adapter_off;
}

// On a card, products of a few rows with weights in 4 bits are other kernels than those of
// training, with roundings of their own.
bool recomputes(const Recipe& recipe, const TrainingSpec& spec, const program::Target& target) {
  using formats::OldLogProbabilities;
  if (recipe.old_logprobs != OldLogProbabilities::automatic)
    return recipe.old_logprobs == OldLogProbabilities::recompute;
  return spec.quantization.has_value() && !target.host_reaches_device();
}

}  // namespace

AnswerLoss answer_loss(const Recipe& recipe) {
  if (recipe.loss_type == formats::LossType::automatic) return AnswerLoss::dapo;
  const auto loss = base::from_word<AnswerLoss>(base::word_of(recipe.loss_type));
  if (!loss)
    recipe.fail("loss_type", fmt::format("is {}, a loss of pairs of answers; objective=grpo has {}",
                                         base::word_of(recipe.loss_type),
                                         fmt::join(base::all_words<AnswerLoss>(), ", ")));
  return *loss;
}

int64_t most_prompt_tokens(const Recipe& recipe) {
  const int64_t room = recipe.max_length - recipe.max_completion_length;
  if (room < 1 && recipe.is_given("max_length"))
    recipe.fail("max_length",
                fmt::format("is {}, the most tokens of a prompt with its answer, and "
                            "max_completion_length={} leaves none for a prompt; give a longer one, "
                            "or a shorter max_completion_length",
                            recipe.max_length, recipe.max_completion_length));
  if (room < 1)
    recipe.fail("max_completion_length",
                fmt::format("is {}, which leaves no token for a prompt: together they have {} at "
                            "most, unless max_length says more and the model has positions for "
                            "it; give a shorter one",
                            recipe.max_completion_length, recipe.max_length));
  return room;
}

// The documents of training come first, then those of each evaluation set.
int64_t evaluated_prompt_tokens(const Recipe& recipe, const JobDocuments& documents) {
  if (!recipe.evaluates()) return 0;
  if (documents.files.empty()) return most_prompt_tokens(recipe);
  int64_t longest = 0;
  for (size_t set = 1; set < documents.files.size(); ++set)
    longest = std::max(longest, longest_prompt(documents.files[set]));
  return longest;
}

int64_t evaluation_host_bytes(const RolloutSizes& sizes, const JobDocuments& documents) {
  // The id and the entropy of each token.
  constexpr int64_t kBytesOfJudgedToken = 8;
  int64_t prompts = 0;
  for (size_t set = 1; set < documents.files.size(); ++set)
    prompts = std::max<int64_t>(prompts, documents.files[set].size());
  if (prompts == 0) return 0;
  return sizes.host_bytes() + prompts * sizes.group * sizes.completion_tokens * kBytesOfJudgedToken;
}

RolloutSizes rollout_sizes(const Recipe& recipe, const JobDocuments& documents) {
  RolloutSizes sizes;
  sizes.group = recipe.num_generations;
  sizes.micro_answers = recipe.per_device_train_batch_size > 0 ? recipe.per_device_train_batch_size
                                                               : recipe.num_generations;
  const int64_t micro_batches = std::max<int64_t>(1, recipe.gradient_accumulation_steps);
  sizes.ranks = rank_grid(recipe).ranks();
  const int64_t side_by_side = sizes.micro_answers * sizes.ranks;
  sizes.update_answers = side_by_side * micro_batches;
  sizes.answers = side_by_side *
                  (recipe.steps_per_generation > 0 ? recipe.steps_per_generation : micro_batches);
  sizes.iterations = recipe.num_iterations;
  sizes.resamples = recipe.max_resamples;
  sizes.completion_tokens = recipe.max_completion_length;
  sizes.prompt_tokens = prompt_tokens(recipe, documents);
  check_divisible(recipe, sizes);
  return sizes;
}

methods::ObjectiveOptions rollout_options(const Recipe& recipe, const TrainingSpec& spec) {
  refuse(recipe, spec);
  check_sampling(recipe, spec);
  check_loss(recipe);
  check_guard_keys(recipe);
  answer_loss(recipe);
  const RolloutSizes sizes = rollout_sizes(recipe, {});
  return {.kind = recipe.objective,
          .reference = model_held_to(recipe, spec),
          .beta = recipe.beta,
          .epsilon = recipe.epsilon,
          .epsilon_high = recipe.epsilon_high,
          .delta = recipe.delta,
          .sequence_ratio = recipe.importance_sampling_level == formats::ImportanceLevel::sequence,
          .on_policy = sizes.updates() == 1,
          .temperature = static_cast<float>(recipe.temperature)};
}

void shape_rollouts(const Recipe& recipe, const JobDocuments& documents,
                    const program::Target& target, TrainingSpec& spec) {
  const RolloutSizes sizes = rollout_sizes(recipe, documents);
  const int64_t sequence = sizes.sequence_tokens();
  const int64_t in_a_row = std::clamp<int64_t>(kMicroTokens / sequence, 1, sizes.micro_answers);
  spec.rollouts = sizes;
  spec.rows = 1;
  spec.row_tokens = in_a_row * sequence;
  spec.longest_document = sequence;
  // Two at least, so that a row has room for segments without tokens.
  spec.row_segments =
      std::max<int64_t>(2, std::min(sizes.rank_update_answers(), spec.row_tokens.decoder() / 2));
  spec.accumulation = (sizes.rank_update_answers() + in_a_row - 1) / in_a_row;
  spec.update_in_backward = false;
  spec.evaluate = recomputes(recipe, spec, target) && sizes.updates() > 1;
}

std::optional<std::string> packing_notice(const Recipe& recipe) {
  if (recipe.packing || !methods::objective_of(recipe.objective).makes_answers) return std::nullopt;
  return "packing=false: answers are packed all the same, which changes roundings alone";
}

void settle_rollouts(Recipe& recipe) {
  if (!recipe.is_given("beta")) recipe.beta = 0;
  if (!recipe.is_given("max_length")) recipe.max_length = 0;  // the longest prompt's (train/data.h)
  if (!recipe.is_given("lora_dropout")) recipe.lora_dropout = 0;
  if (recipe.epsilon_high == 0) recipe.epsilon_high = recipe.epsilon;
  if (!recipe.metric_for_best_model.empty() && !recipe.is_given("metric_for_best_model"))
    recipe.metric_for_best_model = kRewardMetric;
  if (!recipe.is_given("per_device_train_batch_size") || recipe.per_device_train_batch_size == 0)
    recipe.per_device_train_batch_size = recipe.num_generations;
}

}  // namespace snug::plan
