#include "formats/adapter/adapter_in_whole.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/last_part.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/renamed_modules.h"

namespace snug::formats {
namespace {

// The names of the text model's own modules begin with this part, for which the whole has
// text_module.
constexpr std::string_view kTextModel = "model.";

// The name that a module of the text model, or of its head, has in the whole.
std::string module_in_whole(std::string_view module, std::string_view text_module) {
  if (!module.starts_with(kTextModel)) return std::string(module);
  return fmt::format("{}.{}", text_module, module.substr(kTextModel.size()));
}

// The last parts of the names of the modules that have an A, sorted, but for those of experts,
// which target_parameters selects.
std::set<std::string> adapted_parts(std::span<const std::string> tensors,
                                    const std::vector<std::string>& target_parameters) {
  std::set<std::string> parts;
  for (const std::string& tensor : tensors)
    if (const auto module = adapted_module(tensor);
        module && wrapped_parameter(*module, target_parameters) == *module)
      parts.insert(base::last_part(*module));
  return parts;
}

}  // namespace

std::string tensor_in_whole(const std::string& tensor, std::string_view text_module) {
  if (!tensor.starts_with(kAdapterPrefix)) return tensor;
  return fmt::format(
      "{}{}", kAdapterPrefix,
      module_in_whole(std::string_view(tensor).substr(kAdapterPrefix.size()), text_module));
}

void target_part_of_whole(const std::filesystem::path& folder, std::string_view text_module,
                          std::span<const std::string> tensors) {
  const std::filesystem::path path = folder / kAdapterConfigName;
  nlohmann::json config = base::read_json_file(path);
  std::vector<std::string> parameters;
  if (const auto given = config.find("target_parameters");
      given != config.end() && given->is_array())
    parameters = given->get<std::vector<std::string>>();
  std::set<std::string> modules = adapted_parts(tensors, parameters);
  if (modules.empty()) return;
  const bool has_head = modules.erase("lm_head") > 0;
  std::string part(text_module);
  for (size_t dot = part.find('.'); dot != std::string::npos; dot = part.find('.', dot + 2))
    part.insert(dot, 1, '\\');
  config["target_modules"] = fmt::format("{}{}\\.(?:.*\\.)?(?:{})", has_head ? "lm_head|" : "",
                                         part, fmt::join(modules, "|"));
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    nlohmann::json named = nlohmann::json::object();
    for (const auto& [module, value] : config[key].items())
      named[module_in_whole(module, text_module)] = value;
    config[key] = std::move(named);
  }
  base::write_file_atomically(path, config.dump(2) + "\n");
}

}  // namespace snug::formats
