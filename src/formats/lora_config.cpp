#include "formats/lora_config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lower_case.h"
#include "formats/adapter_modules.h"
#include "formats/manifest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keys whose value does not change what the adapter computes once it is trained, or says which
// modules it has (adapter_modules.h).
constexpr std::array<std::string_view, 24> kHarmlessKeys{"layers_to_transform",
                                                         "modules_to_save",
                                                         "fan_in_fan_out",
                                                         "exclude_modules",
                                                         "peft_type",
                                                         "base_model_name_or_path",
                                                         "task_type",
                                                         "inference_mode",
                                                         "r",
                                                         "lora_alpha",
                                                         "lora_dropout",
                                                         "target_modules",
                                                         "use_rslora",
                                                         "use_dora",
                                                         "auto_mapping",
                                                         "revision",
                                                         "init_lora_weights",
                                                         "bias",
                                                         "peft_version",
                                                         "megatron_core",
                                                         "layers_pattern",
                                                         "eva_config",
                                                         "qalora_group_size",
                                                         "runtime_config"};

bool is_neutral(const json& value) {
  return value.is_null() || value == json(false) || (value.is_structured() && value.empty()) ||
         (value.is_number() && value == 0);
}

bool is_harmless(std::string_view key) {
  return std::find(kHarmlessKeys.begin(), kHarmlessKeys.end(), key) != kHarmlessKeys.end();
}

// Whatever else is switched on changes the result: rank_pattern, alpha_pattern,
// layer_replication, and keys of PEFT versions yet to come.
void refuse_what_is_not_honoured(const base::JsonObject& config) {
  for (const auto& [key, value] : config.value().items())
    if (!is_harmless(key) && !is_neutral(value))
      config.fail(key,
                  fmt::format("is {}, which Snug cannot honour: it applies plain LoRA, one rank "
                              "and scale for all modules. Train the adapter without it, or merge "
                              "the adapter into the base model with PEFT",
                              value.dump()));
  if (config.text_or("bias", "none") != "none")
    config.fail("bias",
                fmt::format("is '{}', but Snug trains and applies no biases; expected 'none'",
                            config.text("bias")));
  const json initialisation = config.value().value("init_lora_weights", json(true));
  if (!initialisation.is_string()) return;
  const std::string name = base::lower_case(initialisation.get<std::string>());
  // These choose the adapter's own first values. Others, such as pissa, olora, corda, loftq and
  // lora_ga, change the base weights too.
  for (const std::string_view method : {"gaussian", "eva", "orthogonal"})
    if (name == method) return;
  config.fail("init_lora_weights",
              fmt::format("is '{}', which changes the base weights or is not known; convert the "
                          "adapter to a plain LoRA with PEFT first",
                          initialisation.get<std::string>()));
}

std::vector<std::string> read_target_modules(const base::JsonObject& config,
                                             const fs::path& folder) {
  if (narrows_targets(config)) return adapter_modules(folder, config);
  if (targets_all_linear(config)) return {"all-linear"};
  return config.texts("target_modules");
}

}  // namespace

double LoraConfig::scale() const {
  const auto rank = static_cast<double>(r);
  return alpha / (use_rslora ? std::sqrt(rank) : rank);
}

LoraConfig read_lora_config(const fs::path& folder) {
  const fs::path path = folder / "adapter_config.json";
  std::error_code error;
  if (!fs::exists(path, error)) refuse_rank_checkpoint(folder);
  if (!fs::exists(path, error))
    base::throw_user_error(
        "{}: there is no adapter_config.json here; expected the folder of a PEFT adapter{}",
        folder.string(), advice_on_run_folder(folder));
  const json document = base::read_json_file(path);
  const base::JsonObject config(document, path.string());
  if (config.text("peft_type") != "LORA")
    config.fail(
        "peft_type",
        fmt::format(
            "is '{}'; expected 'LORA', 'ADAPTION_PROMPT', 'LLAMA_ADAPTER' or 'LLAMA_ADAPTER_V2'",
            config.text("peft_type")));
  refuse_what_is_not_honoured(config);

  LoraConfig lora;
  lora.r = config.integer("r");
  lora.alpha = config.number("lora_alpha");
  lora.dropout = config.number_or("lora_dropout", 0);
  lora.use_rslora = config.boolean_or("use_rslora", false);
  lora.use_dora = config.boolean_or("use_dora", false);
  lora.base_model = config.text_or("base_model_name_or_path", "");
  lora.target_modules = read_target_modules(config, folder);
  if (!is_neutral(config.value().value("modules_to_save", json(nullptr))))
    lora.modules_to_save = config.texts("modules_to_save");
  if (lora.r < 1) config.fail("r", fmt::format("is {}; expected 1 or more", lora.r));
  if (!(lora.dropout >= 0 && lora.dropout < 1))
    config.fail("lora_dropout",
                fmt::format("is {}; expected 0 or more and less than 1", lora.dropout));
  if (lora.target_modules.empty()) config.fail("target_modules", "is empty; expected module names");
  return lora;
}

void write_lora_config(const fs::path& folder, const LoraConfig& config) {
  SNUG_CHECK(config.r >= 1, "r is {}", config.r);
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
      {"task_type", config.has_encoder ? "SEQ_2_SEQ_LM" : "CAUSAL_LM"},
      {"use_dora", config.use_dora},
      {"use_rslora", config.use_rslora},
  };
  // PEFT declares lora_alpha as a whole number; it is one unless the user chose otherwise.
  if (config.alpha == std::floor(config.alpha))
    document["lora_alpha"] = static_cast<int64_t>(config.alpha);
  if (config.target_modules == std::vector<std::string>{"all-linear"})
    document["target_modules"] = "all-linear";
  base::write_file_atomically(folder / "adapter_config.json", document.dump(2) + "\n");
}

}  // namespace snug::formats
