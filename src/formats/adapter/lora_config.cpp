#include "formats/adapter/lora_config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lower_case.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_modules.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/lora_patterns.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/adapter/renamed_modules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keys that are read, or whose value does not affect what a trained adapter computes.
constexpr std::array<std::string_view, 32> kReadKeys{"alpha_pattern",
                                                     "auto_mapping",
                                                     "base_model_name_or_path",
                                                     "bias",
                                                     "corda_config",
                                                     "ensure_weight_tying",
                                                     "eva_config",
                                                     "exclude_modules",
                                                     "fan_in_fan_out",
                                                     "inference_mode",
                                                     "init_lora_weights",
                                                     "layers_pattern",
                                                     "layers_to_transform",
                                                     "loftq_config",
                                                     "lora_alpha",
                                                     "lora_dropout",
                                                     "lora_ga_config",
                                                     "megatron_core",
                                                     "modules_to_save",
                                                     "peft_type",
                                                     "peft_version",
                                                     "qalora_group_size",
                                                     "r",
                                                     "rank_pattern",
                                                     "revision",
                                                     "runtime_config",
                                                     "target_modules",
                                                     "target_parameters",
                                                     "task_type",
                                                     "trainable_token_indices",
                                                     "use_dora",
                                                     "use_rslora"};

// Known keys whose settings are not built.
struct UnbuiltKey {
  std::string_view key;
  std::string_view what;
};
constexpr std::array kUnbuiltKeys{
    UnbuiltKey{"alora_invocation_tokens", "an adapter that works only after those tokens"},
    UnbuiltKey{"arrow_config", "adapters that a router chooses among"},
    UnbuiltKey{"layer_replication", "layers of the model that are repeated"},
    UnbuiltKey{"lora_bias", "a bias of B"},
    UnbuiltKey{"use_bdlora", "matrices in blocks"},
    UnbuiltKey{"use_qalora", "inputs of A that are averaged in groups"}};

bool is_neutral(const json& value) {
  return value.is_null() || value == json(false) || (value.is_structured() && value.empty()) ||
         (value.is_number() && value == 0);
}

constexpr std::string_view kMergeFirst =
    "Merge the adapter into its model with PEFT (merge_and_unload) and use that model, or train "
    "the "
    "adapter without it";

// Also refuses unknown keys, which may come from later versions of PEFT.
void refuse_what_is_not_honoured(const base::JsonObject& config) {
  for (const auto& [key, value] : config.value().items()) {
    if (std::ranges::count(kReadKeys, key) > 0 || is_neutral(value)) continue;
    const auto* known = std::ranges::find(kUnbuiltKeys, key, &UnbuiltKey::key);
    const bool is_known = known != kUnbuiltKeys.end();
    config.fail(key, fmt::format("is {}, which Snug cannot honour{}{}. {}", value.dump(),
                                 is_known ? ": " : "", is_known ? known->what : "", kMergeFirst));
  }
}

// Whether the adapter's file is there and holds no bias.
bool has_no_bias(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kAdapterWeightsName, error)) return false;
  const SafetensorsFile file(folder / kAdapterWeightsName);
  return std::ranges::none_of(
      file.tensors(), [](const TensorInfo& tensor) { return tensor.name.ends_with(".bias"); });
}

// Of a model without biases, as most are, "all" and "lora_only" train none.
void refuse_biases(const base::JsonObject& config, const fs::path& folder) {
  const std::string bias = config.text_or("bias", "none");
  if (bias == "none" || ((bias == "all" || bias == "lora_only") && has_no_bias(folder))) return;
  config.fail("bias", fmt::format("is '{}', but Snug trains and applies no biases; expected "
                                  "'none'. {}",
                                  bias, kMergeFirst));
}

// The initialisation of the adapter itself no longer matters. Some methods (pissa, olora, corda,
// loftq, lora_ga) change the base weights too, and are refused.
void refuse_changed_base(const base::JsonObject& config) {
  const json initialisation = config.value().value("init_lora_weights", json(true));
  if (!initialisation.is_string()) return;
  const std::string name = base::lower_case(initialisation.get<std::string>());
  for (const std::string_view method : {"gaussian", "eva", "orthogonal"})
    if (name == method) return;
  config.fail("init_lora_weights",
              fmt::format("is '{}', which changes the base weights or is not known; convert the "
                          "adapter to a plain LoRA with PEFT first (save_pretrained with "
                          "path_initial_model_for_weight_conversion), or merge it there",
                          initialisation.get<std::string>()));
}

std::vector<std::string> plain_modules(std::vector<std::string> modules) {
  for (std::string& module : modules) module = plain_module(module);
  return modules;
}

std::vector<std::string> read_target_modules(const base::JsonObject& config,
                                             const fs::path& folder) {
  if (narrows_targets(config)) return plain_modules(adapter_modules(folder, config));
  if (targets_all_linear(config)) return {std::string(kAllLinear)};
  return plain_modules(config.texts("target_modules"));
}

// The sizes of modules in the file that differ from the default. Patterns are matched with the
// file's own names.
LoraSizes read_sizes(const base::JsonObject& config,
                     const std::function<std::vector<std::string>()>& modules,
                     const LoraConfig& lora, const std::string& text) {
  const LoraPatterns ranks(config, "rank_pattern", text);
  const LoraPatterns alphas(config, "alpha_pattern", text);
  LoraSizes sizes;
  if (ranks.empty() && alphas.empty()) return sizes;
  const LoraSize plain{lora.r, lora.alpha};
  for (const std::string& module : modules()) {
    const std::string name = wrapped_parameter(module, lora.target_parameters);
    const double rank = ranks.of(name).value_or(static_cast<double>(lora.r));
    if (rank != std::floor(rank))
      config.fail("rank_pattern",
                  fmt::format("gives '{}' the rank {}; expected a whole number", name, rank));
    const LoraSize size{static_cast<int64_t>(rank), alphas.of(name).value_or(lora.alpha)};
    if (!(size == plain)) sizes.emplace(plain_module(module), size);
  }
  return sizes;
}

constexpr double kMaxToken = 2147483647;

std::vector<int64_t> read_tokens(const base::JsonObject& object, const std::string& key) {
  std::vector<int64_t> tokens;
  std::set<int64_t> known;
  for (const double number : object.numbers(key)) {
    const bool is_token = number >= 0 && number <= kMaxToken && number == std::floor(number);
    if (!is_token || !known.insert(static_cast<int64_t>(number)).second)
      object.fail(key, fmt::format("holds {}; expected tokens, each once", number));
    tokens.push_back(static_cast<int64_t>(number));
  }
  return tokens;
}

// A list applies to the embedding; an object has lists by module.
std::vector<TokenRows> read_token_rows(const base::JsonObject& config) {
  const std::string key = "trainable_token_indices";
  const json value = config.value().value(key, json(nullptr));
  if (is_neutral(value)) return {};
  if (!value.is_object()) return {{"", read_tokens(config, key)}};
  const base::JsonObject lists = config.object(key);
  std::vector<TokenRows> rows;
  for (const auto& item : value.items())
    rows.push_back({plain_module(item.key()), read_tokens(lists, item.key())});
  return rows;
}

void check_values(const base::JsonObject& config, const LoraConfig& lora) {
  if (lora.r < 1) config.fail("r", fmt::format("is {}; expected 1 or more", lora.r));
  if (!(lora.dropout >= 0 && lora.dropout < 1))
    config.fail("lora_dropout",
                fmt::format("is {}; expected 0 or more and less than 1", lora.dropout));
  if (lora.target_modules.empty() && lora.target_parameters.empty())
    config.fail("target_modules", "is empty; expected module names");
}

}  // namespace

double lora_scale(const LoraSize& size, bool is_stabilised) {
  const auto rank = static_cast<double>(size.r);
  return size.alpha / (is_stabilised ? std::sqrt(rank) : rank);
}

LoraSize LoraConfig::size_of(std::string_view module) const {
  const auto found = sizes.find(module);
  return found == sizes.end() ? LoraSize{r, alpha} : found->second;
}

LoraConfig read_lora_config(const fs::path& folder, OtherParts others) {
  const fs::path path = folder / kAdapterConfigName;
  std::error_code error;
  if (!fs::exists(path, error)) refuse_adapter_folder(folder);
  const std::string text = base::read_text_file(path);
  const json document = base::parse_json(text, path.string());
  const base::JsonObject config(document, path.string());
  check_adapter_type(config);
  refuse_what_is_not_honoured(config);
  refuse_biases(config, folder);
  refuse_changed_base(config);

  LoraConfig lora;
  lora.r = config.integer("r");
  lora.alpha = config.number("lora_alpha");
  lora.dropout = config.number_or("lora_dropout", 0);
  lora.use_rslora = config.boolean_or("use_rslora", false);
  lora.use_dora = config.boolean_or("use_dora", false);
  lora.base_model = config.text_or("base_model_name_or_path", "");
  if (!is_neutral(config.value().value("target_parameters", json(nullptr))))
    lora.target_parameters = plain_modules(config.texts("target_parameters"));
  if (lora.target_parameters.empty() ||
      !is_neutral(config.value().value("target_modules", json(nullptr))))
    lora.target_modules = read_target_modules(config, folder);
  if (!is_neutral(config.value().value("modules_to_save", json(nullptr))))
    lora.modules_to_save = plain_modules(config.texts("modules_to_save"));
  lora.token_rows = read_token_rows(config);
  lora.ties_tables = config.boolean_or("ensure_weight_tying", false);
  lora.ties_adapters = ties_adapters(config);
  check_values(config, lora);
  lora.sizes = read_sizes(
      config, [&] { return stored_modules(folder, others); }, lora, text);
  return lora;
}

void write_lora_config(const fs::path& folder, const LoraConfig& config) {
  SNUG_CHECK(config.r >= 1, "r is {}", config.r);
  SNUG_CHECK(config.token_rows.empty(), "what is only read is not written");
  json document = {
      {"alpha_pattern", json::object()},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path",
       config.base_model.empty() ? json(nullptr) : json(config.base_model)},
      {"bias", "none"},
      {"fan_in_fan_out", config.fan_in_fan_out},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr},
      {"loftq_config", json::object()},
      {"lora_alpha", config.alpha},
      {"lora_dropout", config.dropout},
      {"megatron_config", nullptr},
      {"megatron_core", "megatron.core"},
      {"modules_to_save",
       config.modules_to_save.empty() ? json(nullptr) : json(config.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", config.r},
      {"rank_pattern", json::object()},
      {"revision", nullptr},
      {"target_modules", config.target_modules},
      {"target_parameters",
       config.target_parameters.empty() ? json(nullptr) : json(config.target_parameters)},
      {"task_type", config.has_encoder ? "SEQ_2_SEQ_LM" : "CAUSAL_LM"},
      {"use_dora", config.use_dora},
      {"use_rslora", config.use_rslora},
  };
  for (const auto& [module, size] : config.sizes) {
    if (size.r != config.r) document["rank_pattern"][module] = size.r;
    if (size.alpha != config.alpha) document["alpha_pattern"][module] = size.alpha;
  }
  // PEFT declares lora_alpha as an integer, so it is written as one if it is one.
  if (config.alpha == std::floor(config.alpha))
    document["lora_alpha"] = static_cast<int64_t>(config.alpha);
  if (config.target_modules == std::vector<std::string>{"all-linear"})
    document["target_modules"] = "all-linear";
  base::write_file_atomically(folder / kAdapterConfigName, document.dump(2) + "\n");
}

}  // namespace snug::formats
