#include "formats/folder/hf_folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lower_case.h"
#include "formats/folder/manifest.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 15> kCompanionNames{"added_tokens.json",
                                                           "generation_config.json",
                                                           "image_processor_config.json",
                                                           "merges.txt",
                                                           "preprocessor_config.json",
                                                           "processor_config.json",
                                                           "sentencepiece.bpe.model",
                                                           "special_tokens_map.json",
                                                           "spiece.model",
                                                           "spm.model",
                                                           "tekken.json",
                                                           "video_preprocessor_config.json",
                                                           "vocab.json",
                                                           "vocab.spm",
                                                           "vocab.txt"};
// What a result may only be passed on with, in any spelling of its ending.
constexpr std::array<std::string_view, 4> kLicences{"LICENSE", "LICENCE", "NOTICE", "USE_POLICY"};

bool is_companion(const std::string& name) {
  if (name.starts_with("tokenizer.") || name == "tokenizer_config.json") return true;
  if (name.starts_with("chat_template.")) return true;
  if (std::ranges::any_of(kLicences, [&](auto licence) { return name.starts_with(licence); }))
    return true;
  return std::find(kCompanionNames.begin(), kCompanionNames.end(), name) != kCompanionNames.end();
}

// A missing folder is often the name of a model on the hub: "org/name".
[[noreturn]] void fail_without_folder(const fs::path& folder) {
  const bool like_hub = !folder.is_absolute() && std::distance(folder.begin(), folder.end()) == 2;
  base::throw_user_error(
      "{}: there is no such folder; expected a Hugging Face model folder with config.json{}",
      folder.string(),
      like_hub ? ". If this is a name on the hub, download it first (Snug itself uses no network)"
               : "");
}

// The GGUF file of a folder whose name comes first; empty where there is none.
std::string gguf_file_in(const fs::path& folder) {
  std::string first;
  for (const fs::directory_entry& entry : base::list_folder(folder)) {
    std::string name = entry.path().filename().string();
    const bool is_first = first.empty() || name < first;
    if (is_first && base::lower_case(name).ends_with(".gguf")) first = std::move(name);
  }
  return first;
}

}  // namespace

std::string advice_on_model_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "adapter_config.json", error))
    return "; it holds a PEFT adapter: give it as adapter=, and its base model as model=";
  if (const std::string file = gguf_file_in(folder); !file.empty())
    return fmt::format("; it holds a GGUF file: give that, as in model={}",
                       (folder / file).string());
  const std::string advice = advice_on_run_folder(folder);
  return advice.empty() ? "; is the download complete?" : advice;
}

HfFolder::HfFolder(const fs::path& folder) : path_(folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) fail_without_folder(folder);
  if (!fs::is_directory(folder, error))
    base::throw_user_error(
        "{}: this is a file; expected the Hugging Face model folder that holds config.json and the "
        "weights",
        folder.string());
  if (!fs::exists(config_path(), error)) refuse_rank_checkpoint(folder);
  if (!fs::exists(config_path(), error))
    base::throw_user_error(
        "{}: the folder has no config.json, so it is not a Hugging Face model folder{}",
        folder.string(), advice_on_model_folder(folder));
  auto config = std::make_shared<nlohmann::json>(base::read_json_file(config_path()));
  const base::JsonObject must_be_an_object(*config, config_path().string());
  config_ = std::move(config);
}

std::string HfFolder::name() const {
  fs::path full = fs::absolute(path_).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();
  return full.filename().string();
}

std::optional<fs::path> HfFolder::file(std::string_view name) const {
  fs::path path = path_ / name;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return path;
}

fs::path HfFolder::tokenizer_path() const {
  if (auto path = file("tokenizer.json")) return *path;
  if (auto path = file("tokenizer.model")) return *path;
  base::throw_user_error(
      "{}: the folder has no tokenizer.json or tokenizer.model; copy one of them from the model's "
      "download into it",
      path_.string());
}

std::optional<nlohmann::json> HfFolder::optional_json(std::string_view name) const {
  const auto path = file(name);
  if (!path) return std::nullopt;
  return base::read_json_file(*path);
}

bool is_hf_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.json", error);
}

std::vector<fs::path> companion_files(const fs::path& folder) {
  std::vector<fs::path> files;
  // A folder that exists but cannot be listed throws, rather than counting as empty.
  if (!fs::exists(folder)) return files;
  for (const auto& entry : base::list_folder(folder))
    if (entry.is_regular_file() && is_companion(entry.path().filename().string()))
      files.push_back(entry.path());
  const fs::path templates = folder / "additional_chat_templates";
  if (fs::is_directory(templates))
    for (const auto& entry : base::list_folder(templates))
      if (entry.is_regular_file() && entry.path().extension() == ".jinja")
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void copy_companion_files(const fs::path& from, const fs::path& to) {
  for (const fs::path& file : companion_files(from)) {
    const fs::path copy = to / file.lexically_relative(from);
    // Companion files lie in the folder or one level below. If the target folder itself has
    // disappeared, for example because it was just renamed, it is not created again.
    std::error_code error;
    if (const fs::path parent = copy.parent_path(); parent != to)
      fs::create_directory(parent, error);
    if (error) base::throw_system_error("create", copy.parent_path(), error.value());
    base::copy_file_atomically(file, copy);
  }
}

}  // namespace snug::formats
