#include "formats/peft_adapter.h"

#include "base/error.h"
#include "formats/renamed_modules.h"
#include "formats/tensor_index.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_set>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";
constexpr std::string_view kSuffixMagnitude = ".lora_magnitude_vector";
constexpr std::string_view kSuffixEmbeddingA = ".lora_embedding_A";
constexpr std::string_view kSuffixEmbeddingB = ".lora_embedding_B";
constexpr std::string_view kSuffixBase = ".base_layer.weight";

std::string key_of(std::string_view module, std::string_view suffix) {
  return fmt::format("{}{}{}", kPrefix, module, suffix);
}

// The module a tensor name stands for, or nothing when it does not end in `suffix`.
std::optional<std::string> module_of(std::string_view name, std::string_view suffix) {
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() <= kPrefix.size() + suffix.size()) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(suffix.size());
  return std::string(name);
}

const TensorInfo& require_partner(const SafetensorsFile& file, const std::string& module,
                                  std::string_view has, std::string_view lacks) {
  const TensorInfo* partner = file.find(key_of(module, lacks));
  if (partner == nullptr)
    base::throw_user_error("{}: there is '{}' without its '{}'; the adapter is incomplete",
                           file.path().string(), key_of(module, has), key_of(module, lacks));
  return *partner;
}

void check_types(const SafetensorsFile& file, std::initializer_list<const TensorInfo*> tensors) {
  for (const TensorInfo* tensor : tensors)
    if (!tensor->dtype || !base::is_float(*tensor->dtype))
      base::throw_user_error("{}: tensor '{}' is stored as {}; expected F32, BF16, F16 or F64",
                             file.path().string(), tensor->name, tensor->stored_dtype);
}

LoraModule read_module(const SafetensorsFile& file, const std::string& module, const TensorInfo& a,
                       int64_t r) {
  const bool is_embedding = a.name.ends_with(kSuffixEmbeddingA);
  const TensorInfo& b = is_embedding
                            ? require_partner(file, module, kSuffixEmbeddingA, kSuffixEmbeddingB)
                            : require_partner(file, module, kSuffixA, kSuffixB);
  if (a.shape.size() != 2 || a.shape[0] != r)
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected [{}, in_features], since adapter_config.json says "
        "r = {}",
        file.path().string(), a.name, shape_text(a.shape), r, r);
  if (b.shape.size() != 2 || b.shape[1] != r)
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected [out_features, {}], since adapter_config.json says "
        "r = {}",
        file.path().string(), b.name, shape_text(b.shape), r, r);
  check_types(file, {&a, &b});
  return {module, a.shape[1], b.shape[0], is_embedding};
}

// The base model's own table, of the same vocabulary. Its values are those of the base model.
void check_base(const SafetensorsFile& file, const LoraModule& module) {
  const TensorInfo* table = file.find(key_of(module.module, kSuffixBase));
  const std::vector<int64_t> expected{module.in_features, module.out_features};
  if (table != nullptr && table->shape != expected)
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, as its adapter has it",
                           file.path().string(), table->name, shape_text(table->shape),
                           shape_text(expected));
}

// With use_dora, of a module's outputs.
void check_magnitude(const SafetensorsFile& file, const LoraModule& module) {
  const TensorInfo& magnitude = require_partner(file, module.module, kSuffixA, kSuffixMagnitude);
  const std::vector<int64_t> expected{module.out_features};
  if (magnitude.shape != expected)
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, the module's outputs",
                           file.path().string(), magnitude.name, shape_text(magnitude.shape),
                           shape_text(expected));
  check_types(file, {&magnitude});
}

}  // namespace

// The shard index gives the good errors for a missing file and for pickles.
SafetensorsFile open_adapter_file(const fs::path& folder) {
  const fs::path path = folder / kAdapterWeightsName;
  std::error_code error;
  if (!fs::exists(path, error)) {
    const TensorIndex explains(folder, "adapter_model");
    base::throw_user_error("{}: expected the adapter in one file, not in shards", path.string());
  }
  return SafetensorsFile(path);
}

std::string adapter_key(std::string_view tensor) { return key_of(tensor, ""); }
std::string lora_a_key(const LoraModule& module) {
  return key_of(module.module, module.is_embedding ? kSuffixEmbeddingA : kSuffixA);
}
std::string lora_b_key(const LoraModule& module) {
  return key_of(module.module, module.is_embedding ? kSuffixEmbeddingB : kSuffixB);
}
std::string lora_magnitude_key(std::string_view module) { return key_of(module, kSuffixMagnitude); }

bool is_of_module(std::string_view tensor, const std::vector<std::string>& names) {
  const auto ends_in_one = [&](const std::string& known) {
    const std::string_view module = std::string_view(known).substr(0, known.rfind('.'));
    return std::ranges::any_of(names, [&](const auto& name) { return module.ends_with(name); });
  };
  return std::ranges::any_of(names_of(tensor), ends_in_one);
}

std::vector<std::string> stored_modules(const fs::path& folder) {
  const SafetensorsFile file = open_adapter_file(folder);
  std::vector<std::string> modules;
  for (const TensorInfo& tensor : file.tensors())
    for (const std::string_view suffix : {kSuffixA, kSuffixEmbeddingA})
      if (auto module = module_of(tensor.name, suffix)) modules.push_back(std::move(*module));
  if (modules.empty())
    base::throw_user_error("{}: the adapter holds no tensors", file.path().string());
  return modules;
}

PeftAdapter::PeftAdapter(const fs::path& folder)
    : folder_(folder),
      config_(read_lora_config(folder)),
      file_(std::make_unique<SafetensorsFile>(open_adapter_file(folder))) {
  for (const TensorInfo& tensor : file_->tensors()) {
    if (const auto module = module_of(tensor.name, kSuffixA)) {
      modules_.push_back(read_module(*file_, *module, tensor, config_.r));
      if (config_.use_dora) check_magnitude(*file_, modules_.back());
    } else if (const auto partner = module_of(tensor.name, kSuffixB)) {
      require_partner(*file_, *partner, kSuffixB, kSuffixA);
    } else if (const auto table = module_of(tensor.name, kSuffixEmbeddingA)) {
      modules_.push_back(read_module(*file_, *table, tensor, config_.r));
      check_base(*file_, modules_.back());
    } else if (const auto rows = module_of(tensor.name, kSuffixEmbeddingB)) {
      require_partner(*file_, *rows, kSuffixEmbeddingB, kSuffixEmbeddingA);
    } else if (const auto own = module_of(tensor.name, kSuffixBase)) {
      require_partner(*file_, *own, kSuffixBase, kSuffixEmbeddingA);
    } else if (const auto scaled = module_of(tensor.name, kSuffixMagnitude);
               scaled && config_.use_dora) {
      require_partner(*file_, *scaled, kSuffixMagnitude, kSuffixA);
    } else if (const auto whole = module_of(tensor.name, "");
               whole && is_of_module(*whole, config_.modules_to_save)) {
      saved_.push_back(*whole);
    } else {
      base::throw_user_error(
          "{}: tensor '{}' is not part of a plain LoRA; expected names such as '{}'",
          file_->path().string(), tensor.name, key_of("model.layers.0.self_attn.q_proj", kSuffixA));
    }
  }
  if (modules_.empty())
    base::throw_user_error("{}: the adapter holds no tensors", file_->path().string());
}

const TensorInfo& PeftAdapter::lora_a(const LoraModule& module) const {
  return file_->at(lora_a_key(module));
}

const TensorInfo& PeftAdapter::lora_b(const LoraModule& module) const {
  return file_->at(lora_b_key(module));
}

std::vector<TensorSpec> adapter_tensors(const std::vector<LoraModule>& modules, int64_t r,
                                        base::DType dtype) {
  std::vector<TensorSpec> tensors;
  for (const LoraModule& module : modules) {
    tensors.push_back({lora_a_key(module), dtype, {r, module.in_features}});
    tensors.push_back({lora_b_key(module), dtype, {module.out_features, r}});
  }
  return tensors;
}

}  // namespace snug::formats
