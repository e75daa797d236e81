#include "formats/folder/hf_folder.h"

#include "../base/temporary_folder.h"
#include "formats/adapter/lora_config.h"
#include "formats/folder/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

std::string open_error(const fs::path& path) {
  return user_error_of([&] { const HfFolder folder(path); });
}

TEST(HfFolder, ReadsConfigAndFindsFiles) {
  const TemporaryFolder temporary;
  temporary.write("m/config.json", R"({"model_type": "llama"})");
  temporary.write("m/tokenizer.model", "x");
  temporary.write("m/generation_config.json", R"({"eos_token_id": 2})");
  const HfFolder folder(temporary / "m/");
  EXPECT_EQ(folder.name(), "m");
  EXPECT_EQ(folder.config()["model_type"], "llama");
  EXPECT_EQ(folder.tokenizer_path().filename(), "tokenizer.model");
  EXPECT_EQ((*folder.optional_json("generation_config.json"))["eos_token_id"], 2);
  EXPECT_EQ(folder.optional_json("none.json"), std::nullopt);
  EXPECT_EQ(folder.file("none.json"), std::nullopt);
  EXPECT_TRUE(is_hf_folder(temporary / "m"));
  EXPECT_FALSE(is_hf_folder(temporary.path()));

  temporary.write("m/tokenizer.json", "{}");
  EXPECT_EQ(folder.tokenizer_path().filename(), "tokenizer.json") << "the fast form comes first";
}

TEST(HfFolder, MissingFolders) {
  EXPECT_TRUE(contains(open_error("org/no-such-model"), "download it first"));
  EXPECT_TRUE(contains(open_error("/no/such/folder/at/all"), "there is no such folder"));
}

TEST(HfFolder, NotAModelFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(open_error(folder.path()), "has no config.json"));
  EXPECT_TRUE(contains(open_error(folder.write("f", "x")), "this is a file; expected"));
  folder.write("adapter_config.json", "{}");
  EXPECT_TRUE(contains(open_error(folder.path()), "give it as adapter="));
}

TEST(HfFolder, BrokenConfig) {
  const TemporaryFolder folder;
  folder.write("config.json", "{\n\"a\": }");
  EXPECT_TRUE(contains(open_error(folder.path()), "config.json:2:6: not valid JSON"));
  folder.write("config.json", "[]");
  EXPECT_TRUE(contains(open_error(folder.path()), "must hold a JSON object"));
}

TEST(HfFolder, MissingTokenizer) {
  const TemporaryFolder temporary;
  temporary.write("config.json", "{}");
  const HfFolder folder(temporary.path());
  EXPECT_TRUE(contains(user_error_of([&] { folder.tokenizer_path(); }),
                       "has no tokenizer.json or tokenizer.model"));
}

TEST(HfFolder, CopiesTheCompanionFilesOnly) {
  const TemporaryFolder from;
  const TemporaryFolder to;
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
        "generation_config.json", "chat_template.jinja", "vocab.json", "merges.txt"})
    from.write(name, name);
  for (const char* name : {"config.json", "model.safetensors", "README.md", "sub/tokenizer.json",
                           "additional_chat_templates/README.md"})
    from.write(name, name);
  const std::string more = "additional_chat_templates/tool_use.jinja";
  from.write(more, more);
  EXPECT_EQ(companion_files(from.path()).size(), 9U);
  copy_companion_files(from.path(), to.path());
  EXPECT_EQ(to.count(), 9U) << "the folder of templates counts as one";
  EXPECT_EQ(base::read_text_file(to / "chat_template.jinja"), "chat_template.jinja");
  EXPECT_EQ(base::read_text_file(to / more), more);
  EXPECT_FALSE(std::filesystem::exists(to / "additional_chat_templates/README.md"));
  EXPECT_TRUE(companion_files("no/such/folder").empty());
}

// What a run wrote is in its folders.
TEST(HfFolder, ARunsFolderLeadsToItsResult) {
  const TemporaryFolder run;
  run.write("recipe.yaml", "seed: 1");
  run.write("run.log", "");
  EXPECT_TRUE(contains(open_error(run.path()), "it is the folder of a run that has not ended"));
  EXPECT_EQ(advice_on_run_folder(run / "no"), "");
  run.write("adapter/adapter_config.json", "{}");
  const std::string adapter = "give adapter=" + (run / "adapter").string();
  EXPECT_TRUE(contains(open_error(run.path()), adapter));
  EXPECT_TRUE(contains(user_error_of([&] { read_lora_config(run.path()); }), adapter));

  const TemporaryFolder full;
  full.write("model/config.json", "{}");
  EXPECT_TRUE(contains(open_error(full.path()), "give model=" + (full / "model").string()));
}

}  // namespace
}  // namespace snug::formats
