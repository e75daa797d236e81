#include "runtime/load_weights.h"

#include <chrono>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/quant_state.h"
#include "formats/tensor_index.h"
#include "models/rope.h"
#include "models/weights.h"
#include "runtime/check_weights.h"
#include "runtime/file_shape.h"
#include "runtime/read_tensors.h"

namespace snug::runtime {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;
using models::ModelConfig;
using models::Weight;

// A part of a stored weight, byte for byte: whatever type the file views it as.
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
    const auto in_file = formats::find_nf4(index_, name, dims_of(shape));
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
  Destinations destinations(index, weights, executor);
  Transfers transfers;
  // In the order of the files, so that reading is sequential.
  for (const IndexedTensor& tensor : index.tensors()) {
    const std::string& name = tensor.info->name;
    if (models::is_ignorable(name, config) || formats::weight_of_part(name)) continue;
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
  check_weights(index, config);
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
