#include "runtime/load_weights.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "formats/tensor_index.h"
#include "models/rope.h"
#include "models/weights.h"
#include "runtime/read_tensors.h"

namespace snug::runtime {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;
using models::ModelConfig;
using models::Weight;

std::string nearest_tensor(const TensorIndex& index, const std::string& name) {
  std::vector<std::string_view> names;
  for (const IndexedTensor& tensor : index.tensors()) names.push_back(tensor.info->name);
  const auto nearest = base::nearest_name(name, names);
  return nearest ? fmt::format("; the nearest it has is '{}'", *nearest) : std::string();
}

[[noreturn]] void fail_missing(const TensorIndex& index, const ModelConfig& config,
                               const std::vector<Weight>& weights, const Weight& first) {
  const auto missing = std::count_if(weights.begin(), weights.end(), [&](const Weight& weight) {
    return index.find(weight.name) == nullptr;
  });
  const bool is_head = first.name == "lm_head.weight" && !config.tied_embeddings && missing == 1;
  base::throw_user_error(
      "{}: tensor '{}' is missing{}, which config.json asks for{}. {}", index.folder().string(),
      first.name, missing > 1 ? fmt::format(" and {} more", missing - 1) : std::string(),
      nearest_tensor(index, first.name),
      is_head ? "If the model shares its embedding with the head, set tie_word_embeddings to true "
                "in config.json"
              : "Is the download complete, and is config.json this model's?");
}

void check_missing(const TensorIndex& index, const ModelConfig& config,
                   const std::vector<Weight>& weights) {
  for (const Weight& weight : weights)
    if (index.find(weight.name) == nullptr) fail_missing(index, config, weights, weight);
}

void check_surplus(const TensorIndex& index, const ModelConfig& config,
                   const std::vector<Weight>& weights) {
  std::unordered_set<std::string_view> known;
  for (const Weight& weight : weights) known.insert(weight.name);
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    if (known.contains(name) || models::is_ignorable(name, config)) continue;
    base::throw_user_error(
        "{}: tensor '{}' is not part of the model that config.json describes (a {} of {} "
        "layers), and leaving it out would change the result{}. Is config.json this model's?",
        index.path_of(tensor).string(), name, config.model_type, config.num_layers,
        name.ends_with(".bias")
            ? "; it is a bias that config.json does not ask for (attention_bias, mlp_bias)"
            : "");
  }
}

// The one wrong shape that is no mix-up: embeddings padded or grown without their config.json.
void check_vocabulary(const TensorIndex& index, const IndexedTensor& tensor,
                      const ModelConfig& config) {
  const formats::TensorInfo& info = *tensor.info;
  const bool has_rows = info.name == "model.embed_tokens.weight" || info.name == "lm_head.weight";
  if (!has_rows || info.shape.size() != 2 || info.shape[1] != config.hidden_size) return;
  if (info.shape[0] == config.vocab_size) return;
  base::throw_user_error(
      "{}: tensor '{}' has {} rows; expected {}, since config.json says vocab_size = {}. If the "
      "vocabulary was resized, set vocab_size in config.json to {}",
      index.path_of(tensor).string(), info.name, info.shape[0], config.vocab_size,
      config.vocab_size, info.shape[0]);
}

// Where a weight of the file goes: to its place, or to the codes and scales it is stored as.
Transfer transfer_of(const IndexedTensor& tensor,
                     const std::unordered_map<std::string_view, program::Shape>& shapes,
                     Executor& executor) {
  const std::string& name = tensor.info->name;
  if (!is_stored_as_nf4(executor, name)) return {&tensor, original_of(executor, name)};
  backends::Buffer values;
  values.shape = shapes.at(name);
  values.strides = program::dense_strides(values.shape);
  return {&tensor, values, stored_weight(executor, name)};
}

std::vector<Transfer> transfers_of(const TensorIndex& index, const ModelConfig& config,
                                   Executor& executor) {
  const std::vector<Weight> weights = models::weights_of(config);
  check_missing(index, config, weights);
  check_surplus(index, config, weights);
  std::unordered_map<std::string_view, program::Shape> shapes;
  for (const Weight& weight : weights) shapes.emplace(weight.name, weight.shape);
  std::vector<Transfer> transfers;
  // In the order of the files, so that reading is sequential.
  for (const IndexedTensor& tensor : index.tensors()) {
    if (models::is_ignorable(tensor.info->name, config)) continue;
    check_vocabulary(index, tensor, config);
    transfers.push_back(transfer_of(tensor, shapes, executor));
    check_transfer(index, transfers.back(), "as config.json says");
  }
  return transfers;
}

}  // namespace

LoadReport load_weights(const std::filesystem::path& folder, const ModelConfig& config,
                        Executor& executor) {
  const auto start = std::chrono::steady_clock::now();
  const TensorIndex index(folder);
  const std::vector<Transfer> transfers = transfers_of(index, config, executor);
  LoadReport report;
  report.bytes_read = read_tensors(index, transfers, executor);
  write_inverse_frequencies(config, executor);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void write_inverse_frequencies(const ModelConfig& config, Executor& executor) {
  const std::vector<float> frequencies = models::inverse_frequencies(config);
  const backends::Buffer& buffer = executor.tensor("inverse_frequencies");
  SNUG_CHECK_EQ(buffer.elements(), static_cast<int64_t>(frequencies.size()));
  executor.backend().copy(buffer.data, frequencies.data(), buffer.bytes());
  executor.backend().synchronise();
}

}  // namespace snug::runtime
