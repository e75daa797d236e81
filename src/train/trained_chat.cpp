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

std::vector<formats::NewToken> new_tokens(const text::Tokenizer& tokenizer) {
  std::vector<formats::NewToken> tokens;
  for (const int32_t id : tokenizer.new_ids())
    tokens.push_back({std::string(tokenizer.token_of(id).value_or("")), id});
  return tokens;
}

void tell_new_tokens(const std::vector<formats::NewToken>& tokens, const formats::Recipe& recipe) {
  if (tokens.empty()) return base::say("added_tokens: the tokenizer has all of them");
  std::vector<std::string> names;
  names.reserve(tokens.size());
  for (const formats::NewToken& token : tokens)
    names.push_back(fmt::format("{} ({})", token.content, token.id));
  const bool trains_tables =
      recipe.method == formats::Method::full || !recipe.modules_to_save.empty();
  base::say("added_tokens: {} in rows of the model that no token had{}", fmt::join(names, ", "),
            trains_tables ? ""
                          : "; what stands in these rows is what the model began with: with "
                            "modules_to_save=[embed_tokens,lm_head] (its embedding and its head) "
                            "they train, too");
}

void tell_tokens_of_adapter(const text::Tokenizer& tokenizer, const formats::Recipe& recipe,
                            const models::ModelSource& model) {
  if (!text::has_other_tokenizer(recipe.adapter, model.folder)) return;
  const auto own = text::Tokenizer::from_folder(recipe.adapter, model.config.vocab_size);
  std::vector<std::string> lacking;
  for (int32_t id = tokenizer.vocabulary_size(); id < own.vocabulary_size(); ++id)
    lacking.emplace_back(own.token_of(id).value_or(""));
  if (!lacking.empty())
    base::say(
        "the adapter's tokenizer has tokens that the model's lacks, which are texts here: "
        "added_tokens=[{}] makes them tokens again",
        fmt::join(lacking, ","));
}

}  // namespace snug::train
