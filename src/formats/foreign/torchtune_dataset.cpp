#include "formats/foreign/torchtune_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/field_words.h"
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

enum class Content : uint8_t { alpaca, answer, conversation, text, pair };

// A builder: what its records are, where they come from, and what their fields are called.
struct Builder {
  std::string_view name;
  Content content;
  std::string_view source = "";
  std::string_view config = "";
  std::string_view first = "";   // the prompt, the conversation or the text
  std::string_view second = "";  // the answer
};

constexpr auto kBuilders = std::to_array<Builder>({
    {"alpaca_dataset", Content::alpaca, "tatsu-lab/alpaca"},
    {"alpaca_cleaned_dataset", Content::alpaca, "yahma/alpaca-cleaned"},
    {"instruct_dataset", Content::answer, "", "", "input", "output"},
    {"grammar_dataset", Content::answer, "liweili/c4_200m", "", "input", "output"},
    {"samsum_dataset", Content::answer, "Samsung/samsum", "", "dialogue", "summary"},
    {"chat_dataset", Content::conversation},
    {"slimorca_dataset", Content::conversation, "Open-Orca/SlimOrca-Dedup", "", "conversations"},
    {"text_completion_dataset", Content::text, "", "", "text"},
    {"wikitext_dataset", Content::text, "EleutherAI/wikitext_document_level", "wikitext-103-v1",
     "page"},
    {"cnn_dailymail_articles_dataset", Content::text, "ccdv/cnn_dailymail", "3.0.0", "article"},
    {"preference_dataset", Content::pair},
    {"hh_rlhf_helpful_dataset", Content::pair, "RLHFlow/HH-RLHF-Helpful-standard"},
    {"stack_exchange_paired_dataset", Content::pair, "lvwerra/stack-exchange-paired"},
});

constexpr auto kTakenKeys = std::to_array<std::string_view>({"_component_",
                                                             "source",
                                                             "name",
                                                             "subset",
                                                             "split",
                                                             "data_files",
                                                             "data_dir",
                                                             "column",
                                                             "conversation_column",
                                                             "conversation_style",
                                                             "column_map.input",
                                                             "column_map.output",
                                                             "column_map.instruction",
                                                             "column_map.prompt",
                                                             "column_map.chosen",
                                                             "column_map.rejected",
                                                             "column_map.conversations",
                                                             "column_map.messages",
                                                             "train_on_input",
                                                             "packed"});

std::vector<ToolKey> torchtune_dataset_keys() {
  ForeignRows rows;
  for (const std::string_view key : kTakenKeys) rows.same_as({key}, key);
  rows.refuse({"new_system_prompt"},
              "a system message stands in the records: add it to them, or take this out")
      .refuse({"prompt_template*"},
              "the texts around messages are a chat template's: say "
              "chat_template: FILE")
      .refuse({"filter_fn", "filter_kwargs*"}, "code of other tools is not run; take it out")
      .only({"add_eos"}, kTrueOnly, "a text ends in EOS")
      .pass_over(
          {"split_across_pack"},
          "a text that is longer than max_length is cut into windows, all of which are learned")
      .pass_over({"shuffle", "seed"}, "shuffle and seed of the recipe say it")
      .refuse({"image_*", "partition"}, "only texts are trained on");
  return rows.take();
}

class TorchtuneReader {
 public:
  TorchtuneReader(const std::string& file, bool is_evaluation)
      : file_(file), is_evaluation_(is_evaluation) {}

  void read(const ToolEntry& tool) {
    static const std::vector<ToolKey> keys = torchtune_dataset_keys();
    ToolConfig config = translate(tool.keys, keys, file_);
    ToolConfig& said = datasets_.said;
    for (const std::string& note : config.notes)
      if (std::ranges::find(said.notes, note) == said.notes.end()) said.notes.push_back(note);
    said.mistakes.gather([&] {
      config.mistakes.throw_if_any();
      const Builder& builder = builder_of(tool);
      DataEntry entry;
      shape(tool, builder, entry);
      entry.config = tool.text(tool.find("name") ? "name" : "subset");
      if (entry.config.empty()) entry.config = builder.config;
      if (const Written* split = tool.find("split"))
        take_split(entry, *split, datasets_.said.notes);
      lift(tool, builder);
      for (const std::string& path : paths_of(tool, builder)) {
        entry.path = path;
        datasets_.entries.push_back(entry);
      }
    });
  }

  ToolDatasets finish() { return std::move(datasets_); }

 private:
  static const Builder& builder_of(const ToolEntry& tool) {
    const std::string whole = tool.text("_component_");
    const std::string name = whole.substr(whole.rfind('.') + 1);
    const auto* const found = std::ranges::find(kBuilders, name, &Builder::name);
    if (found != kBuilders.end()) return *found;
    std::vector<std::string_view> names;
    names.reserve(kBuilders.size());
    for (const Builder& each : kBuilders) names.push_back(each.name);
    const auto nearest = base::nearest_slip(name, names);
    throw base::UserError(
        fmt::format("is '{}', which is not built{}; say data: {{path: FILE or org/name}}", whole,
                    nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : ""),
        tool.find("_component_")->where);
  }

  static std::string column(const ToolEntry& tool, const char* key, std::string_view usual) {
    const std::string said = tool.text(fmt::format("column_map.{}", key));
    return said.empty() ? std::string(usual) : said;
  }

  void shape(const ToolEntry& tool, const Builder& builder, DataEntry& entry) {
    switch (builder.content) {
      case Content::alpaca:
        entry.data_format = DataFormat::alpaca;
        take_field(entry, "instruction", column(tool, "instruction", ""));
        take_field(entry, "input", column(tool, "input", ""));
        take_field(entry, "output", column(tool, "output", ""));
        return;
      case Content::answer:
        take_field(entry, "question", column(tool, "input", builder.first));
        take_field(entry, "completion", column(tool, "output", builder.second));
        return;
      case Content::conversation:
        return shape_chat(tool, builder, entry);
      case Content::text: {
        const std::string said = tool.text("column");
        entry.data_format = DataFormat::text;
        return take_field(entry, "text", said.empty() ? builder.first : said);
      }
      case Content::pair:
        take_field(entry, "question", column(tool, "prompt", ""));
        take_field(entry, "chosen", column(tool, "chosen", ""));
        take_field(entry, "rejected", column(tool, "rejected", ""));
    }
  }

  static void shape_chat(const ToolEntry& tool, const Builder& builder, DataEntry& entry) {
    std::string list = tool.text("conversation_column");
    for (const char* key : {"conversations", "messages"})
      if (list.empty()) list = column(tool, key, "");
    if (list.empty()) list = builder.first;
    if (list.empty())
      list = tool.text("conversation_style") == "openai" ? "messages" : "conversations";
    take_messages(entry, list, true);
  }

  // What the recipe says for all data. Alpaca's builders learn prompts where they are not told
  // otherwise.
  void lift(const ToolEntry& tool, const Builder& builder) {
    if (is_evaluation_) return;
    const auto add = [&](const char* key, const std::string& value) {
      std::vector<Written>& all = datasets_.said.settings;
      const auto same = std::ranges::find(all, key, &Written::name);
      if (same == all.end())
        all.push_back({key, {value}, false, tool.where, false, false, tool.place});
      else if (same->items.front() != value)
        tool.fail(
            fmt::format("has another value of {} than an entry before it, but a run has one", key));
    };
    if (tool.find("packed")) add("packing", tool.text("packed"));
    const bool learns_prompts = builder.content == Content::alpaca;
    if (tool.find("train_on_input"))
      add("train_on_prompt", tool.text("train_on_input"));
    else if (learns_prompts)
      add("train_on_prompt", "true");
  }

  static std::vector<std::string> paths_of(const ToolEntry& tool, const Builder& builder) {
    constexpr auto kReaders = std::to_array<std::string_view>({"json", "csv", "parquet", "text"});
    std::string source = tool.text("source");
    if (source.empty()) source = builder.source;
    if (std::ranges::find(kReaders, source) != kReaders.end()) source.clear();
    const std::string folder = tool.text("data_dir");
    const Written* said = tool.find("data_files");
    if (said == nullptr && source.empty() && folder.empty())
      tool.fail("has no source; say source: FILE or org/name");
    if (said == nullptr) return {data_set_path(source, "", folder.empty() ? "" : folder + "/**")};
    std::vector<std::string> files = said->items;
    for (std::string& file : files) file = data_set_path(source, "", file);
    return files;
  }

  const std::string& file_;
  bool is_evaluation_;
  ToolDatasets datasets_;
};

}  // namespace

bool is_torchtune(const ToolEntry& entry) { return entry.find("_component_") != nullptr; }

ToolDatasets read_torchtune_list(const std::vector<ToolEntry>& list, const std::string& file,
                                 bool is_evaluation) {
  TorchtuneReader reader(file, is_evaluation);
  for (const ToolEntry& tool : list) reader.read(tool);
  return reader.finish();
}

}  // namespace snug::formats
