#include "models/families/families.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/config/config_keys.h"
#include "models/config/rope.h"

namespace snug::models {
namespace {

// In the order of lists for readers.
constexpr std::array kFamilies{&kLlama,    &kMistral,  &kMinistral3,    &kQwen2,
                               &kQwen3,    &kQwen35,   &kGemma,         &kGemma2,
                               &kGemma3,   &kGemma4,   &kGemma4Unified, &kPhi,
                               &kPhi3,     &kSmolLm3,  &kGranite,       &kGraniteHybrid,
                               &kOlmo2,    &kOlmo3,    &kSeedOss,       &kExaone4,
                               &kApertus,  &kLfm2,     &kGlm4,          &kHunyuan,
                               &kErnie45,  &kCohere2,  &kStablelm,      &kGptNeox,
                               &kGpt2,     &kBloom,    &kFalcon,        &kMixtral,
                               &kQwen2Moe, &kQwen3Moe, &kQwen35Moe,     &kQwen3Next,
                               &kGptOss,   &kOlmoe,    &kGlm4Moe,       &kGraniteMoe,
                               &kT5,       &kMt5,      &kCodeT5p};

const Family& family_of(const ModelConfig& config) {
  const Family* family = find_family(config.model_type);
  SNUG_CHECK(family != nullptr, "no family \"{}\"", config.model_type);
  return *family;
}

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family* family : kFamilies)
    if (family->model_type == model_type) return family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family* family : kFamilies)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", family->model_type);
  return names;
}

std::string model_names(FamilyForm form) {
  std::string names;
  for (const Family* family : kFamilies)
    if (family->form == form)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", family->models);
  return names;
}

Stack stack_of(const ModelConfig& config) {
  Stack stack = family_of(config).stack(config);
  stack.head_from_embedding = config.head_from_embedding;
  stack.text_module = config.text_module;
  return stack;
}

nlohmann::json describe(const ModelConfig& config) {
  const Family& family = family_of(config);
  nlohmann::json json = describe_shape(config);
  json["architectures"] = {family.architecture};
  if (config.positions == Positions::rotary) describe_rope(config.rope, json);
  family.describe(config, json);
  return json;
}

}  // namespace snug::models
