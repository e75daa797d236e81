// All tensors of a model folder, whether it is one model.safetensors or shards that
// model.safetensors.index.json lists. Opening reads every header and no data.
// Threading: const after opening; read may run in parallel on distinct destinations.
#pragma once

#include "formats/folder/safetensors_file.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace snug::formats {

struct IndexedTensor {
  const TensorInfo* info = nullptr;  // owned by the file
  size_t file = 0;                   // index into TensorIndex::files()
};

class TensorIndex {
 public:
  // `stem` is "model", or "adapter_model" in an adapter folder. Throws UserError for a missing
  // shard, a tensor that its shard does not hold or that two shards hold, a broken index, or a
  // folder with only pickle files (.bin, .pt, .pth).
  explicit TensorIndex(const std::filesystem::path& folder, const std::string& stem = "model");

  // Whether the folder has all the files that opening it reads: the single file, or the index and
  // its shards. Throws UserError for a broken index.
  static bool has_files(const std::filesystem::path& folder, const std::string& stem = "model");

  TensorIndex(TensorIndex&&) = default;
  TensorIndex& operator=(TensorIndex&&) = default;

  // Renames each tensor to name_of(its name). Throws UserError if two tensors in a file would have
  // the same name. Must not be called during reads.
  void rename(const std::function<std::string(const std::string&)>& name_of);
  // Makes find() return the tensor `of`, if it exists, for the name `alias` too.
  void add_alias(std::string alias, const std::string& of);

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }
  // The tensors in the order of the files, and of the data within each file, in which reading is
  // sequential.
  const std::vector<IndexedTensor>& tensors() const { return tensors_; }
  int64_t total_bytes() const;

  // nullptr if there is no such tensor. The pointer is valid as long as the index.
  const IndexedTensor* find(std::string_view name) const;
  // The same, but throws UserError that names the folder and the most similar tensor name.
  const IndexedTensor& at(std::string_view name) const;
  const std::filesystem::path& path_of(const IndexedTensor& tensor) const {
    return files_[tensor.file].path();
  }

  // Whether both have the same type, shape and bytes. Compares piece by piece up to the first
  // difference.
  bool are_same(const IndexedTensor& a, const IndexedTensor& b) const;

  void read(const IndexedTensor& tensor, void* destination) const;
  void read_range(const IndexedTensor& tensor, int64_t offset, int64_t bytes,
                  void* destination) const;

 private:
  void open_shards(const std::filesystem::path& index_path);
  void add_file(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::vector<IndexedTensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::map<std::string, size_t, std::less<>> aliases_;
};

}  // namespace snug::formats
