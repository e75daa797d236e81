#include "formats/adapter/peft_adapter.h"

#include "base/error.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/renamed_modules.h"
#include "formats/folder/tensor_index.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = kAdapterPrefix;
constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";
constexpr std::string_view kSuffixMagnitude = ".lora_magnitude_vector";
constexpr std::string_view kSuffixEmbeddingA = ".lora_embedding_A";
constexpr std::string_view kSuffixEmbeddingB = ".lora_embedding_B";
constexpr std::string_view kSuffixBase = ".base_layer.weight";
// Suffixes for a table of which some rows are replaced.
constexpr std::string_view kSuffixRowsBase = ".token_adapter.base_layer.weight";
constexpr std::string_view kSuffixRows = ".token_adapter.trainable_tokens_delta";
constexpr std::string_view kSuffixBaseBias = ".base_layer.bias";
constexpr std::string_view kSuffixWeight = ".weight";
constexpr std::string_view kSuffixBias = ".bias";

std::string key_of(std::string_view module, std::string_view suffix) {
  return fmt::format("{}{}{}", kPrefix, module, suffix);
}

// The module in a tensor's name; nothing if the name does not end in `suffix`.
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

// `of_experts`: A and B are those of all experts of a layer, as many as their sizes say.
LoraModule read_module(const SafetensorsFile& file, const std::string& module, const TensorInfo& a,
                       int64_t r, bool of_experts) {
  const bool is_embedding = a.name.ends_with(kSuffixEmbeddingA);
  const TensorInfo& b = is_embedding
                            ? require_partner(file, module, kSuffixEmbeddingA, kSuffixEmbeddingB)
                            : require_partner(file, module, kSuffixA, kSuffixB);
  const bool is_of_many = of_experts && a.shape.size() == 2 && a.shape[0] >= r && r > 0;
  const int64_t experts = is_of_many ? a.shape[0] / r : 1;
  if (a.shape.size() != 2 || a.shape[0] != r * experts)
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected [{}, in_features], since adapter_config.json says "
        "r = {}",
        file.path().string(), a.name, shape_text(a.shape), r, r);
  if (b.shape.size() != 2 || b.shape[1] != r * experts)
    base::throw_user_error(
        "{}: tensor '{}' has shape {}; expected [out_features, {}], since adapter_config.json says "
        "r = {}",
        file.path().string(), b.name, shape_text(b.shape), r, r);
  check_types(file, {&a, &b});
  return {module, a.shape[1], b.shape[0], is_embedding, r, experts};
}

// Checks that the base model's own table, if it is saved, has the same vocabulary.
void check_base(const SafetensorsFile& file, const LoraModule& module) {
  const TensorInfo* table = file.find(key_of(module.module, kSuffixBase));
  std::vector<int64_t> expected{module.out_features, module.in_features};
  if (module.is_embedding) std::swap(expected[0], expected[1]);
  if (table != nullptr && table->shape != expected)
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, as its adapter has it",
                           file.path().string(), table->name, shape_text(table->shape),
                           shape_text(expected));
}

// With use_dora, checks that a module has a magnitude for each output.
void check_magnitude(const SafetensorsFile& file, const LoraModule& module) {
  const TensorInfo& magnitude = require_partner(file, module.module, kSuffixA, kSuffixMagnitude);
  const std::vector<int64_t> expected{module.out_features};
  if (magnitude.shape != expected)
    base::throw_user_error("{}: tensor '{}' has shape {}; expected {}, the module's outputs",
                           file.path().string(), magnitude.name, shape_text(magnitude.shape),
                           shape_text(expected));
  check_types(file, {&magnitude});
}

template <typename Files>
auto find_table_in(const Files& files, std::string_view weight) {
  auto* found = files.find(key_of(weight, ""));
  if (found == nullptr && weight.ends_with(kSuffixBias)) {
    const std::string_view module = weight.substr(0, weight.size() - kSuffixBias.size());
    return files.find(key_of(module, kSuffixBaseBias));
  }
  if (found != nullptr || !weight.ends_with(kSuffixWeight)) return found;
  const std::string_view module = weight.substr(0, weight.size() - kSuffixWeight.size());
  for (const std::string_view suffix : {kSuffixBase, kSuffixRowsBase})
    if (found == nullptr) found = files.find(key_of(module, suffix));
  return found;
}

}  // namespace

// TensorIndex reports missing files and pickle files with helpful errors.
SafetensorsFile open_adapter_file(const fs::path& folder) {
  const fs::path path = folder / kAdapterWeightsName;
  std::error_code error;
  if (!fs::exists(path, error)) {
    const TensorIndex explains(folder, "adapter_model");
    base::throw_user_error("{}: expected the adapter in one file, not in shards", path.string());
  }
  SafetensorsFile file(path);
  file.rename(plain_adapter_tensor);
  return file;
}

TensorIndex open_adapter_index(const fs::path& folder) {
  TensorIndex index(folder, "adapter_model");
  index.rename(plain_adapter_tensor);
  return index;
}

std::string adapter_key(std::string_view tensor) { return key_of(tensor, ""); }
std::string lora_a_key(const LoraModule& module) {
  return key_of(module.module, module.is_embedding ? kSuffixEmbeddingA : kSuffixA);
}
std::string lora_b_key(const LoraModule& module) {
  return key_of(module.module, module.is_embedding ? kSuffixEmbeddingB : kSuffixB);
}
std::string lora_magnitude_key(std::string_view module) { return key_of(module, kSuffixMagnitude); }
std::string token_rows_key(std::string_view weight) {
  return key_of(weight.substr(0, weight.rfind('.')), kSuffixRows);
}

std::optional<std::string> base_table(std::string_view key) {
  for (const std::string_view suffix : {kSuffixRowsBase, kSuffixBase})
    if (const auto module = module_of(key, suffix)) return *module + std::string(kSuffixWeight);
  if (const auto module = module_of(key, kSuffixBaseBias))
    return *module + std::string(kSuffixBias);
  return std::nullopt;
}

const TensorInfo* find_table(const SafetensorsFile& file, std::string_view weight) {
  return find_table_in(file, weight);
}

const IndexedTensor* find_table(const TensorIndex& index, std::string_view weight) {
  return find_table_in(index, weight);
}

bool is_of_module(std::string_view tensor, const std::vector<std::string>& names) {
  const auto ends_in_one = [&](const std::string& known) {
    const std::string_view module = std::string_view(known).substr(0, known.rfind('.'));
    return std::ranges::any_of(names, [&](const auto& name) { return module.ends_with(name); });
  };
  return std::ranges::any_of(names_of(tensor), ends_in_one);
}

std::vector<std::string> stored_modules(const fs::path& folder, OtherParts others) {
  const fs::path path = open_adapter_file(folder).path();
  std::vector<std::string> modules;
  const SafetensorsFile as_stored(path);
  for (const TensorInfo& tensor : as_stored.tensors())
    if (auto module = adapted_module(tensor.name);
        module && (others == OtherParts::kept || !is_of_other_part(*module)))
      modules.push_back(std::move(*module));
  if (modules.empty()) base::throw_user_error("{}: the adapter holds no tensors", path.string());
  return modules;
}

PeftAdapter::PeftAdapter(const fs::path& folder, OtherParts others)
    : folder_(folder),
      others_(others),
      config_(read_lora_config(folder, others)),
      file_(std::make_unique<SafetensorsFile>(open_adapter_file(folder))) {
  for (const TensorInfo& tensor : file_->tensors()) add(tensor);
  if (modules_.empty())
    base::throw_user_error("{}: the adapter holds no tensors", file_->path().string());
}

void PeftAdapter::add_module(const std::string& module, const TensorInfo& a) {
  const bool of_experts = wrapped_parameter(module, config_.target_parameters) != module;
  modules_.push_back(read_module(*file_, module, a, config_.size_of(module).r, of_experts));
  check_base(*file_, modules_.back());
  if (config_.use_dora && !modules_.back().is_embedding) check_magnitude(*file_, modules_.back());
}

// Whether the tensor belongs to a module that has an A in the file.
bool PeftAdapter::add_partner(const TensorInfo& tensor) const {
  const auto is_of = [&](std::string_view suffix, std::string_view partner) {
    const auto module = module_of(tensor.name, suffix);
    if (module) require_partner(*file_, *module, suffix, partner);
    return module.has_value();
  };
  return is_of(kSuffixB, kSuffixA) || is_of(kSuffixEmbeddingB, kSuffixEmbeddingA) ||
         (config_.use_dora && is_of(kSuffixMagnitude, kSuffixA));
}

// Whether the tensor is a weight of the model that the file holds whole. A base table inside an
// adapted embedding is accepted only together with its adapter.
bool PeftAdapter::add_saved(const TensorInfo& tensor) {
  if (auto table = base_table(tensor.name)) {
    const auto module = module_of(tensor.name, kSuffixBase);
    const bool has_rows = tensor.name.ends_with(kSuffixRowsBase);
    if (module && !has_rows && file_->find(key_of(*module, kSuffixA)) == nullptr)
      require_partner(*file_, *module, kSuffixBase, kSuffixEmbeddingA);
    saved_.push_back(std::move(*table));
    return true;
  }
  const auto whole = module_of(tensor.name, "");
  if (!whole) return false;
  const bool is_weight = whole->ends_with(".weight") || whole->ends_with(".bias");
  const bool is_named = is_of_module(*whole, config_.modules_to_save);
  if (!is_named && (!is_weight || whole->find("lora_") != std::string::npos)) return false;
  saved_.push_back(*whole);
  return true;
}

// Whether the tensor is the second copy that PEFT writes when it saves the tables of a module that
// trains whole.
bool PeftAdapter::is_copy(const TensorInfo& tensor) const {
  for (const std::string_view part : {".modules_to_save.", ".original_module."})
    if (const size_t at = tensor.name.find(part); at != std::string::npos) {
      const std::string_view name = tensor.name;
      return file_->find(fmt::format("{}.{}", name.substr(0, at), name.substr(at + part.size()))) !=
             nullptr;
    }
  return false;
}

void PeftAdapter::add(const TensorInfo& tensor) {
  if (others_ == OtherParts::left_out && is_of_other_part(tensor.name))
    return left_out_.push_back(tensor.name);
  for (const std::string_view suffix : {kSuffixA, kSuffixEmbeddingA})
    if (const auto module = module_of(tensor.name, suffix)) return add_module(*module, tensor);
  const bool is_rows = !config_.token_rows.empty() && tensor.name.ends_with(kSuffixRows);
  if (is_rows || is_copy(tensor) || add_partner(tensor) || add_saved(tensor)) return;
  base::throw_user_error("{}: tensor '{}' is not part of a plain LoRA; expected names such as '{}'",
                         file_->path().string(), tensor.name,
                         key_of("model.layers.0.self_attn.q_proj", kSuffixA));
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
