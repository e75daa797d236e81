#include "runtime/save_model.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/directory_transaction.h"
#include "formats/hf_folder.h"
#include "models/families.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using models::ModelConfig;
using nlohmann::json;
using program::DType;

// As torch names them.
std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    default:
      SNUG_CHECK(false, "weights are not saved as {}", base::name_of(dtype));
      return {};
  }
}

// The source's config.json with the element type of what is saved.
std::string updated_config(const fs::path& path, DType dtype) {
  json config = base::read_json_file(path);
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

void save_model(const fs::path& folder, const models::ModelSource& source, Executor& executor) {
  formats::DirectoryTransaction transaction(folder);
  write_model_files(transaction.staging(), source, executor);
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
}

formats::TensorChecksums write_model_files(const fs::path& folder,
                                           const models::ModelSource& source, Executor& executor) {
  executor.backend().synchronise();
  const std::string stem = stem_of(FileSet::model);
  Saved saved = saved_by(program::ProgramName::save, FileSet::model, executor);
  formats::TensorChecksums checksums = write_tensors(folder, stem, saved, executor);
  const DType dtype = saved.tensors.front().buffer.dtype;
  const bool is_preset = source.folder.empty();
  base::write_file_atomically(folder / "config.json",
                              is_preset ? config_json(source.config, dtype)
                                        : updated_config(source.folder / "config.json", dtype));
  if (!is_preset) formats::copy_companion_files(source.folder, folder);
  read_back(folder, stem, saved, executor);
  return checksums;
}

}  // namespace snug::runtime
