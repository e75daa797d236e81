// rank_pattern and alpha_pattern of adapter_config.json: modules whose rank or lora_alpha differs
// from r and lora_alpha. As in PEFT, a key is a regular expression that matches a whole name or its
// last parts, and the first matching key in the file applies.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "formats/adapter/module_pattern.h"

namespace snug::formats {

class LoraPatterns {
 public:
  // Reads the object under `key`, if there is one. `text` is that of the whole file, which
  // determines the order of the keys. Throws UserError for values that are not positive numbers,
  // and for malformed expressions. `config` must outlive the object.
  LoraPatterns(const base::JsonObject& config, std::string key, const std::string& text);

  bool empty() const { return patterns_.empty(); }
  std::optional<double> of(const std::string& module) const;

 private:
  template <typename Call>
  void checked(const Call& call) const;

  const base::JsonObject& config_;
  std::string key_;
  std::vector<std::pair<ModulePattern, double>> patterns_;
};

}  // namespace snug::formats
