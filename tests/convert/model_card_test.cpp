// The card of a merged, exported or imported folder: what the hub reads of it, what people read,
// and what must not be in it.
#include "convert/folder/model_card.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <string>

#include "../base/temporary_folder.h"
#include "convert/folder/run_record.h"
#include "formats/folder/file_list.h"
#include "formats/folder/front_matter.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A base model, and the folder of a run with its adapter.
struct Folders {
  testing::TemporaryFolder folder;

  fs::path base() const { return folder / "private/models/smol"; }
  fs::path adapter() const { return folder / "private/runs/shop/adapter"; }

  void write_base(std::string_view readme) const {
    folder.write("private/models/smol/README.md", readme);
  }
  void write_run() const {
    folder.write("private/runs/shop/adapter/adapter_config.json",
                 R"({"base_model_name_or_path": "Some/Model-1B", "peft_type": "LORA", "r": 16})");
    folder.write(
        "private/runs/shop/recipe.yaml",
        "model: " + base().string() + "\nmethod: lora\nlora_r: 16\nlearning_rate: 0.003\ndata: [" +
            (folder / "private/secret/orders.jsonl").string() +
            ", org/open-set]\noutput_dir: " + (folder / "private/runs/shop").string() + "\n");
    folder.write("private/runs/shop/plan.json",
                 R"({"device": {"peak_bytes": 1048576}, "resident": {"peak_bytes": 3145728}})");
    folder.write("private/runs/shop/measured.json",
                 R"({"device": {"peak_bytes": 1048576}, "resident": {"peak_bytes": 2097152},
                     "tokens_per_second": 612.3, "data": [{"name": ")" +
                     (folder / "private/secret/orders.jsonl").string() +
                     R"(", "use": "training", "records": 228, "documents": 228, "tokens": 14015,
                     "trained_tokens": 3968}]})");
    folder.write(
        "private/runs/shop/metrics.jsonl",
        "{\"step\":1,\"epoch\":0.1,\"loss\":4.25}\n{\"step\":86,\"epoch\":3.0,\"loss\":0.5}"
        "\n{\"step\":86,\"eval_loss\":0.75}\n");
  }
  CardInputs inputs() const {
    return {.title = "shop-merged",
            .model = base(),
            .model_name = base().string(),
            .adapter = adapter(),
            .types = {"bf16"}};
  }
};

YAML::Node yaml_of(const std::string& card) { return YAML::Load(formats::front_matter(card)); }

TEST(ModelCard, HasWhatTheHubReads) {
  const Folders folders;
  folders.write_base("---\nlicense: apache-2.0\nlanguage:\n- en\n- no\n---\n# Smol\n");
  folders.write_run();
  const YAML::Node yaml = yaml_of(model_card(folders.inputs()));
  EXPECT_EQ(yaml["library_name"].as<std::string>(), "transformers");
  EXPECT_EQ(yaml["base_model"].as<std::string>(), "Some/Model-1B");
  EXPECT_EQ(yaml["base_model_relation"].as<std::string>(), "finetune");
  EXPECT_EQ(yaml["license"].as<std::string>(), "apache-2.0");
  EXPECT_EQ(yaml["pipeline_tag"].as<std::string>(), "text-generation");
  EXPECT_EQ(yaml["language"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"en", "no"}));
  EXPECT_EQ(yaml["datasets"].as<std::vector<std::string>>(),
            std::vector<std::string>{"org/open-set"});
  EXPECT_EQ(yaml["tags"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"snug", "lora", "sft"}));
}

TEST(ModelCard, TellsTheRunAndTheDrift) {
  const Folders folders;
  folders.write_base("---\nlicense: apache-2.0\n---\n");
  folders.write_run();
  CardInputs inputs = folders.inputs();
  inputs.drifts = {{.variant = "into the model in 16 bits",
                    .is_kept = true,
                    .tokens = 1024,
                    .mean_kl = 0.00021,
                    .most_kl = 0.0043,
                    .mean_difference = 0.0052,
                    .most_difference = 0.061,
                    .equal_greedy = 0.9951}};
  const std::string card = model_card(inputs);
  for (const char* part :
       {"# shop-merged\n",
        "[Some/Model-1B](https://huggingface.co/Some/Model-1B) with a LoRA adapter of rank 16 "
        "merged into its weights (bf16)",
        "learning_rate: 0.003", "orders.jsonl | training | 228 | 228 | 14015 | 3968 |",
        "86 steps, 3.00 epochs. Loss 4.2500 in the first step, 0.5000 in the last; 0.7500 on the "
        "evaluation data.",
        "| memory of the process, at its peak | 3.0 MiB | 2.0 MiB |",
        "| tokens per second |  | 612 |", "on the same 1024 tokens",
        "| into the model in 16 bits | 0.00021 | 0.0043 | 0.0052 | 0.061 | 99.51 % |",
        "AutoModelForCausalLM.from_pretrained", "snug generate model=FOLDER", "Made with Snug "}) {
    EXPECT_TRUE(has(card, part));
  }
  EXPECT_FALSE(has(card, "warmup_ratio"));  // it has its default
}

TEST(ModelCard, NamesNoPlaceOfTheMachine) {
  const Folders folders;
  folders.write_base("# no YAML\n");
  folders.write_run();
  const std::string card = model_card(folders.inputs());
  EXPECT_FALSE(has(card, "private"));
  EXPECT_FALSE(has(card, "secret"));
  EXPECT_FALSE(has(card, "output_dir"));
  EXPECT_TRUE(has(card, "orders.jsonl"));
}

// An adapter that was made elsewhere has no run, and a local folder no name on the hub.
TEST(ModelCard, LeavesOutWhatIsNotKnown) {
  const testing::TemporaryFolder folder;
  folder.write("adapter/adapter_config.json",
               R"({"base_model_name_or_path": "/home/someone/llama", "peft_type": "LORA"})");
  const std::string card =
      model_card({.title = "out", .model = folder / "llama", .adapter = folder / "adapter/"});
  const YAML::Node yaml = yaml_of(card);
  EXPECT_FALSE(yaml["base_model"]);
  EXPECT_FALSE(yaml["license"]);
  EXPECT_FALSE(yaml["datasets"]);
  EXPECT_TRUE(has(card, "llama with a LoRA adapter merged into its weights. "));
  EXPECT_TRUE(has(card, "says nothing of that licence: look it up"));
  for (const char* part : {"## Recipe", "## Data", "## The run", "## Drift", "/home"})
    EXPECT_FALSE(has(card, part));
}

TEST(ModelCard, PassesOverDamagedFilesOfARun) {
  const Folders folders;
  folders.write_base("---\nlicense: [unclosed\n---\n");
  folders.write_run();
  folders.folder.write("private/runs/shop/plan.json", "{");
  folders.folder.write("private/runs/shop/measured.json",
                       R"({"data": [3, {"name": 4}], "device": 1})");
  folders.folder.write("private/runs/shop/metrics.jsonl", "{\"loss\": \"none\"\n\"loss\"");
  EXPECT_TRUE(has(model_card(folders.inputs()), "## Recipe"));
  folders.folder.write("private/runs/shop/recipe.yaml", "no_such_key: 3\n");
  EXPECT_FALSE(has(model_card(folders.inputs()), "## Recipe"));
  folders.folder.write("private/runs/shop/adapter/adapter_config.json", "[]");
  EXPECT_TRUE(has(model_card(folders.inputs()), "smol with an adapter merged"));
}

TEST(ModelCard, EscapesTextOfStrangers) {
  EXPECT_EQ(markdown_text("a_b*[x](http://y)|<img>\n# c"),
            "a\\_b\\*\\[x\\]\\(http://y\\)\\|\\<img\\> \\# c");
  EXPECT_EQ(yaml_text("apache-2.0"), "apache-2.0");
  EXPECT_EQ(yaml_text("no"), "\"no\"");
  EXPECT_EQ(yaml_text("a: b\n---"), "\"a: b\\n---\"");
  EXPECT_EQ(yaml_text("3"), "\"3\"");
  EXPECT_EQ(yaml_text(""), "\"\"");
  const testing::TemporaryFolder folder;
  folder.write("base/README.md", "---\nlicense: \"x\\n---\\n<script>\"\n---\n");
  const std::string card = model_card({.title = "<b>", .model = folder / "base"});
  EXPECT_EQ(yaml_of(card)["license"].as<std::string>(), "x\n---\n<script>");
  EXPECT_TRUE(has(card, "# \\<b\\>\n"));
}

TEST(ModelCard, OfGgufFilesAndOfAnImport) {
  const testing::TemporaryFolder folder;
  const std::string exported = model_card({.kind = CardKind::exported,
                                           .title = "x-gguf",
                                           .model = folder / "x",
                                           .model_name = "org/x",
                                           .types = {"q8_0", "q4_k_m"},
                                           .files = {"Modelfile", "x-Q8_0.gguf"}});
  EXPECT_EQ(yaml_of(exported)["library_name"].as<std::string>(), "gguf");
  EXPECT_EQ(yaml_of(exported)["base_model_relation"].as<std::string>(), "quantized");
  EXPECT_TRUE(has(exported, "as GGUF: q8_0, q4_k_m"));
  EXPECT_TRUE(has(exported, "    ollama create NAME -f Modelfile\n    llama-cli -m x-Q8_0.gguf\n"));
  const std::string imported = model_card({.kind = CardKind::imported,
                                           .title = "x",
                                           .model = folder / "smol.Q4_1.gguf",
                                           .types = {"bf16"},
                                           .licence = "apache-2.0",
                                           .languages = {"en"}});
  EXPECT_EQ(yaml_of(imported)["license"].as<std::string>(), "apache-2.0");
  EXPECT_TRUE(has(imported, "GGUF file `smol.Q4_1.gguf`"));
}

TEST(ModelCard, OfWhatARunTrained) {
  const Folders folders;
  folders.write_base("---\nlicense: mit\n---\n");
  folders.write_run();
  CardInputs inputs = folders.inputs();
  inputs.kind = CardKind::adapter;
  const std::string adapter = model_card(inputs);
  EXPECT_EQ(yaml_of(adapter)["library_name"].as<std::string>(), "peft");
  EXPECT_EQ(yaml_of(adapter)["base_model_relation"].as<std::string>(), "adapter");
  EXPECT_TRUE(has(adapter, "A LoRA adapter of rank 16 for [Some/Model-1B]"));
  EXPECT_TRUE(has(adapter, "AutoPeftModelForCausalLM.from_pretrained"));
  EXPECT_TRUE(has(adapter, "snug generate model=BASE adapter=FOLDER"));
  inputs.kind = CardKind::trained;
  inputs.run = inputs.adapter.parent_path();
  inputs.adapter.clear();
  const std::string trained = model_card(inputs);
  EXPECT_TRUE(has(trained, "smol, fine-tuned (bf16)."));
  EXPECT_TRUE(has(trained, "86 steps"));
}

// PEFT loads one of the three forms, and is not named for the others.
TEST(ModelCard, OfALlamaAdapter) {
  const Folders folders;
  CardInputs inputs = folders.inputs();
  inputs.kind = CardKind::adapter;
  for (const std::string type : {"ADAPTION_PROMPT", "LLAMA_ADAPTER", "LLAMA_ADAPTER_V2"}) {
    folders.folder.write(
        "private/runs/shop/adapter/adapter_config.json",
        "{\"base_model_name_or_path\": \"Some/Model-1B\", \"peft_type\": \"" + type + "\"}");
    const std::string card = model_card(inputs);
    const bool is_peft = type == "ADAPTION_PROMPT";
    EXPECT_TRUE(has(card, type.ends_with("V2") ? "A LLaMA-Adapter V2 for [Some/Model-1B]"
                                               : "A LLaMA-Adapter for [Some/Model-1B]"));
    EXPECT_EQ(bool(yaml_of(card)["library_name"]), is_peft);
    EXPECT_EQ(has(card, "AutoPeftModelForCausalLM"), is_peft);
    EXPECT_FALSE(has(card, "from transformers import"));
    EXPECT_TRUE(has(card, is_peft ? "as PEFT loads it" : "as Snug loads it"));
  }
}

// Of a built-in shape, whose README.md is not the one of the folder that Snug was started in.
TEST(ModelCard, OfAModelWithoutAFolder) {
  const testing::TemporaryFolder folder;
  folder.write("README.md", "---\nlicense: mit\n---\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const std::string card =
      model_card({.kind = CardKind::trained, .title = "x", .model_name = "tiny"});
  fs::current_path(before);
  EXPECT_FALSE(yaml_of(card)["license"]);
  EXPECT_FALSE(has(card, "## Licence"));
  EXPECT_TRUE(has(card, "tiny, fine-tuned."));
}

TEST(ModelCard, BringsTheLicenceFilesOfTheBase) {
  const testing::TemporaryFolder folder;
  folder.write("base/LICENSE", "Apache License\n   Version 2.0, January 2004\n");
  folder.write("base/NOTICE.md", "notice");
  folder.write("base/README.md", "nothing here");
  folder.write("out/config.json", "{}");
  write_model_card(folder / "out", {.title = "out", .model = folder / "base"});
  EXPECT_TRUE(fs::exists(folder / "out/LICENSE"));
  EXPECT_TRUE(fs::exists(folder / "out/NOTICE.md"));
  const std::string card = base::read_text_file(folder / "out/README.md");
  EXPECT_EQ(yaml_of(card)["license"].as<std::string>(), "apache-2.0");
  EXPECT_TRUE(has(card, "Its licence files lie next to this file."));
}

// A card comes again once the drift is known; --overwrite of a run deletes only what Snug wrote.
TEST(ModelCard, LeavesAFolderAsSnugWroteIt) {
  const testing::TemporaryFolder folder;
  folder.write("out/config.json", "{}");
  formats::write_file_list(folder / "out");
  write_model_card(folder / "out", {.title = "out"});
  EXPECT_EQ(formats::foreign_entry(folder / "out"), std::nullopt);
  folder.write("out/mine.txt", "a user's");
  write_model_card(folder / "out", {.title = "two"});
  EXPECT_EQ(formats::foreign_entry(folder / "out"), "mine.txt");
}

TEST(ModelCard, KnowsNamesOfTheHubFromPaths) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(is_hub_name("org/name"));
  EXPECT_TRUE(is_hub_name("org/name@v1"));
  for (const char* path : {"name", "/org/name", "a/b/c", "./name", "data/train.jsonl", ""})
    EXPECT_FALSE(is_hub_name(path)) << path;
  EXPECT_EQ(public_name("/a/b/c/"), "c");
  EXPECT_EQ(title_of_folder("a/b/"), "b");
  EXPECT_EQ(public_name("org/name"), "org/name");
  const std::string card = model_card(
      {.title = "x",
       .model = folder / "hub/models--Qwen--Qwen3-0.6B/snapshots/0123abc",
       .model_name = (folder / "hub/models--Qwen--Qwen3-0.6B/snapshots/0123abc").string()});
  EXPECT_EQ(yaml_of(card)["base_model"].as<std::string>(), "Qwen/Qwen3-0.6B");
}

}  // namespace
}  // namespace snug::convert
