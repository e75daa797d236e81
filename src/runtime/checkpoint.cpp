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
#include "methods/update.h"
#include "program/tensor_names.h"
#include "runtime/adapter.h"
#include "runtime/checkpoint_folders.h"
#include "runtime/load_weights.h"
#include "runtime/read_tensors.h"
#include "runtime/save_model.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::IndexedTensor;
using formats::TensorIndex;

constexpr const char* kStateName = "trainer_state.json";
constexpr const char* kChecksumsName = "checksums.json";
constexpr const char* kOptimizerStem = "optimizer";

// Names of what the optimizer keeps next to its tensors, in the order of the update.
std::vector<std::string> optimizer_names(const Executor& executor) {
  std::vector<std::string> names;
  for (const program::Tensor& trainable : executor.job().trainables)
    for (const std::string& name :
         {program::master_name(trainable.name), program::first_moment_name(trainable.name),
          program::second_moment_name(trainable.name), program::first_scale_name(trainable.name),
          program::second_scale_name(trainable.name)})
      if (executor.has(name)) names.push_back(name);
  return names;
}

formats::TensorChecksums write_optimizer(const fs::path& folder, Executor& executor) {
  std::vector<SavedTensor> tensors;
  for (const std::string& name : optimizer_names(executor))
    tensors.push_back({name, executor.tensor(name)});
  return write_tensors(folder, kOptimizerStem, tensors, executor);
}

// Through which files pass that are not streamed to the arenas.
std::span<std::byte> buffer_of(Executor& executor) {
  const backends::Buffer& slot =
      executor.tensor(program::ProgramName::load, program::load_slot_name(0));
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

// What a checkpoint's file calls a tensor, and the tensor's own name.
struct Named {
  std::string stored;
  std::string name;
};

std::vector<Transfer> transfers_of(const TensorIndex& index, const std::vector<Named>& tensors,
                                   const Executor& executor) {
  std::vector<Transfer> transfers;
  for (const Named& tensor : tensors) {
    const IndexedTensor* stored = index.find(tensor.stored);
    if (stored == nullptr)
      base::throw_user_error(
          "{}: the checkpoint has no '{}', which this job trains; it was made by another recipe "
          "(method, optim, target_modules) or for another model",
          index.folder().string(), tensor.stored);
    transfers.push_back({stored, executor.tensor(tensor.name)});
    check_same_type(index, transfers.back());
  }
  return transfers;
}

// Beyond `known`, the names of all that the job keeps in this file.
void check_surplus(const TensorIndex& index, const std::vector<std::string>& known) {
  const std::unordered_set<std::string_view> names(known.begin(), known.end());
  for (const IndexedTensor& tensor : index.tensors())
    if (!names.contains(tensor.info->name))
      base::throw_user_error(
          "{}: the checkpoint holds '{}', which this job does not keep; it was made by another "
          "recipe (method, optim, target_modules) or for another model",
          index.path_of(tensor).string(), tensor.info->name);
}

std::string key_of(const program::Tensor& trainable) {
  const bool adapter = trainable.role == program::Role::adapter;
  // lora_a_key and lora_b_key put the same prefix before a tensor's name.
  return adapter ? fmt::format("base_model.model.{}", trainable.name) : trainable.name;
}

// Trainable tensors whose only copy is in the model or adapter file: those without a master.
std::vector<Named> tensors_without_master(const Executor& executor) {
  std::vector<Named> tensors;
  for (const program::Tensor& trainable : executor.job().trainables)
    if (!executor.has(program::master_name(trainable.name)))
      tensors.push_back({key_of(trainable), trainable.name});
  return tensors;
}

std::vector<std::string> stored_trainables(const Executor& executor) {
  std::vector<std::string> keys;
  for (const program::Tensor& trainable : executor.job().trainables)
    keys.push_back(key_of(trainable));
  return keys;
}

TensorIndex open_trainables(const fs::path& folder, const Executor& executor) {
  const bool adapter = !adapter_modules(executor.job()).empty();
  const fs::path config = folder / (adapter ? "adapter_config.json" : "config.json");
  if (!fs::exists(config))
    base::throw_user_error(
        "{}: the checkpoint has no {}; it was made with method={}, and this job has method={}",
        folder.string(), config.filename().string(),
        base::word_of(adapter ? formats::Method::full : formats::Method::lora),
        base::word_of(adapter ? formats::Method::lora : formats::Method::full));
  return TensorIndex(folder, adapter ? "adapter_model" : "model");
}

// All of a file's tensors in their order: those that are restored, and those that are verified
// alone.
std::vector<Transfer> verified(const TensorIndex& index, std::vector<Transfer> restored,
                               const formats::FolderChecksums& checksums) {
  std::unordered_map<const IndexedTensor*, Transfer*> by_source;
  for (Transfer& transfer : restored) by_source.emplace(transfer.source, &transfer);
  std::vector<Transfer> transfers;
  for (const IndexedTensor& tensor : index.tensors()) {
    const auto found = by_source.find(&tensor);
    transfers.push_back(found != by_source.end() ? *found->second : without_destination(tensor));
    transfers.back().checksums = formats::checksums_of(checksums, index, tensor);
  }
  return transfers;
}

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
  SNUG_CHECK_EQ(options.adapter.has_value(), !adapter_modules(executor.job()).empty());
  executor.backend().synchronise();
  const fs::path target = checkpoint_path(options.output_dir, state.step);
  formats::DirectoryTransaction transaction(target);
  const fs::path& folder = transaction.staging();
  formats::TensorChecksums tensors =
      options.adapter
          ? write_adapter_files(folder, *options.adapter, options.model.folder, executor)
          : write_model_files(folder, options.model, executor);
  tensors.merge(write_optimizer(folder, executor));
  const std::string checksums =
      formats::to_json(formats::checksums_of(folder, tensors, buffer_of(executor)));
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
  formats::verify_files(folder, checksums, buffer_of(executor));
  const TensorIndex trainables = open_trainables(folder, executor);
  const TensorIndex optimizer(folder, kOptimizerStem);
  const std::vector<std::string> kept = optimizer_names(executor);
  std::vector<Named> optimizer_tensors;
  optimizer_tensors.reserve(kept.size());
  for (const std::string& name : kept) optimizer_tensors.push_back({name, name});
  const auto from_optimizer = transfers_of(optimizer, optimizer_tensors, executor);
  check_surplus(optimizer, kept);
  const auto from_trainables = transfers_of(trainables, tensors_without_master(executor), executor);
  check_surplus(trainables, stored_trainables(executor));
  read_tensors(optimizer, verified(optimizer, from_optimizer, checksums), executor);
  read_tensors(trainables, verified(trainables, from_trainables, checksums), executor);
  write_inverse_frequencies(config, executor);
  return state;
}

}  // namespace snug::runtime
