#include "formats/recipe/method_keys.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace snug::formats {
namespace {

using std::string_view;

constexpr double kAdapterLearningRate = 2e-4;
constexpr double kFullLearningRate = 1e-5;
// Lit-GPT's rate: gates begin at zero, so prompts need a higher rate than weights.
constexpr double kPromptLearningRate = 3e-3;
// The rates of TRL's trainer and of its example with LoRA.
constexpr double kPairAdapterLearningRate = 5e-6;
constexpr double kPairFullLearningRate = 1e-6;
// In the same proportion to the normal rate as LoRA's.
constexpr double kPairPromptLearningRate = 7.5e-5;

constexpr string_view kMergedAlready =
    "trains the model's own weights, so that OUTPUT_DIR/model is complete and nothing is left to "
    "merge";
constexpr string_view kNoWeights =
    "trains prompts that attention reads through gates, which no weights of the model can express; "
    "its adapter is applied where the model runs";

constexpr std::array kMethodTable{MethodKeys{.method = Method::full,
                                             .learning_rate = kFullLearningRate,
                                             .pair_learning_rate = kPairFullLearningRate,
                                             .in_4_bits = std::nullopt,
                                             .trains_weights = true,
                                             .not_merged = kMergedAlready},
                                  MethodKeys{.method = Method::lora,
                                             .learning_rate = kAdapterLearningRate,
                                             .pair_learning_rate = kPairAdapterLearningRate,
                                             .in_4_bits = Method::qlora},
                                  MethodKeys{.method = Method::qlora,
                                             .learning_rate = kAdapterLearningRate,
                                             .pair_learning_rate = kPairAdapterLearningRate,
                                             .in_4_bits = Method::qlora,
                                             .always_in_4_bits = true},
                                  MethodKeys{.method = Method::adapter,
                                             .learning_rate = kPromptLearningRate,
                                             .pair_learning_rate = kPairPromptLearningRate,
                                             .in_4_bits = Method::adapter,
                                             .not_merged = kNoWeights},
                                  MethodKeys{.method = Method::adapter_v2,
                                             .learning_rate = kPromptLearningRate,
                                             .pair_learning_rate = kPairPromptLearningRate,
                                             .in_4_bits = Method::adapter_v2,
                                             .not_merged = kNoWeights}};

constexpr std::array kLora{Method::lora, Method::qlora};
constexpr std::array<string_view, 14> kOfLora{
    "layers_to_transform", "rank_pattern",     "alpha_pattern",     "lora_r",
    "lora_alpha",          "lora_dropout",     "target_modules",    "modules_to_save",
    "use_rslora",          "use_dora",         "loraplus_lr_ratio", "loraplus_lr_embedding",
    "init_lora_weights",   "target_parameters"};
constexpr std::array kPrompts{Method::adapter, Method::adapter_v2};
constexpr std::array<string_view, 3> kOfPrompts{"adapter_len", "adapter_layers", "adapter_gates"};
constexpr std::array kFull{Method::full};
constexpr std::array<string_view, 2> kOfFull{"trainable_modules", "freeze_modules"};

constexpr std::array kGroups{
    MethodKeyGroup{.readers = kLora,
                   .keys = kOfLora,
                   .refusal = "is a key of LoRA, which method={} does not use; leave it out, or "
                              "use method=lora or qlora"},
    MethodKeyGroup{.readers = kPrompts,
                   .keys = kOfPrompts,
                   .refusal = "is a key of LLaMA-Adapter, which method={} does not use; leave it "
                              "out, or use method=adapter or adapter_v2"},
    MethodKeyGroup{.readers = kFull,
                   .keys = kOfFull,
                   .refusal =
                       "says which weights of the model train, and with method={} none does: an "
                       "adapter next to them trains; leave it out (target_modules says where the "
                       "adapter goes), or use method=full"}};

}  // namespace

const MethodKeys& method_keys_of(Method method) {
  const auto found = std::ranges::find(kMethodTable, method, &MethodKeys::method);
  SNUG_CHECK(found != kMethodTable.end(), "recipes say nothing of {}", base::word_of(method));
  return *found;
}

std::span<const MethodKeyGroup> method_key_groups() { return kGroups; }

bool is_idle_key(Method method, string_view key) {
  return std::ranges::any_of(kGroups, [&](const MethodKeyGroup& group) {
    return std::ranges::find(group.keys, key) != group.keys.end() &&
           std::ranges::find(group.readers, method) == group.readers.end();
  });
}

}  // namespace snug::formats
