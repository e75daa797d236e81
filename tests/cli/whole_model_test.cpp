// The text part of a multimodal model is trained in the folder of the whole: every tensor that is
// not of the text stays as it is. The text parts are golden models, whose logits are transformers'
// (tests/goldens/README.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "binary_run.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kEncoder = "vision_tower.vision_model.layers.0.self_attn.q_proj.weight";
constexpr const char* kProjector = "multi_modal_projector.linear_1.weight";
// What makes rows of the text model's width of images, in Gemma 4.
constexpr const char* kRows = "model.embed_vision.embedding_projection.weight";
// Of a layer that predicts further tokens.
constexpr const char* kPredictor = "mtp.layers.0.self_attn.q_proj.weight";

constexpr const char* kLlamaModules = "down_proj|gate_proj|k_proj|o_proj|q_proj|up_proj|v_proj";

struct Whole {
  const char* model_type;
  const char* text;  // the golden that is its text part
  bool is_tied;
  const char* modules;  // that an adapter of all linears has
  // The type that text_config has; nothing: that of the golden. Before the names of the text model
  // the publishers' folders have a prefix.
  const char* text_type = nullptr;
  const char* prefix = "language_model.";
  const char* adapted = "mlp.up_proj";  // a module of layer 0 that such an adapter has
};
void PrintTo(const Whole& whole, std::ostream* stream) { *stream << whole.model_type; }

using Tensors = std::map<std::string, std::string>;  // bytes by name

Tensors tensors_of(const fs::path& file) {
  const formats::SafetensorsFile stored(file);
  Tensors tensors;
  for (const formats::TensorInfo& info : stored.tensors()) {
    std::string bytes(static_cast<size_t>(info.bytes()), '\0');
    stored.read(info, bytes.data());
    tensors.emplace(info.name, std::move(bytes));
  }
  return tensors;
}

class WholeModel : public ::testing::TestWithParam<Whole> {
 protected:
  WholeModel() {
    const formats::SafetensorsFile text(fs::path(text_folder()) / "model.safetensors");
    std::vector<formats::TensorSpec> specs{{kEncoder, base::DType::bf16, {2, 3}},
                                           {kProjector, base::DType::f32, {3}},
                                           {kPredictor, base::DType::bf16, {2, 2}},
                                           {kRows, base::DType::bf16, {1, 2}}};
    specs.reserve(specs.size() + text.tensors().size());
    for (const formats::TensorInfo& info : text.tensors())
      specs.push_back({GetParam().prefix + info.name, *info.dtype, info.shape});
    fs::create_directories(folder_ / "whole");
    formats::SafetensorsWriter writer(folder_ / "whole/model.safetensors", specs);
    writer.write(kEncoder, "0123456789ab", 12);
    writer.write(kProjector, "ABCDEFGHIJKL", 12);
    writer.write(kPredictor, "abcdefgh", 8);
    writer.write(kRows, "ijkl", 4);
    for (const auto& [name, bytes] : tensors_of(text.path()))
      writer.write(GetParam().prefix + name, bytes.data(), std::ssize(bytes));
    writer.finish();
    json config{{"model_type", GetParam().model_type},
                {"tie_word_embeddings", GetParam().is_tied},
                {"vision_config", {{"hidden_size", 3}}}};
    config["text_config"] = json::parse(contents_of(fs::path(text_folder()) / "config.json"));
    if (GetParam().text_type != nullptr) config["text_config"]["model_type"] = GetParam().text_type;
    folder_.write("whole/config.json", config.dump());
    folder_.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 7, 3, 2, 8, 4, 6, 11, 10, 5]}\n");
  }

  static std::string text_folder() {
    return fmt::format("tests/goldens/{}/model", GetParam().text);
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  void train(const std::string& words) const {
    const BinaryRun run = run_snug(
        joined({"train", "model=" + path("whole"), "data=" + path("data.jsonl"), "max_length=12",
                "compute_dtype=fp32", "max_steps=2", "learning_rate=0.01", "threads=1"},
               words_of(words)));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }

  static std::string score(const std::string& model, const std::string& words = "") {
    const BinaryRun run = run_snug(joined({"score", "model=" + model, "ids=1 5 9 7 3 2 8 4 6 11 10",
                                           "threads=1", "compute_dtype=fp32", "--json"},
                                          words_of(words)));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }

  testing::TemporaryFolder folder_;
};

TEST_P(WholeModel, IsReadAsItsTextPart) {
  EXPECT_EQ(score(path("whole")), score(text_folder()));
  const BinaryRun quantised =
      run_snug({"quantize", "model=" + path("whole"), "output_dir=" + path("nf4")});
  EXPECT_EQ(quantised.exit_code, 2);
  EXPECT_TRUE(testing::contains(quantised.err, "load_in_4bit=true")) << quantised.err;
}

TEST_P(WholeModel, IsWrittenBackAsAWhole) {
  ASSERT_NO_FATAL_FAILURE(train("method=full output_dir=" + path("full")));
  const Tensors before = tensors_of(folder_ / "whole/model.safetensors");
  const Tensors after = tensors_of(folder_ / "full/model/model.safetensors");
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, bytes] : before) {
    ASSERT_TRUE(after.contains(name)) << name;
    const bool is_other = name == kEncoder || name == kProjector || name == kPredictor ||
                          name == kRows || name.ends_with(".layer_scalar");
    EXPECT_EQ(after.at(name) == bytes, is_other) << name;
  }
  const json config = json::parse(contents_of(folder_ / "full/model/config.json"));
  EXPECT_EQ(config["model_type"], GetParam().model_type);
  EXPECT_EQ(config["vision_config"]["hidden_size"], 3);
  EXPECT_NE(score(path("full/model")), score(path("whole")));
}

TEST_P(WholeModel, AdaptersHaveTheNamesOfTheWhole) {
  ASSERT_NO_FATAL_FAILURE(train("method=lora lora_r=2 output_dir=" + path("lora")));
  const Tensors adapter = tensors_of(folder_ / "lora/adapter/adapter_model.safetensors");
  ASSERT_FALSE(adapter.empty());
  for (const auto& [name, bytes] : adapter)
    EXPECT_TRUE(name.starts_with("base_model.model.model.language_model.layers.")) << name;
  const json config = json::parse(contents_of(folder_ / "lora/adapter/adapter_config.json"));
  EXPECT_EQ(config["target_modules"],
            fmt::format("model\\.language_model\\.(?:.*\\.)?(?:{})", GetParam().modules));
  // It is read onto the whole as onto the text part alone, and merged into the whole.
  const std::string adapted = "adapter=" + path("lora/adapter");
  const std::string expected = score(text_folder(), adapted);
  EXPECT_NE(expected, score(text_folder()));
  EXPECT_EQ(score(path("whole"), adapted), expected);
  const BinaryRun merged = run_snug(
      {"merge", "model=" + path("whole"), adapted, "dtype=fp32", "output_dir=" + path("merged")});
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  const Tensors before = tensors_of(folder_ / "whole/model.safetensors");
  const Tensors after = tensors_of(folder_ / "merged/model.safetensors");
  const std::string adapted_name =
      fmt::format("{}model.layers.0.{}.weight", GetParam().prefix, GetParam().adapted);
  EXPECT_NE(after.at(adapted_name), before.at(adapted_name));
  EXPECT_EQ(after.size(), before.size());
}

INSTANTIATE_TEST_SUITE_P(
    All, WholeModel,
    ::testing::Values(Whole{"gemma3", "gemma3", true, kLlamaModules},
                      Whole{"gemma4", "gemma4", true, kLlamaModules},
                      Whole{"mistral3", "mistral", false, kLlamaModules},
                      Whole{"qwen3_5", "qwen3_5", true,
                            "down_proj|gate_proj|in_proj_a|in_proj_b|in_proj_"
                            "qkv|in_proj_z|k_proj|o_proj|out_proj|q_proj|up_"
                            "proj|v_proj"},
                      Whole{"qwen3_5_moe", "qwen3_5_moe", true,
                            "down_proj|gate_proj|in_proj_a|in_proj_b|in_proj_"
                            "qkv|in_proj_z|k_proj|o_proj|out_proj|q_proj|"
                            "shared_expert_gate|up_proj|v_proj",
                            nullptr, "language_model.", "mlp.shared_expert.up_proj"},
                      Whole{"qwen2_5_vl", "qwen2", true, kLlamaModules, "qwen2_5_vl_text", ""}),
    [](const auto& test) { return std::string(test.param.model_type); });

// A model whose experts of a layer are in one tensor, inside a whole one and next to a layer that
// predicts further tokens, as Qwen publishes it; and the same model alone, with a tensor for each
// matrix, as transformers writes it.
class ExpertsInOne : public ::testing::Test {
 protected:
  static constexpr size_t kExperts = 4;

  // The tensors of the second form in the first.
  static Tensors published(const Tensors& each) {
    Tensors result{{kPredictor, "abcdefgh"}};
    for (const auto& [name, bytes] : each) {
      const std::string whole =
          name.starts_with("model.") ? "model.language_model." + name.substr(6) : name;
      const size_t at = whole.find(".experts.");
      if (at == std::string::npos) result[whole] = bytes;
      if (at == std::string::npos || !whole.ends_with(".0.down_proj.weight")) continue;
      for (size_t expert = 0; expert < kExperts; ++expert) {
        const auto matrix = [&](const char* linear) {
          return each.at(fmt::format("{}{}.{}.weight", name.substr(0, name.find(".experts.") + 9),
                                     expert, linear));
        };
        result[whole.substr(0, at + 9) + "gate_up_proj"] += matrix("gate_proj") + matrix("up_proj");
        result[whole.substr(0, at + 9) + "down_proj"] += matrix("down_proj");
      }
    }
    return result;
  }

  ExpertsInOne() {
    const fs::path golden = "tests/goldens/qwen3_5_moe/model";
    const formats::SafetensorsFile file(golden / "model.safetensors");
    std::vector<formats::TensorSpec> whole{{kPredictor, base::DType::bf16, {2, 2}}};
    std::vector<formats::TensorSpec> each;
    Tensors bytes_of_whole{{kPredictor, "abcdefgh"}};
    Tensors bytes_of_each;
    for (const auto& [name, bytes] : tensors_of(file.path())) {
      const formats::TensorInfo& info = *file.find(name);
      const std::string own = "model.language_model." + name.substr(6);
      whole.push_back({own, *info.dtype, info.shape});
      bytes_of_whole[own] = bytes;
      const bool is_gate_up = name.ends_with(".experts.gate_up_proj");
      if (!is_gate_up && !name.ends_with(".experts.down_proj")) {
        each.push_back({name, *info.dtype, info.shape});
        bytes_of_each[name] = bytes;
        continue;
      }
      const std::vector<std::string> linears =
          is_gate_up ? std::vector<std::string>{"gate_proj", "up_proj"}
                     : std::vector<std::string>{"down_proj"};
      const std::vector<int64_t> shape{info.shape[1] / std::ssize(linears), info.shape[2]};
      const size_t size = bytes.size() / kExperts / linears.size();
      for (size_t piece = 0; piece < kExperts * linears.size(); ++piece) {
        const std::string matrix =
            fmt::format("{}{}.{}.weight", name.substr(0, name.find(".experts.") + 9),
                        piece / linears.size(), linears[piece % linears.size()]);
        each.push_back({matrix, *info.dtype, shape});
        bytes_of_each[matrix] = bytes.substr(piece * size, size);
      }
    }
    write("whole", whole, bytes_of_whole);
    write("each", each, bytes_of_each);
    const json text = json::parse(contents_of(golden / "config.json"));
    folder_.write("each/config.json", text.dump());
    const json config{{"model_type", "qwen3_5_moe"},
                      {"tie_word_embeddings", true},
                      {"vision_config", {{"hidden_size", 3}}},
                      {"text_config", text}};
    folder_.write("whole/config.json", config.dump());
    folder_.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 7, 3, 2, 8, 4, 6, 11, 10, 5]}\n");
  }

  void write(const char* name, const std::vector<formats::TensorSpec>& specs,
             const Tensors& tensors) const {
    fs::create_directories(folder_ / name);
    formats::SafetensorsWriter writer(folder_ / name / "model.safetensors", specs);
    for (const auto& [tensor, bytes] : tensors)
      writer.write(tensor, bytes.data(), std::ssize(bytes));
    writer.finish();
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static void run(const std::vector<std::string>& words, const std::string& more) {
    const BinaryRun run = run_snug(joined(words, words_of(more)));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  void train(const std::string& model, const std::string& more) const {
    run({"train", "data=" + path("data.jsonl"), "max_length=12", "compute_dtype=fp32",
         "max_steps=2", "learning_rate=0.01", "threads=1", "model=" + path(model)},
        more + " output_dir=" + path("of_" + model));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ExpertsInOne, TrainInFullAndAreWrittenBackSo) {
  for (const char* model : {"whole", "each"}) ASSERT_NO_FATAL_FAILURE(train(model, "method=full"));
  const Tensors each = tensors_of(folder_ / "of_each/model/model.safetensors");
  EXPECT_EQ(tensors_of(folder_ / "of_whole/model/model.safetensors"), published(each));
  EXPECT_NE(each, tensors_of(folder_ / "each/model.safetensors"));
}

TEST_F(ExpertsInOne, HaveTheAdaptersOfExpertsApart) {
  for (const std::string model : {"whole", "each"}) {
    ASSERT_NO_FATAL_FAILURE(
        train(model,
              "method=lora lora_r=2 target_modules=q_proj,in_proj_z "
              "target_parameters=mlp.experts.gate_up_proj,mlp.experts.down_proj"));
    ASSERT_NO_FATAL_FAILURE(run({"merge", "dtype=fp32", "model=" + path(model),
                                 "adapter=" + path("of_" + model + "/adapter")},
                                "output_dir=" + path("merged_" + model)));
  }
  Tensors adapter;
  for (const auto& [name, bytes] :
       tensors_of(folder_ / "of_whole/adapter/adapter_model.safetensors")) {
    const size_t at = name.find("language_model.");
    ASSERT_NE(at, std::string::npos) << name;
    adapter[std::string(name).erase(at, 15)] = bytes;
  }
  EXPECT_EQ(adapter, tensors_of(folder_ / "of_each/adapter/adapter_model.safetensors"));
  const Tensors each = tensors_of(folder_ / "merged_each/model.safetensors");
  EXPECT_EQ(tensors_of(folder_ / "merged_whole/model.safetensors"), published(each));
  EXPECT_NE(each, tensors_of(folder_ / "each/model.safetensors"));
  // Modules of experts are target_parameters' and in no pattern of target_modules.
  const json config = json::parse(contents_of(folder_ / "of_whole/adapter/adapter_config.json"));
  EXPECT_EQ(config["target_modules"], "model\\.language_model\\.(?:.*\\.)?(?:in_proj_z|q_proj)");
  std::set<std::string> scores;
  for (const char* on : {"whole", "each"})
    for (const char* of : {"of_whole", "of_each"}) {
      const BinaryRun scored =
          run_snug({"score", "model=" + path(on), "adapter=" + path(std::string(of) + "/adapter"),
                    "ids=1 5 9 7 3 2 8 4", "compute_dtype=fp32", "threads=1", "--json"});
      EXPECT_EQ(scored.exit_code, 0) << scored.err;
      scores.insert(scored.out);
    }
  EXPECT_EQ(scores.size(), 1U);
}

// Qwen3-Next is published as a text model alone, with a layer that predicts further tokens.
TEST(FurtherLayers, OfATextModelAreWrittenBack) {
  const testing::TemporaryFolder folder;
  const fs::path golden = "tests/goldens/qwen3_next/model";
  const formats::SafetensorsFile file(golden / "model.safetensors");
  std::vector<formats::TensorSpec> specs{{kPredictor, base::DType::bf16, {2, 2}}};
  specs.reserve(file.tensors().size() + 1);
  for (const formats::TensorInfo& info : file.tensors())
    specs.push_back({info.name, *info.dtype, info.shape});
  fs::create_directories(folder / "model");
  formats::SafetensorsWriter writer(folder / "model/model.safetensors", specs);
  writer.write(kPredictor, "abcdefgh", 8);
  for (const auto& [name, bytes] : tensors_of(file.path()))
    writer.write(name, bytes.data(), std::ssize(bytes));
  writer.finish();
  fs::copy(golden / "config.json", folder / "model");
  const std::string data =
      folder.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 7, 3, 2]}\n").string();
  const BinaryRun trained =
      run_snug({"train", "method=full", "model=" + (folder / "model").string(), "data=" + data,
                "max_length=12", "compute_dtype=fp32", "max_steps=1",
                "output_dir=" + (folder / "out").string()});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Tensors saved = tensors_of(folder / "out/model/model.safetensors");
  EXPECT_EQ(saved.size(), specs.size());
  EXPECT_EQ(saved.at(kPredictor), "abcdefgh");
}

}  // namespace
}  // namespace snug::cli
