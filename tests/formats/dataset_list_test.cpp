// axolotl's, TRL's and torchtune's lists of data sets, as entries of a recipe's data.
#include "formats/foreign/dataset_list.h"

#include "../base/temporary_folder.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/torchtune_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;
using Texts = std::vector<std::string>;

const std::string kRecipe = "r.yaml";

std::vector<ToolEntry> entries_in(Texts items, const std::string& key = "datasets") {
  return tool_entries({key, std::move(items), true, {kRecipe, 5, 1}});
}

ToolDatasets read(Texts items, std::string_view rl = "") {
  return read_dataset_list(entries_in(std::move(items)), kRecipe, rl);
}

DataEntry only(const std::string& item, std::string_view rl = "") {
  const ToolDatasets datasets = read({item}, rl);
  EXPECT_EQ(user_error_of([&] { datasets.said.mistakes.throw_if_any(); }), "(no error)") << item;
  EXPECT_EQ(datasets.entries.size(), 1U) << item;
  return datasets.entries.empty() ? DataEntry{} : datasets.entries.front();
}

std::string mistakes_of(const ToolDatasets& datasets) {
  return user_error_of([&] { datasets.said.mistakes.throw_if_any(); });
}

bool tells(const ToolConfig& said, std::string_view text) {
  return std::ranges::any_of(
      said.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(DatasetList, FilesFoldersAndNames) {
  EXPECT_EQ(only("{path: tatsu-lab/alpaca, type: alpaca}"),
            (DataEntry{.path = "tatsu-lab/alpaca", .data_format = DataFormat::alpaca}));
  const DataEntry whole = only("{path: a/b, name: main, split: test, revision: v2}");
  EXPECT_EQ(whole.path, "a/b@v2");
  EXPECT_EQ(whole.config, "main");
  EXPECT_EQ(whole.split, "test");
  EXPECT_EQ(only("{path: a/b, split: train}").split, "");
  EXPECT_EQ(only("{path: json, data_files: d/x.jsonl, ds_type: json}").path, "d/x.jsonl");
  EXPECT_EQ(only("{path: a/b, data_dir: sub}").path, "hf://datasets/a/b/sub/**");
  EXPECT_EQ(only("a/b").path, "a/b");
  const ToolDatasets two = read({"{path: a/b, data_files: [x.jsonl, y.jsonl], type: completion}"});
  ASSERT_EQ(two.entries.size(), 2U);
  EXPECT_EQ(two.entries[1].path, "hf://datasets/a/b/y.jsonl");
  EXPECT_EQ(two.entries[1].data_format, DataFormat::text);
  EXPECT_EQ(read({"{path: a/b, name: [x, y]}"}).entries[1].config, "y");
  EXPECT_TRUE(contains(mistakes_of(read({"{path: 's3://b/x.jsonl'}"})), "on another machine"));
  EXPECT_TRUE(contains(mistakes_of(read({"{type: alpaca}"})),
                       "r.yaml:5:1: datasets[0]: has no path; say path: FILE"));
}

TEST(DatasetList, ConversationsOfUsualNamesNeedNoMapping) {
  const DataEntry sharegpt = only(
      "{path: a/b, type: chat_template, field_messages: conversations, "
      "message_property_mappings: {role: from, content: value}}");
  EXPECT_EQ(sharegpt, (DataEntry{.path = "a/b", .data_format = DataFormat::sharegpt}));
  EXPECT_EQ(only("{path: a/b, type: chat_template, message_field_role: from, "
                 "message_field_content: value}"),
            (DataEntry{.path = "a/b", .data_format = DataFormat::messages}));
  EXPECT_EQ(only("{path: a/b, type: sharegpt}").data_format, DataFormat::sharegpt);
  EXPECT_EQ(only("{path: a/b, type: chat_template, roles: {user: [human, user], assistant: [gpt, "
                 "assistant], system: [system]}, field_thinking: thinking, "
                 "template_thinking_key: thinking, message_field_training: train}")
                .roles,
            Texts{});
}

TEST(DatasetList, ConversationsOfOtherNames) {
  const DataEntry entry = only(
      "{path: a/b, type: chat_template, field_messages: dialog, message_property_mappings: "
      "{role: speaker, content: words}, field_tools: functions, message_field_training: "
      "learn, roles: {user: [customer], assistant: [agent, gpt]}, field_thinking: thought}");
  EXPECT_EQ(entry.data_format, DataFormat::messages);
  EXPECT_EQ(entry.fields, (Texts{"messages=dialog", R"(tools=["functions",""])",
                                 "messages.role=speaker", "messages.content=words",
                                 "messages.reasoning_content=thought", "messages.weight=learn"}));
  EXPECT_EQ(entry.roles, (Texts{"customer=user", "agent=assistant"}));
  EXPECT_TRUE(contains(mistakes_of(read({"{path: a, type: chat_template, roles: {boss: [x]}}"})),
                       "datasets[0].roles.boss: is no role of messages; expected system"));
}

TEST(DatasetList, KeysOfAllDataMustAgree) {
  const auto said = [](const Texts& items) { return read(items).said.settings; };
  const std::vector<Written> once =
      said({"{path: a, type: chat_template, chat_template: chatml, "
            "roles_to_train: [assistant], train_on_eos: turn}"});
  ASSERT_EQ(once.size(), 3U);
  EXPECT_EQ(once[0].name, "chat_template");
  EXPECT_EQ(once[0].items, Texts{"chatml"});
  const std::vector<Written> named = said({"{path: a, type: sharegpt, conversation: chatml}"});
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].items, Texts{"chatml"});
  const std::vector<Written> none = said({"{path: a, type: chat_template, roles_to_train: }"});
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none[0].items.empty() && none[0].is_list) << "those that say so themselves";
  const std::vector<Written> last =
      said({"{path: a, type: chat_template, roles_to_train: , train_on_eos: }"});
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].name, "train_on_turns");
  const std::vector<Written> own =
      said({"{path: a, type: chat_template, chat_template: jinja, chat_template_jinja: t.jinja}"});
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].items, Texts{"t.jinja"});
  EXPECT_TRUE(contains(mistakes_of(read({"{path: a, type: chat_template, chat_template: chatml}",
                                         "{path: b, type: chat_template, chat_template: zephyr}"})),
                       "datasets[1]: has another 'chat_template' than an entry before it"));
}

TEST(DatasetList, InstructionsInTheirOwnWords) {
  const DataEntry entry = only(
      "{path: a/b, type: {field_instruction: question, field_output: answer, format: '[INST] "
      "{instruction} [/INST]', no_input_format: '[INST] {instruction} [/INST]', system_format: "
      "''}}");
  EXPECT_EQ(entry.fields, (Texts{"prompt=[INST] {question} [/INST]", "completion=answer"}));
  // An input and a system text that a record may have; an empty system_prompt is none.
  EXPECT_EQ(only("{path: a, type: {system_prompt: '', field_input: ctx, format: 'Q: {instruction} "
                 "{input}', no_input_format: 'Q: {instruction}'}}")
                .fields,
            (Texts{R"(prompt=["{system}Q: {instruction} {ctx}","{system}Q: {instruction}",)"
                   R"("Q: {instruction} {ctx}","Q: {instruction}"])",
                   "completion=output"}));
  EXPECT_EQ(only("{path: a, type: {system_prompt: 'Be {brief}.', system_format: 'S: {system} ', "
                 "field_system: sys, format: '{instruction}|', no_input_format: '{instruction}|'}}")
                .fields[0],
            R"(prompt=["S: {sys} {instruction}|","S: Be {{brief}}. {instruction}|"])");
  EXPECT_TRUE(contains(mistakes_of(read({"{path: a, type: {format: '[INST] {instruction}'}}"})),
                       "datasets[0].type.format: does not have {input}"));
  EXPECT_TRUE(contains(mistakes_of(read({"{path: a, type: {field_instructions: q}}"})),
                       "did you mean 'field_instruction'?"));
}

TEST(DatasetList, TypesOfAxolotl) {
  for (const char* type : {"alpaca", "gpteacher", "alpaca_instruct.load"})
    EXPECT_EQ(only(std::string("{path: a, type: ") + type + "}").data_format, DataFormat::alpaca);
  EXPECT_EQ(only("{path: a, type: oasst}").fields,
            (Texts{"instruction=INSTRUCTION", "output=RESPONSE"}));
  EXPECT_EQ(
      only("{path: a, type: context_qa.load_v2}").fields,
      (Texts{"prompt=Context: {context}\nQuestion: {question}\n", "completion=Answer: {answer}"}));
  EXPECT_EQ(only("{path: a, type: alpaca_w_system.load_open_orca}").fields,
            (Texts{R"(prompt=["### System:\n{system_prompt}\n### Human:\n{question}\n### )"
                   R"(Assistant:\n","### Human:\n{question}\n### Assistant:\n"])",
                   "completion=response"}));
  EXPECT_EQ(only("{path: a, type: completion, field: chapter}").fields, Texts{"text=chapter"});
  EXPECT_EQ(only("{path: a, type: pretrain, text_column: body}").fields, Texts{"text=body"});
  EXPECT_EQ(only("{path: a, type: 'alpaca:chat'}").fields.size(), 2U);
  EXPECT_EQ(only("{path: a, type: }").data_format, DataFormat::automatic) << "of tokens";
  for (const auto& [type, why] : std::vector<std::pair<std::string, std::string>>{
           {"input_output", "give them as messages, with \"weight\": 0"},
           {"bradley_terry.chat_template", "an objective that is not built"},
           {"alpaca_chat.load_qa", "its words around a prompt are not built"},
           {"my.strategy", "code of other tools is not run"},
           {"alpacca", "(did you mean 'alpaca'?)"}})
    EXPECT_TRUE(contains(mistakes_of(read({"{path: a, type: " + type + "}"})), why)) << type;
}

TEST(DatasetList, PairsAndLabelsOfAxolotl) {
  EXPECT_EQ(only("{path: a, type: chatml.intel}", "dpo").fields, Texts{});
  EXPECT_EQ(only("{path: a, type: chatml.icr}", "dpo").fields, Texts{"question=input"});
  EXPECT_EQ(
      only("{path: a, type: llama3.argilla}", "dpo").fields,
      (Texts{"question=instruction", "chosen=chosen_response", "rejected=rejected_response"}));
  EXPECT_EQ(only("{path: a, type: chatml.argilla}", "kto").fields, Texts{"question=instruction"});
  const ToolDatasets ultra = read({"{path: a, type: llama3.ultra}"}, "dpo");
  ASSERT_EQ(ultra.said.settings.size(), 1U);
  EXPECT_EQ(ultra.said.settings[0].items, Texts{"llama-3"});
  EXPECT_EQ(only("{path: a, type: {field_prompt: q, field_chosen: good, field_rejected: bad, "
                 "prompt_format: 'Q: {prompt}'}}",
                 "dpo")
                .fields,
            (Texts{"prompt=Q: {q}", "chosen={good}", "rejected={bad}"}));
  EXPECT_EQ(only("{path: a, type: {field_prompt: q, field_completion: c, field_label: ok}}", "kto")
                .fields,
            (Texts{"prompt={q}", "completion={c}", "label=ok"}));
  EXPECT_EQ(only("{path: a, type: chat_template.default, field_messages: conversation, "
                 "field_chosen: good, field_rejected: bad, message_property_mappings: {role: who, "
                 "content: value}}",
                 "dpo")
                .fields,
            (Texts{"messages=conversation", "chosen=good", "rejected=bad", "messages.role=who",
                   "chosen.role=who", "rejected.role=who"}));
}

TEST(DatasetList, WhatChangesNothingIsNotedAndTheRestRefused) {
  const ToolDatasets datasets =
      read({"{path: a, type: alpaca, trust_remote_code: true, preprocess_shards: 4, ds_type: json}",
            "{path: b, type: alpaca, trust_remote_code: true}"});
  EXPECT_EQ(mistakes_of(datasets), "(no error)");
  EXPECT_TRUE(tells(datasets.said, "r.yaml: trust_remote_code: not used: code of data sets"));
  EXPECT_TRUE(tells(datasets.said, "ds_type: not used: the ending of a file's name"));
  const std::string error =
      mistakes_of(read({"{path: a, type: alpaca, shards: 4}",
                        "{path: b, field_mesages: x, drop_system_message: true}"}));
  for (const char* each :
       {"r.yaml:5:1: datasets[0].shards: is '4': say split: train[:COUNT]",
        "r.yaml:5:1: datasets[1].field_mesages: is unknown; did you mean 'field_messages'?",
        "datasets[1].drop_system_message: is 'true', but Snug takes false only"})
    EXPECT_TRUE(contains(error, each)) << error;
}

TEST(DatasetList, SplitsAreRead) {
  EXPECT_EQ(only("{path: a, split: 'train[:5_000]'}").limit, 5000);
  EXPECT_EQ(only("{path: a, split: 'test[:100%]'}"), (DataEntry{.path = "a", .split = "test"}));
  const ToolDatasets share = read({"{path: a, split: 'train[:20%]'}"});
  ASSERT_EQ(share.entries.size(), 1U);
  EXPECT_EQ(share.entries[0].repeats, 0.2);
  EXPECT_TRUE(tells(share.said, "split: train[:20%] is so many of the records in each epoch"));
  EXPECT_EQ(only("{path: a, split: train+test}").split, "train+test");
  for (const char* split : {"train[10:]", "train[95%:]", "train[:5]+test", "train[:", "train[0]"})
    EXPECT_TRUE(contains(mistakes_of(read({std::string("{path: a, split: '") + split + "'}"})),
                         "r.yaml:5:1: datasets[0].split: is '" + std::string(split)))
        << split;
}

TEST(DatasetList, MixturesOfTrl) {
  const ToolDatasets mix =
      read({"{path: a/b, split: train, columns: [prompt, completion], "
            "fraction: 0.75}",
            "{path: c/d, name: x, fraction: 0.25}"});
  ASSERT_EQ(mix.entries.size(), 2U) << mistakes_of(mix);
  EXPECT_EQ(mix.entries[0].weight, 0.75);
  EXPECT_EQ(mix.entries[0].fields, (Texts{"prompt=prompt", "completion=completion"}));
  EXPECT_EQ(mix.entries[1].config, "x");
  EXPECT_TRUE(
      contains(mistakes_of(read({"{path: a, fraction: none}"})), "expected a number above"));
}

TEST(DatasetNames, ThoseOfMsSwift) {
  EXPECT_EQ(entries_named("a/b#500"), (std::vector<DataEntry>{{.path = "a/b", .limit = 500}}));
  EXPECT_EQ(entries_named("hf::a/b:x/y#7"),
            (std::vector<DataEntry>{{.path = "a/b", .config = "x", .limit = 7},
                                    {.path = "a/b", .config = "y", .limit = 7}}));
  EXPECT_TRUE(contains(user_error_of([] { entries_named("a/b#many"); }), "expected NAME#COUNT"));
  const testing::TemporaryFolder folder;
  const std::string odd = folder.write("odd:name#1.jsonl", "").string();
  EXPECT_EQ(entries_named(odd), (std::vector<DataEntry>{{.path = odd}})) << "it is there";
}

ToolDatasets tuned(const std::string& item, bool is_evaluation = false) {
  return read_torchtune_list(tool_entries({"dataset", {item}, false, {kRecipe, 2, 1}}), kRecipe,
                             is_evaluation);
}

TEST(TorchtuneDataset, BuildersAreEntries) {
  const ToolDatasets alpaca =
      tuned("{_component_: torchtune.datasets.alpaca_cleaned_dataset, packed: false}");
  ASSERT_EQ(alpaca.entries.size(), 1U) << mistakes_of(alpaca);
  EXPECT_EQ(alpaca.entries[0],
            (DataEntry{.path = "yahma/alpaca-cleaned", .data_format = DataFormat::alpaca}));
  ASSERT_EQ(alpaca.said.settings.size(), 2U);
  EXPECT_EQ(alpaca.said.settings[1].name, "train_on_prompt") << "as torchtune has it";
  EXPECT_EQ(alpaca.said.settings[1].items, Texts{"true"});
  EXPECT_EQ(tuned("{_component_: torchtune.datasets.instruct_dataset, source: json, data_files: "
                  "d.json, column_map: {input: q, output: a}, split: train}")
                .entries[0],
            (DataEntry{.path = "d.json", .fields = {"question=q", "completion=a"}}));
  EXPECT_EQ(
      tuned("{_component_: torchtune.datasets.chat_dataset, source: a/b, "
            "conversation_column: dialogue, conversation_style: openai}")
          .entries[0],
      (DataEntry{
          .path = "a/b", .data_format = DataFormat::messages, .fields = {"messages=dialogue"}}));
  EXPECT_EQ(tuned("{_component_: torchtune.datasets.text_completion_dataset, source: text, "
                  "data_files: x.txt, column: body}",
                  true)
                .entries[0],
            (DataEntry{.path = "x.txt", .data_format = DataFormat::text, .fields = {"text=body"}}));
  for (const auto& [item, why] : std::vector<std::pair<std::string, std::string>>{
           {"{_component_: torchtune.datasets.chat_datset}", "(did you mean 'chat_dataset'?)"},
           {"{_component_: torchtune.datasets.chat_dataset}", "has no source"},
           {"{_component_: torchtune.datasets.chat_dataset, source: a, new_system_prompt: x}",
            "r.yaml:2:1: dataset.new_system_prompt: is 'x': a system message stands in"}})
    EXPECT_TRUE(contains(mistakes_of(tuned(item)), why)) << mistakes_of(tuned(item));
}

}  // namespace
}  // namespace snug::formats
