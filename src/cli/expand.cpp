// `snug expand`: a model with more layers, which begin by changing nothing (LLaMA-Pro).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string>

#include "base/console.h"
#include "base/error.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/write_folder.h"
#include "convert/source/expanded_weights.h"
#include "convert/source/folder_weights.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {
namespace {

constexpr std::string_view kNewLayers = "num_new_layers";

int64_t whole_number(const std::string& text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size())
    base::throw_user_error("{}: is '{}'; expected a whole number", kNewLayers, text);
  return number;
}

}  // namespace

int expand(const Request& request) {
  Request of_model = request;
  std::optional<std::string> given;
  of_model.take_words([&](const std::string& key, const std::string& value) {
    const bool is_mine = key == kNewLayers || key == "num_expand";
    if (is_mine) given = value;
    return is_mine;
  });
  const formats::Recipe recipe = of_model.recipe();
  if (!given)
    base::throw_user_error(
        "snug expand needs {}=N, the number of layers to add, which divides those of the model",
        kNewLayers);
  const convert::FolderWeights model(folder_to_convert(recipe, "expand"));
  const convert::ExpandedWeights expanded(model, whole_number(*given));
  const convert::WriteOptions options{.max_shard_bytes = recipe.max_shard_size};
  const std::string modules = fmt::format("{}", fmt::join(expanded.new_layer_names(), ","));
  const int code = convert_folder(
      of_model, recipe,
      {.summary = fmt::format("{} layers and {} new ones ({})",
                              expanded.model()->num_layers - std::ssize(expanded.new_layers()),
                              expanded.new_layers().size(), fmt::join(expanded.new_layers(), ", ")),
       .json = {{"new_layers", expanded.new_layers()}, {"trainable_modules", modules}},
       .costs = convert::folder_costs(expanded, options),
       .write = [&] { return convert::write_folder(expanded, options, recipe.output_dir); }});
  if (!request.json)
    base::print(
        "to train the new layers alone: snug train model={} method=full "
        "trainable_modules={}\n",
        recipe.output_dir, modules);
  return code;
}

}  // namespace snug::cli
