// Families of models. Each is one short file that turns a config.json into a ModelConfig; the list
// of them is in families.cpp and nothing outside asks for a family by name.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "models/config.h"

namespace snug::models {

struct Family {
  std::string_view model_type;
  ModelConfig (*parse)(const base::JsonObject& json);
};

const Family* find_family(std::string_view model_type);
// "llama, mistral, ...", for messages.
std::string family_names();

ModelConfig parse_llama(const base::JsonObject& json);

// An integer of at least 1; throws UserError otherwise. The second form has a fallback when absent.
int64_t positive(const base::JsonObject& json, std::string_view key);
int64_t positive_or(const base::JsonObject& json, std::string_view key, int64_t fallback);

}  // namespace snug::models
