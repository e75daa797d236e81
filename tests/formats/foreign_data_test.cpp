// Whole recipes of other tools, whose words of the data become a recipe's.
#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;
using Entries = std::vector<DataEntry>;
using Texts = std::vector<std::string>;

Recipe taken(std::string_view yaml, const Texts& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

std::string error_of(std::string_view yaml) {
  return user_error_of([&] { taken(yaml); });
}

bool tells(const Recipe& recipe, std::string_view text) {
  return std::ranges::any_of(
      recipe.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(ForeignData, ListsOfAxolotlAreData) {
  const Recipe recipe = taken(
      "datasets:\n  - path: a/b\n    type: chat_template\n    field_messages: conversations\n"
      "    chat_template: chatml\n    roles_to_train:\n      - assistant\n"
      "  - path: c.jsonl\n    type:\n      field_instruction: q\n      field_output: a\n"
      "      format: |-\n        Q: {instruction}\n        A:\n"
      "      no_input_format: |-\n        Q: {instruction}\n        A:\n"
      "test_datasets:\n  - path: e.jsonl\n    split: train\n    type: alpaca\nadapter: lora\n");
  ASSERT_EQ(recipe.data.size(), 2U);
  EXPECT_EQ(recipe.data[0], (DataEntry{.path = "a/b", .data_format = DataFormat::sharegpt}));
  EXPECT_EQ(recipe.data[1].fields,
            (Texts{R"(prompt=["{system}Q: {q}\nA:","Q: {q}\nA:"])", "completion=a"}));
  EXPECT_EQ(recipe.eval_data, (Entries{{.path = "e.jsonl", .data_format = DataFormat::alpaca}}));
  EXPECT_EQ(recipe.chat_template, "chatml");
  EXPECT_EQ(recipe.method, Method::lora);
  EXPECT_EQ(taken(to_yaml(recipe)).data, recipe.data) << "it is printed as what it became";
  EXPECT_EQ(taken("pretraining_dataset: a/b\nmax_steps: 5").data,
            (Entries{{.path = "a/b", .data_format = DataFormat::text}}));
  EXPECT_EQ(taken("datasets: [{path: a}]", {"data=b"}).data, (Entries{{.path = "b"}}));
  EXPECT_EQ(taken("", {"datasets=[{path: a, type: alpaca}]"}).data,
            (Entries{{.path = "a", .data_format = DataFormat::alpaca}}));
}

// The two parts of one set, which differ in nothing else.
TEST(ForeignData, PartsOfOneSetAreValSetSize) {
  const char* const kTuned =
      "dataset:\n  _component_: torchtune.datasets.alpaca_cleaned_dataset\n  split: train[:95%]\n"
      "dataset_val:\n  _component_: torchtune.datasets.alpaca_cleaned_dataset\n"
      "  split: train[95%:]\n";
  const Recipe tuned =
      taken(std::string(kTuned) + "device: cpu\noptimizer: {_component_: torch.optim.AdamW}");
  EXPECT_EQ(tuned.backend, BackendName::cpu);
  EXPECT_TRUE(contains(error_of("device: cpu"), "it names a card to plan for"));
  EXPECT_EQ(tuned.val_set_size, 0.05);
  EXPECT_EQ(tuned.data,
            (Entries{{.path = "yahma/alpaca-cleaned", .data_format = DataFormat::alpaca}}));
  EXPECT_TRUE(tuned.eval_data.empty());
  EXPECT_TRUE(tuned.train_on_prompt);
  EXPECT_EQ(taken("datasets: [{path: a, split: 'train[:90%]'}]\n"
                  "test_datasets: [{path: a, split: 'train[90%:]'}]")
                .val_set_size,
            0.1);
  EXPECT_TRUE(contains(error_of("test_datasets: [{path: a, split: 'train[:5%]'}]\ndata: b"),
                       "'test_datasets' takes a share of an evaluation set"));
}

TEST(ForeignData, NamesOfTrlAreData) {
  const Recipe recipe = taken(
      "dataset_name: a/b\ndataset_config: c\ndataset_train_split: train_sft\n"
      "dataset_test_split: test_sft\neval_strategy: steps\neval_steps: 10\n");
  EXPECT_EQ(recipe.data, (Entries{{.path = "a/b", .config = "c", .split = "train_sft"}}));
  EXPECT_EQ(recipe.eval_data, (Entries{{.path = "a/b", .config = "c", .split = "test_sft"}}));
  EXPECT_EQ(recipe.eval_steps, 10);
  EXPECT_TRUE(tells(taken("dataset_name: a/b\ndataset_test_split: test"),
                    "'dataset_test_split' is not used: nothing says when to evaluate"));
  EXPECT_EQ(taken("dataset_name: a/b\ndataset_text_field: body").data[0].fields,
            Texts{"text=body"});
  EXPECT_EQ(taken("dataset_name: a/b", {"dataset_config=x"}).data[0].config, "")
      << "the command line says it as data.config=x";
  const Recipe mixed = taken(
      "datasets:\n  - path: a/b\n    columns: [messages]\n    fraction: 0.7\n"
      "  - path: c/d\n    fraction: 0.3\ntest_split_size: 0.1\n");
  EXPECT_EQ(mixed.data, (Entries{{.path = "a/b", .weight = 0.7, .fields = {"messages=messages"}},
                                 {.path = "c/d", .weight = 0.3}}));
  EXPECT_EQ(mixed.val_set_size, 0.1);
  const Recipe handbook = taken(
      "dataset_mixture:\n  datasets:\n    - id: a/b\n      config: main\n      weight: 0.5\n"
      "  seed: 0\n  test_split_size: 0.2\n");
  EXPECT_EQ(handbook.data, (Entries{{.path = "a/b", .config = "main", .repeats = 0.5}}));
  EXPECT_EQ(handbook.val_set_size, 0.2);
  const Recipe mixer = taken("dataset_mixer: {a/b.c: 1.0}\ndataset_splits: [train_sft, test_sft]");
  EXPECT_EQ(mixer.data, (Entries{{.path = "a/b.c", .split = "train_sft"}}));
  EXPECT_EQ(mixer.eval_data, (Entries{{.path = "a/b.c", .split = "test_sft"}}));
}

TEST(ForeignData, NamesOfMsSwiftAreData) {
  const Recipe recipe = taken(
      "dataset:\n  - a/b:x#500\n  - hf::c/d\nval_dataset: [e/f#10]\ninterleave_prob: [0.3, 0.7]\n"
      "streaming: true\ncolumns: {text1: query, text2: response}\n");
  EXPECT_EQ(recipe.data, (Entries{{.path = "a/b", .config = "x", .weight = 0.3, .limit = 500},
                                  {.path = "c/d", .weight = 0.7}}));
  EXPECT_EQ(recipe.eval_data, (Entries{{.path = "e/f", .limit = 10}}));
  EXPECT_EQ(recipe.fields, (Texts{"question=text1", "completion=text2"}));
  EXPECT_TRUE(tells(recipe, "'interleave_prob' gives weights: an epoch takes as many records"));
  EXPECT_TRUE(tells(recipe, "'streaming' (line 6): not used"));
  EXPECT_EQ(taken("split_dataset_ratio: 0.01\ndataset: a").val_set_size, 0.01);
  EXPECT_TRUE(contains(error_of("dataset: [a, b, c]\ninterleave_prob: [0.3, 0.7]"),
                       "r.yaml:2:1: 'interleave_prob' has 2 numbers for 3 data sets"));
}

TEST(ForeignData, ExamplesOfTransformersHoldOutAShare) {
  EXPECT_EQ(taken("train_file: a\nvalidation_split_percentage: 5").val_set_size, 0.05);
  EXPECT_TRUE(tells(taken("train_file: a\nvalidation_file: b\nvalidation_split_percentage: 5"),
                    "'validation_split_percentage' is not used: there is a set to evaluate on"));
  EXPECT_EQ(taken("train_file: a\nmax_train_samples: 7").data,
            (Entries{{.path = "a", .limit = 7}}));
  EXPECT_EQ(taken("dataset_name: a\ndataset_config_name: b\ndo_eval: true").eval_data,
            (Entries{{.path = "a", .config = "b", .split = "validation"}}));
}

TEST(ForeignData, TemplatesOfAxolotlAreFiles) {
  EXPECT_EQ(taken("chat_template: jinja\nchat_template_jinja: a.jinja").chat_template, "a.jinja");
  EXPECT_TRUE(contains(error_of("chat_template_jinja: '{% for m in messages %}'"),
                       "write it into a file, and say chat_template: FILE"));
}

// What would take less than was meant, or nothing, is told of.
TEST(ForeignData, CarelessWordsAreToldOf) {
  for (const auto& [yaml, error] : std::vector<std::pair<std::string, std::string>>{
           {"datasets: [{path: [a, b], type: alpaca}]",
            "r.yaml:1:1: datasets[0].path: is the list [a, b]; expected one value"},
           {"datasets: [[a, b]]", "datasets[0].path: is the list [a, b]"},
           {"datasets: [{path: a, type: completion, field: [x, y]}]", "datasets[0].field: is the"},
           {"datasets: [{path: a, type: {field_instruction: ''}}]", "is empty; expected the name"},
           {"datasets: [{path: a, type: alpaca}]\ndata: b", "are names of the same key"},
           {"datasets: [{path: a}, {path: a}]", "has the entry a twice"},
           {"datasets: [{path: a, weight: 2, split: 'train[:10%]'}]", "both weight and repeats"},
           {"dataset_name: [a, b]", "r.yaml:1:1: 'dataset_name' is the list [a, b]; expected one"},
           {"dataset_name: a\ndataset_train_split: 'train['", "'dataset_train_split' is 'train['"},
           {"dataset: a#0", "expected NAME#COUNT"},
           {"dataset: a\nmax_samples: 0", "'max_samples' is 0, so nothing would be left"},
           {"dataset: a\nmax_samples: many", "'max_samples' is 'many'"},
           {"dataset: [a, b]\ninterleave_probs: 0,1", "'interleave_probs' is 0, so nothing"},
           {"dataset: [a, b]\ninterleave_probs: a,b", "'interleave_probs' is 'a'"},
           {"dataset_mixer: {a: 0}", "'dataset_mixer.a' is 0, so nothing would be taken"},
           {"dataset: a\ncolumns: {x: why}", "'columns.x' is 'why', which is no field"},
           {"dataset_mixture: {dataset: [a]}", "'dataset_mixture.dataset' is unknown"},
           {"validation_split_percentage: 5\nval_set_size: 3", "are names of the same key"},
           {"datasets: [{path: a, type: chat_template, chat_template: chatml}]\n"
            "chat_template: zephyr",
            "'chat_template' is given twice"}})
    EXPECT_TRUE(contains(error_of(yaml), error)) << yaml << "\n" << error_of(yaml);
}

// A folder with LLaMA-Factory's file of names.
class LlamaFactoryData : public ::testing::Test {
 protected:
  LlamaFactoryData() {
    folder_.write("dataset_info.json",
                  R"({"one": {"file_name": "one.json"},
                      "two": {"hf_hub_url": "a/b", "formatting": "sharegpt"},
                      "c4": {"file_name": "c4.jsonl", "columns": {"prompt": "text"}}})");
  }
  std::string yaml(const std::string& rest) const {
    return "dataset_dir: " + folder_.path().string() + "\n" + rest;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(LlamaFactoryData, NamesAreLookedUp) {
  const Recipe recipe =
      taken(yaml("stage: sft\ndataset: one, two\neval_dataset: two\nmax_samples: 100\ntemplate: "
                 "qwen3_nothink\nmix_strategy: interleave_under\ninterleave_probs: 0.2,0.8\n"));
  ASSERT_EQ(recipe.data.size(), 2U);
  EXPECT_EQ(recipe.data[0].path, (folder_.path() / "one.json").string());
  EXPECT_EQ(recipe.data[0].weight, 0.2);
  EXPECT_EQ(
      recipe.data[1],
      (DataEntry{.path = "a/b", .weight = 0.8, .limit = 100, .data_format = DataFormat::sharegpt}));
  ASSERT_EQ(recipe.eval_data.size(), 1U);
  EXPECT_EQ(recipe.eval_data[0].name, "two");
  EXPECT_EQ(recipe.eval_data[0].limit, 100);
  EXPECT_EQ(recipe.chat_template, "") << "the model's own";
  EXPECT_TRUE(
      tells(recipe, "'template: qwen3_nothink' is the chat template of the model's folder"));
}

TEST_F(LlamaFactoryData, TextsAreLearnedInStagePt) {
  const Recipe recipe = taken(yaml("stage: pt\ndataset: c4\ntemplate: default\n"));
  EXPECT_EQ(recipe.objective, Objective::next_token);
  EXPECT_EQ(recipe.data[0].data_format, DataFormat::text);
  EXPECT_TRUE(tells(recipe, "'template' is not used: texts are learned as they are"));
  EXPECT_EQ(taken(yaml("stage: pt\ndataset: one")).data[0].fields.size(), 1U);
}

TEST_F(LlamaFactoryData, WhatIsNotThereIsToldOf) {
  EXPECT_TRUE(contains(error_of(yaml("dataset: one,thre")), "(did you mean 'one'?)") ||
              contains(error_of(yaml("dataset: one,thre")), "'thre' is no data set of "))
      << error_of(yaml("dataset: one,thre"));
  EXPECT_TRUE(contains(error_of("dataset_dir: /nowhere\ndataset: one"),
                       "there is no /nowhere/dataset_info.json"));
  EXPECT_TRUE(contains(error_of("dataset_dir: REMOTE:a/b\ndataset: one"), "on another machine"));
  EXPECT_TRUE(contains(error_of(yaml("dataset: one\nmix_strategy: blend")),
                       "'mix_strategy' is 'blend'; expected concat"));
}

}  // namespace
}  // namespace snug::formats
