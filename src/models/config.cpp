#include "models/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/quantization_config.h"
#include "models/families.h"
#include "models/stored_nf4.h"

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
  config.stored = stored_nf4(folder, config);
  return {std::move(config), folder};
}

}  // namespace snug::models
