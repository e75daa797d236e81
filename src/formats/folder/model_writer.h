// A model's weights: one STEM.safetensors, or shards with STEM.safetensors.index.json if they
// exceed max_shard_bytes. Shards are filled in declared order. A writer that is destroyed before
// finish() removes what it wrote. Not thread-safe.
#pragma once

#include "formats/folder/safetensors_writer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace snug::formats {

// A file of a model and the tensors in it.
struct ModelFile {
  std::filesystem::path path;
  std::vector<TensorSpec> tensors;
};
// The division of a model into files.
std::vector<ModelFile> model_files(const std::filesystem::path& folder,
                                   const std::vector<TensorSpec>& tensors, int64_t max_shard_bytes,
                                   const std::string& stem);
// Writes STEM.safetensors.index.json if there are several files.
void write_index(const std::filesystem::path& folder, const std::vector<ModelFile>& files,
                 const std::string& stem);

class ModelWriter {
 public:
  static constexpr int64_t kDefaultShardBytes = 5'000'000'000;

  ModelWriter(const std::filesystem::path& folder, const std::vector<TensorSpec>& tensors,
              int64_t max_shard_bytes = kDefaultShardBytes, const std::string& stem = "model");
  ~ModelWriter();
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;

  // Like SafetensorsWriter::write. A shard is opened with its first tensor and finished with its
  // last.
  int64_t write(std::string_view name, const void* source, int64_t bytes);
  void finish();

  int64_t total_bytes() const { return total_bytes_; }
  size_t shard_count() const { return shards_.size(); }

 private:
  struct Shard {
    std::unique_ptr<SafetensorsWriter> writer;
    bool done = false;
  };
  void open_if_needed(size_t shard);
  static void close(Shard& shard);

  std::filesystem::path folder_;
  std::string stem_;
  std::vector<ModelFile> files_;
  std::vector<Shard> shards_;  // one for each file
  std::unordered_map<std::string, size_t> shard_of_;
  int64_t total_bytes_ = 0;
  bool finished_ = false;
};

}  // namespace snug::formats
