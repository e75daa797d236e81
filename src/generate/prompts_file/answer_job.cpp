#include "generate/prompts_file/answer_job.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"
#include "formats/recipe/recipe_keys.h"
#include "generate/prompts_file/answer_file.h"
#include "plan/spec/adapter_slots.h"
#include "text/chat/chat_template.h"

namespace snug::generate {
namespace {

namespace fs = std::filesystem;

// Keys of the verb that change no answer, or of which the job has something else.
constexpr std::array<std::string_view, 11> kNoPartOfJob{
    "prompts",           "output",        "batch",           "threads",
    "on_bad_record",     "device_memory", "host_memory",     "max_length",
    "max_target_length", "max_adapters",  "max_adapter_rank"};

// Whether a file is of this or another job of answers, and not of the model next to them.
bool is_of_answers(const fs::path& path) {
  return path.string().ends_with(".job.json") || fs::exists(job_file_of(path));
}

// Of the folder's weights, settings and tokenizer.
std::string files_text(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const fs::directory_entry& entry : base::list_folder(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string ending = entry.path().extension().string();
    const bool counts = ending == ".safetensors" || ending == ".json" || ending == ".bin" ||
                        ending == ".jinja" || ending == ".model";
    if (!counts || !entry.is_regular_file() || is_of_answers(entry.path())) continue;
    lines.push_back(fmt::format("{} {} {}\n", name, entry.file_size(),
                                entry.last_write_time().time_since_epoch().count()));
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

nlohmann::json answer_job(const formats::Recipe& recipe, const models::ModelSource& model,
                          const PromptsSurvey& survey) {
  nlohmann::json settings = nlohmann::json::object();
  for (const formats::RecipeKey& key : formats::recipe_keys()) {
    const bool is_no_part = std::ranges::find(kNoPartOfJob, key.name) != kNoPartOfJob.end();
    if (!key.belongs_to(formats::Verb::generate) || key.field.get == nullptr || is_no_part)
      continue;
    settings[std::string(key.name)] = formats::value_text(key, key.field.get(recipe));
  }
  std::string files = model.folder.empty() ? "" : files_text(model.folder);
  if (!recipe.adapter.empty()) files += files_text(recipe.adapter);
  for (const plan::NamedAdapter& adapter : plan::named_adapters(recipe))
    files += files_text(adapter.folder);
  nlohmann::json job{{"settings", std::move(settings)},
                     {"prompts", {{"lines", survey.lines}, {"checksum", survey.checksum}}},
                     {"model_files", base::checksum_text(base::checksum(files))}};
  const std::string& chat = recipe.chat_template;
  if (!chat.empty() && !text::is_chat_template_name(chat))
    job["chat_template"] = base::checksum_text(base::checksum(base::read_text_file(chat)));
  return job;
}

}  // namespace snug::generate
