#include "runtime/adapter.h"

#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/hf_folder.h"
#include "runtime/perform.h"
#include "runtime/ranks.h"
#include "runtime/save_folder.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::TensorIndex;

}  // namespace

void initialise_adapter(Executor& executor) {
  perform(program::ProgramName::load_adapter, {}, executor);
  if (executor.job().find(program::ProgramName::initialise) != nullptr)
    executor.run(program::ProgramName::initialise);
}

void check_adapter(const fs::path& folder, const methods::MethodOptions& options,
                   const plan::Job& job) {
  const std::vector<program::Tensor> tensors = plan::adapter_tensors(job);
  methods::method_of(job.method).check(folder, options, tensors);
}

uint64_t load_adapter(const fs::path& folder, const methods::MethodOptions& options,
                      Executor& executor) {
  constexpr auto kProgram = program::ProgramName::load_adapter;
  check_adapter(folder, options, executor.job());
  const TensorIndex index(folder, stem_of(FileSet::adapter));
  const Sources sources =
      sources_of(index, FileSet::adapter, methods::method_of(executor.job().method).basis(options),
                 nullptr, kProgram, executor);
  return sum_of_shards(executor.mesh(), perform(kProgram, sources, executor).digest);
}

void save_adapter(const fs::path& folder, const formats::AdapterConfig& config,
                  const fs::path& base_folder, Executor& executor,
                  const formats::TrainedChat& chat) {
  const FolderWriter writer{.write_alone =
                                [&](const fs::path& staging) {
                                  write_adapter_files(staging, config, base_folder, executor, chat);
                                },
                            .write_config =
                                [&](const fs::path& staging) {
                                  write_adapter_config(staging, config, base_folder, chat);
                                }};
  // PEFT reads one file only.
  save_folder(folder, FileSet::adapter, std::numeric_limits<int64_t>::max(), writer, executor);
}

void write_adapter_config(const fs::path& folder, const formats::AdapterConfig& config,
                          const fs::path& base_folder, const formats::TrainedChat& chat) {
  formats::write_adapter_config(folder, config);
  if (base_folder.empty()) return;
  formats::copy_companion_files(base_folder, folder);
  formats::write_trained_chat(folder, base_folder / "config.json", chat);
}

formats::TensorChecksums write_adapter_files(const fs::path& folder,
                                             const formats::AdapterConfig& config,
                                             const fs::path& base_folder, Executor& executor,
                                             const formats::TrainedChat& chat) {
  executor.backend().synchronise();
  SNUG_CHECK(!plan::adapter_tensors(executor.job()).empty(), "the job has no adapter to save");
  const std::string stem = stem_of(FileSet::adapter);
  Saved saved = saved_by(program::ProgramName::save, FileSet::adapter, executor);
  // PEFT reads one file only.
  formats::TensorChecksums checksums =
      write_tensors(folder, stem, saved, executor, std::numeric_limits<int64_t>::max());
  write_adapter_config(folder, config, base_folder, chat);
  return checksums;
}

}  // namespace snug::runtime
