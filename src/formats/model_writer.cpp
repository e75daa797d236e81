#include "formats/model_writer.h"

#include "base/error.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

// Greedy: a shard takes tensors while they fit. A tensor larger than the limit has a shard of its
// own.
std::vector<std::vector<TensorSpec>> split(const std::vector<TensorSpec>& tensors,
                                           int64_t max_shard_bytes) {
  std::vector<std::vector<TensorSpec>> shards(1);
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes() > max_shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(tensor);
    bytes += tensor.bytes();
  }
  return shards;
}

}  // namespace

ModelWriter::ModelWriter(const fs::path& folder, const std::vector<TensorSpec>& tensors,
                         int64_t max_shard_bytes, const std::string& stem)
    : folder_(folder), stem_(stem) {
  auto parts = split(tensors, max_shard_bytes);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name =
        parts.size() == 1 ? stem + ".safetensors"
                          : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, parts.size());
    for (const TensorSpec& tensor : parts[i]) {
      const bool is_new = shard_of_.emplace(tensor.name, i).second;
      SNUG_CHECK(is_new, "tensor {} is declared twice", tensor.name);
      total_bytes_ += tensor.bytes();
    }
    shards_.push_back({folder / name, std::move(parts[i]), nullptr, false});
  }
}

ModelWriter::~ModelWriter() {
  if (finished_) return;
  for (Shard& shard : shards_) {
    shard.writer.reset();
    std::error_code ignored;
    if (shard.done) fs::remove(shard.path, ignored);
  }
}

void ModelWriter::write(std::string_view name, const void* source, int64_t bytes) {
  const auto found = shard_of_.find(std::string(name));
  SNUG_CHECK(found != shard_of_.end(), "tensor {} was not declared", name);
  if (bytes == 0) return;  // an empty tensor may come after its shard is complete
  Shard& shard = shards_[found->second];
  open_if_needed(shard);
  shard.writer->write(name, source, bytes);
  if (shard.writer->complete()) close(shard);
}

void ModelWriter::finish() {
  // What holds no data (an empty model, empty tensors only) was never opened by a write.
  for (Shard& shard : shards_) {
    if (shard.done) continue;
    open_if_needed(shard);
    close(shard);
  }
  if (shards_.size() > 1) write_index();
  finished_ = true;
}

void ModelWriter::open_if_needed(Shard& shard) {
  SNUG_CHECK(!shard.done, "{} is already complete", shard.path.string());
  if (!shard.writer) shard.writer = std::make_unique<SafetensorsWriter>(shard.path, shard.tensors);
}

void ModelWriter::close(Shard& shard) {
  shard.writer->finish();
  shard.writer.reset();
  shard.done = true;
}

void ModelWriter::write_index() const {
  nlohmann::json index;
  index["metadata"]["total_size"] = total_bytes_;
  for (const auto& [tensor, shard] : shard_of_)
    index["weight_map"][tensor] = shards_[shard].path.filename().string();
  base::write_file_atomically(folder_ / (stem_ + ".safetensors.index.json"), index.dump(2) + "\n");
}

}  // namespace snug::formats
