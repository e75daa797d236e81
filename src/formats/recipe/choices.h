// The choices of a recipe, with their words, as used by the table of keys, the passes and the
// plans.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/learned_turns.h"
#include "base/preference_loss.h"
#include "base/record_forms.h"
#include "base/truncation.h"
#include "base/words.h"

namespace snug::formats {

enum class Method : uint8_t { full, lora, qlora, adapter, adapter_v2 };
constexpr auto words_of(Method /*type*/) {
  return base::words<Method>({{Method::full, "full"},
                              {Method::lora, "lora"},
                              {Method::qlora, "qlora"},
                              {Method::adapter, "adapter"},
                              {Method::adapter_v2, "adapter_v2"}});
}

// The gates of LLaMA-Adapter's prompts.
enum class AdapterGates : uint8_t {
  // As in PEFT for a model whose adapters PEFT loads; otherwise one for each head.
  automatic,
  head,   // one for each head, as in the paper and Lit-GPT
  layer,  // one for all heads of a layer, as in PEFT
};
constexpr auto words_of(AdapterGates /*type*/) {
  return base::words<AdapterGates>({{AdapterGates::automatic, "auto"},
                                    {AdapterGates::head, "head"},
                                    {AdapterGates::layer, "layer"}});
}

// The course of the learning rate, with transformers' names.
enum class Schedule : uint8_t {
  constant,              // without warm-up
  constant_with_warmup,  // the peak value after the warm-up
  linear,                // falls to 0
  cosine,                // falls to 0 along a cosine
  cosine_with_min_lr,    // falls to min_lr along a cosine
  // Stays at the peak, then falls in the last num_decay_steps.
  warmup_stable_decay,
  cosine_with_restarts,       // falls to 0 along a cosine, num_cycles times
  cosine_warmup_with_min_lr,  // the same as cosine_with_min_lr, but no step has a rate of 0
  polynomial,                 // falls to lr_end as a power of the share that is left
  inverse_sqrt,               // falls as one over the square root of the steps
};
constexpr auto words_of(Schedule /*type*/) {
  return base::words<Schedule>({{Schedule::constant, "constant"},
                                {Schedule::constant_with_warmup, "constant_with_warmup"},
                                {Schedule::linear, "linear"},
                                {Schedule::cosine, "cosine"},
                                {Schedule::cosine_with_min_lr, "cosine_with_min_lr"},
                                {Schedule::warmup_stable_decay, "warmup_stable_decay"},
                                {Schedule::cosine_with_restarts, "cosine_with_restarts"},
                                {Schedule::cosine_warmup_with_min_lr, "cosine_warmup_with_min_lr"},
                                {Schedule::polynomial, "polynomial"},
                                {Schedule::inverse_sqrt, "inverse_sqrt"}});
}

// The curve along which warmup_stable_decay rises and falls.
enum class Ramp : uint8_t { linear, cosine, one_minus_root };
constexpr auto words_of(Ramp /*type*/) {
  return base::words<Ramp>(
      {{Ramp::linear, "linear"}, {Ramp::cosine, "cosine"}, {Ramp::one_minus_root, "1-sqrt"}});
}

enum class Optimizer : uint8_t { adamw, adamw_bf16, adamw_8bit, lion, adafactor, muon };
constexpr auto words_of(Optimizer /*type*/) {
  return base::words<Optimizer>({{Optimizer::adamw, "adamw"},
                                 {Optimizer::adamw_bf16, "adamw_bf16"},
                                 {Optimizer::adamw_8bit, "adamw_8bit"},
                                 {Optimizer::lion, "lion"},
                                 {Optimizer::adafactor, "adafactor"},
                                 {Optimizer::muon, "muon"}});
}

// How Muon's learning rate depends on the shape (rows, columns) of a matrix.
enum class AdjustLearningRate : uint8_t {
  original,            // multiplied by sqrt(max(1, rows / columns))
  match_rms_adamw,     // multiplied by 0.2 sqrt(max(rows, columns))
  spectral_unclamped,  // multiplied by sqrt(rows / columns)
};
constexpr auto words_of(AdjustLearningRate /*type*/) {
  return base::words<AdjustLearningRate>(
      {{AdjustLearningRate::original, "original"},
       {AdjustLearningRate::match_rms_adamw, "match_rms_adamw"},
       {AdjustLearningRate::spectral_unclamped, "spectral_unclamped"}});
}

enum class GradientDtype : uint8_t { automatic, fp32, bf16 };
constexpr auto words_of(GradientDtype /*type*/) {
  return base::words<GradientDtype>({{GradientDtype::automatic, "auto"},
                                     {GradientDtype::fp32, "fp32"},
                                     {GradientDtype::bf16, "bf16"}});
}

// Of a model that was trained in 4 bits: the values to which a merge adds the adapter.
enum class MergeInto : uint8_t {
  automatic,        // those with the smaller drift
  sixteen_bit,      // the model in 16 bits
  quantised_values  // what NF4 stands for, on which the adapter was trained
};
constexpr auto words_of(MergeInto /*type*/) {
  return base::words<MergeInto>({{MergeInto::automatic, "auto"},
                                 {MergeInto::sixteen_bit, "16bit"},
                                 {MergeInto::quantised_values, "nf4"}});
}

// What is learned from the data.
enum class Objective : uint8_t {
  next_token,  // each token, given those before it
  // Which of two answers is preferred, relative to the initial model.
  dpo,
  // The preferred of two answers, and the odds ratio between the two.
  orpo,
  // Whether an answer is desirable, relative to the initial model.
  kto,
  // Which of several answers to a prompt, that the model gives itself, are rewarded most.
  grpo,
  // Which of two answers is preferred, by the mean of its tokens' log-probabilities.
  simpo,
};
constexpr auto words_of(Objective /*type*/) {
  return base::words<Objective>({{Objective::next_token, "next_token"},
                                 {Objective::dpo, "dpo"},
                                 {Objective::orpo, "orpo"},
                                 {Objective::kto, "kto"},
                                 {Objective::grpo, "grpo"},
                                 {Objective::simpo, "simpo"}});
}

// The loss of a pair of answers.
using base::PreferenceLoss;

// What a token of a rewarded answer counts in the loss of a step, by TRL's names of loss_type.
enum class AnswerLoss : uint8_t {
  grpo,     // the mean over answers of the mean over an answer's tokens
  bnpo,     // the mean over the tokens of a micro-batch, and over micro-batches
  dr_grpo,  // the sum over tokens, divided by answers and by the longest length that they may have
  dapo,     // the mean over the tokens of the step
};
constexpr auto words_of(AnswerLoss /*type*/) {
  return base::words<AnswerLoss>({{AnswerLoss::grpo, "grpo"},
                                  {AnswerLoss::bnpo, "bnpo"},
                                  {AnswerLoss::dr_grpo, "dr_grpo"},
                                  {AnswerLoss::dapo, "dapo"}});
}

// All losses of answers; which of them an objective has, it says itself.
enum class LossType : uint8_t {
  automatic,  // the first of the objective's own
  sigmoid,
  hinge,
  ipo,
  exo_pair,
  nca_pair,
  robust,
  bco_pair,
  sppo_hard,
  apo_zero,
  apo_down,
  sigmoid_norm,
  grpo,
  bnpo,
  dr_grpo,
  dapo,
};
constexpr auto words_of(LossType /*type*/) {
  return base::words<LossType>({{LossType::automatic, "auto"},
                                {LossType::sigmoid, "sigmoid"},
                                {LossType::hinge, "hinge"},
                                {LossType::ipo, "ipo"},
                                {LossType::exo_pair, "exo_pair"},
                                {LossType::nca_pair, "nca_pair"},
                                {LossType::robust, "robust"},
                                {LossType::bco_pair, "bco_pair"},
                                {LossType::sppo_hard, "sppo_hard"},
                                {LossType::apo_zero, "apo_zero"},
                                {LossType::apo_down, "apo_down"},
                                {LossType::sigmoid_norm, "sigmoid_norm"},
                                {LossType::grpo, "grpo"},
                                {LossType::bnpo, "bnpo"},
                                {LossType::dr_grpo, "dr_grpo"},
                                {LossType::dapo, "dapo"}});
}

// What an answer's distance from the mean of its group is divided by.
enum class ScaleRewards : uint8_t {
  group,  // the deviation of the group's rewards
  batch,  // the deviation of all rewards
  none,
};
constexpr auto words_of(ScaleRewards /*type*/) {
  return base::words<ScaleRewards>({{ScaleRewards::group, "group"},
                                    {ScaleRewards::batch, "batch"},
                                    {ScaleRewards::none, "none"}});
}

// What an answer's reward is held against.
enum class Advantage : uint8_t {
  group,  // the mean of all answers to its prompt
  rloo,   // the mean of the others (Ahmadian et al. 2024)
};
constexpr auto words_of(Advantage /*type*/) {
  return base::words<Advantage>({{Advantage::group, "group"}, {Advantage::rloo, "rloo"}});
}

// Of what the ratio between the policy and the one that made an answer is taken.
enum class ImportanceLevel : uint8_t { token, sequence };
constexpr auto words_of(ImportanceLevel /*type*/) {
  return base::words<ImportanceLevel>(
      {{ImportanceLevel::token, "token"}, {ImportanceLevel::sequence, "sequence"}});
}

// Where the log-probabilities of answers come from that updates are held against.
enum class OldLogProbabilities : uint8_t {
  automatic,
  generation,  // from the programs that made the answers
  recompute,   // from the training forward pass, before the first update
};
constexpr auto words_of(OldLogProbabilities /*type*/) {
  return base::words<OldLogProbabilities>({{OldLogProbabilities::automatic, "auto"},
                                           {OldLogProbabilities::generation, "generation"},
                                           {OldLogProbabilities::recompute, "recompute"}});
}

enum class ComputeDtype : uint8_t { automatic, bf16, fp16, fp32 };
constexpr auto words_of(ComputeDtype /*type*/) {
  return base::words<ComputeDtype>({{ComputeDtype::automatic, "auto"},
                                    {ComputeDtype::bf16, "bf16"},
                                    {ComputeDtype::fp16, "fp16"},
                                    {ComputeDtype::fp32, "fp32"}});
}

// Where optimizer state and the gradients of a step are kept, and where weights are updated.
enum class OffloadOptimizer : uint8_t {
  none,       // kept and updated on the device
  stream,     // kept on the host, updated on the device while streaming
  host,       // kept and updated on the host
  automatic,  // host or stream, whichever makes the step shorter
};
constexpr auto words_of(OffloadOptimizer /*type*/) {
  return base::words<OffloadOptimizer>({{OffloadOptimizer::none, "none"},
                                        {OffloadOptimizer::stream, "stream"},
                                        {OffloadOptimizer::host, "host"},
                                        {OffloadOptimizer::automatic, "auto"}});
}

// What the backward pass recomputes instead of keeping it.
enum class Recompute : uint8_t {
  automatic,          // chosen for each layer: the fastest choice that fits the device's memory
  keep_all,           // nothing
  none,               // only elementwise outputs
  gate_up,            // also the inputs of silu_mul
  attention,          // also everything from the layer's input to attention's output
  all_but_attention,  // everything except each layer's input and attention's output (checkpoints)
  layer,              // everything except one checkpoint: each layer's input
};
constexpr auto words_of(Recompute /*type*/) {
  return base::words<Recompute>({{Recompute::automatic, "auto"},
                                 {Recompute::keep_all, "keep_all"},
                                 {Recompute::none, "none"},
                                 {Recompute::gate_up, "gate_up"},
                                 {Recompute::attention, "attention"},
                                 {Recompute::all_but_attention, "all_but_attention"},
                                 {Recompute::layer, "layer"}});
}

// What each device keeps of weights, gradients and optimizer state when several devices train
// together.
enum class Strategy : uint8_t {
  ddp,    // everything
  zero1,  // its share of the optimizer state
  zero2,  // its share of the optimizer state and of the gradients
  // Its share of everything; weights are gathered for a whole forward and backward pass.
  shard_grad_op,
  // Its share of everything; weights are gathered layer by layer.
  full_shard,
  hybrid_shard_grad_op,  // shard_grad_op in groups of devices, and ddp between the groups
  hybrid_full_shard,     // full_shard in groups of devices, and ddp between the groups
};
constexpr auto words_of(Strategy /*type*/) {
  return base::words<Strategy>({{Strategy::ddp, "ddp"},
                                {Strategy::zero1, "zero1"},
                                {Strategy::zero2, "zero2"},
                                {Strategy::shard_grad_op, "shard_grad_op"},
                                {Strategy::full_shard, "full_shard"},
                                {Strategy::hybrid_shard_grad_op, "hybrid_shard_grad_op"},
                                {Strategy::hybrid_full_shard, "hybrid_full_shard"}});
}

// When the backward pass starts to gather the weights of the next layer.
enum class Prefetch : uint8_t {
  pre,   // before it computes the gradients of the current layer
  post,  // after it has computed them
  none,  // when it needs them
};
constexpr auto words_of(Prefetch /*type*/) {
  return base::words<Prefetch>(
      {{Prefetch::pre, "pre"}, {Prefetch::post, "post"}, {Prefetch::none, "none"}});
}

// The type in which gradients are sent between devices.
enum class ReduceDtype : uint8_t { automatic, fp32, bf16 };
constexpr auto words_of(ReduceDtype /*type*/) {
  return base::words<ReduceDtype>(
      {{ReduceDtype::automatic, "auto"}, {ReduceDtype::fp32, "fp32"}, {ReduceDtype::bf16, "bf16"}});
}

// The words that resume_from_checkpoint takes besides a folder.
enum class Resume : uint8_t {
  none,       // the run starts from the beginning
  automatic,  // from the newest complete checkpoint of output_dir, if there is one
};
constexpr auto words_of(Resume /*type*/) {
  return base::words<Resume>({{Resume::none, "none"}, {Resume::automatic, "auto"}});
}

enum class Init : uint8_t { files, random };
constexpr auto words_of(Init /*type*/) {
  return base::words<Init>({{Init::files, "files"}, {Init::random, "random"}});
}

enum class BackendName : uint8_t { cpu, reference, cuda };
constexpr auto words_of(BackendName /*type*/) {
  return base::words<BackendName>({{BackendName::cpu, "cpu"},
                                   {BackendName::reference, "reference"},
                                   {BackendName::cuda, "cuda"}});
}

// The form of records; `automatic`: decided by the first record.
enum class DataFormat : uint8_t {
  automatic,
#define SNUG_FORM(name) name,
  SNUG_RECORD_FORMS(SNUG_FORM)
#undef SNUG_FORM
};
constexpr auto words_of(DataFormat /*type*/) {
  return base::words<DataFormat>({{DataFormat::automatic, "auto"},
#define SNUG_FORM(name) {DataFormat::name, #name},
                                  SNUG_RECORD_FORMS(SNUG_FORM)
#undef SNUG_FORM
  });
}

// How records that cannot be learned from are handled.
enum class OnBadRecord : uint8_t {
  skip,   // it is left out, counted and named, unless there are too many (max_skipped)
  error,  // nothing is trained; all such records are named, by reason
};
constexpr auto words_of(OnBadRecord /*type*/) {
  return base::words<OnBadRecord>({{OnBadRecord::skip, "skip"}, {OnBadRecord::error, "error"}});
}

enum class PromptFormat : uint8_t { raw, alpaca, chat };
constexpr auto words_of(PromptFormat /*type*/) {
  return base::words<PromptFormat>(
      {{PromptFormat::raw, "raw"}, {PromptFormat::alpaca, "alpaca"}, {PromptFormat::chat, "chat"}});
}

// When a run evaluates; steps: every eval_steps.
enum class EvalStrategy : uint8_t { no, steps, epoch };
constexpr auto words_of(EvalStrategy /*type*/) {
  return base::words<EvalStrategy>(
      {{EvalStrategy::no, "no"}, {EvalStrategy::steps, "steps"}, {EvalStrategy::epoch, "epoch"}});
}

// When a run writes checkpoints; steps: every save_steps, best: where the metric is better than
// ever before.
enum class SaveStrategy : uint8_t { no, steps, epoch, best };
constexpr auto words_of(SaveStrategy /*type*/) {
  return base::words<SaveStrategy>({{SaveStrategy::no, "no"},
                                    {SaveStrategy::steps, "steps"},
                                    {SaveStrategy::epoch, "epoch"},
                                    {SaveStrategy::best, "best"}});
}

// How LoRA's A and B begin (PEFT's init_lora_weights).
enum class LoraInit : uint8_t { standard, gaussian };
constexpr auto words_of(LoraInit /*type*/) {
  return base::words<LoraInit>({{LoraInit::standard, "true"}, {LoraInit::gaussian, "gaussian"}});
}

// In what the keys and values of cached tokens are stored; automatic: in the compute type.
enum class CacheDtype : uint8_t { automatic, int8 };
constexpr auto words_of(CacheDtype /*type*/) {
  return base::words<CacheDtype>({{CacheDtype::automatic, "auto"}, {CacheDtype::int8, "int8"}});
}

}  // namespace snug::formats
