#include "runtime/adapter.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "formats/directory_transaction.h"
#include "formats/hf_folder.h"
#include "runtime/random_weights.h"
#include "runtime/read_tensors.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using formats::LoraModule;
using formats::PeftAdapter;
using formats::TensorIndex;

constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";
constexpr const char* kStem = "adapter_model";

std::string tensor_a(const LoraModule& module) {
  return fmt::format("{}{}", module.module, kSuffixA);
}
std::string tensor_b(const LoraModule& module) {
  return fmt::format("{}{}", module.module, kSuffixB);
}

int64_t rank_of(const Executor& executor, const LoraModule& module) {
  return executor.tensor(tensor_a(module)).shape[0];
}

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

std::vector<Transfer> transfers_of(const TensorIndex& index, const std::vector<LoraModule>& modules,
                                   Executor& executor) {
  std::unordered_map<std::string, std::string> tensor_of;
  for (const LoraModule& module : modules) {
    tensor_of.emplace(formats::lora_a_key(module.module), tensor_a(module));
    tensor_of.emplace(formats::lora_b_key(module.module), tensor_b(module));
  }
  std::vector<Transfer> transfers;
  for (const formats::IndexedTensor& tensor : index.tensors()) {
    transfers.push_back({&tensor, original_of(executor, tensor_of.at(tensor.info->name))});
    check_transfer(
        index, transfers.back(),
        fmt::format("as lora_r = {} and the base model say", rank_of(executor, modules.front())));
  }
  return transfers;
}

std::vector<SavedTensor> saved_tensors(const Executor& executor) {
  std::vector<SavedTensor> tensors;
  for (const LoraModule& module : adapter_modules(executor.job())) {
    tensors.push_back(
        {formats::lora_a_key(module.module), original_of(executor, tensor_a(module))});
    tensors.push_back(
        {formats::lora_b_key(module.module), original_of(executor, tensor_b(module))});
  }
  return tensors;
}

}  // namespace

std::vector<LoraModule> adapter_modules(const plan::Job& job) {
  std::vector<LoraModule> modules;
  std::unordered_map<std::string_view, size_t> known;
  for (const program::Program& program : job.programs)
    for (const program::Tensor& tensor : program.tensors) {
      if (tensor.role != program::Role::adapter) continue;
      const std::string_view name = tensor.name;
      const bool is_a = name.ends_with(kSuffixA);
      SNUG_CHECK(is_a || name.ends_with(kSuffixB), "{} is no tensor of LoRA", name);
      const std::string_view module =
          name.substr(0, name.size() - (is_a ? kSuffixA : kSuffixB).size());
      const auto [found, added] = known.emplace(module, modules.size());
      if (added) modules.push_back({std::string(module), 0, 0});
      LoraModule& entry = modules[found->second];
      (is_a ? entry.in_features : entry.out_features) = tensor.shape[is_a ? 1 : 0];
    }
  return modules;
}

void initialise_adapter(int64_t seed, Executor& executor) {
  executor.backend().synchronise();
  for (const LoraModule& module : adapter_modules(executor.job())) {
    const std::string a = tensor_a(module);
    const float bound = 1.0F / std::sqrt(static_cast<float>(module.in_features));
    fill_uniform({original_of(executor, a), a}, seed, bound, executor);
    fill_constant(original_of(executor, tensor_b(module)), 0.0F, executor);
  }
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
  check_adapter(folder, options, executor.job());
  const TensorIndex index(folder, kStem);
  return read_tensors(index, transfers_of(index, adapter_modules(executor.job()), executor),
                      executor)
      .digest;
}

void save_adapter(const fs::path& folder, const formats::LoraConfig& config,
                  const fs::path& base_folder, Executor& executor) {
  formats::DirectoryTransaction transaction(folder);
  write_adapter_files(transaction.staging(), config, base_folder, executor);
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
}

formats::TensorChecksums write_adapter_files(const fs::path& folder,
                                             const formats::LoraConfig& config,
                                             const fs::path& base_folder, Executor& executor) {
  executor.backend().synchronise();
  const std::vector<SavedTensor> tensors = saved_tensors(executor);
  SNUG_CHECK(!tensors.empty(), "the job has no adapter to save");
  // PEFT reads one file only.
  formats::TensorChecksums checksums =
      write_tensors(folder, kStem, tensors, executor, std::numeric_limits<int64_t>::max());
  formats::write_lora_config(folder, config);
  if (!base_folder.empty()) formats::copy_companion_files(base_folder, folder);
  read_back(folder, kStem, tensors, executor);
  return checksums;
}

}  // namespace snug::runtime
