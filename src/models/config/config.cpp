#include "models/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/folder/hf_folder.h"
#include "formats/folder/hub_cache.h"
#include "formats/folder/manifest.h"
#include "formats/quantization/quantization_config.h"
#include "models/config/multimodal.h"
#include "models/config/unknown_keys.h"
#include "models/families/families.h"
#include "models/families/missing_families.h"
#include "models/stored/expert_files.h"
#include "models/stored/file_widths.h"
#include "models/stored/stored_head.h"
#include "models/stored/stored_nf4.h"

namespace snug::models {
namespace {

// transformers 5 writes "dtype", earlier versions "torch_dtype". Plans use this width where there
// are no files, or where the files agree.
int64_t file_width(const nlohmann::json& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.contains(key) && config[key] == "float32") return 4;
  return 2;
}

// The object that describes the text model. Files of older versions hold its keys next to those of
// the whole.
const nlohmann::json* part_of(const ModelConfig& config, const nlohmann::json& json) {
  const nlohmann::json* part = config.text_module.empty() ? nullptr : text_part(json);
  return part == nullptr ? &json : part;
}

[[noreturn]] void refuse_type(const base::JsonObject& json, const std::string& type) {
  const std::string multimodal = describe_multimodal(json);
  if (!multimodal.empty()) json.fail("model_type", fmt::format("is \"{}\", {}", type, multimodal));
  if (const MissingFamily* missing = find_missing_family(type))
    json.fail("model_type", fmt::format("is \"{}\", {}", type, say_missing(*missing)));
  json.fail("model_type",
            fmt::format("is \"{}\", which is not built; snug has {}", type, family_names()));
}

ModelConfig parse_config_object(const base::JsonObject& json) {
  const std::string type = json.text("model_type");
  const Family* family = find_family(type);
  std::optional<ModelConfig> part = family == nullptr ? parse_whole_model(json) : std::nullopt;
  if (family == nullptr && !part) refuse_type(json, type);
  ModelConfig config = part ? std::move(*part) : family->parse(json);
  if (const auto quantised = formats::parse_quantization_config(json.value(), json.file()))
    config.stored = StoredNf4{.double_quant = quantised->double_quant};
  const nlohmann::json* text = part_of(config, json.value());
  config.file_width = std::max(file_width(json.value()), file_width(*text));
  return config;
}

// The longest preset name that the word contains (llama-3.1-8b for Meta-Llama-3.1-8B-Instruct), or
// else the preset for which the word could be a typing mistake.
std::optional<std::string> nearest_preset(std::string_view word) {
  const auto names = preset_names();
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;  // preset names are in lower case
  };
  std::string longest;
  for (const std::string& name : names)
    if (name.size() > longest.size() &&
        std::search(word.begin(), word.end(), name.begin(), name.end(), same) != word.end())
      longest = name;
  if (!longest.empty()) return longest;
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const auto nearest = base::nearest_name(word, candidates);
  return nearest ? std::optional(std::string(*nearest)) : std::nullopt;
}

// The part of a hub name after the organisation may be the name of a built-in shape.
[[noreturn]] void fail_without_model(const std::string& name) {
  const auto hub = formats::parse_hub_name(name);
  const auto nearest = nearest_preset(hub ? hub->name : name);
  const std::string shape =
      nearest ? fmt::format(" The nearest built-in shape, without weights, is \"{}\".", *nearest)
              : "";
  if (!hub)
    base::throw_user_error(
        "model \"{}\" is neither a folder nor a built-in shape (snug models lists them).{}", name,
        shape);
  base::throw_user_error(
      "model \"{}\" is neither a folder nor in the cache of the Hugging Face hub ({}). Snug uses "
      "no network: fetch it with '{}' and run this again.{}",
      name, formats::hub_cache_folder().string(), hub->download_command(), shape);
}

// A command that opens a model, and what it makes of it, several times says it once.
void say_unknown_keys(const std::filesystem::path& path, const std::vector<std::string>& unknown) {
  static std::mutex mutex;
  static std::set<std::string> said;
  if (unknown.empty()) return;
  const std::string names = fmt::format("{}", fmt::join(unknown, ", "));
  {
    const std::lock_guard lock(mutex);
    if (!said.insert(names).second) return;
  }
  base::say("{}: snug knows nothing of {}; if that is part of the network, results are not its own",
            path.string(), names);
}

}  // namespace

ModelConfig with_layers(ModelConfig config, int64_t layers) {
  config.num_layers = layers;
  if (!config.has_encoder()) return config;
  config.encoder_layers = layers;
  config.num_layers += layers;
  return config;
}

ModelConfig parse_config(std::string_view text, const std::string& file) {
  const auto json = base::parse_json(text, file);
  return parse_config_object(base::JsonObject(json, file));
}

std::filesystem::path find_model_folder(const std::string& name_or_folder) {
  if (std::filesystem::is_directory(name_or_folder)) return name_or_folder;
  if (const auto hub = formats::parse_hub_name(name_or_folder))
    if (auto cached = formats::find_in_hub_cache(*hub)) return std::move(*cached);
  fail_without_model(name_or_folder);
}

ModelSource find_model(const std::string& name_or_folder) {
  if (const auto known = preset(name_or_folder)) return {*known, {}};
  std::filesystem::path folder = find_model_folder(name_or_folder);
  const auto path = folder / "config.json";
  if (!std::filesystem::exists(path)) formats::refuse_rank_checkpoint(folder);
  if (std::filesystem::exists(folder / "adapter_config.json") && !std::filesystem::exists(path))
    base::throw_user_error(
        "{}: this is an adapter, not a model; give the model that it was trained on as model=, and "
        "this folder as adapter=",
        folder.string());
  if (!std::filesystem::exists(path))
    base::throw_user_error(
        "model folder \"{}\" has no config.json; expected a Hugging Face model folder{}",
        folder.string(), formats::advice_on_model_folder(folder));
  const auto json = base::read_json_file(path);
  ModelConfig config = parse_config_object(base::JsonObject(json, path.string()));
  say_unknown_keys(path, unknown_keys(*part_of(config, json)));
  settle_expert_files(folder, config);
  config.stored = stored_nf4(folder, config);
  if (has_head_of_its_own(folder, config)) {
    config.tied_embeddings = false;
    base::say(
        "{}: config.json ties the head to the embedding, but the files hold another "
        "lm_head.weight, "
        "which is used",
        folder.string());
  }
  refuse_other_tables(folder, config);
  config.other_widths = other_widths(folder, config);
  return {std::move(config), std::move(folder)};
}

}  // namespace snug::models
