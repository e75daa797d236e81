#include "runtime/load_weights.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "base/nearest.h"
#include "formats/quant_state.h"
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
    const std::string_view weight = formats::weight_of_part(name).value_or(name);
    if (known.contains(weight) || models::is_ignorable(name, config)) continue;
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

// A part of a stored weight, byte for byte.
Transfer part(const IndexedTensor* source, backends::Buffer destination) {
  destination.dtype = *source->info->dtype;
  destination.shape = {};
  for (const int64_t dim : source->info->shape) destination.shape.append(dim);
  destination.strides = program::dense_strides(destination.shape);
  return {source, destination};
}

// Where the weights of a job go: to their place, or to the codes and scales they are stored as,
// which the file has already or which are made on the way.
class Destinations {
 public:
  Destinations(const TensorIndex& index, const std::vector<Weight>& weights, Executor& executor)
      : index_(index), executor_(executor) {
    for (const Weight& weight : weights) by_name_.emplace(weight.name, &weight);
  }

  // Of what was read already, for the transfers that were asked for.
  uint64_t digest() const { return digest_; }

  std::vector<Transfer> of(const IndexedTensor& tensor) {
    const std::string& name = tensor.info->name;
    const program::Shape& shape = by_name_.at(name)->shape;
    const auto in_file = formats::find_nf4(index_, name, dims(shape));
    if (!is_stored_as_nf4(executor_, name)) {
      SNUG_CHECK(!in_file, "{} is stored in 4 bits, which the plan does not know", name);
      return {{&tensor, original_of(executor_, name)}};
    }
    const StoredWeight stored = stored_weight(executor_, name);
    if (in_file) return parts_of(*in_file, stored);
    backends::Buffer values;
    values.shape = shape;
    values.strides = program::dense_strides(shape);
    return {{&tensor, values, stored}};
  }

 private:
  static std::vector<int64_t> dims(const program::Shape& shape) {
    std::vector<int64_t> result;
    result.reserve(program::Shape::kMaxRank);
    for (int axis = 0; axis < shape.rank(); ++axis) result.push_back(shape[axis]);
    return result;
  }

  std::vector<Transfer> parts_of(const formats::StoredNf4& in_file, const StoredWeight& stored) {
    SNUG_CHECK_EQ(in_file.state.nested(), stored.nested());
    std::vector<Transfer> parts{part(in_file.codes, stored.codes),
                                part(in_file.absmax, stored.absmax)};
    // The file may view the codes as any type.
    parts.front().holds_values = false;
    if (!stored.nested()) return parts;
    add_nested_map(in_file);
    parts.push_back(part(in_file.nested_absmax, stored.nested_absmax));
    const auto copy = [&](const backends::Buffer& to, const float* from) {
      executor_.backend().copy(to.data, from, to.bytes());
    };
    copy(stored.nested_map, in_file.nested_map.data());
    copy(stored.nested_offset, &*in_file.state.nested_offset);
    executor_.backend().synchronise();
    return parts;
  }

  // What scales are read with is in no transfer.
  void add_nested_map(const formats::StoredNf4& in_file) {
    const formats::TensorInfo& absmax = *in_file.absmax->info;
    if (const auto found = base::first_not_finite(base::DType::f32, in_file.nested_map.data(),
                                                  std::ssize(in_file.nested_map)))
      base::throw_user_error(
          "{}: the map that '{}' is read with holds an infinity or NaN at [{}]. Is the file whole? "
          "Download or copy it again",
          index_.path_of(*in_file.absmax).string(), absmax.name, *found);
    const float offset = *in_file.state.nested_offset;
    digest_ += digest_of(absmax.name, -1, base::checksum(&offset, sizeof offset));
    digest_ += digest_of(absmax.name, -2,
                         base::checksum(in_file.nested_map.data(), sizeof in_file.nested_map));
  }

  const TensorIndex& index_;
  Executor& executor_;
  std::unordered_map<std::string_view, const Weight*> by_name_;
  uint64_t digest_ = 0;
};

struct Transfers {
  std::vector<Transfer> all;
  uint64_t digest = 0;  // of what making them has read
};

Transfers transfers_of(const TensorIndex& index, const ModelConfig& config, Executor& executor) {
  const std::vector<Weight> weights = models::weights_of(config);
  check_missing(index, config, weights);
  check_surplus(index, config, weights);
  Destinations destinations(index, weights, executor);
  Transfers transfers;
  // In the order of the files, so that reading is sequential.
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    if (models::is_ignorable(name, config) || formats::weight_of_part(name)) continue;
    check_vocabulary(index, tensor, config);
    for (Transfer& transfer : destinations.of(tensor)) {
      check_transfer(index, transfer, "as config.json says");
      transfers.all.push_back(std::move(transfer));
    }
  }
  transfers.digest = destinations.digest();
  return transfers;
}

}  // namespace

LoadReport load_weights(const std::filesystem::path& folder, const ModelConfig& config,
                        Executor& executor) {
  const auto start = std::chrono::steady_clock::now();
  const TensorIndex index(folder);
  const Transfers transfers = transfers_of(index, config, executor);
  const ReadReport read = read_tensors(index, transfers.all, executor);
  LoadReport report;
  report.bytes_read = read.bytes;
  report.digest = transfers.digest + read.digest;
  write_inverse_frequencies(config, executor);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void write_inverse_frequencies(const ModelConfig& config, Executor& executor) {
  // Which of longrope's two sets a job's programs read was settled when they were made.
  const int64_t longest = config.max_position;
  const bool is_long = executor.has(models::frequencies_name(config, longest));
  const int64_t sequence_tokens = is_long ? longest : 0;
  const std::vector<float> frequencies = models::inverse_frequencies(config, sequence_tokens);
  const backends::Buffer& buffer =
      executor.tensor(models::frequencies_name(config, sequence_tokens));
  SNUG_CHECK_EQ(buffer.elements(), static_cast<int64_t>(frequencies.size()));
  executor.backend().copy(buffer.data, frequencies.data(), buffer.bytes());
  executor.backend().synchronise();
}

}  // namespace snug::runtime
