#include "formats/folder/tensor_index.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "formats/folder/manifest.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

bool is_pickle(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt";
}

// Reports why a folder has no readable weights, and what to do about it.
[[noreturn]] void fail_without_weights(const fs::path& folder, const std::string& stem) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    base::throw_user_error("{}: there is no such folder; expected one with {}.safetensors",
                           folder.string(), stem);
  refuse_rank_checkpoint(folder);
  if (stem == "model" && fs::exists(folder / "adapter_config.json", error))
    base::throw_user_error(
        "{}: the folder has an adapter and no model; give the model that it was trained on as "
        "model=, and this folder as adapter=",
        folder.string());
  for (const auto& entry : base::list_folder(folder))
    if (is_pickle(entry.path()))
      base::throw_user_error(
          "{}: a pickle file, which runs code when it is opened; Snug reads safetensors only. Load "
          "the model once in Python and call save_pretrained(..., safe_serialization=True), then "
          "use the folder it writes",
          entry.path().string());
  base::throw_user_error(
      "{}: the folder has neither {}.safetensors nor {}.safetensors.index.json; is the download "
      "complete?",
      folder.string(), stem, stem);
}

// The inverse of weight_map: for each shard, by name, the tensors that it should hold.
std::map<std::string, std::vector<std::string>> read_weight_map(const fs::path& index_path) {
  const nlohmann::json document = base::read_json_file(index_path);
  const base::JsonObject index(document, index_path.string());
  const base::JsonObject weight_map = index.object("weight_map");
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : weight_map.value().items()) {
    const std::string name = weight_map.text(tensor);
    if (name.empty() || fs::path(name).filename() != name || name == "..")
      weight_map.fail(tensor,
                      fmt::format("names the shard '{}'; expected the name of a file in the "
                                  "same folder",
                                  name));
    shards[name].push_back(tensor);
  }
  if (shards.empty()) index.fail("weight_map", "lists no tensors");
  return shards;
}

fs::path single_file(const fs::path& folder, const std::string& stem) {
  return folder / (stem + ".safetensors");
}

fs::path index_file(const fs::path& folder, const std::string& stem) {
  return folder / (stem + ".safetensors.index.json");
}

}  // namespace

bool TensorIndex::has_files(const fs::path& folder, const std::string& stem) {
  std::error_code error;
  if (fs::exists(single_file(folder, stem), error)) return true;
  const fs::path index = index_file(folder, stem);
  if (!fs::exists(index, error)) return false;
  const auto shards = read_weight_map(index);
  return std::all_of(shards.begin(), shards.end(), [&](const auto& shard) {
    std::error_code missing;
    return fs::exists(folder / shard.first, missing);
  });
}

TensorIndex::TensorIndex(const fs::path& folder, const std::string& stem) : folder_(folder) {
  const fs::path single = single_file(folder, stem);
  const fs::path index = index_file(folder, stem);
  std::error_code error;
  if (fs::exists(single, error)) {
    add_file(single);
  } else if (fs::exists(index, error)) {
    open_shards(index);
  } else {
    fail_without_weights(folder, stem);
  }
}

void TensorIndex::open_shards(const fs::path& index_path) {
  const auto shards = read_weight_map(index_path);
  files_.reserve(shards.size());
  for (const auto& [name, promised] : shards) {
    const fs::path path = folder_ / name;
    if (!fs::exists(path))
      base::throw_user_error(
          "{}: the shard is missing; {} says that it holds {} tensors, '{}' first. Download it "
          "again",
          path.string(), index_path.string(), promised.size(), promised.front());
    add_file(path);
    for (const std::string& tensor : promised)
      if (files_.back().find(tensor) == nullptr)
        base::throw_user_error(
            "{}: there is no tensor '{}', although {} says that it is here; the index and the "
            "shards "
            "are not of one model, download both again",
            path.string(), tensor, index_path.string());
  }
}

void TensorIndex::add_file(const fs::path& path) {
  files_.emplace_back(path);
  const SafetensorsFile& file = files_.back();
  for (const TensorInfo& info : file.tensors()) {
    const auto [known, is_new] = by_name_.emplace(info.name, tensors_.size());
    if (!is_new)
      base::throw_user_error("{}: tensor '{}' is also in {}; each tensor must be in one shard",
                             path.string(), info.name, path_of(tensors_[known->second]).string());
    tensors_.push_back({&info, files_.size() - 1});
  }
}

void TensorIndex::rename(const std::function<std::string(const std::string&)>& name_of) {
  for (SafetensorsFile& file : files_) file.rename(name_of);
  by_name_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].info->name, i);
}

void TensorIndex::add_alias(std::string alias, const std::string& of) {
  if (const auto found = by_name_.find(of); found != by_name_.end())
    aliases_.emplace(std::move(alias), found->second);
}

int64_t TensorIndex::total_bytes() const {
  int64_t bytes = 0;
  for (const IndexedTensor& tensor : tensors_) bytes += tensor.info->bytes();
  return bytes;
}

const IndexedTensor* TensorIndex::find(std::string_view name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end())
    return &tensors_[found->second];
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? nullptr : &tensors_[alias->second];
}

const IndexedTensor& TensorIndex::at(std::string_view name) const {
  if (const IndexedTensor* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const IndexedTensor& tensor : tensors_) names.push_back(tensor.info->name);
  const auto nearest = base::nearest_name(name, names);
  base::throw_user_error("{}: there is no tensor '{}'{}", folder_.string(), name,
                         nearest ? fmt::format("; the nearest is '{}'", *nearest) : "");
}

bool TensorIndex::are_same(const IndexedTensor& a, const IndexedTensor& b) const {
  if (a.info->stored_dtype != b.info->stored_dtype || a.info->shape != b.info->shape) return false;
  constexpr int64_t kPieceBytes = int64_t{4} << 20;
  const int64_t bytes = a.info->bytes();
  std::vector<char> of_a(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  std::vector<char> of_b(of_a.size());
  for (int64_t first = 0; first < bytes; first += kPieceBytes) {
    const int64_t count = std::min(kPieceBytes, bytes - first);
    read_range(a, first, count, of_a.data());
    read_range(b, first, count, of_b.data());
    if (!std::equal(of_a.begin(), of_a.begin() + count, of_b.begin())) return false;
  }
  return true;
}

void TensorIndex::read(const IndexedTensor& tensor, void* destination) const {
  files_[tensor.file].read(*tensor.info, destination);
}

void TensorIndex::read_range(const IndexedTensor& tensor, int64_t offset, int64_t bytes,
                             void* destination) const {
  files_[tensor.file].read_range(*tensor.info, offset, bytes, destination);
}

}  // namespace snug::formats
