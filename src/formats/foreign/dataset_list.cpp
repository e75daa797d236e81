// Stages, for each entry: keys that change nothing or are refused are told of by a table; the files
// that it stands for become entries; its type and its names of fields become their fields and
// roles. Keys that a recipe has once for all data are collected, and must agree.
#include "formats/foreign/dataset_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "formats/foreign/axolotl_types.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/field_words.h"
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

// Keys that are read here.
constexpr auto kDatasetKeys = std::to_array<std::string_view>({"path",
                                                               "id",
                                                               "name",
                                                               "config",
                                                               "subset",
                                                               "split",
                                                               "revision",
                                                               "data_files",
                                                               "data_dir",
                                                               "type",
                                                               "field",
                                                               "text_column",
                                                               "conversation",
                                                               "field_messages",
                                                               "field_tools",
                                                               "field_thinking",
                                                               "field_system",
                                                               "field_chosen",
                                                               "field_rejected",
                                                               "field_human",
                                                               "field_model",
                                                               "message_field_role",
                                                               "message_field_content",
                                                               "message_field_training",
                                                               "columns",
                                                               "fraction",
                                                               "weight"});

// Keys that a recipe has for all its data.
constexpr auto kKeysOfAll = std::to_array<std::string_view>(
    {"chat_template", "chat_template_jinja", "train_on_turns", "roles_to_train", "train_on_eos",
     "train_on_eot", "train_on_inputs"});

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<ToolKey> dataset_keys() {
  ForeignRows rows;
  for (const std::string_view key : kDatasetKeys) rows.same_as({key}, key);
  rows.pass_over({"ds_type"}, "the ending of a file's name says how it is read")
      .pass_over({"trust_remote_code"}, "code of data sets is not run")
      .pass_over({"preprocess_shards", "streaming"}, "data are read from files, of any size")
      .only({"template_thinking_key"}, {{"reasoning_content"}, {"thinking"}},
            "templates get thoughts as reasoning_content and as thinking: take this out, or say "
            "chat_template: FILE, a template that writes these")
      .pass_over({"split_thinking"},
                 "a thought within <think> is the chat template's to divide from its answer")
      .only({"drop_system_message"}, kFalseOnly,
            "system messages go to the chat template: take them out of the data, or say "
            "chat_template: FILE, a template that leaves them out")
      .refuse({"message_field_training_detail"},
              "messages are learned whole or not at all: mark them with message_field_training")
      .refuse({"shards", "shards_idx"}, "say split: train[:COUNT] for the first records")
      .only({"skip"}, kZeroOnly, "all records are read, from the first")
      .refuse({"input_format", "input_transform", "logprobs_field", "temperature", "step_separator",
               "max_completion_length", "train_on_last_step_only", "sequence_length", "length",
               "min_input_id", "max_input_id", "seed"},
              "this is not built; take it out");
  return rows.take();
}

// A word that names a reader of files and no data set.
bool is_reader(std::string_view path) {
  constexpr auto kReaders =
      std::to_array<std::string_view>({"json", "csv", "parquet", "text", "arrow"});
  return is_one_of(kReaders, path) && !is_on_disk(std::string(path));
}

double share_in(const Written& written) {
  const std::string& text = written.items.front();
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size() || !(share > 0) || share > 1e6)
    throw base::UserError(fmt::format("is '{}'; expected a number above 0", text), written.where);
  return share;
}

class ListReader {
 public:
  ListReader(const std::string& file, std::string_view rl) : file_(file), rl_(rl) {}

  void read(ToolEntry tool) {
    ++read_;
    if (tool.find("train_on_inputs") != nullptr) ++with_inputs_;
    datasets_.said.mistakes.gather([&] { lift(tool); });
    const std::vector<Written> roles = take_below(tool, "roles.");
    const std::vector<Written> messages = take_below(tool, "message_property_mappings.");
    std::vector<Written> type = take_below(tool, "type.");
    const std::vector<Written> files = take_below(tool, "data_files.");
    if (!tell(tool)) return;
    datasets_.said.mistakes.gather([&] {
      DataEntry entry;
      if (!type.empty())
        apply_axolotl_map(std::move(type), entry);
      else
        shape(tool, messages, entry);
      add_roles(tool, roles, entry);
      add_files(tool, files, std::move(entry));
    });
  }

  ToolDatasets finish() {
    // Entries without the key learn answers alone.
    const auto all = std::ranges::find(datasets_.said.settings, "train_on_inputs", &Written::name);
    if (all != datasets_.said.settings.end() && with_inputs_ < read_ && !all->items.empty() &&
        parse_boolean(all->items.front()) == true)
      datasets_.said.mistakes.add(
          "'train_on_inputs' is true in some entries, and a run learns the prompts of all its data "
          "or of none; say it in all of them",
          all->where);
    return std::move(datasets_);
  }

 private:
  // Without roles and without ends axolotl learns the last message alone; without roles, those that
  // say so themselves.
  static void settle_roles(ToolEntry& tool) {
    const auto key = [&](std::string_view name) {
      return std::ranges::find(tool.keys, name, &Written::name);
    };
    const auto roles = key("roles_to_train");
    const auto ends = key("train_on_eos");
    if (roles == tool.keys.end() || !roles->items.empty()) return;
    roles->is_list = true;
    if (ends == tool.keys.end() || !ends->items.empty()) return;
    *roles = {"train_on_turns", {"last_message"}, false, roles->where};
    tool.keys.erase(ends);
  }

  // Moves keys that hold for all data to those of the recipe.
  void lift(ToolEntry& tool) {
    settle_roles(tool);
    std::vector<Written> kept;
    std::string conflict;
    for (Written& key : tool.keys) {
      const bool is_jinja =
          key.name == "chat_template" && !key.items.empty() && key.items.front() == "jinja";
      if (is_jinja && tool.find("chat_template_jinja") != nullptr) continue;
      if (!is_one_of(kKeysOfAll, key.name)) {
        kept.push_back(std::move(key));
        continue;
      }
      const auto same = std::ranges::find(datasets_.said.settings, key.name, &Written::name);
      if (same == datasets_.said.settings.end())
        datasets_.said.settings.push_back(key);
      else if (same->items != key.items)
        conflict = key.name;
    }
    tool.keys = std::move(kept);
    if (!conflict.empty())
      tool.fail(
          fmt::format("has another '{}' than an entry before it, but a run has one for all "
                      "its data; make them the same",
                      conflict));
  }

  // Whether nothing of it is refused.
  bool tell(ToolEntry& tool) {
    static const std::vector<ToolKey> keys = dataset_keys();
    ToolConfig config = translate(tool.keys, keys, file_);
    const bool is_fine = config.mistakes.empty();
    datasets_.said.mistakes.gather([&] { config.mistakes.throw_if_any(); });
    std::vector<std::string>& notes = datasets_.said.notes;
    for (const std::string& note : config.notes)
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    return is_fine;
  }

  void add_chat_template(const ToolEntry& tool, const std::string& name) {
    Written written{"chat_template", {name}, false, tool.where};
    ToolEntry lifted{tool.place, tool.where, {std::move(written)}};
    lift(lifted);
  }

  void shape(const ToolEntry& tool, const std::vector<Written>& messages, DataEntry& entry) {
    const std::string type = tool.text("type");
    const bool is_chat = is_chat_type(type) || (type.empty() && tool.find("field_messages"));
    if (is_chat)
      shape_chat(tool, messages, entry);
    else if (const std::string chat = apply_axolotl_type(tool, rl_, entry); !chat.empty())
      add_chat_template(tool, chat);
    if (const std::string column = tool.text("text_column"); type.empty() && !column.empty())
      take_field(entry, "text", column);
    take_if_there(entry, "system", tool.text("field_system"));
    add_columns(tool, entry);
  }

  // sharegpt says its template in `conversation`, and the field conversations is meant.
  void shape_chat(const ToolEntry& tool, const std::vector<Written>& messages, DataEntry& entry) {
    const bool is_sharegpt = tool.text("type").starts_with("sharegpt");
    if (tool.find("conversation")) add_chat_template(tool, tool.text("conversation"));
    std::string list = tool.text("field_messages");
    if (list.empty()) list = is_sharegpt ? "conversations" : "messages";
    const bool is_pair = !rl_.empty() && rl_ != "kto";
    list = take_messages(entry, list, rl_.empty());
    take_field(entry, "chosen", tool.text("field_chosen"));
    take_field(entry, "rejected", tool.text("field_rejected"));
    take_if_there(entry, "tools", tool.text("field_tools"));
    std::vector<std::string> lists{list};
    if (is_pair) lists.insert(lists.end(), {"chosen", "rejected"});
    MessageWords words{tool.text("message_field_role"), tool.text("message_field_content")};
    for (const Written& each : messages) {
      const std::string source = each.items.empty() ? "" : each.items.front();
      if (each.name == "role")
        words.role = source;
      else if (each.name == "content")
        words.content = source;
      else if (each.name != source)
        take_field(entry, list + "." + each.name, source);
    }
    take_message_fields(entry, lists, words);
    take_thoughts(tool, list, entry);
  }

  static void take_thoughts(const ToolEntry& tool, const std::string& list, DataEntry& entry) {
    constexpr auto kThoughts =
        std::to_array<std::string_view>({"reasoning_content", "thinking", "reasoning"});
    constexpr auto kMarks = std::to_array<std::string_view>(
        {"weight", "loss", "loss_mask", "train", "training", "trainable"});
    const std::string thought = tool.text("field_thinking");
    if (!is_one_of(kThoughts, thought)) take_field(entry, list + ".reasoning_content", thought);
    const std::string mark = tool.text("message_field_training");
    if (!is_one_of(kMarks, mark)) take_field(entry, list + ".weight", mark);
  }

  // The columns that TRL selects decide what form the records are of.
  void add_columns(const ToolEntry& tool, DataEntry& entry) {
    constexpr auto kForms = std::to_array<std::string_view>(
        {"messages", "conversations", "prompt", "completion", "chosen", "rejected", "text"});
    const Written* columns = tool.find("columns");
    if (columns == nullptr) return;
    for (const std::string& column : columns->items)
      if (is_one_of(kForms, column)) entry.fields.push_back(column + "=" + column);
  }

  static void add_roles(const ToolEntry& tool, const std::vector<Written>& roles,
                        DataEntry& entry) {
    take_role(entry, tool.text("field_human"), "user");
    take_role(entry, tool.text("field_model"), "assistant");
    constexpr auto kRoles =
        std::to_array<std::string_view>({"system", "user", "assistant", "tool", "function_call"});
    for (const Written& role : roles) {
      if (!is_one_of(kRoles, role.name))
        throw base::UserError("is no role of messages; expected system, user, assistant or tool",
                              role.where);
      for (const std::string& word : role.items) take_role(entry, word, role.name);
    }
  }

  // The files, folders and names that an entry stands for.
  std::vector<std::string> paths_of(const ToolEntry& tool,
                                    const std::vector<Written>& files_of_splits) const {
    std::string path = tool.text(tool.find("path") ? "path" : "id");
    const std::string folder = tool.text("data_dir");
    std::vector<std::string> files;
    if (const Written* said = tool.find("data_files")) files = said->items;
    const std::string split = tool.text("split");
    for (const Written& each : files_of_splits)
      if (each.name == (split.empty() ? "train" : split)) files = each.items;
    if (path.empty() && files.empty()) tool.fail("has no path; say path: FILE, FOLDER or org/name");
    const bool is_local = path.starts_with("hf://datasets/") || path.starts_with("file://");
    if (path.find("://") != std::string::npos && !is_local)
      tool.fail(
          fmt::format("has the path {}, which is on another machine: download it, and say "
                      "path: FILE or FOLDER",
                      path));
    if (is_reader(path)) path.clear();
    const std::string revision = tool.text("revision");
    if (files.empty()) return {data_set_path(path, revision, folder.empty() ? "" : folder + "/**")};
    for (std::string& file : files)
      if (!is_on_disk(file))
        file = data_set_path(path, revision, folder.empty() ? file : folder + "/" + file);
    return files;
  }

  void add_files(const ToolEntry& tool, const std::vector<Written>& files, DataEntry entry) {
    std::vector<std::string> configs;
    for (const char* key : {"name", "config", "subset"})
      if (const Written* said = tool.find(key); said != nullptr && configs.empty())
        configs = said->items;
    if (configs.empty()) configs.emplace_back();
    if (const Written* split = tool.find("split")) {
      if (split->items.size() > 1) tool.fail("has several splits; give each as an entry");
      take_split(entry, *split, datasets_.said.notes);
    }
    for (const char* key : {"weight", "fraction"})
      if (const Written* weight = tool.find(key)) entry.weight = share_in(*weight);
    const std::vector<std::string> paths = paths_of(tool, files);
    if (entry.weight > 0 && paths.size() * configs.size() > 1)
      tool.fail("has one weight for several files; give each file as an entry with its own");
    for (const std::string& config : configs) {
      for (const std::string& path : paths) {
        entry.config = config;
        entry.path = path;
        datasets_.entries.push_back(entry);
      }
    }
  }

  const std::string& file_;
  std::string_view rl_;
  int64_t read_ = 0;         // entries
  int64_t with_inputs_ = 0;  // that have the key train_on_inputs
  ToolDatasets datasets_;
};

}  // namespace

ToolDatasets read_dataset_list(const std::vector<ToolEntry>& list, const std::string& file,
                               std::string_view rl) {
  ListReader reader(file, rl);
  for (const ToolEntry& tool : list) reader.read(tool);
  return reader.finish();
}

}  // namespace snug::formats
