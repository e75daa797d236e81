#include "formats/recipe_table.h"

namespace snug::formats {
namespace {

constexpr std::string_view kSmallStateAdvice =
    "this optimizer is not built; it saves the memory of optimizer state, which optim: adamw_8bit "
    "does too, at about 2 bytes per weight";
constexpr std::string_view kInBackwardAdvice =
    "this optimizer is not built; it frees gradients as it goes, which optim_in_backward: true "
    "does with optim: adamw_8bit and max_grad_norm: 0";
constexpr std::string_view kOtherOptimizerAdvice =
    "this optimizer is not built; AdamW is: adamw, or adamw_8bit where memory is short";

}  // namespace

void add_optimizer_keys(KeyTable& table) {
  table.group("Optimizer", kTraining);
  table
      .add<&Recipe::optim>(
          "optim", Optimizer::adamw,
          "adamw: fp32 weights and moments; adamw_bf16: both bf16, rounded stochastically; "
          "adamw_8bit: moments of 8 bits, state and update bitsandbytes', weights in "
          "compute_dtype. "
          "Other names are taken: adamw_torch, adamw_torch_fused, adamw_torch_xla, "
          "adamw_torch_npu_fused, adamw_apex_fused, adamw_hf, paged_adamw and paged_adamw_32bit "
          "mean adamw; adamw_bnb_8bit, paged_adamw_8bit and adamw_torch_8bit (torchao's, whose own "
          "state differs) mean adamw_8bit. The plan covers the largest micro-batch, so nothing is "
          "paged")
      .aliases({"optimizer"})
      .translations({{"adamw_torch", "adamw"},
                     {"adamw_torch_fused", "adamw"},
                     {"adamw_torch_xla", "adamw"},
                     {"adamw_torch_npu_fused", "adamw"},
                     {"adamw_apex_fused", "adamw"},
                     {"adamw_hf", "adamw"},
                     {"paged_adamw", "adamw"},
                     {"paged_adamw_32bit", "adamw"},
                     {"adamw_bnb_8bit", "adamw_8bit"},
                     {"adamw_torch_8bit", "adamw_8bit"},
                     {"paged_adamw_8bit", "adamw_8bit"}})
      .not_built({"adafactor", "adamw_torch_4bit", "galore_adamw", "galore_adamw_8bit",
                  "galore_adafactor", "galore_adamw_layerwise", "galore_adamw_8bit_layerwise",
                  "galore_adafactor_layerwise", "apollo_adamw", "apollo_adamw_layerwise"},
                 kSmallStateAdvice)
      .not_built({"lomo", "adalomo"}, kInBackwardAdvice)
      .not_built({"sgd",
                  "adagrad",
                  "rmsprop",
                  "rmsprop_bnb",
                  "rmsprop_bnb_8bit",
                  "rmsprop_bnb_32bit",
                  "lion",
                  "lion_8bit",
                  "lion_32bit",
                  "paged_lion",
                  "paged_lion_8bit",
                  "paged_lion_32bit",
                  "ademamix",
                  "ademamix_8bit",
                  "paged_ademamix_32bit",
                  "paged_ademamix_8bit",
                  "adamw_anyprecision",
                  "grokadamw",
                  "schedule_free_radam",
                  "schedule_free_adamw",
                  "schedule_free_sgd",
                  "stable_adamw",
                  "muon"},
                 kOtherOptimizerAdvice);
  table
      .add<&Recipe::optim_in_backward>(
          "optim_in_backward", "false",
          "update each weight as soon as its gradient is there, so that about one gradient is in "
          "memory; needs max_grad_norm 0 and gradient_accumulation_steps 1")
      .aliases({"optimizer_in_bwd"});
  table.add<&Recipe::gradient_dtype>(
      "gradient_dtype", GradientDtype::automatic,
      "of gradients; auto: fp32 with adamw, compute_dtype with adamw_bf16 and adamw_8bit");
  table.add<&Recipe::weight_decay>("weight_decay", "0", "decoupled, not on norms and biases")
      .range({.least = 0, .most = kMaxFloat});
  table.add<&Recipe::adam_beta1>("adam_beta1", "0.9", "decay of the mean of the gradients")
      .range(kBelowOne);
  table.add<&Recipe::adam_beta2>("adam_beta2", "0.999", "decay of the mean of their squares")
      .range(kBelowOne);
  table
      .add<&Recipe::adam_epsilon>("adam_epsilon", "1e-08", "added to the denominator of the update")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::max_grad_norm>(
          "max_grad_norm", "1",
          "gradients are clipped to this norm, over all of them; 0: not at all")
      .range({.least = 0, .most = kMaxFloat});
}

}  // namespace snug::formats
