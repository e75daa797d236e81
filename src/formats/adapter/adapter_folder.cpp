#include "formats/adapter/adapter_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/adapter/prompt_config.h"
#include "formats/folder/manifest.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected =
    "expected the folder of a PEFT adapter (adapter_config.json and adapter_model.safetensors)";

bool has_file(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Files that identify a folder which has no adapter_config.json.
struct KnownFile {
  const char* name;
  const char* what;
};
constexpr std::array kKnownFiles{
    KnownFile{
        "adapter_model.safetensors",
        "it has an adapter's weights, and the adapter_config.json that says how to apply them "
        "is missing; copy it from where the weights are from"},
    KnownFile{"adapters.safetensors",
              "it has the weights of an adapter of mlx-lm, which Snug does not read; fuse the "
              "adapter into its model with mlx_lm.fuse, and give that as model="},
    KnownFile{"pytorch_lora_weights.safetensors",
              "it has an adapter of diffusers, which is for models that make images"},
    KnownFile{"new_embeddings.safetensors",
              "it has tables for more tokens as vLLM reads them, and no adapter"},
    KnownFile{"config.json",
              "it is a whole model, not an adapter; give it as model=, and leave adapter= out"},
};

// The number at the end of "checkpoint-20"; -1 for other names.
int64_t checkpoint_step(const fs::path& folder) {
  constexpr std::string_view kStart = "checkpoint-";
  const std::string name = folder.filename().string();
  int64_t step = -1;
  if (name.starts_with(kStart))
    std::from_chars(name.data() + kStart.size(), name.data() + name.size(), step);
  return step;
}

bool is_of_run(const fs::path& adapter) {
  return adapter.filename() == "adapter" || checkpoint_step(adapter) >= 0;
}

// Other tools that write no config are recognised by the names of their tensors.
void refuse_loose_file(const fs::path& folder) {
  for (const auto& entry : base::list_folder(folder))
    if (entry.path().extension() == ".safetensors")
      base::throw_user_error(
          "{}: the folder has {} and no adapter_config.json; a file of weights alone, as kohya's "
          "tools and ComfyUI write it, does not say how it is applied. Convert it to PEFT's form; "
          "{}",
          folder.string(), entry.path().filename().string(), kExpected);
}

bool has_text(const base::JsonObject& config, const char* key) {
  return config.has(key) && !config.text_or(key, "").empty();
}

// Refuses a config that PEFT did not write.
[[noreturn]] void refuse_other_tool(const base::JsonObject& config) {
  if (config.has("lora_parameters") || config.has("fine_tune_type") || config.has("lora_layers"))
    base::throw_user_error(
        "{}: this is an adapter of mlx-lm, which Snug does not read; fuse it into its model with "
        "mlx_lm.fuse and give that as model=, or convert it to PEFT's form",
        config.file());
  if (config.has("model_class") || config.has("hidden_size"))
    base::throw_user_error(
        "{}: this is an adapter of the library `adapters` (AdapterHub), which Snug does not read; "
        "{}",
        config.file(), kExpected);
  config.fail("peft_type",
              "is missing; expected 'LORA', as PEFT writes it into the "
              "adapter_config.json of a LoRA");
}

// Whether the type adds nothing to weights, so that it cannot be merged.
bool is_of_prompts(std::string_view type) {
  constexpr std::array<std::string_view, 6> kPrompts{
      "PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "CPT", "CARTRIDGE"};
  return std::ranges::count(kPrompts, type) > 0;
}

}  // namespace

fs::path adapter_within(const fs::path& folder) {
  fs::path best;
  int64_t latest = -1;
  for (const auto& entry : base::list_folder(folder)) {
    const fs::path& path = entry.path();
    if (!has_file(path / kAdapterConfigName)) continue;
    if (path.filename() == "adapter") return path;
    if (best.empty() || checkpoint_step(path) > latest) best = path;
    latest = std::max(latest, checkpoint_step(path));
  }
  return best;
}

void refuse_adapter_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder, error))
    base::throw_user_error("{}: this is a file; give the folder that it is in, {}", folder.string(),
                           kExpected);
  if (!fs::is_directory(folder, error))
    base::throw_user_error("{}: there is no such folder; {}", folder.string(), kExpected);
  refuse_rank_checkpoint(folder);
  if (const fs::path within = adapter_within(folder); !within.empty())
    base::throw_user_error(
        "{}: there is no adapter_config.json here; it is {}: give adapter={}", folder.string(),
        is_of_run(within) ? "a run's folder" : "a folder of adapters", within.string());
  for (const KnownFile& known : kKnownFiles)
    if (has_file(folder / known.name))
      base::throw_user_error("{}: there is no adapter_config.json here: {}", folder.string(),
                             known.what);
  refuse_loose_file(folder);
  base::throw_user_error("{}: there is no adapter_config.json here{}; {}", folder.string(),
                         advice_on_run_folder(folder), kExpected);
}

std::vector<std::string> other_weights(const fs::path& folder) {
  constexpr std::array<std::string_view, 5> kWeights{".bin", ".pt", ".pth", ".ckpt",
                                                     ".safetensors"};
  // The adapter itself, in other forms too, and what trainers keep to go on.
  constexpr std::array<std::string_view, 9> kKnown{
      "adapter_model", "ggml-adapter",  "optimizer", "scheduler",    "scaler",
      "rng_state",     "training_args", "rank-",     "trainer_state"};
  std::vector<std::string> names;
  for (const auto& entry : base::list_folder(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    const auto begins = [&](std::string_view known) { return name.starts_with(known); };
    if (std::ranges::count(kWeights, extension) > 0 && std::ranges::none_of(kKnown, begins))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

void check_adapter_type(const base::JsonObject& config) {
  if (!has_text(config, "peft_type")) refuse_other_tool(config);
  const std::string type = config.text("peft_type");
  for (const std::string_view known :
       {std::string_view("LORA"), kPeftPromptType, kPromptType, kPromptV2Type})
    if (type == known) return;
  config.fail("peft_type",
              fmt::format("is '{}'; expected 'LORA', '{}', '{}' or '{}', the kinds of adapter that "
                          "Snug reads. {}",
                          type, kPeftPromptType, kPromptType, kPromptV2Type,
                          is_of_prompts(type)
                              ? "Prompts of this kind cannot be merged; train a LoRA instead"
                              : "Merge it into its model with PEFT (merge_and_unload) and use that "
                                "model, where PEFT can, or train a LoRA"));
}

}  // namespace snug::formats
