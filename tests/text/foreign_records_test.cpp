// From the words that recipes of other tools have for their data to what is learned of a record.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "golden_files.h"
#include "text/record/record_form.h"
#include "text/record/record_mapping.h"
#include "text/record/record_reader.h"

namespace snug::text {
namespace {

using formats::DataEntry;
using formats::Recipe;

// As the loading of data reads an entry (plan/spec/data_keys.h).
class EntryRecords {
 public:
  EntryRecords(const Recipe& recipe, const DataEntry& entry)
      : mapping_(entry.fields.empty() ? recipe.fields : entry.fields,
                 entry.roles.empty() ? recipe.roles : entry.roles) {
    rules_.form = base::from_word<RecordForm>(base::word_of(entry.data_format));
    if (recipe.objective == formats::Objective::dpo) rules_.form = RecordForm::preference;
    if (recipe.objective == formats::Objective::kto) rules_.form = RecordForm::unpaired;
    rules_.mapping = mapping_.is_empty() ? nullptr : &mapping_;
  }

  Record parse(const RawRecord& raw) const { return parse_record(raw, "data.jsonl", rules_); }
  Record parse(const std::string& text) const {
    RawRecord raw;
    raw.text = text;
    return parse(raw);
  }

 private:
  RecordMapping mapping_;
  RecordRules rules_;
};

Record first_of(const std::string& recipe_text, const std::string& record) {
  const Recipe recipe = formats::parse_recipe(recipe_text, "r.yaml");
  return EntryRecords(recipe, recipe.data.at(0)).parse(record);
}

// "<user>Hi<assistant>Hello"
std::string turns_of(const Record& record) {
  std::string turns;
  for (const Message& message : record.conversation.messages)
    turns += "<" + std::string(message.role()) + ">" + std::string(message.content());
  return turns;
}

TEST(ForeignRecords, AxolotlsFormatsAreThePrompt) {
  const char* const recipe =
      "datasets:\n  - path: a.jsonl\n    type:\n      field_instruction: q\n      field_input: c\n"
      "      field_output: a\n      format: '[INST] {instruction} {input} [/INST]'\n"
      "      no_input_format: '[INST] {instruction} [/INST]'\n";
  EXPECT_EQ(first_of(recipe, R"({"q": "Q", "c": "C", "a": "A"})").prompt, "[INST] Q C [/INST]");
  EXPECT_EQ(first_of(recipe, R"({"q": "Q", "c": "", "a": "A"})").prompt, "[INST] Q [/INST]");
  EXPECT_EQ(first_of(recipe, R"({"q": "Q", "a": "A"})").answer, "A");
  EXPECT_EQ(first_of(recipe, R"({"q": "Q", "a": "A", "system": "S "})").prompt,
            "S [INST] Q [/INST]");
  EXPECT_EQ(first_of("datasets: [{path: a, type: 'alpaca_w_system.load_open_orca'}]",
                     R"({"system_prompt": "S", "question": "Q", "response": "R"})")
                .prompt,
            "### System:\nS\n### Human:\nQ\n### Assistant:\n");
  EXPECT_EQ(first_of("datasets: [{path: a, type: 'alpaca:chatml'}]",
                     R"({"instruction": "I", "input": "", "output": "O"})")
                .prompt,
            "<|im_start|>system\nBelow is an instruction that describes a task. Write a response "
            "that appropriately completes the request.<|im_end|>\n<|im_start|>user\nI<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ForeignRecords, AxolotlsPairsAreConversations) {
  const Record pair = first_of("rl: dpo\ndatasets: [{path: a, type: chatml.argilla}]",
                               R"({"system": "S", "instruction": "I", "chosen_response": "C",
                                   "rejected_response": "R"})");
  EXPECT_EQ(turns_of(pair), "<system>S<user>I<assistant>C");
  EXPECT_EQ(pair.rejected_conversation.messages.back().content(), "R");
  const Record labelled = first_of("rl: kto\ndatasets: [{path: a, type: llama3.prompt_pairs}]",
                                   R"({"prompt": "P", "completion": "C", "label": false})");
  EXPECT_EQ(turns_of(labelled), "<user>P<assistant>C");
  EXPECT_FALSE(labelled.is_desirable);
}

TEST(ForeignRecords, OtherNamesOfMessages) {
  EXPECT_EQ(turns_of(first_of(
                "datasets: [{path: a, type: chat_template, field_messages: dialog, "
                "message_property_mappings: {role: who, content: says}, roles: {user: [me], "
                "assistant: [you]}}]",
                R"({"dialog": [{"who": "me", "says": "Hi"}, {"who": "you", "says": "Hello"}]})")),
            "<user>Hi<assistant>Hello");
  EXPECT_EQ(turns_of(first_of("dataset: x\ncolumns: {text1: query, text2: response}",
                              R"({"text1": "Q", "text2": "R"})")),
            "<user>Q<assistant>R");
}

// The instruction and its input are the user's words, whichever of them a record has.
TEST(ForeignRecords, LlamaFactorysInstructionsAreConversations) {
  const testing::TemporaryFolder folder;
  folder.write("dataset_info.json",
               R"({"one": {"file_name": "a.json", "columns": {"prompt": "p", "query": "q",
                   "response": "r", "system": "s", "history": "h"}}})");
  const std::string recipe = "dataset: one\ndataset_dir: " + folder.path().string();
  EXPECT_EQ(turns_of(first_of(recipe, R"({"p": "P", "q": "Q", "r": "R", "s": "S",
                                          "h": [["A", "B"]]})")),
            "<system>S<user>A<assistant>B<user>P\nQ<assistant>R");
  EXPECT_EQ(turns_of(first_of(recipe, R"({"p": "P", "q": "", "r": "R", "h": null})")),
            "<user>P<assistant>R");
  EXPECT_EQ(turns_of(first_of(recipe, R"({"p": "", "q": "Q", "r": "R", "h": []})")),
            "<user>Q<assistant>R");
}

// LLaMA-Factory's own files, where they lie next to the repository.
TEST(ForeignRecords, LlamaFactorysFilesAreLearned) {
  const std::string folder = kSharedData + "instruct/llamafactory";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  struct Case {
    const char* names;
    const char* stage;
    int records;
  };
  for (const Case& each :
       {Case{"identity,alpaca_en_demo", "sft", 1090}, Case{"glaive_toolcall_en_demo", "sft", 300},
        Case{"dpo_en_demo", "dpo", 300}, Case{"kto_en_demo", "kto", 300}}) {
    const Recipe recipe = formats::parse_recipe(
        fmt::format("stage: {}\ndataset_dir: {}\ndataset: {}", each.stage, folder, each.names),
        "r.yaml");
    int chats = 0;
    for (const DataEntry& entry : recipe.data) {
      const EntryRecords records(recipe, entry);
      RecordReader reader(entry.path);
      for (RawRecord raw; reader.next(raw);) chats += records.parse(raw).is_conversation() ? 1 : 0;
    }
    EXPECT_EQ(chats, each.records) << each.names;
  }
}

}  // namespace
}  // namespace snug::text
