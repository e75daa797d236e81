#include "formats/data/data_files.h"

#include "../base/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

using Names = std::vector<std::string>;

// A folder of data, and next to it an empty cache of the hub and a home.
class DataOf : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HF_HUB_CACHE", "HF_DATASETS_CACHE", "HOME"}) {
      const char* value = ::getenv(name);
      before_.emplace_back(name, value == nullptr ? "" : value);
      ::setenv(name, (other_ / name).c_str(), 1);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  }

  void write(const Names& names) const {
    for (const std::string& name : names) folder_.write(name, "");
  }
  DataEntry entry(const std::string& name) const {
    return {.path = (folder_ / name).lexically_normal().string()};
  }
  // The names of an entry's files below the folder.
  Names files_of(const DataEntry& entry, DataUse use = DataUse::training) const {
    Names names;
    for (const std::string& file : data_files(entry, use).files)
      names.push_back(fs::path(file).lexically_relative(folder_.path()).string());
    return names;
  }
  Names files_of(const std::string& name) const { return files_of(entry(name)); }
  std::string error_of(const DataEntry& entry, DataUse use = DataUse::training) const {
    return user_error_of([&] { data_files(entry, use); });
  }
  std::string error_at(const std::string& name) const { return error_of(entry(name)); }
  std::string notes_of(const std::string& name) const {
    return fmt::format("{}", fmt::join(data_files(entry(name)).notes, "; "));
  }

  // A file of a data set in the cache of the hub.
  void write_hub(const std::string& name, const std::string& text = "") const {
    other_.write("HF_HUB_CACHE/datasets--org--set/refs/main", "c0ffee");
    other_.write("HF_HUB_CACHE/datasets--org--set/snapshots/c0ffee/" + name, text);
  }
  Names hub_files_of(const DataEntry& entry) const {
    Names names;
    for (const std::string& file : data_files(entry).files)
      names.push_back(
          fs::path(file)
              .lexically_relative(other_ / "HF_HUB_CACHE/datasets--org--set/snapshots/c0ffee")
              .string());
    return names;
  }

  TemporaryFolder folder_;
  TemporaryFolder other_;
  std::vector<std::pair<const char*, std::string>> before_;
};

TEST_F(DataOf, AFileIsTheFile) {
  write({"a.jsonl", "b[1].jsonl", "b1.jsonl", "x.zip"});
  EXPECT_EQ(files_of("a.jsonl"), Names{"a.jsonl"});
  EXPECT_EQ(files_of("b[1].jsonl"), Names{"b[1].jsonl"}) << "before the pattern";
  EXPECT_EQ(files_of("x.zip"), Names{"x.zip"}) << "its reader says what to do";
  EXPECT_EQ(data_files(entry("a.jsonl")).description, entry("a.jsonl").path);
  DataEntry with_split = entry("a.jsonl");
  with_split.split = "train";
  with_split.config = "default";
  EXPECT_EQ(files_of(with_split), Names{"a.jsonl"}) << "as other tools' recipes say";
  with_split.split = "test";
  EXPECT_TRUE(contains(error_of(with_split), "is a file, which has no split \"test\""));
  with_split.split = "";
  with_split.config = "main";
  EXPECT_TRUE(contains(error_of(with_split), "has no configuration \"main\""));
  fs::create_symlink("a.jsonl", folder_ / "link.jsonl");
  EXPECT_EQ(files_of("link.jsonl"), Names{"link.jsonl"});
}

TEST_F(DataOf, TheHomeFolderIsFound) {
  other_.write("HOME/d/a.jsonl", "");
  const std::string file = (other_ / "HOME/d/a.jsonl").string();
  EXPECT_EQ(data_files({.path = "~/d/a.jsonl"}).files, Names{file});
  EXPECT_EQ(data_files({.path = "~/d/*.jsonl"}).files, Names{file});
  EXPECT_EQ(data_files({.path = "file://" + file}).files, Names{file});
  EXPECT_TRUE(is_data_there("~/d/a.jsonl"));
  EXPECT_TRUE(contains(error_of({.path = "~me/a.jsonl"}), "write the path out"));
  EXPECT_TRUE(contains(error_of({.path = "$HOME/a.jsonl"}), "write the path out"));
}

TEST(DataName, IsThatOfTheEntryOrItsPath) {
  for (const auto& [path, name] :
       std::vector<std::pair<std::string, std::string>>{{"data/eval.jsonl.gz", "eval"},
                                                        {"data/v1.5/", "v1.5"},
                                                        {"data/*.jsonl", "data"},
                                                        {"openai/gsm8k@main", "gsm8k"},
                                                        {"hf://datasets/a/b.c/x/*.parquet", "x"},
                                                        {"org/set-1.2", "set-1.2"}})
    EXPECT_EQ(data_name({.path = path}), name);
  EXPECT_EQ(data_name({.path = "a.jsonl", .name = "b"}), "b");
}

TEST_F(DataOf, APatternIsSorted) {
  write({"p/b.jsonl", "p/a.jsonl", "p/.h.jsonl", "p/c/d.jsonl", "p/Z.jsonl", "p/n.md", "p/n.txt"});
  EXPECT_EQ(files_of("p/*.jsonl"), (Names{"p/Z.jsonl", "p/a.jsonl", "p/b.jsonl"}));
  EXPECT_EQ(files_of("p/**/*.jsonl"),
            (Names{"p/Z.jsonl", "p/a.jsonl", "p/b.jsonl", "p/c/d.jsonl"}));
  EXPECT_EQ(files_of("*/[a-b].jsonl"), (Names{"p/a.jsonl", "p/b.jsonl"}));
  EXPECT_EQ(files_of("p/?.jsonl").size(), 3U);
  EXPECT_EQ(files_of("p/.*.jsonl"), Names{"p/.h.jsonl"});
  EXPECT_EQ(files_of("p/*").size(), 3U);
  EXPECT_EQ(notes_of("p/*"), fmt::format("of another kind, and left out: {0}/p/n.txt; no data, and "
                                         "left out: {0}/p/n.md",
                                         folder_.path().string()));
  EXPECT_TRUE(contains(error_at("p/*.csv"), "fits no file"));
  EXPECT_TRUE(contains(error_at("q/*.csv"), "fits no file"));
  EXPECT_TRUE(contains(error_at("p/*.md"), "of which none is read"));
  EXPECT_TRUE(contains(error_at("p/{a,b}.jsonl"), "give a list of paths"));
  EXPECT_TRUE(contains(error_at("p/**.jsonl"), "**/*.jsonl"));
  EXPECT_TRUE(is_data_there((folder_ / "p/*.jsonl").string()));
  EXPECT_FALSE(is_data_there((folder_ / "p/*.csv").string()));
}

TEST_F(DataOf, AFolderIsThatOfTheSplit) {
  write({"d/train.jsonl", "d/dev.jsonl", "d/test.jsonl", "d/other.jsonl", "d/LICENSE"});
  EXPECT_EQ(files_of("d"), Names{"d/train.jsonl"});
  EXPECT_EQ(files_of("d/"), Names{"d/train.jsonl"});
  EXPECT_EQ(notes_of("d"),
            "of no split, and left out: other.jsonl; no data, and left out: LICENSE");
  DataEntry part = entry("d");
  EXPECT_EQ(data_files(part).description, part.path + ", split train");
  EXPECT_EQ(files_of(part, DataUse::evaluation), Names{"d/dev.jsonl"});
  part.split = "train+test";
  EXPECT_EQ(files_of(part), (Names{"d/train.jsonl", "d/test.jsonl"}));
  part.split = "all";
  EXPECT_EQ(files_of(part).size(), 3U);
  part.split = "tests";
  EXPECT_TRUE(contains(error_of(part), "there are train, validation, test; did you mean test?"));
  part.split = "";
  part.config = "main";
  EXPECT_TRUE(contains(error_of(part), "leave config out"));
}

TEST_F(DataOf, AFolderWithoutTheSplitIsNotGuessed) {
  write({"d/test.jsonl", "d/val.jsonl", "e/eval.jsonl", "f/a.jsonl"});
  EXPECT_TRUE(contains(error_at("d"), "has no split \"train\"; there are validation, test"));
  EXPECT_EQ(files_of(entry("e"), DataUse::evaluation), Names{"e/eval.jsonl"});
  EXPECT_EQ(files_of(entry("f"), DataUse::evaluation), Names{"f/a.jsonl"}) << "the only one";
}

TEST_F(DataOf, AFolderOfFoldersIsTakenByAConfig) {
  write({"d/main/train.jsonl", "d/extra/train.jsonl"});
  DataEntry part = entry("d");
  part.config = "extra";
  EXPECT_EQ(files_of(part), Names{"d/extra/train.jsonl"});
  EXPECT_EQ(data_files(part).description, part.path + ", configuration extra, split train");
}

TEST_F(DataOf, ALinkedFolderIsThatOfTheFolder) {
  write({"d/a.jsonl", "e/b.jsonl"});
  fs::create_directory_symlink("../e", folder_ / "d/e");
  fs::create_directory_symlink("..", folder_ / "d/up");
  EXPECT_EQ(files_of("e/../d/e"), Names{"d/e/b.jsonl"});
  EXPECT_EQ(files_of("d"), (Names{"d/a.jsonl", "d/e/b.jsonl"}));
}

TEST_F(DataOf, ARunIsNoData) {
  write({"d/a.jsonl", "d/out/metrics.jsonl", "d/out/.snug_run.json"});
  EXPECT_EQ(files_of("d"), Names{"d/a.jsonl"});
  EXPECT_EQ(files_of("d/**"), Names{"d/a.jsonl"});
  EXPECT_TRUE(contains(error_at("d/out"), "is the output_dir of a run"));
}

TEST_F(DataOf, ASplitHasALimit) {
  write({"a.jsonl"});
  DataEntry first = entry("a.jsonl");
  EXPECT_EQ(data_files(first).limit, 0);
  first.split = "train[:1000]";
  EXPECT_EQ(data_files(first).limit, 1000);
  first.limit = 10;
  EXPECT_EQ(data_files(first).limit, 10);
  for (const char* split : {"train[:10%]", "train[10:]", "train[5:9]", "train[:-3]", "train[:0]",
                            "train[:5]+test", "test+train[:5]", "train[", "train[:5"}) {
    first.split = split;
    EXPECT_TRUE(contains(error_of(first), "asks for a part of the records. Give split: tr"))
        << split;
    EXPECT_TRUE(contains(error_of(first), "val_set_size=0.1")) << split;
  }
  first.split = "train+";
  EXPECT_EQ(files_of(first).size(), 1U);
  first.split = "+train";
  EXPECT_TRUE(contains(error_of(first), "names a split that is empty"));
}

TEST_F(DataOf, AMisspeltPathIsSuggested) {
  write({"data/train.jsonl", "data/heldout.jsonl", "data/x.md"});
  const std::string there = (folder_ / "data").string();
  for (const auto& [written, meant] :
       std::vector<std::pair<std::string, std::string>>{{"data/tran.jsonl", "/train.jsonl"},
                                                        {"data/train", "/train.jsonl"},
                                                        {"data/train.json", "/train.jsonl"},
                                                        {"dta/train.jsonl", ""},
                                                        {"data/held_out.jsonl", "/heldout.jsonl"}})
    EXPECT_TRUE(contains(error_at(written), "does not exist; did you mean " + there + meant + "?"))
        << written << ": " << error_at(written);
  EXPECT_FALSE(contains(error_at("data/quite/else.jsonl"), "did you mean"));
  EXPECT_TRUE(contains(error_of({.path = ""}), "empty path"));
}

TEST_F(DataOf, AFolderWithoutAnyIsRefused) {
  fs::create_directories(folder_ / "empty");
  write({"zip/a.zip", "zip/README.md", "model/config.json", "model/model.safetensors",
         "model/tokenizer.json", "saved/data-00000-of-00001.arrow", "saved/state.json",
         "saved/dataset_info.json", "xlsx/a.xlsx", "xlsx/b.XLSX"});
  EXPECT_TRUE(contains(error_at("empty"), "has no file that is read"));
  EXPECT_TRUE(contains(error_at("empty"), "it is empty"));
  EXPECT_TRUE(contains(error_at("zip"), "it holds 1 .md, 1 .zip; unpack the archives"));
  EXPECT_TRUE(contains(error_at("xlsx"), "it holds 1 .XLSX, 1 .xlsx"));
  EXPECT_TRUE(contains(error_at("model"), "it looks like the folder of a model"));
  EXPECT_TRUE(contains(error_at("saved"), "load_from_disk('" + entry("saved").path + "')"));
}

TEST_F(DataOf, AFileThatWasNotFetchedIsRefused) {
  folder_.write("d/a.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  EXPECT_TRUE(contains(error_at("d"), "git lfs pull"));
  EXPECT_TRUE(contains(error_at("d/a.jsonl"), "git lfs pull"));
  fs::remove(folder_ / "d/a.jsonl");
  fs::create_symlink("gone", folder_ / "d/a.jsonl");
  EXPECT_TRUE(contains(error_at("d"), "is a link that leads nowhere; mend or remove it"));
}

TEST_F(DataOf, AUrlIsFetchedByTheUser) {
  for (const auto& [url, advice] : std::vector<std::pair<std::string, std::string>>{
           {"https://x.org/a.jsonl", "curl -LO 'https://x.org/a.jsonl'"},
           {"https://huggingface.co/datasets/a/b",
            "'hf download --repo-type dataset a/b', and give a/b as data"},
           {"huggingface.co/datasets/a/b?x=y",
            "'hf download --repo-type dataset a/b', and give a/b as data"},
           {"https://hf.co/datasets/a/b/viewer/main/train", "give a/b as data"},
           {"https://huggingface.co/datasets/a/b/resolve/main/d/x.jsonl?download=true",
            "(or hf://datasets/a/b/d/x.jsonl for this file)"},
           {"https://huggingface.co/datasets/a/b/blob/v1/x.jsonl",
            "dataset a/b --revision v1', and give a/b@v1 as data (or hf://datasets/a/b@v1/x.jsonl"},
           {"s3://bucket/a.jsonl", "copy it here"},
           {"hf://datasets/a/b", "'hf download --repo-type dataset a/b'"}})
    EXPECT_TRUE(contains(error_of({.path = url}), advice)) << url;
}

TEST_F(DataOf, ASetOfTheHubIsInItsCache) {
  write_hub("README.md", "---\nlicense: mit\n---\n");
  for (const char* name : {"data/train-00000-of-00002.parquet", "data/test-00000-of-00001.parquet"})
    write_hub(name);
  const DataFiles found = data_files({.path = "org/set"});
  EXPECT_EQ(found.description, "org/set, split train, commit c0ffee");
  EXPECT_EQ(found.notes, (Names{"no data, and left out: README.md",
                                "only 1 of the 2 parts of data/train are there"}));
  EXPECT_EQ(hub_files_of({.path = "org/set", .split = "test"}),
            Names{"data/test-00000-of-00001.parquet"});
  EXPECT_EQ(hub_files_of({.path = "org/set@c0ffee"}).size(), 1U);
  EXPECT_EQ(hub_files_of({.path = "hf://datasets/org/set"}).size(), 1U);
  EXPECT_EQ(hub_files_of({.path = "hf://datasets/org/set@c0ffee/data/*.parquet"}).size(), 2U);
  EXPECT_EQ(hub_files_of({.path = "hf://datasets/org/set/data/test-00000-of-00001.parquet"}).size(),
            1U);
  EXPECT_TRUE(contains(error_of({.path = "hf://datasets/org/set/x/*.json"}),
                       "fits no file of it in the cache"));
  EXPECT_TRUE(contains(error_of({.path = "org/set@v2"}), "other revisions of it: main. Give one"));
  EXPECT_TRUE(
      contains(error_of({.path = "org/gone"}), "'hf download --repo-type dataset org/gone'"));
  EXPECT_FALSE(contains(error_of({.path = "org/gone.jsonl"}), "hf download"));
  other_.write("HF_DATASETS_CACHE/org___gone/default/x.arrow", "");
  EXPECT_TRUE(contains(error_of({.path = "org/Gone"}), "are Arrow files, which are not read"));
  EXPECT_TRUE(is_data_in_hub_cache("org/set"));
  EXPECT_FALSE(is_data_in_hub_cache("org/gone"));
  other_.write("HF_HUB_CACHE/datasets--old/refs/main", "1");
  other_.write("HF_HUB_CACHE/datasets--old/snapshots/1/train.csv", "");
  EXPECT_EQ(data_files({.path = "old"}).description, "old, split train, commit 1");
}

TEST_F(DataOf, AFolderComesBeforeThatOfASetOfTheHub) {
  write_hub("train.jsonl");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_EQ(data_files({.path = "org/set"}).files.size(), 1U);
  folder_.write("org/set/a.jsonl", "");
  EXPECT_EQ(data_files({.path = "org/set"}).files, Names{"org/set/a.jsonl"});
  fs::current_path(before);
}

constexpr const char* kCard =
    "---\nconfigs:\n- config_name: main\n  sep: ';'\n  data_files:\n  - split: train\n    path: "
    "main/train-*\n"
    "  - split: test\n    path: main/test-*\n- config_name: socratic\n  data_files:\n"
    "  - split: train\n    path: [https://x.org/a.json]\n---\n";

TEST_F(DataOf, ASetOfTheHubIsWhatItsCardNames) {
  write_hub("README.md", kCard);
  write_hub("main/train-00000-of-00001.parquet");
  EXPECT_TRUE(contains(error_of({.path = "org/set"}),
                       "has several configurations, and none is the default: give one of main, "
                       "socratic as config"));
  const DataFiles found = data_files({.path = "org/set", .config = "main"});
  EXPECT_EQ(found.description, "org/set, configuration main, split train, commit c0ffee");
  EXPECT_EQ(found.notes, Names{"read without what the card says of: sep"});
  EXPECT_TRUE(contains(error_of({.path = "org/set", .config = "mian"}),
                       "there are main, socratic; did you mean main?"));
  EXPECT_TRUE(contains(error_of({.path = "org/set", .config = "main", .split = "test"}),
                       "so it was not downloaded; fetch it with 'hf download --repo-type dataset "
                       "org/set --include \"main/test-*\"'"));
  EXPECT_TRUE(contains(error_of({.path = "org/set", .config = "socratic"}),
                       "from https://x.org/a.json, and Snug downloads nothing"));
}

TEST_F(DataOf, ASetWithoutItsCardIsNotMixed) {
  for (const char* name :
       {"main/train-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet"})
    write_hub(name);
  EXPECT_TRUE(contains(error_of({.path = "org/set"}),
                       "has files in main, socratic, and its README.md, which says which of them "
                       "belong together, was not downloaded; fetch it with 'hf download "
                       "--repo-type dataset org/set README.md'"));
  EXPECT_EQ(hub_files_of({.path = "org/set", .config = "main"}),
            Names{"main/train-00000-of-00001.parquet"});
}

TEST_F(DataOf, AProgramIsRefused) {
  write_hub("README.md");
  EXPECT_TRUE(contains(error_of({.path = "org/set"}),
                       "fetch all of it with 'hf download --repo-type dataset org/set'"));
  write_hub("set.py");
  EXPECT_TRUE(contains(error_of({.path = "org/set"}),
                       "'hf download --repo-type dataset org/set --revision refs/convert/parquet', "
                       "and then org/set@refs/convert/parquet as data"));
  other_.write("HF_HUB_CACHE/datasets--org--set/refs/refs/convert/parquet", "beef");
  for (const char* name :
       {"a/train/0000.parquet", "a/partial-train_sft/0000.parquet", "b/train/0000.parquet"})
    other_.write(std::string("HF_HUB_CACHE/datasets--org--set/snapshots/beef/") + name, "");
  DataEntry part{.path = "org/set@refs/convert/parquet", .config = "a", .split = "train_sft"};
  EXPECT_EQ(data_files(part).description,
            "org/set@refs/convert/parquet, configuration a, split train_sft, commit beef");
  part.path = "hf://datasets/org/set@refs/convert/parquet";
  EXPECT_EQ(data_files(part).files.size(), 1U);
  const fs::path snapshot = other_ / "HF_HUB_CACHE/datasets--org--set/snapshots/c0ffee";
  fs::create_symlink("../../blobs/gone", snapshot / "train.jsonl");
  EXPECT_TRUE(contains(error_of({.path = "org/set"}),
                       "is a link that leads nowhere; fetch it with 'hf download --repo-type"));
}

TEST_F(DataOf, ABrokenCardIsRefusedWithItsLine) {
  write({"d/a.jsonl"});
  const auto card_error = [&](const std::string& yaml) {
    folder_.write("d/README.md", "---\n" + yaml + "\n---\ntext\n");
    return error_at("d");
  };
  EXPECT_TRUE(contains(card_error("a: [1"), "README.md:"));
  EXPECT_TRUE(contains(card_error("a: [1"), "no valid YAML"));
  EXPECT_TRUE(contains(card_error("license: mit\nconfigs: main"), "README.md:3:10: "));
  EXPECT_TRUE(contains(card_error("configs:\n- data_files: a"), "has no 'config_name'"));
  EXPECT_TRUE(contains(card_error("configs:\n- config_name: a\n  data_files:\n  - path: a.jsonl"),
                       "README.md:5:5: "));
  EXPECT_TRUE(contains(card_error("configs:\n- config_name: a\n  data_files: ../../x.jsonl"),
                       "but there is no such file"));
  folder_.write("d/README.md", "---\nA line, and no YAML: [\n");
  EXPECT_EQ(files_of("d"), Names{"d/a.jsonl"});
  folder_.write("d/README.md", "# Heading\n\n---\na: [\n---\n");
  EXPECT_EQ(files_of("d"), Names{"d/a.jsonl"});
}

}  // namespace
}  // namespace snug::formats
