#include "runtime/saving/save_model.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "backends/backend.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/hf_folder.h"
#include "formats/folder/tensor_index.h"
#include "models/config/multimodal.h"
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
  if (json* part = source.config.text_module.empty() ? nullptr : models::text_part(config))
    for (const char* key : {"dtype", "torch_dtype"})
      if (part->contains(key)) (*part)[key] = torch_name(dtype);
  return config.dump(2) + "\n";
}

// Whether the source's files hold tensors that are not of the text model: a larger model around it,
// or layers that predict further tokens. A model of a built-in shape has no files.
bool may_have_other_parts(const models::ModelSource& source) {
  if (!source.config.text_module.empty()) return true;
  return !source.folder.empty() && !models::stack_of(source.config).further_module.empty() &&
         formats::TensorIndex::has_files(source.folder);
}

// Gives the tensors of a text model within another one the names of the source's files, and adds
// the tensors of the other parts.
void complete_model(Saved& saved, const models::ModelSource& source) {
  if (!may_have_other_parts(source)) return;
  saved.others_in = std::make_shared<const formats::TensorIndex>(source.folder);
  std::unordered_map<std::string, const formats::IndexedTensor*> of_text;
  for (const formats::IndexedTensor& tensor : saved.others_in->tensors()) {
    const std::string& name = tensor.info->name;
    if (formats::is_of_other_part(name))
      saved.others.push_back(&tensor);
    else
      of_text.emplace(formats::plain_module(name), &tensor);
  }
  for (SavedTensor& tensor : saved.tensors)
    if (const auto found = of_text.find(tensor.name); found != of_text.end())
      tensor.name = found->second->info->name;
}

enum class Parts : uint8_t { own, all };

// Writes the tensors of the model alone, or those of the other parts of its source too.
formats::TensorChecksums write_parts_of(Parts parts, const fs::path& folder,
                                        const models::ModelSource& source, Executor& executor,
                                        const formats::TrainedChat& chat) {
  executor.backend().synchronise();
  Saved saved = saved_by(program::ProgramName::save, FileSet::model, executor);
  if (parts == Parts::all) complete_model(saved, source);
  formats::TensorChecksums checksums =
      write_tensors(folder, stem_of(FileSet::model), saved, executor);
  write_model_config(folder, source, saved_type(executor), chat);
  return checksums;
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
  const FolderWriter writer{.write_alone =
                                [&](const fs::path& staging) {
                                  write_parts_of(Parts::all, staging, source, executor, chat);
                                },
                            .write_config =
                                [&](const fs::path& staging) {
                                  write_model_config(staging, source, saved_type(executor), chat);
                                },
                            .complete = [&](Saved& saved) { complete_model(saved, source); }};
  save_folder(folder, FileSet::model, formats::ModelWriter::kDefaultShardBytes, writer, executor);
}

formats::TensorChecksums write_model_files(const fs::path& folder,
                                           const models::ModelSource& source, Executor& executor,
                                           const formats::TrainedChat& chat) {
  return write_parts_of(Parts::own, folder, source, executor, chat);
}

}  // namespace snug::runtime
