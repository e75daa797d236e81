#include "runtime/loading/load_weights.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/seconds_since.h"
#include "formats/folder/tensor_index.h"
#include "formats/quantization/quant_state.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"
#include "plan/spec/adapter_tables.h"
#include "runtime/loading/random_weights.h"
#include "runtime/process/ranks.h"
#include "runtime/storage/perform.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;
using models::ModelConfig;
using models::Stack;
using models::Weight;

std::string nearest_tensor(const TensorIndex& index, const std::string& name) {
  std::vector<std::string_view> names;
  for (const IndexedTensor& tensor : index.tensors()) names.push_back(tensor.info->name);
  const auto nearest = base::nearest_name(name, names);
  return nearest ? fmt::format("; the nearest it has is '{}'", *nearest) : std::string();
}

[[noreturn]] void fail_missing(const TensorIndex& index, const Stack& stack,
                               const std::vector<Weight>& weights, const Weight& first) {
  const auto missing = std::count_if(weights.begin(), weights.end(), [&](const Weight& weight) {
    return index.find(weight.name) == nullptr;
  });
  const bool is_head = first.name == models::head_weight(stack) && missing == 1;
  base::throw_user_error(
      "{}: tensor '{}' is missing{}, which config.json asks for{}. {}", index.folder().string(),
      first.name, missing > 1 ? fmt::format(" and {} more", missing - 1) : std::string(),
      nearest_tensor(index, first.name),
      is_head ? "If the model shares its embedding with the head, set tie_word_embeddings to true "
                "in config.json"
              : "Is the download complete, and is config.json this model's?");
}

void check_missing(const TensorIndex& index, const Stack& stack,
                   const std::vector<Weight>& weights) {
  for (const Weight& weight : weights)
    if (index.find(weight.name) == nullptr) fail_missing(index, stack, weights, weight);
}

void check_surplus(const TensorIndex& index, const Stack& stack, const ModelConfig& config,
                   const std::vector<Weight>& weights) {
  std::unordered_set<std::string_view> known;
  for (const Weight& weight : weights) known.insert(weight.name);
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    const std::string_view weight = formats::weight_of_part(name).value_or(name);
    if (known.contains(weight) || models::is_ignorable(name, stack)) continue;
    base::throw_user_error(
        "{}: tensor '{}' is not part of the model that config.json describes (a {} of {} "
        "layers), and leaving it out would change the result{}. Is config.json this model's?",
        index.path_of(tensor).string(), name, config.model_type,
        config.has_encoder() ? fmt::format("{} + {}", config.encoder_layers,
                                           config.num_layers - config.encoder_layers)
                             : std::to_string(config.num_layers),
        name.ends_with(".bias")
            ? "; it is a bias that config.json does not ask for (attention_bias, mlp_bias)"
            : "");
  }
}

// The one wrong shape that is no mix-up: embeddings padded or grown without their config.json.
void check_vocabulary(const TensorIndex& index, const IndexedTensor& tensor, const Stack& stack) {
  const formats::TensorInfo& info = *tensor.info;
  const bool has_rows =
      info.name == models::embedding_weight(stack) || info.name == models::head_weight(stack);
  if (!has_rows || info.shape.size() != 2 || info.shape[1] != stack.hidden_size) return;
  if (info.shape[0] == stack.vocab_size) return;
  base::throw_user_error(
      "{}: tensor '{}' has {} rows; expected {}, since config.json says vocab_size = {}. If the "
      "vocabulary was resized, set vocab_size in config.json to {}",
      index.path_of(tensor).string(), info.name, info.shape[0], stack.vocab_size, stack.vocab_size,
      info.shape[0]);
}

// In 16 or 32 bits the file's tensor must have weight.shape; find_nf4 has checked those in 4 bits.
void check_shape(const TensorIndex& index, const Weight& weight, const Stack& stack) {
  if (formats::find_nf4(index, weight.name, dims_of(weight.shape_in_4_bits()))) return;
  const std::vector<int64_t> expected = dims_of(weight.shape);
  const IndexedTensor& tensor = *index.find(weight.name);
  check_vocabulary(index, tensor, stack);
  if (tensor.info->shape == expected) return;
  base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, as config.json says",
                         index.path_of(tensor).string(), weight.name,
                         formats::shape_text(tensor.info->shape), formats::shape_text(expected));
}

void check_weights(const TensorIndex& index, const ModelConfig& config) {
  const Stack stack = models::stack_of(config);
  std::vector<Weight> weights = models::file_weights_of(stack);
  check_surplus(index, stack, config, weights);
  std::erase_if(weights, [&](const Weight& weight) {
    return std::ranges::count(config.from_adapter, weight.name) > 0;
  });
  check_missing(index, stack, weights);
  for (const Weight& weight : weights) check_shape(index, weight, stack);
}

models::ModelSource find_weights(const formats::Recipe& recipe) {
  recipe.require("model");
  models::ModelSource model = models::find_model(recipe.model);
  if (model.folder.empty() && recipe.init != formats::Init::random)
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give the folder "
                                     "of a model, or init=random to measure speed and memory",
                                     recipe.model));
  return model;
}

void check_files(const formats::Recipe& recipe, const models::ModelSource& model) {
  if (recipe.init != formats::Init::random)
    check_weights(models::open_weights(model.folder, models::stack_of(model.config)), model.config);
}

}  // namespace

models::ModelSource open_model(const formats::Recipe& recipe) {
  models::ModelSource model = find_weights(recipe);
  if (!recipe.adapter.empty())
    model.config = plan::with_adapter_tables(model.config, recipe.adapter);
  check_files(recipe, model);
  return model;
}

models::ModelSource open_model_to_train(const formats::Recipe& recipe) {
  models::ModelSource model = find_weights(recipe);
  check_files(recipe, model);
  return model;
}

LoadReport load_weights(const std::filesystem::path& folder, const models::ModelConfig& config,
                        Executor& executor) {
  const auto start = std::chrono::steady_clock::now();
  constexpr auto kProgram = program::ProgramName::load;
  const formats::TensorIndex index = models::open_weights(folder, models::stack_of(config));
  check_weights(index, config);
  const Performed performed =
      perform(kProgram,
              sources_of(index, FileSet::model, "as config.json says", &config, kProgram, executor),
              executor);
  LoadReport report;
  report.bytes_read = performed.bytes_read;
  report.bytes_around = performed.bytes_around;
  report.digest = sum_of_shards(executor.mesh(), performed.digest);
  report.seconds = base::seconds_since(start);
  return report;
}

std::optional<LoadReport> set_weights(const models::ModelSource& model, formats::Init init,
                                      Executor& executor) {
  if (init != formats::Init::random) return load_weights(model.folder, model.config, executor);
  random_weights(model.config, executor);
  return std::nullopt;
}

}  // namespace snug::runtime
