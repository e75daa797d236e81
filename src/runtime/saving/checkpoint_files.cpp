#include "runtime/saving/checkpoint_files.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "formats/adapter/adapter_config.h"
#include "methods/method.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/read_tensors.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::IndexedTensor;
using formats::TensorIndex;
using program::ProgramName;

// The recipe's keys that determine which tensors a checkpoint holds.
constexpr const char* kKeysOfState =
    "method, optim, target_modules, trainable_modules, freeze_modules";

// The positions in indexes_ for a checkpoint that one rank wrote.
constexpr size_t kResult = 0;
constexpr size_t kOptimizer = 1;

// The state must have the names, shapes and element types that this job computes with, or the run
// would continue with other bits.
void check_same_type(const TensorIndex& index, const TensorRead& tensor_read) {
  const formats::TensorInfo& info = *tensor_read.source->info;
  check_read(index, tensor_read, "as the recipe and the base model say");
  if (info.dtype != tensor_read.destination.dtype)
    base::throw_user_error(
        "{}: tensor '{}' is stored as {} and this job keeps it as {}; the checkpoint was made with "
        "another optim or compute_dtype, resume with those",
        index.path_of(*tensor_read.source).string(), info.name, info.stored_dtype,
        base::name_of(tensor_read.destination.dtype));
}

[[noreturn]] void fail_missing(const fs::path& folder, const std::string& name) {
  base::throw_user_error(
      "{}: the checkpoint has no '{}', which this job keeps; it was made by another recipe "
      "({}) or for another model",
      folder.string(), name, kKeysOfState);
}

// Refuses a file with tensors that are not in `known`, the names of all that the job keeps in it.
void check_surplus(const TensorIndex& index, const std::unordered_set<std::string>& known) {
  for (const IndexedTensor& tensor : index.tensors())
    if (!known.contains(tensor.info->name))
      base::throw_user_error(
          "{}: the checkpoint holds '{}', which this job does not keep; it was made by another "
          "recipe ({}) or for another model",
          index.path_of(tensor).string(), tensor.info->name, kKeysOfState);
}

// The names in these files of the tensors that a program saves.
std::unordered_set<std::string> names_saved(ProgramName program, FileSet files,
                                            const Executor& executor) {
  std::unordered_set<std::string> names;
  for (const program::Tensor& tensor : executor.job().find(program)->tensors)
    if (tensor.lifetime == program::Lifetime::run)
      for (models::FilePiece& piece : pieces_in(files, tensor)) names.insert(std::move(piece.name));
  return names;
}

constexpr std::string_view kAdapterConfig = "adapter_config.json";

methods::MethodKind method_of_checkpoint(const fs::path& folder) {
  if (!fs::exists(folder / kAdapterConfig)) return methods::kFull.kind;
  return methods::method_of(formats::read_adapter_config(folder)).kind;
}

void check_method(const fs::path& folder, methods::MethodKind method) {
  const fs::path config =
      folder / (methods::method_of(method).trains_weights ? "config.json" : kAdapterConfig);
  if (fs::exists(config)) return;
  base::throw_user_error(
      "{}: the checkpoint has no {}; it was made with method={}, and this job has method={}",
      folder.string(), config.filename().string(), base::word_of(method_of_checkpoint(folder)),
      base::word_of(method));
}

}  // namespace

FileSet result_of(const Executor& executor) {
  return plan::adapter_tensors(executor.job()).empty() ? FileSet::model : FileSet::adapter;
}

CheckpointFiles::CheckpointFiles(const fs::path& folder, const formats::FolderChecksums& checksums,
                                 Executor& executor)
    : folder_(folder), checksums_(checksums), executor_(executor) {
  const FileSet result = result_of(executor);
  check_method(folder, executor.job().method);
  const fs::path manifest = folder / formats::kManifestName;
  if (!checksums.files.contains(formats::kManifestName)) {
    indexes_.emplace_back(folder, stem_of(result));
    indexes_.emplace_back(folder, stem_of(FileSet::optimizer));
    return;
  }
  manifest_ = formats::parse_manifest(base::read_text_file(manifest), manifest.string());
  for (int64_t rank = 0; rank < manifest_->ranks; ++rank)
    indexes_.emplace_back(folder, formats::rank_stem(rank, manifest_->ranks));
}

std::vector<FilePart> CheckpointFiles::find(const program::Tensor& tensor) const {
  const FileSet files = files_in_checkpoint(tensor);
  const auto pieces =
      pieces_to_read(files, tensor, [](const std::string& /*name*/) { return true; });
  std::vector<FilePart> parts;
  for (const models::FilePiece& piece : pieces) {
    if (manifest_) {
      for (FilePart& part : find_parts(piece)) parts.push_back(std::move(part));
      continue;
    }
    const TensorIndex& index = indexes_[files == FileSet::optimizer ? kOptimizer : kResult];
    const IndexedTensor* stored = index.find(piece.name);
    if (stored == nullptr) fail_missing(folder_, piece.name);
    if (pieces.size() == 1) return {{stored, std::nullopt, piece.shape}};
    parts.push_back({stored, piece.first, piece.shape});
  }
  return parts;
}

// The ranges of a tensor that the ranks have written, with their files.
std::vector<FilePart> CheckpointFiles::find_parts(const models::FilePiece& piece) const {
  const std::string& name = piece.name;
  const auto found = manifest_->tensors.find(name);
  if (found == manifest_->tensors.end()) fail_missing(folder_, name);
  const std::string file = (folder_ / formats::kManifestName).string();
  if (found->second.shape != dims_of(piece.shape))
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected {}, as the recipe and the base model say", file,
        name, formats::shape_text(found->second.shape), formats::shape_text(dims_of(piece.shape)));
  std::vector<FilePart> parts;
  for (const formats::ManifestPart& part : found->second.parts) {
    const auto index = std::find_if(indexes_.begin(), indexes_.end(), [&](const auto& each) {
      return each.files().front().path().filename() == part.file;
    });
    const IndexedTensor* stored = index == indexes_.end() ? nullptr : index->find(name);
    if (stored == nullptr || stored->info->elements() != part.count)
      throw base::DamagedFile(
          fmt::format("{}: '{}' does not have {} elements of '{}', so this checkpoint is damaged; "
                      "resume from an earlier one",
                      file, part.file, part.count, name));
    parts.push_back({stored, piece.first + part.first});
  }
  return parts;
}

const TensorIndex& CheckpointFiles::index_of(const IndexedTensor& tensor) const {
  for (const TensorIndex& index : indexes_)
    if (index.find(tensor.info->name) == &tensor) return index;
  SNUG_CHECK(false, "{} is of no file of the checkpoint", tensor.info->name);
  return indexes_.front();
}

void CheckpointFiles::check(const TensorRead& tensor_read) const {
  check_same_type(index_of(*tensor_read.source), tensor_read);
}

void CheckpointFiles::check_names() const {
  auto state = names_saved(ProgramName::save_state, FileSet::optimizer, executor_);
  auto result = names_saved(ProgramName::save, result_of(executor_), executor_);
  if (!manifest_) {
    check_surplus(indexes_[kOptimizer], state);
    return check_surplus(indexes_[kResult], result);
  }
  state.merge(result);
  for (const TensorIndex& index : indexes_) check_surplus(index, state);
}

// The reads of a file's tensors, in the order of the file.
std::vector<TensorRead> CheckpointFiles::verified(size_t number,
                                                  std::span<const TensorRead> restored) const {
  const TensorIndex& index = indexes_[number];
  std::unordered_map<const IndexedTensor*, const TensorRead*> by_source;
  std::unordered_set<std::string_view> names;
  for (const TensorRead& tensor_read : restored) {
    by_source.emplace(tensor_read.source, &tensor_read);
    names.insert(tensor_read.source->info->name);
  }
  const comm::Mesh& mesh = executor_.mesh();
  std::vector<TensorRead> list;
  for (const IndexedTensor& tensor : index.tensors()) {
    const auto found = by_source.find(&tensor);
    if (found != by_source.end()) {
      list.push_back(*found->second);
    } else {
      const size_t turn = number + static_cast<size_t>(&tensor - index.tensors().data());
      const auto shards = static_cast<size_t>(comm::Mesh::size_of(mesh.shards));
      if (names.contains(tensor.info->name) || turn % shards != static_cast<size_t>(mesh.shard()))
        continue;
      list.push_back(without_destination(tensor));
    }
    list.back().checksums = formats::checksums_of(checksums_, index, tensor);
  }
  return list;
}

ReadReport CheckpointFiles::read(std::span<const TensorRead> restored) const {
  check_names();
  ReadReport report;
  for (size_t number = indexes_.size(); number-- > 0;) {
    const ReadReport part =
        read_tensors(indexes_[number], verified(number, restored), executor_, ProgramName::restore);
    report.bytes += part.bytes;
    report.digest += part.digest;
    report.bytes_around += part.bytes_around;
  }
  return report;
}

}  // namespace snug::runtime
