#include "runtime/saving/checkpoint.h"

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "comm/gather_text.h"
#include "formats/folder/checksums.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/manifest.h"
#include "program/ir/tensor_names.h"
#include "runtime/process/ranks.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/checkpoint_files.h"
#include "runtime/saving/checkpoint_folders.h"
#include "runtime/saving/save_model.h"
#include "runtime/saving/save_tensors.h"
#include "runtime/storage/perform.h"
#include "runtime/storage/tensor_part.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using program::ProgramName;

constexpr const char* kStateName = "trainer_state.json";
constexpr const char* kChecksumsName = "checksums.json";
constexpr const char* kSafetensors = ".safetensors";

// The buffer for files that are not streamed into the arenas.
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

// If a folder was renamed or copied to another step's name, its steps would be counted twice.
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

// Writes the checksums of a checkpoint's files and its state. The state lists every file that was
// written, even if one has been removed meanwhile, so that its absence is noticed.
void write_state(const fs::path& folder, const TrainerState& state,
                 std::map<std::string, std::string> checksums) {
  std::vector<std::string> written{kChecksumsName};
  for (const auto& [name, unused] : checksums) written.push_back(name);
  const std::string text = formats::to_json(std::move(checksums));
  base::write_file_atomically(folder / kChecksumsName, text);
  TrainerState complete = state;
  complete.checksums = base::checksum_text(base::checksum(text));
  complete.files = file_sizes(folder);
  for (const std::string& name : written)
    if (!complete.files.contains(name))
      base::throw_user_error("{}: the file was removed while the checkpoint was written",
                             (folder / name).string());
  base::write_file_atomically(folder / kStateName, to_json(complete));
}

void prune_before(const CheckpointOptions& options, const TrainerState& state) {
  prune_checkpoints(options.output_dir, state.step, options.save_total_limit,
                    state.history.kept_checkpoints());
}

void finish_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                       std::map<std::string, std::string> checksums,
                       formats::DirectoryTransaction& transaction) {
  write_state(transaction.staging(), state, std::move(checksums));
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
  prune_before(options, state);
}

formats::TensorChecksums write_result_files(const fs::path& folder,
                                            const CheckpointOptions& options, Executor& executor) {
  return options.adapter ? write_adapter_files(folder, *options.adapter, options.model.folder,
                                               executor, options.chat)
                         : write_model_files(folder, options.model, executor, options.chat);
}

void save_by_one(const CheckpointOptions& options, const TrainerState& state, Executor& executor) {
  formats::DirectoryTransaction transaction(checkpoint_path(options.output_dir, state.step),
                                            formats::DirectoryTransaction::Parent::must_exist);
  const fs::path& folder = transaction.staging();
  formats::TensorChecksums tensors = write_result_files(folder, options, executor);
  Saved state_tensors = saved_by(ProgramName::save_state, FileSet::optimizer, executor);
  tensors.merge(write_tensors(folder, stem_of(FileSet::optimizer), state_tensors, executor));
  std::map<std::string, std::string> checksums;
  for (const auto& [name, file] :
       formats::checksums_of(folder, tensors, buffer_of(ProgramName::save_state, executor)).files)
    checksums.emplace(name, to_json(file));
  finish_checkpoint(options, state, std::move(checksums), transaction);
}

// What a rank tells the first rank about the file that it wrote. Both texts are small compared with
// the file; the first rank holds those of all ranks.
struct RankFile {
  std::string ranges;          // text of formats::to_lines
  std::string checksums;       // text of formats::to_json with the checksums of the rank's file
  formats::Manifest manifest;  // which tensors each rank may have ranges of, without the ranges
};

std::string ranges_text(std::span<Saved* const> all) {
  std::vector<formats::TensorRange> ranges;
  for (const Saved* saved : all)
    for (const SavedTensor& tensor : saved->tensors)
      if (tensor.elements() > 0)
        ranges.push_back({tensor.name, tensor.buffer.first, tensor.elements()});
  return formats::to_lines(ranges);
}

formats::Manifest manifest_without_parts(std::span<Saved* const> all, int ranks) {
  formats::Manifest manifest;
  manifest.ranks = ranks;
  for (const Saved* saved : all)
    for (const SavedTensor& tensor : saved->tensors)
      manifest.tensors[tensor.name] = {
          std::string(formats::safetensors_name_of(tensor.buffer.dtype)),
          dims_of(tensor.shape),
          {}};
  return manifest;
}

RankFile write_rank_file(const fs::path& folder, Executor& executor) {
  const comm::Mesh& mesh = executor.mesh();
  const int ranks = comm::Mesh::size_of(mesh.shards);
  const std::string stem = formats::rank_stem(mesh.shard(), ranks);
  Saved result = saved_by(ProgramName::save, result_of(executor), executor);
  Saved optimizer = saved_by(ProgramName::save_state, FileSet::optimizer, executor);
  const std::array all{&result, &optimizer};
  const formats::TensorChecksums checksums = write_parts(folder, stem, all, executor);
  RankFile file{ranges_text(all),
                to_json(formats::checksums_of_file(folder / (stem + kSafetensors), checksums,
                                                   buffer_of(ProgramName::save_state, executor))),
                {}};
  if (mesh.rank() == 0) file.manifest = manifest_without_parts(all, ranks);
  return file;
}

// Gathers the texts of the writing ranks on the first rank, by the names of their files. Empty on
// other ranks, which do not need them.
std::map<std::string, std::string> gather(const std::string& own, const comm::Mesh& mesh) {
  std::map<std::string, std::string> by_file;
  const int ranks = comm::Mesh::size_of(mesh.shards);
  int rank = 0;  // the writing ranks are the first replica, which has the lowest ranks
  for (std::string& text : comm::gather_text(*mesh.all, is_writer(mesh) ? own : std::string()))
    if (rank < ranks)
      by_file.emplace(formats::rank_stem(rank++, ranks) + kSafetensors, std::move(text));
  return by_file;
}

formats::Manifest whole_manifest(formats::Manifest manifest,
                                 std::map<std::string, std::string> ranges) {
  for (; !ranges.empty(); ranges.erase(ranges.begin()))
    add_parts(ranges.begin()->second, ranges.begin()->first, manifest);
  sort_parts(manifest);
  return manifest;
}

void write_companions(const fs::path& folder, const CheckpointOptions& options,
                      Executor& executor) {
  if (options.adapter)
    write_adapter_config(folder, *options.adapter, options.model.folder, options.chat);
  else
    write_model_config(folder, options.model, saved_type(executor), options.chat);
}

// If ranks run on different machines without a shared disk, their files are missing here.
void check_rank_files(const fs::path& folder, const std::map<std::string, std::string>& written) {
  for (const auto& [name, unused] : written)
    if (!base::is_there(folder / name))
      base::throw_user_error(
          "{}: another rank wrote this file and it is not here; output_dir must lie on a file "
          "system that all ranks share",
          (folder / name).string());
}

// Every rank writes its own file into one staging folder, which the first rank turns into a
// checkpoint once all files are there.
fs::path save_by_ranks(const CheckpointOptions& options, const TrainerState& state,
                       Executor& executor) {
  const comm::Mesh& mesh = executor.mesh();
  const fs::path target = checkpoint_path(options.output_dir, state.step);
  std::optional<formats::DirectoryTransaction> transaction;
  on_all_ranks(mesh, [&] {
    if (mesh.rank() == 0)
      transaction.emplace(target, formats::DirectoryTransaction::Parent::must_exist);
  });
  const fs::path folder = from_first_rank(mesh, transaction ? transaction->staging().string() : "");
  RankFile own;
  on_all_ranks(mesh, [&] {
    if (is_writer(mesh)) own = write_rank_file(folder, executor);
  });
  auto ranges = gather(own.ranges, mesh);
  on_all_ranks(mesh, [&] {
    if (!transaction) return;
    check_rank_files(folder, ranges);
    write_companions(folder, options, executor);
    write_manifest(folder / formats::kManifestName,
                   whole_manifest(std::move(own.manifest), std::move(ranges)));
  });
  auto checksums = gather(own.checksums, mesh);
  on_all_ranks(mesh, [&] {
    if (!transaction) return;
    for (const auto& entry : base::list_folder(folder))
      if (const std::string name = entry.path().filename().string();
          entry.is_regular_file() && !checksums.contains(name))
        checksums[name] = to_json(formats::checksums_of_file(
            entry.path(), {}, buffer_of(ProgramName::save_state, executor)));
    finish_checkpoint(options, state, std::move(checksums), *transaction);
  });
  return target;
}

// The checkpoint's folder is that of the result, whole files whatever the ranks, and its state.
void save_only_model(const CheckpointOptions& options, const TrainerState& state,
                     Executor& executor) {
  const auto finish = [&](const fs::path& folder) {
    std::map<std::string, std::string> checksums;
    for (const auto& entry : base::list_folder(folder))
      if (entry.is_regular_file())
        checksums.emplace(entry.path().filename().string(),
                          to_json(formats::checksums_of_bytes(
                              entry.path(), buffer_of(ProgramName::save, executor))));
    write_state(folder, state, std::move(checksums));
  };
  const FolderWriter writer{.write_alone =
                                [&](const fs::path& folder) {
                                  write_result_files(folder, options, executor);
                                  finish(folder);
                                },
                            .write_config =
                                [&](const fs::path& folder) {
                                  write_companions(folder, options, executor);
                                  finish(folder);
                                },
                            .parent = formats::DirectoryTransaction::Parent::must_exist};
  // An adapter is one file only, since PEFT reads no more.
  const int64_t shard_bytes = options.adapter ? std::numeric_limits<int64_t>::max()
                                              : formats::ModelWriter::kDefaultShardBytes;
  save_folder(checkpoint_path(options.output_dir, state.step), result_of(executor), shard_bytes,
              writer, executor);
  on_all_ranks(executor.mesh(), [&] {
    if (executor.mesh().rank() == 0) prune_before(options, state);
  });
}

// The newest checkpoint next to this one from which a run resumes.
std::optional<fs::path> newest_to_resume(const fs::path& folder) {
  std::optional<fs::path> newest;
  std::error_code error;
  for (const CheckpointFolder& each :
       list_checkpoints(fs::weakly_canonical(folder, error).parent_path()).complete)
    if (!each.only_model) newest = each.path;
  return newest;
}

}  // namespace

void require_optimizer_state(const fs::path& folder) {
  if (!read_checkpoint_state(folder).only_model) return;
  const auto whole = newest_to_resume(folder);
  base::throw_user_error(
      "{0}: this checkpoint holds the model alone (save_only_model), without the optimizer's "
      "state, so no run resumes from it. {1}To train on from its weights, start a new run in "
      "another output_dir with {2}={0}",
      folder.string(),
      whole
          ? fmt::format("{} can be resumed from, with overwrite_output_dir=true. ", whole->string())
          : "",
      fs::exists(folder / "adapter_config.json") ? "adapter" : "model");
}

void copy_result(const fs::path& folder, const fs::path& target, Executor& executor) {
  executor.backend().synchronise();
  on_all_ranks(executor.mesh(), [&] {
    if (executor.mesh().rank() != 0) return;
    const formats::FolderChecksums checksums =
        read_checksums(folder, read_checkpoint_state(folder));
    formats::verify_files(folder, checksums, buffer_of(ProgramName::save, executor));
    formats::DirectoryTransaction transaction(target);
    for (const auto& [name, unused] : checksums.files)
      base::copy_file_atomically(folder / name, transaction.staging() / name);
    transaction.commit(formats::DirectoryTransaction::IfExists::replace);
  });
}

fs::path save_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                         Executor& executor) {
  SNUG_CHECK_EQ(options.adapter.has_value(), !plan::adapter_tensors(executor.job()).empty());
  executor.backend().synchronise();
  if (state.only_model) {
    save_only_model(options, state, executor);
    return checkpoint_path(options.output_dir, state.step);
  }
  if (comm::Mesh::size_of(executor.mesh().shards) > 1)
    return save_by_ranks(options, state, executor);
  // All replicas hold the same, so the first rank writes everything.
  on_all_ranks(executor.mesh(), [&] {
    if (executor.mesh().rank() == 0) save_by_one(options, state, executor);
  });
  return checkpoint_path(options.output_dir, state.step);
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
  TrainerState state;
  on_all_ranks(executor.mesh(), [&] {
    require_optimizer_state(folder);
    state = read_checkpoint_state(folder);
    executor.backend().synchronise();
    const formats::FolderChecksums checksums = read_checksums(folder, state);
    formats::verify_files(folder, checksums, buffer_of(ProgramName::restore, executor));
    const CheckpointFiles files(folder, checksums, executor);
    const Sources sources{
        .model = &config,
        .find = [&](const program::Tensor& tensor) { return files.find(tensor); },
        .check = [&](const TensorRead& tensor_read) { files.check(tensor_read); },
        .read = [&](std::span<const TensorRead> tensor_reads) { return files.read(tensor_reads); }};
    perform(ProgramName::restore, sources, executor);
  });
  return state;
}

}  // namespace snug::runtime
