#include "runtime/saving/adapter.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_in_whole.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/hf_folder.h"
#include "formats/recipe/recipe.h"
#include "models/weights.h"
#include "program/ir/tensor_names.h"
#include "runtime/process/ranks.h"
#include "runtime/saving/save_tensors.h"
#include "runtime/saving/unchanged_tables.h"
#include "runtime/storage/perform.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::TensorIndex;

// Where a file holds rows of one of the model's tables, in the order of their tokens.
FilePart rows_of(const TensorIndex& index, const program::Tensor& rows,
                 const program::Tensor& table, const methods::LoraOptions& options) {
  const int64_t columns = rows.shape.columns();
  const std::vector<int64_t>& tokens = options.token_rows.at(table.name);
  const auto first = std::ranges::find(tokens, rows.view.offset / columns);
  return {.source = &index.at(formats::token_rows_key(table.name)),
          .shape = program::Shape{std::ssize(tokens), columns},
          .from = (first - tokens.begin()) * columns};
}

// Where an adapter's file holds a tensor under another name than usual: trained rows of a table,
// and tables that PEFT saved. Empty for all other tensors.
std::vector<FilePart> table_parts(const TensorIndex& index, const program::Tensor& tensor,
                                  const methods::LoraOptions& options, const Executor& executor) {
  if (tensor.is_view()) {
    const program::Program& load = *executor.job().find(program::ProgramName::load_adapter);
    return {rows_of(index, tensor, load.tensor(tensor.view.base), options)};
  }
  const std::string name = program::original_name(tensor.name);
  if (std::ranges::count(options.tables, name) == 0) return {};
  const formats::IndexedTensor* source = formats::find_table(index, name);
  // For a head that is tied to the embedding, the file may have only the head's name.
  if (source == nullptr) source = formats::find_table(index, options.head + ".weight");
  if (source == nullptr) return {};
  return {{.source = source}};
}

formats::TensorChecksums write_adapter_tensors(const fs::path& folder, Executor& executor,
                                               const std::function<void(Saved&)>& complete) {
  executor.backend().synchronise();
  SNUG_CHECK(!plan::adapter_tensors(executor.job()).empty(), "the job has no adapter to save");
  Saved saved = saved_by(program::ProgramName::save, FileSet::adapter, executor);
  complete(saved);
  // One file only, since PEFT reads no more.
  return write_tensors(folder, stem_of(FileSet::adapter), saved, executor,
                       std::numeric_limits<int64_t>::max());
}

void name_as_in_whole(Saved& saved, const std::string& text_module) {
  for (SavedTensor& each : saved.tensors)
    each.name = formats::tensor_in_whole(each.name, text_module);
}

std::vector<std::string> names_in_file(const plan::Job& job) {
  const std::vector<program::Tensor> tensors = plan::adapter_tensors(job);
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const program::Tensor& tensor : tensors)
    names.push_back(formats::adapter_key(program::original_name(tensor.name)));
  return names;
}

}  // namespace

void initialise_adapter(Executor& executor) {
  perform(program::ProgramName::load_adapter, {}, executor);
  initialise(executor);
}

void initialise(Executor& executor) {
  if (executor.job().find(program::ProgramName::initialise) != nullptr)
    executor.run(program::ProgramName::initialise);
}

methods::MethodOptions to_train_on(const plan::PlannedTraining& planned) {
  methods::MethodOptions options = planned.spec.method_options();
  options.lora.tables = unchanged_tables(planned.inputs.recipe.adapter, planned.inputs.model);
  return options;
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
  const TensorIndex index = formats::open_adapter_index(folder);
  Sources sources =
      sources_of(index, FileSet::adapter, methods::method_of(executor.job().method).basis(options),
                 nullptr, kProgram, executor);
  sources.find = [&, find = sources.find](const program::Tensor& tensor) {
    std::vector<FilePart> parts = table_parts(index, tensor, options.lora, executor);
    return parts.empty() ? find(tensor) : parts;
  };
  return sum_of_shards(executor.mesh(), perform(kProgram, sources, executor).digest);
}

formats::AdapterConfig adapter_config(const formats::Recipe& recipe,
                                      const models::ModelConfig& model, const plan::Job& job) {
  const std::vector<models::Weight> weights = models::weights_of(model);
  const std::vector<program::Tensor> tensors = plan::adapter_tensors(job);
  return methods::method_of(job.method)
      .config({.recipe = recipe,
               .tensors = tensors,
               .transposed_linears = std::ranges::any_of(weights, &models::Weight::transposed),
               .has_experts = model.num_experts > 0,
               .has_encoder = model.has_encoder(),
               .peft_has_prompts = methods::peft_has_prompts(model)});
}

void save_adapter(const fs::path& folder, const formats::AdapterConfig& config,
                  const AdaptedModel& base, Executor& executor, const formats::TrainedChat& chat) {
  const auto put_into_whole = [&](Saved& saved) {
    if (!base.text_module.empty()) name_as_in_whole(saved, base.text_module);
  };
  const auto write_config = [&](const fs::path& staging) {
    write_adapter_config(staging, config, base.folder, chat);
    if (!base.text_module.empty())
      formats::target_part_of_whole(staging, base.text_module, names_in_file(executor.job()));
  };
  const FolderWriter writer{.write_alone =
                                [&](const fs::path& staging) {
                                  write_adapter_tensors(staging, executor, put_into_whole);
                                  write_config(staging);
                                },
                            .write_config = write_config,
                            .complete = put_into_whole};
  // One file only, since PEFT reads no more.
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
  formats::TensorChecksums checksums =
      write_adapter_tensors(folder, executor, [](Saved& /*saved*/) {});
  write_adapter_config(folder, config, base_folder, chat);
  return checksums;
}

}  // namespace snug::runtime
