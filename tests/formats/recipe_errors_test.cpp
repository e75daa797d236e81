// One case for each mistake a user can make in a recipe.
#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"

#include <gtest/gtest.h>

#include <random>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

struct BadRecipe {
  const char* name;
  const char* yaml;
  const char* message;
};

class RecipeError : public ::testing::TestWithParam<BadRecipe> {};

TEST_P(RecipeError, IsNamed) {
  const std::string error = user_error_of([&] { parse_recipe(GetParam().yaml, "r.yaml"); });
  EXPECT_TRUE(contains(error, GetParam().message));
  EXPECT_TRUE(error.starts_with("r.yaml:")) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << "one paragraph";
}

constexpr BadRecipe kBadRecipes[] = {
    {"unknown_key", "seed: 1\nlerning_rate: 1\n",
     "r.yaml:2:1: unknown key 'lerning_rate'; did you mean 'learning_rate'?"},
    {"unknown_alias", "batchsize: 1", "did you mean 'batch_size'?"},
    {"broken_yaml", "seed: 1\nmodel: [a, b\n", "not valid YAML"},
    {"bad_indent", "seed: 1\n  lora_r: 2\n", "r.yaml:2:9: not valid YAML"},
    {"tab", "seed:\n\t- 1\n", "r.yaml:2:2: not valid YAML"},
    {"not_a_map", "- seed\n- 1\n", "r.yaml:1:1: a recipe is a list of 'key: value' lines"},
    {"just_text", "hello", "a recipe is a list of 'key: value' lines"},
    {"two_documents", "seed: 1\n---\nseed: 2\n", "it must be one YAML document"},
    {"stray_comma", ",seed: 1", "it must be one YAML document"},
    {"key_is_list", "[a]: 1", "a key must be a word"},
    {"nested", "training:\n  seed: 1\n", "'training' holds a nested value"},
    {"nested_known", "seed: {a: 1}", "'seed' holds a nested value"},
    {"alias", "model: &a x\ndata: *a\n", "r.yaml:2:7: a recipe has no aliases"},
    {"nested_list", "target_modules: [[a]]", "'target_modules' holds a nested value"},
    {"twice", "seed: 1\nlora_r: 2\nseed: 3\n",
     "r.yaml:3:1: 'seed' is given twice (first on line 1), as 1 and as 3; keep one"},
    {"alias_next_to_key", "lora_r: 2\nlora_rank: 3\n",
     "r.yaml:2:1: 'lora_r' and 'lora_rank' are names of the same key (first on line 1), but one "
     "says 2 and the other 3; keep one"},
    {"two_aliases", "cutoff_len: 2\nsequence_len: 3\n", "are names of the same key"},
    {"foreign_next_to_key", "lora_target_linear: true\ntarget_modules: q_proj\n",
     "'target_modules' and 'lora_target_linear' are names of the same key"},
    {"whole_from_text", "max_steps: many",
     "'max_steps' is 'many'; expected a whole number of 0 or more"},
    {"whole_from_fraction", "max_steps: 1.5", "'max_steps' is '1.5'; expected a whole number"},
    {"whole_too_large", "max_steps: 99999999999999999999", "expected a whole number"},
    {"whole_from_list", "max_steps: [1]", "'max_steps' is the list [1]; expected a whole number"},
    {"number_from_text", "learning_rate: fast",
     "'learning_rate' is 'fast'; expected a number of 0"},
    {"number_infinite", "learning_rate: inf", "expected a number"},
    {"number_nan", "learning_rate: nan", "expected a number"},
    {"number_comma", "learning_rate: 0,1", "expected a number"},
    {"boolean_from_number", "packing: 1", "'packing' is '1'; expected true or false"},
    {"choice", "optim: adamw_bf61",
     "expected one of adamw, adamw_bf16, adamw_8bit, lion, adafactor, muon. Did you mean "
     "adamw_bf16?"},
    {"choice_far", "optim: adam_mini",
     "'optim' is 'adam_mini'; expected one of adamw, adamw_bf16, adamw_8bit, lion, adafactor, "
     "muon"},
    {"size_unit", "device_memory: 80Gb", "expected a size such as 80GiB"},
    {"size_negative", "device_memory: -1GiB", "expected a size such as 80GiB"},
    {"size_negative_bytes", "host_memory: -1", "expected a size such as 80GiB"},
    {"size_below_range", "max_shard_size: 0", "'max_shard_size' is '0'"},
    {"text_from_list", "model: [a]", "'model' is the list [a]; expected one text"},
    {"r_zero", "lora_r: 0", "'lora_r' is '0'; expected a whole number of 1 or more"},
    {"r_negative", "lora_rank: -8", "'lora_rank' is '-8'; expected a whole number of 1 or more"},
    {"pissa", "init_lora_weights: pissa", "say true or gaussian"},
    {"ema_one", "ema_decay: 1", "expected a number of 0 or more and less than 1"},
    {"alpha_zero", "lora_alpha: 0", "'lora_alpha' is '0'; expected a number above 0"},
    {"dropout_one", "lora_dropout: 1", "expected a number of 0 or more and less than 1"},
    {"batch_negative", "micro_batch_size: -1", "'micro_batch_size' is '-1'"},
    {"batch_word", "per_device_train_batch_size: autos",
     "'per_device_train_batch_size' is 'autos'; expected a whole number of 0 or more and at most "
     "16777216, or auto"},
    {"accumulation_zero", "gradient_accumulation_steps: 0", "of 1 or more"},
    {"length_one", "max_length: 1",
     "'max_length' is '1'; expected a whole number of 2 or more and at most 1073741824, or auto"},
    {"steps_negative", "max_steps: -2", "'max_steps' is '-2'"},
    {"epochs_zero", "num_train_epochs: 0", "expected a number above 0"},
    {"rate_huge", "learning_rate: 1e300", "of 0 or more and at most 1e+30"},
    {"temperature_huge", "temperature: 1e300", "at most 1e+30"},
    {"alpha_huge", "lora_alpha: 1e300", "above 0 and at most 1e+30"},
    {"unknown_and_far", "zzzzzzzzzz: 1",
     "unknown key 'zzzzzzzzzz'; snug VERB --help lists the keys"},
    {"rate_negative", "learning_rate: -1e-4", "expected a number of 0 or more"},
    {"warmup_above_one", "warmup_ratio: 1.5", "of 0 or more and at most 1"},
    {"decay_negative", "weight_decay: -0.1", "expected a number of 0 or more"},
    {"beta_one", "adam_beta1: 1", "less than 1"},
    {"seed_negative", "seed: -1", "expected a whole number of 0 or more"},
    {"threads_negative", "threads: -1", "expected a whole number of 0 or more"},
    {"top_p_zero", "top_p: 0", "above 0 and at most 1"},
    {"repetition_penalty_zero", "repetition_penalty: 0", "above 0 and at most 1e+30"},
    {"min_p_above_one", "min_p: 1.5", "of 0 or more and at most 1"},
    {"presence_penalty_far", "presence_penalty: -1001", "of -1000 or more and at most 1000"},
    {"frequency_penalty_nan", "frequency_penalty: nan", "of -1000 or more and at most 1000"},
    {"logprobs_below", "top_logprobs: -2",
     "'top_logprobs' is '-2'; expected a whole number of -1 or more and at most 2147483647, or "
     "true, or false"},
    {"stride_zero", "stride: 0", "of 1 or more"},
    {"new_tokens_zero", "max_new_tokens: 0", "of 1 or more"},
    {"ids_negative", "ids: [1, -5]", "'ids' is the list [1, -5]; expected a list of whole numbers"},
    {"targets_empty", "target_modules: []", "expected a list of names"},
    {"targets_twice", "target_modules: [q_proj, q_proj]", "each once"},
    {"targets_mixed", "target_modules: [all-linear, q_proj]", "names 'all-linear' next to other"},
    {"qlora_in_16_bit", "method: qlora\nload_in_4bit: false",
     "r.yaml:2:1: 'load_in_4bit' is false next to method: qlora"},
    {"full_in_4_bit", "method: full\nload_in_4bit: true", "weights stored in 4 bits do not train"},
    {"fp4", "bnb_4bit_quant_type: fp4", "the 4-bit type fp4 is not built; use nf4"},
    {"quantize", "quantize: bnb.nf4-dq", "say method: qlora"},
    {"galore", "optim: galore_adafactor", "which optim: adamw_8bit does too"},
    {"relative_step", "optim: adafactor\nrelative_step: true", "takes the learning rate"},
    {"decay_rate", "decay_rate: 0.8", "'decay_rate' is '0.8'"},
    {"clip_threshold", "clip_threshold: 0", "'clip_threshold' is '0'"},
    {"ns_steps", "optim: muon\nns_steps: 0", "'ns_steps' is '0'; expected a whole number of 1"},
    {"ns_steps_many", "ns_steps: 100", "expected a whole number of 1 or more and at most 99"},
    {"ns_coefficients", "ns_coefficients: [1, many, 2]",
     "'ns_coefficients' is the list [1, many, 2]; expected a list of numbers"},
    {"muon_momentum", "muon_momentum: 1", "'muon_momentum' is '1'"},
    {"muon_epsilon", "muon_epsilon: 0", "'muon_epsilon' is '0'"},
    {"adjust_lr_fn", "adjust_lr_fn: rms",
     "expected one of original, match_rms_adamw, spectral_unclamped"},
    {"lomo", "optim: adalomo", "which optim_in_backward: true does"},
    {"sgd", "optim: sgd", "this optimizer is not built; adamw, lion, adafactor and muon are"},
    {"scale_power", "initial_scale_power: 65", "of 0 or more and at most 64"},
    {"scale_window", "loss_scale_window: 0", "of 1 or more and at most 16777216"},
    {"adapter_word", "adapter: qlora", "r.yaml:1:1: 'adapter: qlora': it says the method"},
    {"adapter_dora", "adapter: dora", "method: lora and use_dora: true"},
    {"dora", "method: dora",
     "'method: dora': DoRA is a form of LoRA: say method: lora and use_dora"},
    {"near_but_another", "top_h: 5", "unknown key 'top_h'; snug VERB --help lists the keys"},
    {"one_word_is_another", "eval_length: 5", "unknown key 'eval_length'; snug VERB --help"},
    {"schedule", "lr_scheduler_type: rex", "this schedule is not built; cosine, cosine_with"},
    {"schedule_option", "lr_scheduler_kwargs: {gamma: 2}", "r.yaml:1:23: 'lr_scheduler_kwargs'"},
    {"no_restart", "lr_scheduler_type: cosine_with_restarts\nnum_cycles: 0", "never falls"},
    {"end_above_peak", "lr_scheduler_type: polynomial\nlr_end: 1e-3\nlearning_rate: 1e-4",
     "give a smaller lr_end"},
    {"no_least_rate", "lr_scheduler_type: cosine_with_min_lr", "give one of them, such as"},
    {"two_least_rates", "lr_scheduler_type: cosine_with_min_lr\nmin_lr: 1e-5\nmin_lr_rate: 0.1",
     "keep one"},
    {"no_decay", "lr_scheduler: warmup_stable_decay", "which needs num_decay_steps"},
    {"ramp", "lr_scheduler_kwargs: {decay_type: log}", "expected one of linear, cosine, 1-sqrt"},
    {"steps_and_a_half", "save_steps: 1.5",
     "'save_steps' is '1.5'; expected a whole number of steps, or a share of all steps"},
    {"loss_of_tokens", "loss_type: nll\nobjective: dpo",
     "'loss_type: nll': it says how answers alone are learned"},
    {"other_loss_of_tokens", "loss_type: dft", "'loss_type: dft': it says how answers alone are"},
    {"turns", "train_on_turns: first", "'train_on_turns' is 'first'; expected one of all, last"},
    {"weighed_parts", "loss_scale: react", "'loss_scale: react': it weighs parts of answers"},
    {"option_of_data", "dataset_kwargs: {subset: a}", "'dataset_kwargs': snug does not have this"},
    {"strategy", "save_strategy: always", "'save_strategy' is 'always'; expected one of no, steps"},
    {"best_of_none", "save_strategy: best", "'save_strategy' asks for the best of a run's evalua"},
    {"answers_without_evaluation", "eval_generate: 2\neval_data: e\neval_strategy: no",
     "asks records in each evaluation, but eval_strategy is no"},
    {"best_average_without_state",
     "load_best_model_at_end: true\nsave_only_model: true\nema_decay: 0.5\neval_data: e",
     "do not hold averages; leave one of the three out"},
    {"best_without_evaluation", "load_best_model_at_end: true\neval_data: e\neval_strategy: no",
     "but eval_strategy is no; say eval_strategy: epoch, or steps with eval_steps"},
    {"best_without_checkpoint", "load_best_model_at_end: true\neval_data: e\nsave_strategy: no",
     "takes the result from a checkpoint, but save_strategy is no"},
    {"patience_without_data", "early_stopping_steps: 3", "r.yaml:1:1: 'early_stopping_steps' asks"},
    {"start_without_data", "eval_on_start: true", "'eval_on_start' asks for an evaluation, but"},
    {"better", "greater_is_better: maybe", "'greater_is_better' is 'maybe'; expected one of auto"},
    {"guard", "guards: no_loss", "'guards' names 'no_loss'; it is all, none, or a list of not_fin"},
    {"per_epoch", "saves_per_epoch: few", "'saves_per_epoch' is 'few'; expected a number"},
    {"held_out", "validation_split_percentage: many",
     "r.yaml:1:1: 'validation_split_percentage' is 'many'"},
    {"nested_model", "model:\n  _component_: mine.models.llama3.llama3_8b\n",
     "r.yaml:2:3: 'model': it names a builder of torchtune: say model: FOLDER"},
};

INSTANTIATE_TEST_SUITE_P(All, RecipeError, ::testing::ValuesIn(kBadRecipes),
                         [](const auto& test) { return test.param.name; });

std::string override_error(const std::string& text) {
  return user_error_of([&] { parse_recipe("seed: 1", "r.yaml", {text}); });
}

TEST(RecipeOverrideError, NamesTheCommandLine) {
  EXPECT_TRUE(
      contains(override_error("lora_r"), "command line: 'lora_r' is not of the form key=value"));
  EXPECT_TRUE(contains(override_error("=3"), "is not of the form key=value"));
  EXPECT_TRUE(contains(override_error("lora_r=0"), "command line: 'lora_r' is '0'"));
  EXPECT_TRUE(contains(override_error("lora_r="), "command line: 'lora_r' is ''"));
  EXPECT_TRUE(contains(override_error("target_modules="), "expected a list of names"));
  EXPECT_TRUE(contains(override_error("max_step=3"), "did you mean 'max_steps'?"));
  EXPECT_TRUE(contains(user_error_of([] {
                         parse_recipe("", "r", {"seed=1", "seed=2"});
                       }),
                       "command line: 'seed' is given twice, as 1 and as 2; keep one"));
}

TEST(RecipeError, DeepNestingAndAliasesTakeNoMemory) {
  const std::string deep = "a: " + std::string(100'000, '[');
  EXPECT_TRUE(contains(user_error_of([&] { parse_recipe(deep, "r.yaml"); }), "nest too deeply"));
  const std::string maps = std::string(100'000, '{');
  EXPECT_TRUE(contains(user_error_of([&] { parse_recipe(maps, "r.yaml"); }), "nest too deeply"));
  std::string bomb = "model: &a " + std::string(100'000, 'x') + "\ntarget_modules: [";
  for (int i = 0; i < 10'000; ++i) bomb += "*a,";
  EXPECT_TRUE(contains(user_error_of([&] { parse_recipe(bomb + "a]", "r.yaml"); }), "no aliases"));
}

// A number beyond them would overflow somewhere after.
TEST(RecipeKeys, EveryNumberHasBounds) {
  for (const RecipeKey& key : recipe_keys()) {
    const ValueType type = key.field.type;
    if (type != ValueType::integer && type != ValueType::number && type != ValueType::integers)
      continue;
    if (key.name == "seed") continue;                   // any 63 bits
    if (key.name == "num_stable_steps") continue;       // -1 is open
    if (key.name == "logprobs") continue;               // -1 is none
    if (key.name == "warmup_lr_rate") continue;         // -1 is one step's share
    const bool is_signed = key.name == "decay_rate" ||  // an exponent
                           key.name == "presence_penalty" || key.name == "frequency_penalty";
    EXPECT_GE(key.range.least, is_signed ? -1e30 : 0) << key.name;
    EXPECT_LE(key.range.most, 1e30) << key.name;
  }
}

// Random changes to a good recipe are refused with a UserError or read; nothing else may happen.
TEST(RecipeFuzz, SurvivesRandomChanges) {
  std::mt19937 random(7);
  const std::string good =
      "model: x\ntarget_modules: [q_proj, v_proj]\nlearning_rate: 1e-4\nids:\n  - 1\n  - 2\n"
      "device_memory: 80GiB\npacking: true\nprompt: \"a\\nb\"\n";
  const std::string_view alphabet = "{}[]:,-#\"'|>&*!%~ \n\ta1.\xc3\x01";
  int accepted = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::string text = good;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = alphabet[random() % alphabet.size()];
      } else {
        text.insert(at, 1, alphabet[random() % alphabet.size()]);
      }
    }
    try {
      parse_recipe(text, "r.yaml");
      ++accepted;
    } catch (const base::UserError&) {
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace snug::formats
