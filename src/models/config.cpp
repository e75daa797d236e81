#include "models/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/quant_state.h"
#include "formats/quantization_config.h"
#include "models/families.h"
#include "models/weights.h"

namespace snug::models {
namespace {

ModelConfig parse_config_object(const base::JsonObject& json) {
  const std::string type = json.text("model_type");
  const Family* family = find_family(type);
  if (family == nullptr)
    json.fail("model_type",
              fmt::format("is \"{}\", which is not built; snug has {}", type, family_names()));
  ModelConfig config = family->parse(json);
  if (const auto quantised = formats::parse_quantization_config(json.value(), json.file()))
    config.stored = StoredNf4{quantised->double_quant, {}};
  return config;
}

// Which linears a quantised folder left alone: its files say, whatever its config.json lists.
std::vector<std::string> kept_linears(const std::filesystem::path& folder,
                                      const ModelConfig& config) {
  const formats::TensorIndex index(folder);
  std::vector<std::string> kept;
  for (const Weight& weight : weights_of(config)) {
    const bool is_quantised =
        index.find(fmt::format("{}{}", weight.name, formats::kStateSuffix)) != nullptr;
    if (is_quantised && weight.layer < 0)
      base::throw_user_error(
          "{}: '{}' is stored in 4 bits; snug keeps embeddings and the head in 16. Quantise the "
          "16-bit folder again: snug quantize leaves them alone",
          folder.string(), weight.name);
    if (!is_quantised && weight.is_linear()) kept.push_back(weight.name);
  }
  return kept;
}

std::string nearest_preset(const std::string& word) {
  const auto names = preset_names();
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return std::string(base::nearest_name(word, candidates).value_or("none"));
}

}  // namespace

ModelConfig parse_config(std::string_view text, const std::string& file) {
  const auto json = base::parse_json(text, file);
  return parse_config_object(base::JsonObject(json, file));
}

ModelSource find_model(const std::string& name_or_folder) {
  if (const auto known = preset(name_or_folder)) return {*known, {}};
  const std::filesystem::path folder = name_or_folder;
  if (!std::filesystem::is_directory(folder))
    base::throw_user_error(
        "model \"{}\" is neither a folder nor a built-in shape; the nearest shape is \"{}\" (snug "
        "models lists them)",
        name_or_folder, nearest_preset(name_or_folder));
  const auto path = folder / "config.json";
  if (!std::filesystem::exists(path))
    base::throw_user_error(
        "model folder \"{}\" has no config.json; expected a Hugging Face model folder",
        name_or_folder);
  const auto json = base::read_json_file(path);
  ModelConfig config = parse_config_object(base::JsonObject(json, path.string()));
  if (config.stored) config.stored->kept = kept_linears(folder, config);
  return {std::move(config), folder};
}

}  // namespace snug::models
