#include "runtime/checkpoint.h"
#include "formats/choices.h"

#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/checksums.h"
#include "formats/directory_transaction.h"
#include "formats/peft_adapter.h"
#include "formats/tensor_index.h"
#include "program/tensor_names.h"
#include "runtime/adapter.h"
#include "runtime/checkpoint_folders.h"
#include "runtime/perform.h"
#include "runtime/read_tensors.h"
#include "runtime/save_model.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::IndexedTensor;
using formats::TensorIndex;
using program::ProgramName;

constexpr const char* kStateName = "trainer_state.json";
constexpr const char* kChecksumsName = "checksums.json";

// Through which files pass that are not streamed to the arenas.
std::span<std::byte> buffer_of(program::ProgramName program, Executor& executor) {
  const backends::Buffer& slot = executor.tensor(program, program::staging_slot_name(0));
  return {slot.data, static_cast<size_t>(slot.bytes())};
}

std::map<std::string, int64_t> file_sizes(const fs::path& folder) {
  std::map<std::string, int64_t> sizes;
  for (const auto& entry : base::list_folder(folder))
    if (entry.is_regular_file())
      sizes[entry.path().filename().string()] = static_cast<int64_t>(entry.file_size());
  return sizes;
}

formats::FolderChecksums read_checksums(const fs::path& folder, const TrainerState& state) {
  const fs::path path = folder / kChecksumsName;
  const std::string text = base::read_text_file(path);
  if (base::checksum_text(base::checksum(text)) != state.checksums)
    throw base::DamagedFile(
        fmt::format("{}: the file is not as it was written, so this checkpoint is damaged; resume "
                    "from an earlier one",
                    path.string()));
  return formats::parse_checksums(text, path.string());
}

// The state as the files hold it must be what this job computes with: the same names, shapes and
// element types, or the run would go on with other bits.
void check_same_type(const TensorIndex& index, const Transfer& transfer) {
  const formats::TensorInfo& info = *transfer.source->info;
  check_transfer(index, transfer, "as the recipe and the base model say");
  if (info.dtype != transfer.destination.dtype)
    base::throw_user_error(
        "{}: tensor '{}' is stored as {} and this job keeps it as {}; the checkpoint was made with "
        "another optim or compute_dtype, resume with those",
        index.path_of(*transfer.source).string(), info.name, info.stored_dtype,
        base::name_of(transfer.destination.dtype));
}

// Beyond `known`, the names of all that the job keeps in this file.
void check_surplus(const TensorIndex& index, const std::unordered_set<std::string>& known) {
  for (const IndexedTensor& tensor : index.tensors())
    if (!known.contains(tensor.info->name))
      base::throw_user_error(
          "{}: the checkpoint holds '{}', which this job does not keep; it was made by another "
          "recipe (method, optim, target_modules) or for another model",
          index.path_of(tensor).string(), tensor.info->name);
}

TensorIndex open_trainables(const fs::path& folder, const Executor& executor) {
  const bool adapter = !plan::adapter_tensors(executor.job()).empty();
  const fs::path config = folder / (adapter ? "adapter_config.json" : "config.json");
  if (!fs::exists(config))
    base::throw_user_error(
        "{}: the checkpoint has no {}; it was made with method={}, and this job has method={}",
        folder.string(), config.filename().string(),
        base::word_of(adapter ? formats::Method::full : formats::Method::lora),
        base::word_of(adapter ? formats::Method::lora : formats::Method::full));
  return TensorIndex(folder, stem_of(adapter ? FileSet::adapter : FileSet::model));
}

// The files of a checkpoint that hold tensors, as the program `restore` reads them.
class CheckpointFiles {
 public:
  CheckpointFiles(const fs::path& folder, const formats::FolderChecksums& checksums,
                  Executor& executor)
      : checksums_(checksums),
        executor_(executor),
        trainables_(open_trainables(folder, executor)),
        optimizer_(folder, stem_of(FileSet::optimizer)) {}

  const IndexedTensor& find(const program::Tensor& tensor) const {
    const FileSet files = files_in_checkpoint(tensor);
    const TensorIndex& index = files == FileSet::optimizer ? optimizer_ : trainables_;
    const std::string name = name_in(files, tensor.name);
    const IndexedTensor* stored = index.find(name);
    if (stored == nullptr)
      base::throw_user_error(
          "{}: the checkpoint has no '{}', which this job trains; it was made by another recipe "
          "(method, optim, target_modules) or for another model",
          index.folder().string(), name);
    return *stored;
  }
  void check(const Transfer& transfer) const {
    check_same_type(is_of(optimizer_, *transfer.source) ? optimizer_ : trainables_, transfer);
  }
  // Every byte of both, of which some are put back and the others verified alone.
  ReadReport read(std::span<const Transfer> restored) const {
    check_names();
    ReadReport report;
    for (const TensorIndex* index : {&optimizer_, &trainables_}) {
      const ReadReport part =
          read_tensors(*index, verified(*index, restored), executor_, ProgramName::restore);
      report.bytes += part.bytes;
      report.digest += part.digest;
    }
    return report;
  }

 private:
  static bool is_of(const TensorIndex& index, const IndexedTensor& tensor) {
    return index.find(tensor.info->name) == &tensor;
  }

  void check_names() const {
    std::unordered_set<std::string> kept;
    for (const program::Tensor& tensor : executor_.job().find(ProgramName::save_state)->tensors)
      if (tensor.lifetime == program::Lifetime::run)
        kept.insert(name_in(FileSet::optimizer, tensor.name));
    check_surplus(optimizer_, kept);
    std::unordered_set<std::string> trained;
    for (const program::Tensor& trainable : executor_.job().trainables)
      trained.insert(name_in(files_in_checkpoint(trainable), trainable.name));
    check_surplus(trainables_, trained);
  }

  // All of a file's tensors in their order.
  std::vector<Transfer> verified(const TensorIndex& index,
                                 std::span<const Transfer> restored) const {
    std::unordered_map<const IndexedTensor*, const Transfer*> by_source;
    for (const Transfer& transfer : restored) by_source.emplace(transfer.source, &transfer);
    std::vector<Transfer> transfers;
    for (const IndexedTensor& tensor : index.tensors()) {
      const auto found = by_source.find(&tensor);
      transfers.push_back(found != by_source.end() ? *found->second : without_destination(tensor));
      transfers.back().checksums = formats::checksums_of(checksums_, index, tensor);
    }
    return transfers;
  }

  const formats::FolderChecksums& checksums_;
  Executor& executor_;
  TensorIndex trainables_;
  TensorIndex optimizer_;
};

// A folder that was renamed or copied to the name of another step would count steps again.
void check_name(const fs::path& folder, const TrainerState& state) {
  std::error_code error;
  const fs::path name = fs::weakly_canonical(folder, error).filename();
  const std::optional<int64_t> step = step_of(name.string());
  if (step && *step != state.step)
    base::throw_user_error(
        "{}: the folder's name says step {} and its {} says step {}; give the folder the name {} "
        "back, or resume from another checkpoint",
        folder.string(), *step, kStateName, state.step, checkpoint_path("", state.step).string());
}

void check_file(const fs::path& path, int64_t bytes) {
  std::error_code error;
  const auto found = fs::file_size(path, error);
  if (error)
    base::throw_user_error(
        "{}: the file is missing, so this checkpoint is incomplete; resume from "
        "an earlier one",
        path.string());
  if (static_cast<int64_t>(found) != bytes)
    base::throw_user_error(
        "{}: the file has {} bytes and was written with {}, so this checkpoint is damaged; resume "
        "from an earlier one",
        path.string(), found, bytes);
}

}  // namespace

fs::path save_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                         Executor& executor) {
  SNUG_CHECK_EQ(options.adapter.has_value(), !plan::adapter_tensors(executor.job()).empty());
  executor.backend().synchronise();
  const fs::path target = checkpoint_path(options.output_dir, state.step);
  formats::DirectoryTransaction transaction(target);
  const fs::path& folder = transaction.staging();
  formats::TensorChecksums tensors =
      options.adapter
          ? write_adapter_files(folder, *options.adapter, options.model.folder, executor)
          : write_model_files(folder, options.model, executor);
  Saved state_tensors = saved_by(ProgramName::save_state, FileSet::optimizer, executor);
  tensors.merge(write_tensors(folder, stem_of(FileSet::optimizer), state_tensors, executor));
  const std::string checksums = formats::to_json(
      formats::checksums_of(folder, tensors, buffer_of(ProgramName::save_state, executor)));
  base::write_file_atomically(folder / kChecksumsName, checksums);
  TrainerState complete = state;
  complete.checksums = base::checksum_text(base::checksum(checksums));
  complete.files = file_sizes(folder);
  base::write_file_atomically(folder / kStateName, to_json(complete));
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
  prune_checkpoints(options.output_dir, state.step, options.save_total_limit);
  return target;
}

TrainerState read_checkpoint_state(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    base::throw_user_error("{}: there is no such checkpoint folder", folder.string());
  const fs::path path = folder / kStateName;
  if (!fs::exists(path, error))
    base::throw_user_error(
        "{}: the folder has no {}, so it is not a complete checkpoint; give one named checkpoint-N "
        "from a run's output_dir, or resume_from_checkpoint=auto",
        folder.string(), kStateName);
  TrainerState state = parse_trainer_state(base::read_text_file(path), path.string());
  check_name(folder, state);
  for (const auto& [name, bytes] : state.files) check_file(folder / name, bytes);
  return state;
}

TrainerState restore_checkpoint(const fs::path& folder, const models::ModelConfig& config,
                                Executor& executor) {
  TrainerState state = read_checkpoint_state(folder);
  executor.backend().synchronise();
  const formats::FolderChecksums checksums = read_checksums(folder, state);
  formats::verify_files(folder, checksums, buffer_of(ProgramName::restore, executor));
  const CheckpointFiles files(folder, checksums, executor);
  const Sources sources{
      .model = &config,
      .find = [&](const program::Tensor& tensor) -> const IndexedTensor& {
        return files.find(tensor);
      },
      .check = [&](const Transfer& transfer) { files.check(transfer); },
      .read = [&](std::span<const Transfer> transfers) { return files.read(transfers); }};
  perform(ProgramName::restore, sources, executor);
  return state;
}

}  // namespace snug::runtime
