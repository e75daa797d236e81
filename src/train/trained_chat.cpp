#include "train/trained_chat.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/console.h"
#include "text/chat/folder_stop_ids.h"

namespace snug::train {
namespace {

using Ids = std::vector<int32_t>;

// What others read of the folder: generation_config.json where there is one, else config.json.
Ids ids_for_others(const std::filesystem::path& folder) {
  const std::filesystem::path first = folder / "generation_config.json";
  return text::ids_of_file(std::filesystem::exists(first) ? first : folder / "config.json");
}

}  // namespace

formats::TrainedChat trained_chat(const text::DatasetAudit& audit, const models::ModelSource& model,
                                  const std::string& adapter) {
  formats::TrainedChat chat{.chat_template = audit.template_source};
  if (model.folder.empty()) return chat;
  if (const std::string note = text::ignored_stop_ids(model.folder, adapter); !note.empty())
    base::say("{}", note);
  Ids ids = text::folder_stop_ids(model.folder, adapter);
  Ids more;
  for (const int32_t id : audit.ends.ids())
    if (std::ranges::find(ids, id) == ids.end()) more.push_back(id);
  ids.insert(ids.end(), more.begin(), more.end());
  const Ids others = ids_for_others(model.folder);
  if (std::set(ids.begin(), ids.end()) == std::set(others.begin(), others.end())) return chat;
  chat.stop_ids = ids;
  if (!more.empty())
    base::say(
        "what is learned ends with the token{} {}, which the model's folder does not name as an "
        "end: eos_token_id in the generation_config.json of the result is [{}]",
        more.size() == 1 ? "" : "s", fmt::join(more, ", "), fmt::join(ids, ", "));
  return chat;
}

}  // namespace snug::train
