// Families of models. Each is one short file that turns a config.json into a ModelConfig; the list
// of them is in families.cpp and nothing outside asks for a family by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "models/config.h"

namespace snug::models {

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // transformers' class: "LlamaForCausalLM"
  // Sets what all models of the family have, whatever their config.json says.
  void (*set_traits)(ModelConfig& config);
  ModelConfig (*parse)(const base::JsonObject& json);
  // What config.json holds beyond what every family's does.
  void (*describe)(const ModelConfig& config, nlohmann::json& json);
};

const Family* find_family(std::string_view model_type);
// "llama, mistral, ...", for messages.
std::string family_names();

extern const Family kLlama;
extern const Family kMistral;
extern const Family kQwen2;
extern const Family kQwen3;
extern const Family kPhi3;

// config.json's text for a model of this shape, without the element type of its weights, as
// transformers 4 and 5 read it.
nlohmann::json describe(const ModelConfig& config);

}  // namespace snug::models
