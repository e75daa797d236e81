// Recipes of other tools: what of them is obeyed, passed over with a note, or refused, all in one
// run.
#include "formats/foreign/foreign_keys.h"

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

Recipe taken(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

bool tells(const Recipe& recipe, std::string_view text) {
  return std::any_of(recipe.notes.begin(), recipe.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

RecipeReading read(const std::string& yaml) {
  const testing::TemporaryFolder folder;
  return read_recipe(folder.write("r.yaml", yaml).string(), {});
}

std::string mistakes_in(const std::string& yaml) {
  const RecipeReading reading = read(yaml);
  return user_error_of([&] { reading.mistakes.throw_if_any(); });
}

// As axolotl's examples have them.
constexpr const char* kAxolotl =
    "base_model: m\nload_in_8bit: false\nload_in_4bit: true\n"
    "datasets:\n  - path: a/b\n    type: alpaca\n  - path: c\n    type: alpaca\n"
    "dataset_prepared_path:\nval_set_size: 0.05\noutput_dir: out\nadapter: qlora\n"
    "sequence_len: 512\nsample_packing: true\nlora_r: 8\nlora_target_linear: true\n"
    "wandb_project:\nwandb_name: one\nmicro_batch_size: 2\nnum_epochs: 4\n"
    "optimizer: adamw_bnb_8bit\nlr_scheduler: cosine\nlearning_rate: 0.0002\nbf16: auto\n"
    "tf32: false\ngradient_checkpointing: true\ngradient_checkpointing_kwargs:\n"
    "  use_reentrant: false\nresume_from_checkpoint:\nlogging_steps: 1\n"
    "attn_implementation: flash_attention_2\nwarmup_ratio: 0.1\nevals_per_epoch: 4\n"
    "saves_per_epoch: 1\nweight_decay: 0.0\nfsdp:\nspecial_tokens:\n"
    "  pad_token: <|end_of_text|>\n";

TEST(ForeignKeys, OneRunTellsAllThatNeedsADecision) {
  const RecipeReading reading = read(std::string(kAxolotl) + "relora_steps: 10\nlora_bias: all\n");
  const std::string error = user_error_of([&] { reading.mistakes.throw_if_any(); });
  for (const char* each : {":39:1: 'relora_steps' is '10'", ":40:1: 'lora_bias' is 'all'"})
    EXPECT_TRUE(contains(error, each)) << error;
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  for (const char* each :
       {"'wandb_name' (line 18)", "'attn_implementation'", "'tf32'",
        "'special_tokens.pad_token' (line 38)", "'wandb_project' (line 17): not used: has no value",
        "'gradient_checkpointing_kwargs.use_reentrant'",
        "'resume_from_checkpoint' has no value, so it has its default"})
    EXPECT_TRUE(tells(reading.recipe, each)) << each;
}

// What is left is obeyed.
TEST(ForeignKeys, WhatMeansTheSameIsTaken) {
  EXPECT_EQ(mistakes_in(kAxolotl), "(no error)") << "it needs no edit";
  const Recipe recipe = read(kAxolotl).recipe;
  EXPECT_EQ(recipe.method, Method::qlora);
  EXPECT_EQ(recipe.data.size(), 2U);
  EXPECT_EQ(recipe.val_set_size, 0.05);
  EXPECT_EQ(recipe.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(recipe.save_steps, 0.25);
  EXPECT_EQ(recipe.max_length, 512);
  EXPECT_EQ(taken("lora_target: all").target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_TRUE(taken("quantization_bit: 4").load_in_4bit);
  EXPECT_EQ(taken("use_peft: false").method, Method::full);
  EXPECT_EQ(taken("bfloat16: true").compute_dtype, ComputeDtype::bf16);
  EXPECT_FALSE(taken("disable_shuffling: true").shuffle);
  EXPECT_EQ(taken("fsdp_config: {reshard_after_forward: true, offload_params: true}").strategy,
            Strategy::full_shard);
  EXPECT_TRUE(taken("fsdp_config: {fsdp_offload_params: true}").offload_params);
  EXPECT_EQ(taken("optimizer:\n  _component_: torch.optim.AdamW\n  lr: 3e-4\n").learning_rate,
            3e-4);
  EXPECT_EQ(taken("model: {lora_rank: 4}\ncheckpointer: {checkpoint_dir: m}").lora_r, 4);
}

TEST(ForeignKeys, WhatOnlyLogsIsPassedOver) {
  const Recipe recipe = taken(
      "report_to: [tensorboard, wandb]\nrun_name: a\nlogging_dir: b\nplot_loss: true\n"
      "method: full\n",
      {"push_to_hub=true", "wandb_project=c"});
  EXPECT_TRUE(tells(recipe, "'report_to' is wandb: nothing is sent there"));
  EXPECT_TRUE(tells(recipe, "'run_name' (line 2), 'logging_dir' (line 3), 'plot_loss' (line 4)"));
  EXPECT_TRUE(tells(recipe, "command line: 'push_to_hub': not used"));
  EXPECT_EQ(recipe.notes.size(), 4U);
}

// Without a word of the method other tools train all weights.
TEST(ForeignKeys, TheMethodIsNoted) {
  const char* note = "r.yaml: no key says the method, so an adapter trains (method: lora)";
  EXPECT_TRUE(tells(taken("run_name: a"), note));
  for (const char* said : {"method: lora", "lora_r: 8", "load_in_4bit: true", "use_peft: false"})
    EXPECT_FALSE(tells(taken(std::string("run_name: a\n") + said), note)) << said;
  EXPECT_FALSE(tells(taken("seed: 1"), note));
}

// What other tools would do otherwise for them.
TEST(ForeignKeys, WhatChangesTheResultIsNotPassedOver) {
  EXPECT_TRUE(contains(mistakes_in("create_new_adapter: true"), "merge it into the model first"));
  EXPECT_TRUE(contains(mistakes_in("tokenizer: {prompt_template: x}"), "say chat_template: FILE"));
  for (const char* usual : {"train_sampling_strategy: random", "create_new_adapter: false"})
    EXPECT_NO_THROW(taken(usual)) << usual;
}

TEST(ForeignKeys, TextsInBracesMayBeTexts) {
  EXPECT_TRUE(contains(mistakes_in("prompt_template: \"{instruction} {\""),
                       "'prompt_template' is '{instruction} {': it names a template"));
  EXPECT_TRUE(
      contains(mistakes_in("lr_scheduler_kwargs: '{min_lr'"),
               "'lr_scheduler_kwargs' is '{min_lr', but Snug takes {} only: it holds keys"));
  EXPECT_TRUE(tells(taken("lr_scheduler_kwargs: '{}'\nmethod: full"), "'lr_scheduler_kwargs'"));
  const std::string two = mistakes_in("reward_funcs: a\nreward_weights: b");
  EXPECT_TRUE(contains(two, "'reward_funcs'")) << two;
  EXPECT_TRUE(contains(two, "'reward_weights'")) << two;
}

TEST(ForeignKeys, MistakesNameTheKeyThatWasWritten) {
  EXPECT_TRUE(contains(mistakes_in("clip_grad_norm: much"), ":1:1: 'clip_grad_norm' is 'much'"));
  EXPECT_EQ(taken("logging_strategy: epoch\nnum_epochs: 1").logging_steps, 1);
  EXPECT_EQ(taken("train: {epochs: 4}\nsaves_per_epoch: 1").save_steps, 0.25);
}

// A message about a key has the name that the user knows.
TEST(ForeignKeys, MistakesFoundLaterNameTheAliasThatWasWritten) {
  const auto complaint = [](const std::string& yaml) {
    return user_error_of([&] { taken(yaml).fail("max_target_length", "is wrong"); });
  };
  EXPECT_EQ(complaint("val_max_target_length: 64"), "r.yaml:1:1: 'val_max_target_length' is wrong");
  EXPECT_EQ(complaint("max_target_length: 64"), "r.yaml:1:1: 'max_target_length' is wrong");
}

TEST(ForeignKeys, TheKeysOfUnslothAreTaken) {
  const Recipe recipe = taken(
      "method: lora\nuse_gradient_checkpointing: unsloth\nrandom_state: 3407\n"
      "train_on_responses_only: true\n");
  EXPECT_EQ(recipe.recompute, Recompute::layer);
  EXPECT_EQ(recipe.seed, 3407);
  EXPECT_FALSE(recipe.train_on_prompt);
  EXPECT_EQ(taken("use_gradient_checkpointing: false").recompute, Recompute::none);
  EXPECT_TRUE(taken("train_on_responses_only: false").train_on_prompt);
  EXPECT_FALSE(
      taken("train_on_responses_only: {instruction_part: a, response_part: b}").train_on_prompt);
}

// axolotl's words are Snug's; LLaMA-Factory's and ms-swift's for the last turn are not the same.
TEST(ForeignKeys, WhatIsLearnedOfConversations) {
  using Roles = std::vector<std::string>;
  using base::LearnedTurns;
  EXPECT_EQ(taken("seed: 1").roles_to_train, Roles{"assistant"});
  EXPECT_EQ(taken("roles_to_train: [user, assistant]").roles_to_train,
            (Roles{"user", "assistant"}));
  for (const char* nobody : {"roles_to_train: []", "roles_to_train: none"})
    EXPECT_EQ(taken(nobody).roles_to_train, Roles{"none"}) << nobody;
  EXPECT_EQ(taken("seed: 1", {"roles_to_train=[]"}).roles_to_train, Roles{"none"});
  EXPECT_EQ(taken("seed: 1").train_on_turns, LearnedTurns::all);
  EXPECT_EQ(taken("train_on_turns: last").train_on_turns, LearnedTurns::last);
  EXPECT_EQ(taken("mask_history: true").train_on_turns, LearnedTurns::last_message);
  EXPECT_EQ(taken("mask_history: false").train_on_turns, LearnedTurns::all);
  const Recipe last_round = taken("loss_scale: last_round");
  EXPECT_EQ(last_round.train_on_turns, LearnedTurns::last);
  EXPECT_EQ(last_round.loss_scale, 0);
  EXPECT_FALSE(last_round.is_given("loss_scale"));
  EXPECT_TRUE(taken("loss_scale: all").train_on_prompt);
  EXPECT_EQ(taken("loss_scale: 1024").loss_scale, 1024);
  EXPECT_FALSE(taken("loss_scale: default").train_on_prompt);
}

TEST(ForeignKeys, TokensThatAreAdded) {
  using Tokens = std::vector<std::string>;
  for (const char* written : {"tokens: ['<|a|>', '<|b|>']", "add_tokens: <|a|>,<|b|>",
                              "new_special_tokens: [<|a|>, <|b|>]",
                              "add_special_tokens: '<|a|>, <|b|>'\nresize_vocab: true"})
    EXPECT_EQ(taken(written).added_tokens, (Tokens{"<|a|>", "<|b|>"})) << written;
  EXPECT_TRUE(contains(mistakes_in("added_tokens_overrides: {128041: <|a|>}"),
                       "added_tokens: [TOKEN, ...] adds tokens"));
}

// TRL's default for answers alone, which is no loss of pairs.
TEST(ForeignKeys, TheLossOfTokensMayBeNamed) {
  for (const char* said : {"loss_type: nll", "loss_type: NLL\nobjective: sft",
                           "loss_type: cross_entropy\nobjective: next_token"}) {
    const Recipe recipe = taken(said);
    EXPECT_EQ(recipe.objective, Objective::next_token) << said;
    EXPECT_FALSE(recipe.is_given("loss_type")) << said;
    EXPECT_TRUE(tells(recipe, "is not used: it is the loss of objective: next_token")) << said;
  }
  EXPECT_TRUE(contains(user_error_of([] { taken("loss_type: nll", {"objective=orpo"}); }),
                       "'loss_type: nll'"));
}

// Smoothed labels, noise on embeddings and SimPO, under the names of other tools.
TEST(ForeignKeys, PartsOfALossHaveOtherNames) {
  EXPECT_EQ(taken("loss: {label_smoothing: 0.1}").label_smoothing_factor, 0.1);
  EXPECT_EQ(taken("noisy_embedding_alpha: 5").neftune_noise_alpha, 5);
  EXPECT_EQ(taken("neftune_alpha: 5\nneftune_noise_alpha: 5.0").neftune_noise_alpha, 5);
  EXPECT_EQ(taken("neftune_noise_alpha: null").neftune_noise_alpha, 0);
  const Recipe recipe = taken("rl: simpo\nrl_beta: 2\nsimpo_gamma: 1\ncpo_alpha: 0");
  EXPECT_EQ(recipe.objective, Objective::simpo);
  EXPECT_EQ(recipe.beta, 2);
  EXPECT_EQ(recipe.simpo_gamma, 1);
}

// What may change what is learned is told with what is done in its place.
TEST(ForeignKeys, NotesSayWhatHoldsInstead) {
  const auto note = [](const char* yaml, const char* text) {
    EXPECT_TRUE(tells(taken(yaml), text)) << yaml;
  };
  note("lora_target_linear: false", "where it is not given, all linear layers have one");
  note("data_seed: 7", "seed is that of all random numbers");
  note("dataset_kwargs: {add_special_tokens: false}", "conversations have those that their chat");
}

TEST(ForeignKeys, OneKeyMayBeGivenTwiceWithOneValue) {
  EXPECT_EQ(taken("seed: 7\nlora_r: 2\nseed: 7").seed, 7);
  EXPECT_EQ(taken("target_modules: [a, b]\ntarget_modules: [b, a]").target_modules.size(), 2U);
  EXPECT_EQ(taken("", {"seed=7", "seed=7"}).seed, 7);
  EXPECT_TRUE(contains(mistakes_in("seed: 7\nseed: 8"), "given twice (first on line 1), as 7 and"));
}

TEST(ForeignKeys, TwoNamesMayAgree) {
  EXPECT_EQ(taken("lora_r: 4\nlora_rank: 4").lora_r, 4);
  EXPECT_EQ(taken("bf16: true\ntorch_dtype: bfloat16").compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(taken("torch_dtype: auto\nbf16: true").compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(taken("bf16: true\ntorch_dtype: auto").compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(taken("lora_target_modules:\nlora_target_linear: true").target_modules,
            std::vector<std::string>{"all-linear"});
  EXPECT_TRUE(contains(mistakes_in("bf16: true\ntorch_dtype: float16"),
                       "one says bf16 and the other fp16; keep one"));
}

TEST(ForeignKeys, EpochsBecomeSharesOfAllSteps) {
  EXPECT_EQ(taken("saves_per_epoch: 1\nnum_train_epochs: 4").save_steps, 0.25);
  EXPECT_EQ(taken("saves_per_epoch: 1\nnum_train_epochs: 3").save_steps, 0.333333);
  EXPECT_EQ(taken("saves_per_epoch: 1\nnum_train_epochs: 1").save_steps, 0);
  EXPECT_EQ(taken("saves_per_epoch: 1", {"num_train_epochs=2"}).save_steps, 0.5);
  EXPECT_TRUE(tells(taken("saves_per_epoch: 2\nsave_steps: 50"), "save_steps is not used next to"));
  EXPECT_TRUE(tells(taken("evals_per_epoch:"), "'evals_per_epoch' has no value"));
  EXPECT_EQ(taken("evals_per_epoch: 2\nnum_epochs: 2\neval_data: e").eval_steps, 0.25);
  EXPECT_EQ(taken("evals_per_epoch: 2\nnum_epochs: 2").eval_steps, 0) << "there is nothing to do";
  EXPECT_EQ(taken("saves_per_epoch: 1", {"save_steps=9"}).save_steps, 9);
  // So many steps each time as an epoch has, whatever their number.
  for (int64_t epochs = 2; epochs < 60; ++epochs)
    for (const int64_t steps : {1, 2, 5, 1000})
      EXPECT_EQ(
          steps_in(taken(fmt::format("saves_per_epoch: 1\nnum_epochs: {}", epochs)).save_steps,
                   epochs * steps),
          steps)
          << epochs;
}

TEST(ForeignKeys, StrategiesSayWhenIsSavedAndEvaluated) {
  EXPECT_EQ(taken("save_strategy: epoch").save_strategy, SaveStrategy::epoch);
  EXPECT_EQ(taken("save_strategy: 'no'\nsave_steps: 50").save_strategy, SaveStrategy::no);
  EXPECT_EQ(taken("save_strategy: no").save_strategy, SaveStrategy::no);
  EXPECT_EQ(taken("save_strategy: steps\nsave_steps: 50").save_steps, 50);
  EXPECT_EQ(taken("eval_strategy: no\neval_data: e").eval_strategy, EvalStrategy::no);
  EXPECT_EQ(taken("evaluation_strategy: epoch\neval_data: e").eval_strategy, EvalStrategy::epoch);
  EXPECT_EQ(taken("evaluation_strategy: steps\neval_steps: 7\neval_data: e").eval_steps, 7);
  EXPECT_TRUE(
      tells(taken("eval_strategy: epoch"), "'eval_strategy' is not used: there is no eval"));
  // The command line takes precedence over the file, in whatever words.
  const Recipe line = taken("save_strategy: epoch\neval_strategy: epoch\neval_data: e",
                            {"save_steps=9", "eval_steps=3"});
  EXPECT_EQ(line.save_strategy, SaveStrategy::steps);
  EXPECT_EQ(line.save_steps, 9);
  EXPECT_EQ(line.eval_strategy, EvalStrategy::steps);
  // As the Trainer, which has logging_steps for eval_steps that is not given.
  EXPECT_EQ(taken("eval_strategy: steps\nlogging_steps: 20\neval_data: e").eval_steps, 20);
  EXPECT_EQ(taken("logging_steps: 20\neval_data: e").eval_steps, 0);
  // Nothing to evaluate on is no mistake of theirs.
  for (const char* words : {"eval_strategy: steps\nlogging_steps: 20", "evals_per_epoch: 4"})
    EXPECT_EQ(taken(std::string(words) + "\nval_set_size: 0.0").eval_steps, 0) << words;
}

TEST(ForeignKeys, TheBestModelAndAnEarlyEnd) {
  const Recipe best = taken("load_best_model_at_end: true\nval_set_size: 0.1");
  EXPECT_TRUE(best.load_best_model_at_end);
  EXPECT_EQ(best.metric_for_best_model, "loss");
  EXPECT_FALSE(best.greater_is_better.has_value());
  EXPECT_EQ(taken("early_stopping_steps: 3\neval_data: e").early_stopping_patience, 3);
  EXPECT_EQ(taken("early_stop_interval: 2\neval_data: e").early_stopping_patience, 2);
  EXPECT_EQ(taken("early_stopping_patience:\nload_best_model_at_end:").metric_for_best_model, "");
  const Recipe said = taken("metric_for_best_model: eval_x\ngreater_is_better: no\neval_data: e");
  EXPECT_EQ(said.metric_for_best_model, "eval_x");
  EXPECT_EQ(said.greater_is_better, false);
  EXPECT_EQ(taken("greater_is_better: true").greater_is_better, true);
  EXPECT_FALSE(taken("greater_is_better:").greater_is_better.has_value());
  for (const char* word : {"auto", "false", "true"})
    EXPECT_TRUE(testing::contains(to_yaml(taken(fmt::format("greater_is_better: {}", word))),
                                  fmt::format("greater_is_better: {}\n", word)));
}

TEST(ForeignKeys, MergesAtTheEndWhereOthersDo) {
  EXPECT_TRUE(taken("merge_lora: true").merge);
  EXPECT_FALSE(taken("merge_lora: false").merge);
  EXPECT_FALSE(taken("").merge);
  EXPECT_TRUE(tells(taken("merge_method: memory_efficient"), "snug merge computes in fp32"));
}

TEST(ForeignKeys, SharesOfAllSteps) {
  const Recipe recipe = taken("save_steps: 0.1\nlogging_steps: 0.5\nwarmup_steps: 0.03");
  EXPECT_EQ(steps_in(recipe.save_steps, 25), 3);
  EXPECT_EQ(steps_in(recipe.logging_steps, 25), 13);
  EXPECT_EQ(steps_in(recipe.warmup_steps, 100), 3);
  EXPECT_EQ(steps_in(500, 25), 500);
  EXPECT_EQ(steps_in(0, 25), 0);
  EXPECT_EQ(to_yaml(taken(to_yaml(recipe))), to_yaml(recipe));
  EXPECT_TRUE(contains(to_yaml(recipe), "\neval_steps: 0\n"));
  EXPECT_TRUE(contains(to_yaml(taken("save_steps: 1e3")), "\nsave_steps: 1000\n"));
}

TEST(ForeignKeys, OptionsOfSchedulesAreKeys) {
  for (const char* form : {"lr_scheduler_kwargs: {min_lr: 1e-5, num_cycles: 0.75}",
                           "lr_scheduler_kwargs:\n  min_lr: 1e-5\n  num_cycles: 0.75\n",
                           "lr_scheduler_kwargs: '{\"min_lr\": 1e-5, \"num_cycles\": 0.75}'",
                           "min_lr: 1e-5\nnum_cycles: 0.75"}) {
    const Recipe recipe = taken(std::string("lr_scheduler_type: cosine_with_min_lr\n") + form);
    EXPECT_EQ(recipe.min_lr, 1e-5) << form;
    EXPECT_EQ(recipe.num_cycles, 0.75) << form;
    EXPECT_EQ(to_yaml(taken(to_yaml(recipe))), to_yaml(recipe));
  }
  EXPECT_EQ(taken("lr_scheduler: warmup_stable_decay",
                  {R"(lr_scheduler_kwargs={"num_decay_steps": 8, "decay_type": "1-sqrt"})"})
                .decay_type,
            Ramp::one_minus_root);
  EXPECT_EQ(taken("lr_scheduler: warmup_stable_decay", {"lr_scheduler_kwargs.num_decay_steps=8"})
                .num_decay_steps,
            8);
}

// transformers reads no warm-up there.
TEST(ForeignKeys, WarmUpIsThatOfTransformers) {
  const Recipe constant = taken("lr_scheduler_type: constant\nwarmup_ratio: 0.1");
  EXPECT_EQ(constant.warmup_ratio, 0);
  EXPECT_TRUE(tells(constant,
                    "r.yaml:2:1: 'warmup_ratio' is 0.1, but lr_scheduler_type: "
                    "constant has no warm-up, as in transformers; "
                    "constant_with_warmup has one"));
  EXPECT_TRUE(taken("lr_scheduler_type: constant").notes.empty());
  EXPECT_TRUE(taken(to_yaml(constant)).notes.empty());
  EXPECT_EQ(taken("warmup_steps: 0").warmup_ratio, 0);
  EXPECT_EQ(taken("warmup_steps: 0\nwarmup_ratio: 0.1").warmup_ratio, 0.1);
  EXPECT_EQ(taken("seed: 1").warmup_ratio, 0.03);
}

TEST(ForeignKeys, RecipesOfLitGptAreRead) {
  const Recipe recipe = taken(
      "checkpoint_dir: m\nout_dir: o\nprecision: bf16-true\ndevices: auto\nlogger_name: csv\n"
      "train: {save_interval: 200, global_batch_size: 8, micro_batch_size: 2, epochs: 4,\n"
      "  max_seq_length: 512, lr_warmup_steps: 10}\neval: {interval: 25, max_iters: 100}\n"
      "optimizer:\n  class_path: torch.optim.AdamW\n  init_args: {lr: 3e-4}\neval_data: e\n");
  EXPECT_EQ(recipe.model, "m");
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(recipe.train_batch_size, 8);
  EXPECT_EQ(recipe.warmup_ratio, 0);
  EXPECT_EQ(recipe.warmup_steps, 10);
  EXPECT_EQ(recipe.eval_steps, 25);
  EXPECT_EQ(recipe.learning_rate, 3e-4);
  EXPECT_EQ(recipe.max_length, 512);
}

TEST(ForeignKeys, FilesOfLaunchersLeadToTheirKeys) {
  EXPECT_TRUE(contains(mistakes_in("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"),
                       "accelerate_config: FILE.yaml"));
  EXPECT_TRUE(contains(mistakes_in("{zero_optimization: {stage: 2}}"), "deepspeed: FILE.json"));
  EXPECT_TRUE(contains(mistakes_in("seed: 1\ndeepspeed: zero3\n"),
                       ":2:1: 'deepspeed' is zero3, but there is no such file; say strategy: "));
  const testing::TemporaryFolder folder;
  folder.write("ds.json", R"({"zero_optimization": {"stage": 2}})");
  const std::string path = folder.write("r.yaml", "deepspeed: ds.json").string();
  EXPECT_EQ(load_recipe(path, {}).strategy, Strategy::zero2) << "it lies next to the recipe";
}

TEST(ForeignKeys, NumbersMayHaveSeparators) {
  EXPECT_EQ(taken("sequence_len: 500_000").max_length, 500000);
  for (const char* wrong : {"max_steps: _5", "max_steps: 5_", "max_steps: 5__0"})
    EXPECT_TRUE(contains(mistakes_in(wrong), "expected a whole number")) << wrong;
}

TEST(ForeignKeys, NamesInAnotherOrderAreTheSame) {
  const std::vector<std::string> first{"q_proj", "v_proj"};
  for (const char* same :
       {"lora_target_modules: [q_proj, v_proj]\ntarget_modules: [v_proj, q_proj]",
        "target_modules: [q_proj, v_proj]\nlora_target: v_proj,q_proj",
        "target_modules: [q_proj, v_proj]\npeft_config:\n  target_modules: "
        "[v_proj, q_proj]"})
    EXPECT_EQ(taken(same).target_modules, first) << same;
  EXPECT_TRUE(contains(mistakes_in("lora_target_modules: [q_proj]\ntarget_modules: [v_proj]"),
                       "are names of the same key"));
  EXPECT_TRUE(
      contains(mistakes_in("adam_betas: [0.9, 0.99]\nns_coefficients: [1, 2, 3]\n"
                           "lora_target_modules: [q_proj, v_proj]\ntarget_modules: [v_proj, "
                           "q_proj, k_proj]"),
               "are names of the same key"));
}

TEST(ForeignKeys, TheTokenizersDefaultTemplateIsTheModelsOwn) {
  EXPECT_EQ(taken("chat_template: tokenizer_default\nmethod: lora").chat_template, "");
  for (const char* key : {"template", "conversation", "chat_template_jinja"})
    EXPECT_EQ(taken(fmt::format("{}: qwen3", key)).chat_template, "qwen3") << key;
  EXPECT_EQ(taken("chat_template: tokenizer_default_fallback_chatml").chat_template,
            "tokenizer_default_fallback_chatml")
      << "whether there is one the model's folder says";
}

TEST(ForeignKeys, AFileWithManyMistakesIsToldInOneRun) {
  const std::string error = mistakes_in(
      "seed: 1\nlerning_rate: 1\nlora_r: 0\nmax_steps: many\nzzz: 1\noptim: sgd\n"
      "lora_rank: 2\ntraining: {a: 1, b: 2}\n");
  for (const char* each :
       {":2:1: unknown key 'lerning_rate'; did you mean 'learning_rate'?", ":3:1: 'lora_r' is '0'",
        ":4:1: 'max_steps' is 'many'", ":5:1: unknown key 'zzz'", ":6:1: 'optim: sgd'",
        ":8:12: 'training' holds a nested value"})
    EXPECT_TRUE(contains(error, each)) << error;
  size_t at = 0;
  for (const char* line : {":2:1: ", ":3:1: ", ":4:1: ", ":5:1: ", ":6:1: ", ":8:12: "}) {
    const size_t found = error.find(line, at);
    EXPECT_NE(found, std::string::npos) << line << "comes in order in\n" << error;
    at = found == std::string::npos ? at : found;
  }
}

// What would leave out records or learn other parts is not passed over.
TEST(ForeignKeys, WhatWouldBeLearnedOtherwiseIsRefused) {
  for (const auto& [written, error] : std::vector<std::pair<std::string, std::string>>{
           {"truncation_strategy: split", "'truncation_strategy' is 'split'; expected one of"},
           {"train_on_eos:", ":1:1: 'train_on_eos' has no value: the end of each answer"},
           {"train_on_eot: null", "\"weight\": 0 or 1 in the data's messages"},
           {"relora_steps: 10", "'relora_steps' is '10', but Snug takes 0 only: this method"},
           {"num_beams: 4", "'num_beams' is '4', but Snug takes 1 only: searching with beams"},
           {"bias: all", "'bias' is 'all', but Snug takes none only: LoRA trains no biases here"},
           {"lora_bias: true", "say method: full, which trains all weights and biases"},
           {"lora_bias: lora_only", "'lora_bias' is 'lora_only', but Snug takes none or false"},
           {"peft_config:\n  lora_bias: true", "LoRA trains no biases here"},
           {"create_new_adapter: true", "merge it into the model first for a new one"},
           {"adapter_folder: sub", "say adapter: FOLDER"},
           {"peft_ensure_weight_tying: true", "gets an adapter for one of the two"},
           {"ensure_weight_tying: true", "'ensure_weight_tying' is 'true', but Snug takes false"},
           {"exclude_modules: [k_proj]", "this form of LoRA is not built"},
           {"agent_template: react", "'agent_template' is 'react': the chat template writes tools"},
           {"tool_format: mistral", "a template that writes them so"},
           {"eot_tokens: [<|endoftext|>]", "a template that ends answers in it"},
           {"label_names: [x]", "'label_names' is 'x', but Snug takes labels only"},
           {"data_collator: mine", "loss is on answers"},
           {"ignore_data_skip: true", "goes on with the records that it has not seen yet"},
           {"dataset_name: a/b\ndataset_train_split: 'train[10%:]'", "begin with the first record"},
           {"packing_strategy: wrapped",
            "'packing_strategy' is 'wrapped', but Snug takes bfd only"},
           {"train_sampling_strategy: other", "but Snug takes random or sequential or"},
           {"model_init_kwargs: {rope_scaling: {type: linear, factor: 2}}",
            "'model_init_kwargs': the model is trained as its config.json says"},
           {"model_kwargs: {attention_dropout: 0.1}", "the model is trained as its config.json"},
           {"model_init_kwargs: {quantization_config: {load_in_8bit: true}}", "weights are in 16"},
           {"tokenizer: {prompt_template: x}", "leave it out, or say chat_template: FILE"},
           {"tokenizer: {prompt_template: {user: ['Q: ', 'A: ']}}", "are a chat template's"},
           {"tokenizer: {truncation_type: left}", "what is too long is cut at its end"},
           {"checkpointer: {adapter_checkpoint: adapter_0.pt}", "an adapter of PEFT"},
           {"pref_loss: simpo", "say objective: orpo or objective: simpo"},
           {"loss_type: orpo\nobjective: dpo", "it is an objective of its own"},
           {"cpo_alpha: 1.0", "this part of the loss is not built"},
           {"plugins: [axolotl.integrations.liger.LigerPlugin, a.KDPlugin]",
            "code of other tools is not run"},
           {"external_plugins: [a.py]", "code of other tools is not run"},
           {"callbacks: [lisa]", "code of other tools is not run"},
           {"load_args: true", "args.json of another run is not read"},
           {"task_type: seq_cls", "language models alone are trained"},
           {"jagged_restart_steps: 100", "beginning again is not built"},
           {"accelerator_config: {split_batches: true}", "the rows of each device"}})
    EXPECT_TRUE(contains(mistakes_in(written), error)) << written << "\n" << mistakes_in(written);
}

TEST(ForeignKeys, DefaultsOfOtherToolsAreTaken) {
  const char* same = "this is so here in any case";
  for (const char* written :
       {"train_on_eos: turn", "num_beams: 1", "bias: none", "relora_steps: 0", "lora_bias: none",
        "lora_bias: false", "create_new_adapter: false", "label_names: [labels]",
        "plugins: [axolotl.integrations.liger.LigerPlugin, "
        "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]",
        "task_type: CAUSAL_LM", "packing_strategy: bfd"})
    EXPECT_TRUE(tells(taken(std::string(written) + "\nmethod: lora"), same)) << written;
  EXPECT_TRUE(tells(taken("relora_steps:\nmethod: lora"), "has no value"));
  EXPECT_TRUE(tells(taken("lora_on_cpu: true"), "'lora_on_cpu' (line 1): not used: an adapter"));
  EXPECT_TRUE(tells(taken("model_author: x"), "'model_author' (line 1): not used: it tells"));
}

TEST(ForeignKeys, TheOrderOfTheDataIsObeyed) {
  EXPECT_FALSE(taken("train_sampling_strategy: sequential").shuffle);
  EXPECT_TRUE(taken("train_sampling_strategy: random").shuffle);
  for (const char* grouped :
       {"train_sampling_strategy: group_by_length", "group_by_length: true"}) {
    EXPECT_TRUE(taken(grouped).shuffle) << grouped;
    EXPECT_TRUE(tells(taken(grouped), "as shuffle says and not by their lengths")) << grouped;
  }
}

TEST(ForeignKeys, WhatTrlGivesToTheModelIsObeyedWhereItIsAKey) {
  const Recipe recipe = taken(
      "model_init_kwargs: {dtype: bfloat16, load_in_4bit: true, attn_implementation: sdpa}\n");
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::bf16);
  EXPECT_TRUE(recipe.load_in_4bit);
  EXPECT_TRUE(tells(recipe, "'model_init_kwargs.attn_implementation' (line 1): not used"));
  EXPECT_EQ(taken("accelerator_config: {gradient_accumulation_kwargs: {num_steps: 4}}")
                .gradient_accumulation_steps,
            4);
  EXPECT_EQ(taken("run_val_every_n_steps: 7\neval_data: e").eval_steps, 7);
}

TEST(ForeignKeys, TheTableIsSound) {
  std::set<std::string_view> paths;
  for (const ToolKey& key : foreign_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path << " stands there twice";
    EXPECT_EQ(find_recipe_key(key.path), nullptr) << key.path << " is a key of recipes";
    EXPECT_EQ(find_tool_key(foreign_keys(), key.path)->path, key.path)
        << key.path << " comes after a row that fits it";
    if (!key.key.empty()) {
      ASSERT_NE(find_recipe_key(key.key), nullptr) << key.key;
      EXPECT_NE(find_recipe_key(key.key)->field.set, nullptr) << key.key;
    } else {
      EXPECT_FALSE(key.reason.empty()) << key.path;
    }
    for (const ToolWord& word : key.words) {
      if (word.to.empty() || key.key.empty()) continue;
      EXPECT_NO_THROW(parse_value(*find_recipe_key(key.key),
                                  {std::string(key.key), {std::string(word.to)}, false, {}}))
          << key.path;
    }
  }
}

}  // namespace
}  // namespace snug::formats
