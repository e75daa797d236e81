// Families of models. Each is a short file that turns a config.json into a ModelConfig, and the
// ModelConfig into a stack of blocks. families.cpp lists them; no other code depends on a family's
// name. docs/add_a_family.md shows how to add one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// The built-in shape of a public model, with the sizes of its published config.json.
struct Preset {
  std::string_view name;
  int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_position;
  float norm_epsilon;
  double theta;
  bool tied;
  // Sets the remaining values of its config.json.
  void (*adjust)(ModelConfig& config) = nullptr;
};

enum class FamilyForm { decoder, mixture, encoder_decoder };

// What other programs do with a family's models.
struct Elsewhere {
  // Whether transformers has a class of its own for the linears of this family's layers. It keeps
  // these in 16 bits where bitsandbytes would quantise linears, so it neither reads nor writes
  // folders that hold them in 4 bits.
  bool own_linear_class = false;
  // Whether transformers has linears for routers, which bitsandbytes quantises unless a folder's
  // config says otherwise.
  bool linear_routers = false;
  // Whether PEFT on transformers 5 takes all-linear, and the names of plain mlps, for those of
  // experts (0.21.2: peft/utils/transformers_weight_conversion.py).
  bool peft_targets_experts = false;
};

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // transformers' class: "LlamaForCausalLM"
  // Makes the network, block by block.
  Stack (*stack)(const ModelConfig& config);
  ModelConfig (*parse)(const base::JsonObject& json);
  // Writes the keys of config.json that the family has in addition to those of every family.
  void (*describe)(const ModelConfig& config, nlohmann::json& json);
  std::span<const Preset> presets;
  // The published models of the family, as lists for readers name them: "Qwen2, Qwen2.5".
  std::string_view models{};
  FamilyForm form = FamilyForm::decoder;
  Elsewhere elsewhere{};
};

std::span<const Family* const> families();
const Family* find_family(std::string_view model_type);
// The names of all families for messages: "llama, mistral, ...".
std::string family_names();
// The published models of all families of this form: "Mixtral, gpt-oss".
std::string model_names(FamilyForm form);

extern const Family kApertus;
extern const Family kBloom;
extern const Family kCodeT5p;
extern const Family kCohere2;
extern const Family kErnie45;
extern const Family kExaone4;
extern const Family kFalcon;
extern const Family kGemma;
extern const Family kGemma2;
extern const Family kGemma3;
extern const Family kGemma4;
extern const Family kGemma4Unified;
extern const Family kGlm4;
extern const Family kGlm4Moe;
extern const Family kGpt2;
extern const Family kGptNeox;
extern const Family kGptOss;
extern const Family kGranite;
extern const Family kGraniteHybrid;
extern const Family kGraniteMoe;
extern const Family kHunyuan;
extern const Family kLfm2;
extern const Family kLlama;
extern const Family kMinistral3;
extern const Family kMistral;
extern const Family kMixtral;
extern const Family kMt5;
extern const Family kOlmo2;
extern const Family kOlmo3;
extern const Family kOlmoe;
extern const Family kPhi;
extern const Family kPhi3;
extern const Family kQwen2;
extern const Family kQwen2Moe;
extern const Family kQwen3;
extern const Family kQwen35;
extern const Family kQwen35Moe;
extern const Family kQwen3Moe;
extern const Family kQwen3Next;
extern const Family kSeedOss;
extern const Family kSmolLm3;
extern const Family kStablelm;
extern const Family kT5;

// The network that the config's family makes from it.
Stack stack_of(const ModelConfig& config);

// The config.json of a model with this shape, in a form that transformers 4 and 5 read, without the
// element type of its weights.
nlohmann::json describe(const ModelConfig& config);

}  // namespace snug::models
