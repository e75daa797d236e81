#include "runtime/saving/save_model.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "backends/backend.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/hf_folder.h"
#include "models/families/families.h"
#include "program/kinds/transfer/storage.h"
#include "runtime/saving/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::torch_name;
using models::ModelConfig;
using nlohmann::json;
using program::DType;

// The source's config.json with the element type of the saved weights. tie_word_embeddings is
// corrected where the source's files held separate weights.
std::string updated_config(const models::ModelSource& source, DType dtype) {
  json config = base::read_json_file(source.folder / "config.json");
  if (config.contains("tie_word_embeddings"))
    config["tie_word_embeddings"] = source.config.tied_embeddings;
  // transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
  const bool has_new_key = config.contains("dtype");
  if (has_new_key) config["dtype"] = torch_name(dtype);
  if (!has_new_key || config.contains("torch_dtype")) config["torch_dtype"] = torch_name(dtype);
  return config.dump(2) + "\n";
}

}  // namespace

std::string config_json(const ModelConfig& config, DType dtype) {
  json document = models::describe(config);
  document["torch_dtype"] = torch_name(dtype);
  return document.dump(2) + "\n";
}

void write_model_config(const fs::path& folder, const models::ModelSource& source, DType dtype,
                        const formats::TrainedChat& chat) {
  const bool is_preset = source.folder.empty();
  base::write_file_atomically(folder / "config.json", is_preset ? config_json(source.config, dtype)
                                                                : updated_config(source, dtype));
  if (is_preset) return;
  formats::copy_companion_files(source.folder, folder);
  formats::write_trained_chat(folder, source.folder / "config.json", chat);
}

DType saved_type(const Executor& executor) {
  const program::Program& save = *executor.job().find(program::ProgramName::save);
  return save.tensor(id_of(save.operations.front(), program::Write::kTensor)).dtype;
}

void save_model(const fs::path& folder, const models::ModelSource& source, Executor& executor,
                const formats::TrainedChat& chat) {
  const FolderWriter writer{
      .write_alone =
          [&](const fs::path& staging) { write_model_files(staging, source, executor, chat); },
      .write_config =
          [&](const fs::path& staging) {
            write_model_config(staging, source, saved_type(executor), chat);
          }};
  save_folder(folder, FileSet::model, formats::ModelWriter::kDefaultShardBytes, writer, executor);
}

formats::TensorChecksums write_model_files(const fs::path& folder,
                                           const models::ModelSource& source, Executor& executor,
                                           const formats::TrainedChat& chat) {
  executor.backend().synchronise();
  const std::string stem = stem_of(FileSet::model);
  Saved saved = saved_by(program::ProgramName::save, FileSet::model, executor);
  formats::TensorChecksums checksums = write_tensors(folder, stem, saved, executor);
  write_model_config(folder, source, saved_type(executor), chat);
  return checksums;
}

}  // namespace snug::runtime
