// LLaMA-Factory's dataset_info.json.
#include "formats/foreign/dataset_info.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;
using Texts = std::vector<std::string>;

// What a name stands for in a file of one name.
class Info {
 public:
  explicit Info(const std::string& description) {
    folder_.write("dataset_info.json", "{\n  \"one\": " + description + "\n}\n");
    const DatasetInfo info(folder_.path().string());
    entry = info.entry("one", false, said).value_or(DataEntry{});
    text = info.entry("one", true, said).value_or(DataEntry{});
    mistakes = user_error_of([&] { said.mistakes.throw_if_any(); });
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  DataEntry entry;
  DataEntry text;  // of stage: pt
  std::string mistakes;
  ToolConfig said;

 private:
  testing::TemporaryFolder folder_;
};

TEST(DatasetInfo, InstructionsAreConversations) {
  const Info usual(R"({"file_name": "a.json"})");
  EXPECT_EQ(usual.mistakes, "(no error)");
  EXPECT_EQ(usual.entry.path, usual.file("a.json"));
  EXPECT_EQ(
      usual.entry.fields,
      (Texts{R"(question=["{instruction}\n{input}","input","instruction"])", "completion=output"}));
  EXPECT_EQ(
      Info(R"({"hf_hub_url": "org/name", "columns": {"prompt": "question", "response":
                "answer", "system": "sys", "history": "history"}})")
          .entry,
      (DataEntry{.path = "org/name", .fields = {"completion=answer", R"(system=["sys",""])"}}));
}

TEST(DatasetInfo, TextsAreLearnedWhole) {
  const Info info(R"({"file_name": "c4.jsonl", "columns": {"prompt": "content"}})");
  EXPECT_EQ(info.entry.data_format, DataFormat::text) << "there is no answer";
  EXPECT_EQ(info.entry.fields, Texts{"text=content"});
  EXPECT_EQ(Info(R"({"file_name": "a.json"})").text.data_format, DataFormat::text);
}

TEST(DatasetInfo, ConversationsHaveTags) {
  const Info usual(R"({"file_name": "g.json", "formatting": "sharegpt", "columns": {"messages":
                      "conversations", "tools": "tools"}})");
  EXPECT_EQ(usual.entry,
            (DataEntry{.path = usual.file("g.json"), .data_format = DataFormat::sharegpt}));
  const Info other(R"({"hf_hub_url": "a/b", "subset": "en", "split": "train_sft", "folder": "x",
      "num_samples": 100, "formatting": "sharegpt", "columns": {"messages": "conversation"},
      "tags": {"role_tag": "who", "content_tag": "says", "user_tag": "me", "assistant_tag": "you",
               "observation_tag": "result", "function_tag": "call", "system_tag": "system"}})");
  EXPECT_EQ(other.entry.path, "hf://datasets/a/b/x/**");
  EXPECT_EQ(other.entry.config, "en");
  EXPECT_EQ(other.entry.split, "train_sft");
  EXPECT_EQ(other.entry.limit, 100);
  EXPECT_EQ(other.entry.fields,
            (Texts{"messages=conversation", "messages.role=who", "messages.content=says"}));
  EXPECT_EQ(other.entry.roles,
            (Texts{"me=user", "you=assistant", "result=tool", "call=function_call"}));
}

TEST(DatasetInfo, PairsAndLabels) {
  EXPECT_EQ(Info(R"({"hf_hub_url": "a/b", "ranking": true, "columns": {"prompt": "instruction",
                "chosen": "chosen", "rejected": "bad"}})")
                .entry.fields,
            (Texts{"question=instruction", "chosen=chosen", "rejected=bad"}));
  EXPECT_EQ(Info(R"({"hf_hub_url": "a/b", "ranking": true, "formatting": "sharegpt", "columns":
                {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"}})")
                .entry,
            (DataEntry{.path = "a/b"}));
  EXPECT_EQ(Info(R"({"hf_hub_url": "a/b", "formatting": "sharegpt", "columns": {"messages":
                "completion", "kto_tag": "good"}, "tags": {"role_tag": "role", "content_tag":
                "content", "user_tag": "user", "assistant_tag": "assistant"}})")
                .entry.fields,
            (Texts{"messages=completion", "label=good"}));
}

TEST(DatasetInfo, MistakesHaveTheirLines) {
  for (const auto& [description, error] : std::vector<std::pair<std::string, std::string>>{
           {R"({"file_nam": "a.json"})",
            "dataset_info.json:2:11: one.file_nam: is unknown; did you"},
           {R"({"script_url": "x"})", "one.script_url: is 'x': code of data sets is not run"},
           {R"({"formatting": "sharegpt"})", "has neither file_name nor hf_hub_url"},
           {R"({"file_name": "a", "formatting": "chatml"})", "has the formatting 'chatml'"},
           {R"({"file_name": "a", "num_samples": "few"})", "one.num_samples: is 'few'; expected a"},
           {R"({"file_name": "a", "columns": {"images": "i"}})", "only texts are trained on"}})
    EXPECT_TRUE(contains(Info(description).mistakes, error)) << Info(description).mistakes;
}

TEST(DatasetInfo, AnUnknownNameIsToldOfWithThoseThatThereAre) {
  const testing::TemporaryFolder folder;
  folder.write("dataset_info.json", R"({"identity": {"file_name": "i.json"}, "wiki": {}})");
  const DatasetInfo info(folder.path().string());
  ToolConfig said;
  const std::string error = user_error_of([&] { (void)info.entry("identiti", false, said); });
  EXPECT_TRUE(contains(error, "'identiti' is no data set of ")) << error;
  EXPECT_TRUE(contains(error, "(did you mean 'identity'?); it has identity, wiki")) << error;
  folder.write("dataset_info.json", "{");
  EXPECT_TRUE(contains(user_error_of([&] { DatasetInfo broken(folder.path().string()); }),
                       "dataset_info.json: not valid JSON"));
}

// LLaMA-Factory's own file, where it lies next to the repository.
TEST(DatasetInfo, AllNamesOfLlamaFactoryAreUnderstood) {
  const std::string folder = "../shared/data/instruct/llamafactory";
  if (!has_dataset_info(folder)) GTEST_SKIP() << folder << " is not there";
  std::ifstream file(folder + "/dataset_info.json");
  const DatasetInfo info(folder);
  int refused = 0;
  const nlohmann::json names = nlohmann::json::parse(file);
  for (const auto& [name, description] : names.items()) {
    ToolConfig said;
    const auto entry = info.entry(name, false, said);
    const std::string mistakes = user_error_of([&] { said.mistakes.throw_if_any(); });
    const std::string columns = description.value("columns", nlohmann::json()).dump();
    const bool has_media = columns.find("images") != std::string::npos ||
                           columns.find("videos") != std::string::npos ||
                           columns.find("audios") != std::string::npos;
    EXPECT_EQ(entry.has_value(), !has_media) << name << ": " << mistakes;
    refused += has_media ? 1 : 0;
  }
  EXPECT_EQ(refused, 13);
}

}  // namespace
}  // namespace snug::formats
