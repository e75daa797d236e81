#include "formats/foreign/dataset_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_parser.h"
#include "base/nearest.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/field_words.h"
#include "formats/foreign/foreign_keys.h"
#include "formats/foreign/tool_file_places.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFileName = "dataset_info.json";
constexpr int64_t kMaxInfoBytes = int64_t{8} << 20;

constexpr auto kInfoKeys = std::to_array<std::string_view>({"file_name",
                                                            "hf_hub_url",
                                                            "ms_hub_url",
                                                            "om_hub_url",
                                                            "formatting",
                                                            "ranking",
                                                            "subset",
                                                            "split",
                                                            "folder",
                                                            "num_samples",
                                                            "columns.prompt",
                                                            "columns.query",
                                                            "columns.response",
                                                            "columns.history",
                                                            "columns.messages",
                                                            "columns.system",
                                                            "columns.tools",
                                                            "columns.chosen",
                                                            "columns.rejected",
                                                            "columns.kto_tag",
                                                            "tags.role_tag",
                                                            "tags.content_tag",
                                                            "tags.user_tag",
                                                            "tags.assistant_tag",
                                                            "tags.observation_tag",
                                                            "tags.function_tag",
                                                            "tags.system_tag"});

std::vector<ToolKey> info_keys() {
  ForeignRows rows;
  for (const std::string_view key : kInfoKeys) rows.same_as({key}, key);
  rows.pass_over({"file_sha1"}, "files are not compared with a checksum")
      .refuse({"script_url"}, "code of data sets is not run: say file_name, a file or a folder")
      .refuse({"cloud_file_name"}, "it is on another machine: download it, and say file_name")
      .refuse({"columns.images", "columns.videos", "columns.audios"},
              "only texts are trained on; choose a data set without these");
  return rows.take();
}

// The values of a name by their paths in its map.
class InfoKeys {
 public:
  InfoKeys(std::vector<Written> keys, std::string place)
      : keys_(std::move(keys)), place_(std::move(place)) {}

  const Written* find(std::string_view name) const {
    const auto found = std::ranges::find(keys_, name, &Written::name);
    return found == keys_.end() || found->items.empty() ? nullptr : &*found;
  }
  std::string text(std::string_view name) const {
    const Written* written = find(name);
    return written == nullptr ? "" : written->items.front();
  }
  bool is_true(std::string_view name) const { return parse_boolean(text(name)) == true; }
  bool has_below(std::string_view prefix) const {
    return std::ranges::any_of(keys_,
                               [&](const Written& key) { return key.name.starts_with(prefix); });
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw base::UserError(problem, {place_, 0, 0});
  }

 private:
  std::vector<Written> keys_;
  std::string place_;
};

void flatten(const json& value, const std::string& name,
             const std::function<base::Location(const std::string&)>& place,
             std::vector<Written>& keys) {
  const auto text_of = [](const json& leaf) {
    return leaf.is_string() ? leaf.get<std::string>() : leaf.dump();
  };
  if (value.is_object()) {
    for (const auto& [key, child] : value.items())
      flatten(child, name.empty() ? key : name + "." + key, place, keys);
    return;
  }
  Written written{name, {}, value.is_array(), place(name)};
  if (value.is_array())
    for (const json& item : value) written.items.push_back(text_of(item));
  else if (!value.is_null())
    written.items.push_back(text_of(value));
  keys.push_back(std::move(written));
}

// Where the records are: a name of the hub comes before a file.
std::string path_in(const InfoKeys& keys, const std::string& folder) {
  std::string path;
  for (const char* hub : {"hf_hub_url", "ms_hub_url", "om_hub_url"})
    if (path.empty()) path = keys.text(hub);
  if (!path.empty()) {
    const std::string part = keys.text("folder");
    return data_set_path(path, "", part.empty() ? "" : part + "/**");
  }
  const std::string file = keys.text("file_name");
  if (file.empty()) keys.fail("has neither file_name nor hf_hub_url, so there are no records");
  return (fs::path(folder) / file).string();
}

// A prompt and what is asked about it, of which a record may have one or both.
std::vector<std::string> questions_of(const std::string& prompt, const std::string& query) {
  if (query.empty()) return {prompt};
  if (prompt.empty()) return {query};
  return {field_in_template(prompt) + "\n" + field_in_template(query), query, prompt};
}

void take_alpaca(const InfoKeys& keys, bool learns_texts, DataEntry& entry) {
  const bool is_usual = !keys.has_below("columns.");
  const auto column = [&](const std::string& name, const char* usual) {
    return is_usual ? std::string(usual) : keys.text("columns." + name);
  };
  const std::string response = column("response", "output");
  const std::vector<std::string> questions =
      questions_of(column("prompt", "instruction"), column("query", "input"));
  const std::string chosen = column("chosen", "");
  if (learns_texts || (response.empty() && chosen.empty())) {
    entry.data_format = DataFormat::text;
    take_first_of(entry, "text", questions);
    return;
  }
  take_first_of(entry, "question", questions);
  if (keys.is_true("ranking")) {
    entry.fields.push_back("chosen=" + (chosen.empty() ? "chosen" : chosen));
    const std::string rejected = column("rejected", "");
    entry.fields.push_back("rejected=" + (rejected.empty() ? "rejected" : rejected));
  } else {
    take_field(entry, "completion", response);
    take_field(entry, "label", column("kto_tag", ""));
  }
  take_field(entry, "history", column("history", ""));
}

void take_sharegpt(const InfoKeys& keys, DataEntry& entry) {
  std::string list = keys.text("columns.messages");
  if (list.empty()) list = "conversations";
  const bool is_pair = keys.is_true("ranking");
  const std::string label = keys.text("columns.kto_tag");
  list = take_messages(entry, list, !is_pair && label.empty());
  std::vector<std::string> lists{list};
  if (is_pair) {
    take_field(entry, "chosen", keys.text("columns.chosen"));
    take_field(entry, "rejected", keys.text("columns.rejected"));
    lists.insert(lists.end(), {"chosen", "rejected"});
  }
  take_field(entry, "label", label);
  take_message_fields(entry, lists, {keys.text("tags.role_tag"), keys.text("tags.content_tag")});
  constexpr auto kTags = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"tags.user_tag", "user"},
       {"tags.assistant_tag", "assistant"},
       {"tags.observation_tag", "tool"},
       {"tags.function_tag", "function_call"},
       {"tags.system_tag", "system"}});
  for (const auto& [tag, role] : kTags) take_role(entry, keys.text(tag), role);
}

int64_t records_in(const Written& written) {
  const std::string& text = written.items.front();
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1)
    throw base::UserError(fmt::format("is '{}'; expected a number of records of 1 or more", text),
                          written.where);
  return count;
}

DataEntry entry_of(const InfoKeys& keys, const std::string& folder, bool learns_texts) {
  DataEntry entry;
  entry.path = path_in(keys, folder);
  entry.config = keys.text("subset");
  if (!take_split(entry, keys.text("split")).empty())
    keys.fail("takes a share of the records: say num_samples, their number");
  const std::string form = keys.text("formatting");
  if (form.empty() || form == "alpaca")
    take_alpaca(keys, learns_texts, entry);
  else if (form == "sharegpt" || form == "openai")
    take_sharegpt(keys, entry);
  else
    keys.fail(fmt::format("has the formatting '{}'; expected alpaca, sharegpt or openai", form));
  take_if_there(entry, "system", keys.text("columns.system"));
  take_if_there(entry, "tools", keys.text("columns.tools"));
  if (const Written* count = keys.find("num_samples")) entry.limit = records_in(*count);
  return entry;
}

}  // namespace

struct DatasetInfo::Content {
  json document;
  std::map<std::string, base::Location> places;
};

DatasetInfo::DatasetInfo(const std::string& folder)
    : folder_(folder),
      file_((fs::path(folder) / kFileName).string()),
      content_(std::make_unique<Content>()) {
  const std::string text = base::read_text_file(file_, kMaxInfoBytes);
  content_->document = base::parse_json_value(text, [&](const std::string& problem, size_t) {
    throw base::UserError("not valid JSON: " + problem, {file_, 0, 0});
  });
  if (!content_->document.is_object())
    throw base::UserError("is no map of names to data sets", {file_, 0, 0});
  content_->places = tool_file_places(text, file_);
}

DatasetInfo::~DatasetInfo() = default;

bool DatasetInfo::has(const std::string& name) const { return content_->document.contains(name); }

void DatasetInfo::fail_unknown(const std::string& name) const {
  constexpr size_t kShown = 20;
  std::vector<std::string_view> names;
  for (const auto& [known, value] : content_->document.items()) names.push_back(known);
  const auto nearest = base::nearest_name(name, names);
  const size_t shown = std::min(names.size(), kShown);
  base::throw_user_error(
      "'{}' is no data set of {}{}; it has {}{}", name, file_,
      nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "",
      fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "),
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
}

std::optional<DataEntry> DatasetInfo::entry(const std::string& name, bool learns_texts,
                                            ToolConfig& said) const {
  if (!has(name)) fail_unknown(name);
  const auto place = [&](const std::string& path) {
    const std::string whole = path.empty() ? name : name + "." + path;
    const auto found = content_->places.find(whole);
    return found == content_->places.end()
               ? place_in(file_, whole)
               : base::Location{base::to_string(found->second) + whole, 0, 0};
  };
  std::vector<Written> written;
  flatten(content_->document[name], "", place, written);
  static const std::vector<ToolKey> keys = info_keys();
  ToolConfig config = translate(written, keys, file_);
  said.notes.insert(said.notes.end(), config.notes.begin(), config.notes.end());
  std::optional<DataEntry> entry;
  said.mistakes.gather([&] {
    config.mistakes.throw_if_any();
    entry = entry_of(InfoKeys(std::move(config.settings), place("").file), folder_, learns_texts);
  });
  return entry;
}

bool has_dataset_info(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder) / kFileName, error);
}

}  // namespace snug::formats
