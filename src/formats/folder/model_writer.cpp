#include "formats/folder/model_writer.h"

#include "base/error.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

// Greedy: a shard takes tensors as long as they fit. A tensor larger than the limit gets a shard of
// its own.
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

std::vector<ModelFile> model_files(const fs::path& folder, const std::vector<TensorSpec>& tensors,
                                   int64_t max_shard_bytes, const std::string& stem) {
  auto parts = split(tensors, max_shard_bytes);
  std::vector<ModelFile> files;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name =
        parts.size() == 1 ? stem + ".safetensors"
                          : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, parts.size());
    files.push_back({folder / name, std::move(parts[i])});
  }
  return files;
}

void write_index(const fs::path& folder, const std::vector<ModelFile>& files,
                 const std::string& stem) {
  if (files.size() < 2) return;
  nlohmann::json index;
  int64_t total_bytes = 0;
  for (const ModelFile& file : files)
    for (const TensorSpec& tensor : file.tensors) {
      index["weight_map"][tensor.name] = file.path.filename().string();
      total_bytes += tensor.bytes();
    }
  index["metadata"]["total_size"] = total_bytes;
  base::write_file_atomically(folder / (stem + ".safetensors.index.json"), index.dump(2) + "\n");
}

ModelWriter::ModelWriter(const fs::path& folder, const std::vector<TensorSpec>& tensors,
                         int64_t max_shard_bytes, const std::string& stem)
    : folder_(folder), stem_(stem), files_(model_files(folder, tensors, max_shard_bytes, stem)) {
  shards_.resize(files_.size());
  for (size_t i = 0; i < files_.size(); ++i)
    for (const TensorSpec& tensor : files_[i].tensors) {
      const bool is_new = shard_of_.emplace(tensor.name, i).second;
      SNUG_CHECK(is_new, "tensor {} is declared twice", tensor.name);
      total_bytes_ += tensor.bytes();
    }
}

ModelWriter::~ModelWriter() {
  if (finished_) return;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].writer.reset();
    std::error_code ignored;
    if (shards_[i].done) fs::remove(files_[i].path, ignored);
  }
}

int64_t ModelWriter::write(std::string_view name, const void* source, int64_t bytes) {
  const auto found = shard_of_.find(std::string(name));
  SNUG_CHECK(found != shard_of_.end(), "tensor {} was not declared", name);
  if (bytes == 0) return 0;  // an empty tensor may come after its shard is complete
  open_if_needed(found->second);
  Shard& shard = shards_[found->second];
  const int64_t written = shard.writer->write(name, source, bytes);
  if (shard.writer->complete()) close(shard);
  return written;
}

void ModelWriter::finish() {
  // Files without data (an empty model, or only empty tensors) were not opened by any write.
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].done) continue;
    open_if_needed(i);
    close(shards_[i]);
  }
  write_index(folder_, files_, stem_);
  finished_ = true;
}

void ModelWriter::open_if_needed(size_t index) {
  const ModelFile& file = files_[index];
  Shard& shard = shards_[index];
  SNUG_CHECK(!shard.done, "{} is already complete", file.path.string());
  if (!shard.writer) shard.writer = std::make_unique<SafetensorsWriter>(file.path, file.tensors);
}

void ModelWriter::close(Shard& shard) {
  shard.writer->finish();
  shard.writer.reset();
  shard.done = true;
}

}  // namespace snug::formats
