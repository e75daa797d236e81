#include "runtime/adapter.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "formats/hf_folder.h"
#include "runtime/perform.h"
#include "runtime/ranks.h"
#include "runtime/save_folder.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::LoraModule;
using formats::PeftAdapter;
using formats::TensorIndex;

// A module of `wanted` that `present` lacks, and how many there are.
struct Lacking {
  std::string first;
  int64_t count = 0;
};

Lacking lacking(const std::vector<LoraModule>& wanted, const std::vector<LoraModule>& present) {
  std::unordered_set<std::string_view> names;
  for (const LoraModule& module : present) names.insert(module.module);
  Lacking result;
  for (const LoraModule& module : wanted) {
    if (names.contains(module.module)) continue;
    if (result.count++ == 0) result.first = module.module;
  }
  return result;
}

void check_modules(const PeftAdapter& adapter, const std::vector<LoraModule>& planned) {
  const std::string file = adapter.file().path().string();
  if (const Lacking missing = lacking(planned, adapter.modules()); missing.count > 0)
    base::throw_user_error(
        "{}: the adapter has no '{}' ({} modules are missing), which this job adapts; set "
        "target_modules to those of the adapter",
        file, missing.first, missing.count);
  if (const Lacking surplus = lacking(adapter.modules(), planned); surplus.count > 0)
    base::throw_user_error(
        "{}: the adapter changes '{}' ({} modules in all), which this job does not adapt; is it an "
        "adapter of this model? Set target_modules to those of the adapter",
        file, surplus.first, surplus.count);
}

void check_shape(const PeftAdapter& adapter, const formats::TensorInfo& tensor,
                 const std::vector<int64_t>& expected, int64_t r) {
  if (tensor.shape == expected) return;
  base::throw_user_error(
      "{}: tensor '{}' has shape {}; expected {}, as lora_r = {} and the base model say",
      adapter.file().path().string(), tensor.name, formats::shape_text(tensor.shape),
      formats::shape_text(expected), r);
}

void check_shapes(const PeftAdapter& adapter, const std::vector<LoraModule>& planned, int64_t r) {
  for (const LoraModule& module : planned) {
    check_shape(adapter, adapter.lora_a(module), {r, module.in_features}, r);
    check_shape(adapter, adapter.lora_b(module), {module.out_features, r}, r);
  }
}

void check_scale(const PeftAdapter& adapter, const methods::LoraOptions& options) {
  const double saved = adapter.config().scale();
  const double planned = methods::lora_scale(options);
  if (std::abs(saved - planned) <= 1e-6 * std::abs(saved)) return;
  base::throw_user_error(
      "{}: the adapter was trained with scale {} (r {}, lora_alpha {}, use_rslora {}), and this "
      "job has scale {} (lora_r {}, lora_alpha {}, use_rslora {}); give the adapter's values",
      (adapter.folder() / "adapter_config.json").string(), saved, adapter.config().r,
      adapter.config().alpha, adapter.config().use_rslora, planned, options.r, options.alpha,
      options.rslora);
}

}  // namespace

std::vector<LoraModule> adapter_modules(const plan::Job& job) {
  std::vector<LoraModule> modules;
  std::unordered_map<std::string_view, size_t> known;
  const std::vector<program::Tensor> tensors = plan::adapter_tensors(job);
  for (const program::Tensor& tensor : tensors) {
    const auto [module, is_a] = methods::lora_tensor(tensor.name);
    const auto [found, added] = known.emplace(module, modules.size());
    if (added) modules.push_back({std::string(module), 0, 0});
    LoraModule& entry = modules[found->second];
    (is_a ? entry.in_features : entry.out_features) = whole_shape(tensor)[is_a ? 1 : 0];
  }
  return modules;
}

void initialise_adapter(Executor& executor) {
  perform(program::ProgramName::load_adapter, {}, executor);
}

void check_adapter(const fs::path& folder, const methods::LoraOptions& options,
                   const plan::Job& job) {
  const PeftAdapter adapter(folder);
  const std::vector<LoraModule> planned = adapter_modules(job);
  check_modules(adapter, planned);
  check_shapes(adapter, planned, options.r);
  check_scale(adapter, options);
}

uint64_t load_adapter(const fs::path& folder, const methods::LoraOptions& options,
                      Executor& executor) {
  constexpr auto kProgram = program::ProgramName::load_adapter;
  check_adapter(folder, options, executor.job());
  const TensorIndex index(folder, stem_of(FileSet::adapter));
  const Sources sources = sources_of(
      index, FileSet::adapter, fmt::format("as lora_r = {} and the base model say", options.r),
      nullptr, kProgram, executor);
  return sum_of_shards(executor.mesh(), perform(kProgram, sources, executor).digest);
}

void save_adapter(const fs::path& folder, const formats::LoraConfig& config,
                  const fs::path& base_folder, Executor& executor) {
  const FolderWriter writer{
      .write_alone =
          [&](const fs::path& staging) {
            write_adapter_files(staging, config, base_folder, executor);
          },
      .write_config =
          [&](const fs::path& staging) { write_adapter_config(staging, config, base_folder); }};
  // PEFT reads one file only.
  save_folder(folder, FileSet::adapter, std::numeric_limits<int64_t>::max(), writer, executor);
}

void write_adapter_config(const fs::path& folder, const formats::LoraConfig& config,
                          const fs::path& base_folder) {
  formats::write_lora_config(folder, config);
  if (!base_folder.empty()) formats::copy_companion_files(base_folder, folder);
}

formats::TensorChecksums write_adapter_files(const fs::path& folder,
                                             const formats::LoraConfig& config,
                                             const fs::path& base_folder, Executor& executor) {
  executor.backend().synchronise();
  SNUG_CHECK(!plan::adapter_tensors(executor.job()).empty(), "the job has no adapter to save");
  const std::string stem = stem_of(FileSet::adapter);
  Saved saved = saved_by(program::ProgramName::save, FileSet::adapter, executor);
  // PEFT reads one file only.
  formats::TensorChecksums checksums =
      write_tensors(folder, stem, saved, executor, std::numeric_limits<int64_t>::max());
  write_adapter_config(folder, config, base_folder);
  read_back(folder, stem, saved, executor);
  return checksums;
}

}  // namespace snug::runtime
