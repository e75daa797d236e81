// Keys of adapters, with PEFT's names.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

// Far above any useful value.
constexpr double kMaxRank = 65536;

void add_prompt_keys(KeyTable& table) {
  table.add<&Recipe::adapter_len>("adapter_len", "10", "LLaMA-Adapter: length of a layer's prompt")
      .aliases({"adapter_prompt_length"})
      .range({.least = 1, .most = kMaxRank});
  table
      .add<&Recipe::adapter_layers>(
          "adapter_layers", "0",
          "LLaMA-Adapter: number of layers with prompts, counted from the "
          "top; 0: all but the first two")
      .range({.least = 0, .most = kMaxRank});
  table.add<&Recipe::adapter_gates>(
      "adapter_gates", AdapterGates::automatic,
      "LLaMA-Adapter: a gate for each head, or one for each layer as in PEFT; auto: layer for "
      "models whose prompts PEFT loads (llama, mistral), else head");
}

void add_loraplus_keys(KeyTable& table) {
  table
      .add<&Recipe::loraplus_lr_ratio>(
          "loraplus_lr_ratio", "0",
          "LoRA+: B trains with this many times the learning rate of A; 0: both with the same")
      .range({.least = 0, .most = kMaxFloat})
      .on_resume(OnResume::free);
  table
      .add<&Recipe::loraplus_lr_embedding>(
          "loraplus_lr_embedding", "1e-06",
          "LoRA+: the peak of the learning rate of adapters on an embedding")
      .range({.least = 0, .most = kMaxFloat})
      .on_resume(OnResume::free);
}

}  // namespace

void add_adapter_keys(KeyTable& table) {
  table.add<&Recipe::lora_r>("lora_r", "16", "LoRA rank")
      .aliases({"lora_rank", "r"})
      .range({.least = 1, .most = kMaxRank});
  table
      .add<&Recipe::lora_alpha>("lora_alpha", "",
                                "LoRA scale: the addition is multiplied by lora_alpha / lora_r")
      .computed("2 x lora_r")
      .range({.least = 0, .most = kMaxFloat, .least_excluded = true});
  table
      .add<&Recipe::lora_dropout>("lora_dropout", "0",
                                  "share of LoRA's inputs that is dropped in training")
      .range(kBelowOne)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::target_modules>(
          "target_modules", "all-linear",
          "linear layers that get LoRA: names such as q_proj, regular expressions that match whole "
          "names, or all-linear (all but the head); embeddings by name")
      .aliases({"lora_target_modules", "lora_target"})
      .translations({{"all", "all-linear"}});
  table
      .add<&Recipe::target_parameters>(
          "target_parameters", "",
          "matrices of all experts of a layer that get LoRA, by the ends of their names in PEFT: "
          "mlp.experts.gate_up_proj, mlp.experts.down_proj")
      .aliases({"lora_target_parameters"})
      .computed("none");
  table
      .add<&Recipe::layers_to_transform>("layers_to_transform", "",
                                         "the layers, counted from 0, whose modules get LoRA")
      .aliases({"peft_layers_to_transform"})
      .computed("all layers")
      .range({.least = 0, .most = kMaxRank});
  table
      .add<&Recipe::rank_pattern>("rank_pattern", "",
                                  "ranks of single modules, {PATTERN: RANK}: the first that is the "
                                  "end of a module's name, or a regular expression for it")
      .aliases({"lora_rank_pattern"})
      .computed("lora_r everywhere")
      .pairs();
  table
      .add<&Recipe::alpha_pattern>("alpha_pattern", "", "the same for lora_alpha, {PATTERN: ALPHA}")
      .aliases({"lora_alpha_pattern"})
      .computed("lora_alpha everywhere")
      .pairs();
  table
      .add<&Recipe::modules_to_save>(
          "modules_to_save", "",
          "modules that are trained whole next to LoRA, by the ends of their names: lm_head, "
          "embed_tokens, norms")
      .aliases({"lora_modules_to_save", "additional_target"})
      .computed("none");
  table.add<&Recipe::use_rslora>("use_rslora", "false", "scale LoRA by lora_alpha / sqrt(lora_r)");
  table.add<&Recipe::use_dora>(
      "use_dora", "false",
      "DoRA: LoRA changes the direction of a weight's rows, and their lengths are trained "
      "separately");
  table
      .add<&Recipe::init_lora_weights>(
          "init_lora_weights", LoraInit::standard,
          "how LoRA's A begins, as in PEFT: true (Kaiming-uniform) or gaussian (normal, with "
          "standard deviation 1 / lora_r); B begins as 0")
      .aliases({"peft_init_lora_weights", "lora_init"})
      .not_built({"false"},
                 "A and B would both be drawn at random, so that training would begin with another "
                 "model; say true or gaussian")
      .not_built({"pissa", "pissa_niter_4", "pissa_niter_16", "olora", "loftq", "corda", "eva",
                  "orthogonal", "lora_ga", "mica"},
                 "A and B begin at random and as 0, and the model's weights stay as they are; say "
                 "true or gaussian");
  add_loraplus_keys(table);
  add_prompt_keys(table);
}

}  // namespace snug::formats
