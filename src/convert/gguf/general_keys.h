// The keys general.* of a GGUF file: what the model is called and where it is from.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "formats/gguf/metadata.h"
#include "models/gguf/architecture.h"

namespace snug::convert {

// general.architecture, type, name and size_label; from the folder's README.md or licence file
// general.license and languages; from its generation_config.json general.sampling.*. `folder` may
// be empty.
void add_general_keys(const models::GgufModel& model, const std::string& name,
                      const std::filesystem::path& folder, formats::Metadata& metadata);

// The settings of sampling of a file, as generation_config.json has them; empty where it has none.
nlohmann::json sampling_settings(const formats::Metadata& metadata);

// "Smol Llama 1B" for "smol-llama-1B".
std::string title_of(const std::string& name);
// The number of parameters as people say it: "135M", "1.1B", and "8x7B" with experts.
std::string size_label(const models::GgufModel& model);

}  // namespace snug::convert
