#include <fmt/format.h>

#include <string>

#include "formats/recipe/optimizer_keys.h"
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

constexpr std::string_view kSmallStateAdvice =
    "this optimizer is not built; it saves the memory of optimizer state, which optim: adamw_8bit "
    "does too, at about 2 bytes per weight";
constexpr std::string_view kInBackwardAdvice =
    "this optimizer is not built; it frees gradients as it goes, which optim_in_backward: true "
    "does with optim: adamw_8bit and max_grad_norm: 0";
constexpr std::string_view kOtherOptimizerAdvice =
    "this optimizer is not built; adamw, lion, adafactor and muon are, and adamw_8bit where memory "
    "is "
    "short";

constexpr double kMinEpsilon = 1e-30;     // bf16 can represent it and its inverse
constexpr double kMaxCoefficient = 1000;  // for a polynomial whose powers must fit f32

// Keys hold views of texts, so texts that are made from the table of optimizers must live here.
const std::string& optim_help() {
  static const std::string text = [] {
    std::string all;
    std::string names;
    for (const OptimizerKeys& row : optimizer_keys()) {
      const std::string_view word = base::word_of(row.optimizer);
      all += fmt::format("{}: {}; ", word, row.help);
      if (row.other_names.empty()) continue;
      if (!names.empty()) names += "; ";
      names += fmt::format("{} mean {}", fmt::join(row.other_names, ", "), word);
    }
    all.resize(all.size() - 2);
    return fmt::format(
        "{}. Other names are accepted: {} (adamw_torch_8bit is torchao's, whose own state "
        "differs). "
        "The plan covers the largest micro-batch, so nothing is paged",
        all, names);
  }();
  return text;
}

std::vector<Translation> translations_to_optimizers() {
  std::vector<Translation> all;
  for (const OptimizerKeys& row : optimizer_keys())
    for (const std::string_view name : row.other_names)
      all.push_back({name, base::word_of(row.optimizer)});
  return all;
}

void add_optimizer(KeyTable& table) {
  table.add<&Recipe::optim>("optim", Optimizer::adamw, optim_help())
      .aliases({"optimizer"})
      .translations(translations_to_optimizers())
      .not_built({"adamw_torch_4bit", "galore_adamw", "galore_adamw_8bit", "galore_adafactor",
                  "galore_adamw_layerwise", "galore_adamw_8bit_layerwise",
                  "galore_adafactor_layerwise", "apollo_adamw", "apollo_adamw_layerwise"},
                 kSmallStateAdvice)
      .not_built({"lomo", "adalomo"}, kInBackwardAdvice)
      .not_built(
          {"sgd", "adagrad", "rmsprop", "rmsprop_bnb", "rmsprop_bnb_8bit", "rmsprop_bnb_32bit",
           "lion_8bit", "paged_lion_8bit", "ademamix", "ademamix_8bit", "paged_ademamix_32bit",
           "paged_ademamix_8bit", "adamw_anyprecision", "grokadamw", "schedule_free_radam",
           "schedule_free_adamw", "schedule_free_sgd", "stable_adamw"},
          kOtherOptimizerAdvice)
      .on_resume(OnResume::fixed);
}

void add_muon_keys(KeyTable& table) {
  table
      .add<&Recipe::muon_momentum>("muon_momentum", "0.95",
                                   "muon: decay of the mean of a matrix's gradients")
      .range(kBelowOne);
  table.add<&Recipe::nesterov>("nesterov", "true",
                               "muon: Nesterov's form of the mean, in which the step's gradient "
                               "counts more");
  table
      .add<&Recipe::ns_coefficients>(
          "ns_coefficients", "[3.4445, -4.775, 2.0315]",
          "muon: a, b and c of a Newton-Schulz step, x = a x + (b p + c p p) x with p = x x^T, "
          "which makes an update more orthogonal; neither a nor b is 0")
      .range({.least = -kMaxCoefficient, .most = kMaxCoefficient});
  table.add<&Recipe::ns_steps>("ns_steps", "5", "muon: number of such steps, in bf16")
      .range({.least = 1, .most = 99});
  table
      .add<&Recipe::muon_epsilon>("muon_epsilon", "1e-07",
                                  "muon: lower limit of the norm that an update is divided by")
      .range({.least = kMinEpsilon, .most = kMaxFloat});
  table.add<&Recipe::adjust_lr_fn>(
      "adjust_lr_fn", AdjustLearningRate::original,
      "muon: factor of the learning rate for a matrix of shape (m, n): original: sqrt(max(1, m / "
      "n)); match_rms_adamw: 0.2 sqrt(max(m, n)), so that one learning rate suits matrices and "
      "what AdamW updates; spectral_unclamped: sqrt(m / n)");
}

// Keys that only some optimizers read; optimizer_keys.h says which do, and with which defaults.
void add_keys_of_some(KeyTable& table) {
  table.add<&Recipe::adam_beta1>("adam_beta1", "0.9", "decay of the mean of the gradients")
      .range(kBelowOne);
  table
      .add<&Recipe::adam_beta2>("adam_beta2", "0.999",
                                "decay of the mean of their squares; lion (default 0.99): of the "
                                "mean that is kept")
      .range(kBelowOne);
  table
      .add<&Recipe::adam_epsilon>("adam_epsilon", "1e-08", "added to the denominator of the update")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::decay_rate>("decay_rate", "-0.8",
                                "adafactor: second moments decay by 1 - step^decay_rate")
      .range({.least = -kMaxFloat, .most = 0, .most_excluded = true});
  table
      .add<&Recipe::clip_threshold>("clip_threshold", "1",
                                    "adafactor: upper limit of the root mean square of a tensor's "
                                    "update, before the learning rate")
      .range({.least = 0, .most = kMaxFloat, .least_excluded = true});
  constexpr std::string_view kGivenRate =
      "adafactor takes the learning rate that the recipe gives, as transformers' Trainer has it; "
      "leave it out";
  for (const std::string_view key : {"scale_parameter", "relative_step", "warmup_init"})
    table.recognise(key, ValueType::boolean).not_built({"true"}, kGivenRate);
}

}  // namespace

void add_optimizer_keys(KeyTable& table) {
  table.group("Optimizer", kTraining, OnResume::free);
  add_optimizer(table);
  table
      .add<&Recipe::optim_in_backward>(
          "optim_in_backward", "false",
          "update each weight as soon as its gradient is computed, so that about one gradient is "
          "in "
          "memory at a time; needs max_grad_norm=0 and gradient_accumulation_steps=1")
      .aliases({"optimizer_in_bwd"})
      .on_resume(OnResume::ignored);
  table.add<&Recipe::gradient_dtype>(
      "gradient_dtype", GradientDtype::automatic,
      "type of gradients; auto: compute_dtype with adamw_bf16 and adamw_8bit, else fp32");
  table
      .add<&Recipe::weight_decay>("weight_decay", "0",
                                  "decoupled weight decay, not of norms and biases")
      .range({.least = 0, .most = kMaxFloat});
  add_keys_of_some(table);
  add_muon_keys(table);
  table
      .add<&Recipe::max_grad_norm>(
          "max_grad_norm", "1",
          "gradients are clipped to this norm of all of them together; 0: no clipping")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::ema_decay>(
          "ema_decay", "0",
          "the result is an exponential moving average of what trains, of which each step keeps "
          "this share; 0: the result is the last step's")
      .range(kBelowOne)
      .on_resume(OnResume::fixed);
}

}  // namespace snug::formats
