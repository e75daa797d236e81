#include "formats/recipe/optimizer_keys.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace snug::formats {
namespace {

using std::string_view;

constexpr std::array<OptimizerKey, 3> kOfAdamW{
    {{"adam_beta1", "0.9"}, {"adam_beta2", "0.999"}, {"adam_epsilon", "1e-08"}}};
constexpr std::array<OptimizerKey, 2> kOfLion{{{"adam_beta1", "0.9"}, {"adam_beta2", "0.99"}}};
constexpr std::array<OptimizerKey, 2> kOfAdafactor{
    {{"decay_rate", "-0.8"}, {"clip_threshold", "1"}}};
// Muon's own keys, and those of AdamW, which updates everything except matrices of layers.
constexpr std::array<OptimizerKey, 9> kOfMuon{
    {{"muon_momentum", "0.95"},
     {"nesterov", "true"},
     {"ns_coefficients", "[3.4445, -4.775, 2.0315]"},
     {"ns_steps", "5"},
     {"muon_epsilon", "1e-07"},
     {"adjust_lr_fn", base::word_of(AdjustLearningRate::original)},
     {"adam_beta1", "0.9"},
     {"adam_beta2", "0.999"},
     {"adam_epsilon", "1e-08"}}};

constexpr std::array<string_view, 8> kNamesOfAdamW{
    "adamw_torch",      "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused",
    "adamw_apex_fused", "adamw_hf",          "paged_adamw",     "paged_adamw_32bit"};
constexpr std::array<string_view, 3> kNamesOfAdamW8bit{"adamw_bnb_8bit", "adamw_torch_8bit",
                                                       "paged_adamw_8bit"};
constexpr std::array<string_view, 3> kNamesOfLion{"lion_32bit", "paged_lion", "paged_lion_32bit"};

constexpr std::array kTable{
    OptimizerKeys{.optimizer = Optimizer::adamw,
                  .help = "fp32 weights and moments",
                  .other_names = kNamesOfAdamW,
                  .keys = kOfAdamW},
    OptimizerKeys{.optimizer = Optimizer::adamw_bf16,
                  .help = "both bf16, rounded stochastically",
                  .keys = kOfAdamW},
    OptimizerKeys{.optimizer = Optimizer::adamw_8bit,
                  .help = "8-bit moments, state and update as in bitsandbytes, weights in "
                          "compute_dtype",
                  .other_names = kNamesOfAdamW8bit,
                  .keys = kOfAdamW},
    OptimizerKeys{.optimizer = Optimizer::lion,
                  .help = "fp32 weights and one moment, whose sign is the update; needs a third "
                          "to a tenth of AdamW's learning rate",
                  .other_names = kNamesOfLion,
                  .keys = kOfLion},
    OptimizerKeys{.optimizer = Optimizer::adafactor,
                  .help = "fp32 weights, and for a matrix one number per row and per column; on "
                          "several devices with strategy=ddp alone",
                  .keys = kOfAdafactor},
    OptimizerKeys{.optimizer = Optimizer::muon,
                  .help = "for matrices of layers fp32 weights and one moment, which is made "
                          "orthogonal; adamw for all other weights",
                  .keys = kOfMuon}};

}  // namespace

std::span<const OptimizerKeys> optimizer_keys() { return kTable; }

const OptimizerKeys& optimizer_keys_of(Optimizer optimizer) {
  const auto found = std::ranges::find(kTable, optimizer, &OptimizerKeys::optimizer);
  SNUG_CHECK(found != kTable.end(), "recipes say nothing of {}", base::word_of(optimizer));
  return *found;
}

bool is_optimizer_key(string_view key) {
  return std::ranges::any_of(kTable, [&](const OptimizerKeys& row) {
    return std::ranges::find(row.keys, key, &OptimizerKey::name) != row.keys.end();
  });
}

const OptimizerKey* find_optimizer_key(Optimizer optimizer, string_view key) {
  const std::span<const OptimizerKey> keys = optimizer_keys_of(optimizer).keys;
  const auto found = std::ranges::find(keys, key, &OptimizerKey::name);
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace snug::formats
