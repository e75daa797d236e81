// Families of models. Each is one short file that turns a config.json into a ModelConfig and that
// into a stack of blocks; the list of them is in families.cpp, and nothing else asks for a family
// by name. docs/add_a_family.md shows how one is added.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// The built-in shape of a public model, with the figures of its published config.json.
struct Preset {
  std::string_view name;
  int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_position;
  float norm_epsilon;
  double theta;
  bool tied;
  // Sets what else its config.json says.
  void (*adjust)(ModelConfig& config) = nullptr;
};

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // transformers' class: "LlamaForCausalLM"
  // The network, block by block.
  Stack (*stack)(const ModelConfig& config);
  ModelConfig (*parse)(const base::JsonObject& json);
  // What config.json holds beyond what every family's does.
  void (*describe)(const ModelConfig& config, nlohmann::json& json);
  std::span<const Preset> presets;
  // transformers has a class of its own for the linears of layers, which it leaves in 16 bits where
  // bitsandbytes quantises others: it reads no folder that has them in 4, nor writes one.
  bool own_linear_class = false;
};

std::span<const Family* const> families();
const Family* find_family(std::string_view model_type);
// "llama, mistral, ...", for messages.
std::string family_names();

extern const Family kBloom;
extern const Family kCodeT5p;
extern const Family kFalcon;
extern const Family kGemma;
extern const Family kGemma2;
extern const Family kGemma3;
extern const Family kGpt2;
extern const Family kGptNeox;
extern const Family kGptOss;
extern const Family kLlama;
extern const Family kMistral;
extern const Family kMixtral;
extern const Family kMt5;
extern const Family kOlmo2;
extern const Family kPhi;
extern const Family kPhi3;
extern const Family kQwen2;
extern const Family kQwen3;
extern const Family kQwen3Moe;
extern const Family kStablelm;
extern const Family kT5;

// The network that the config's family makes of it.
Stack stack_of(const ModelConfig& config);

// config.json's text for a model of this shape, without the element type of its weights, as
// transformers 4 and 5 read it.
nlohmann::json describe(const ModelConfig& config);

}  // namespace snug::models
