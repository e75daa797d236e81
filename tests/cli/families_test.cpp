// Every family through the binary: a tiny model of random weights is trained in full, saved,
// adapted, resumed, generated from and scored, all from folders as their publishers lay them out.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string_view>

#include "binary_run.h"
#include "formats/folder/safetensors_file.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

using nlohmann::json;

struct Family {
  const char* name;
  const char* fields;          // laid over the tiny llama's config.json
  const char* tensor;          // what its saved model must hold, and llama's has not
  const char* target_modules;  // of PEFT's all-linear, sorted
};

void PrintTo(const Family& family, std::ostream* stream) { *stream << family.name; }

constexpr const char* kLlamaModules = "down_proj gate_proj k_proj o_proj q_proj up_proj v_proj";

constexpr Family kFamilies[]{
    {"mistral", R"({"model_type": "mistral", "sliding_window": 20})",
     "model.layers.0.self_attn.q_proj.weight", kLlamaModules},
    {"qwen2", R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 20,
                  "max_window_layers": 1})",
     "model.layers.0.self_attn.k_proj.bias", kLlamaModules},
    {"qwen3", R"({"model_type": "qwen3", "head_dim": 12, "attention_bias": false,
                  "tie_word_embeddings": true})",
     "model.layers.1.self_attn.q_norm.weight", kLlamaModules},
    {"gemma", R"({"model_type": "gemma", "hidden_act": "gelu_pytorch_tanh", "head_dim": 12,
                  "tie_word_embeddings": true})",
     "model.layers.1.post_attention_layernorm.weight", kLlamaModules},
    {"gemma2", R"({"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "head_dim": 12,
                  "query_pre_attn_scalar": 10, "sliding_window": 20, "tie_word_embeddings": true})",
     "model.layers.1.post_feedforward_layernorm.weight", kLlamaModules},
    {"gemma3", R"({"model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh",
                  "head_dim": 12, "query_pre_attn_scalar": 10, "sliding_window": 20,
                  "sliding_window_pattern": 2, "tie_word_embeddings": true})",
     "model.layers.1.self_attn.q_norm.weight", kLlamaModules},
    {"gemma4", R"({"model_type": "gemma4_text", "hidden_activation": "gelu_pytorch_tanh",
                  "head_dim": 12, "global_head_dim": 16, "num_key_value_heads": 2,
                  "num_global_key_value_heads": 1, "attention_k_eq_v": true, "sliding_window": 20,
                  "layer_types": ["sliding_attention", "full_attention"],
                  "hidden_size_per_layer_input": 6, "final_logit_softcapping": 30.0,
                  "enable_moe_block": true, "num_experts": 5, "top_k_experts": 2,
                  "moe_intermediate_size": 16, "tie_word_embeddings": true})",
     "model.layers.1.router.per_expert_scale",
     "down_proj gate_proj k_proj o_proj per_layer_input_gate per_layer_model_projection "
     "per_layer_projection q_proj up_proj v_proj"},
    {"olmo2", R"({"model_type": "olmo2"})", "model.layers.1.post_feedforward_layernorm.weight",
     kLlamaModules},
    {"stablelm",
     R"({"model_type": "stablelm", "partial_rotary_factor": 0.5, "use_qkv_bias": true,
         "qk_layernorm": true, "use_parallel_residual": true})",
     "model.layers.1.self_attn.k_layernorm.norms.0.weight", kLlamaModules},
    {"phi", R"({"model_type": "phi", "hidden_act": "gelu_new"})", "lm_head.bias",
     "dense fc1 fc2 k_proj q_proj v_proj"},
    {"gpt_neox", R"({"model_type": "gpt_neox", "hidden_act": "gelu", "rotary_pct": 0.5,
                     "num_key_value_heads": null})",
     "gpt_neox.layers.1.attention.query_key_value.bias",
     "dense dense_4h_to_h dense_h_to_4h query_key_value"},
    {"gpt2", R"({"model_type": "gpt2", "num_key_value_heads": null,
                 "tie_word_embeddings": true})",
     "transformer.h.1.attn.c_attn.bias", "c_attn c_fc c_proj"},
    {"bloom", R"({"model_type": "bloom", "num_key_value_heads": null,
                  "tie_word_embeddings": true})",
     "transformer.word_embeddings_layernorm.bias",
     "dense dense_4h_to_h dense_h_to_4h query_key_value"},
    {"falcon", R"({"model_type": "falcon", "num_key_value_heads": null, "activation": "gelu",
                   "new_decoder_architecture": true, "num_kv_heads": 2,
                   "tie_word_embeddings": true})",
     "transformer.h.1.ln_mlp.bias", "dense dense_4h_to_h dense_h_to_4h query_key_value"},
    {"phi3", R"({"model_type": "phi3", "sliding_window": 20, "head_dim": null,
                 "original_max_position_embeddings": 64,
                 "rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1.5, 2],
                                  "long_factor": [1, 2, 8, 16]}})",
     "model.layers.1.self_attn.qkv_proj.weight", "down_proj gate_up_proj o_proj qkv_proj"},
    {"mixtral", R"({"model_type": "mixtral", "num_local_experts": 5, "num_experts_per_tok": 2})",
     "model.layers.1.block_sparse_moe.experts.4.w2.weight", "k_proj o_proj q_proj v_proj"},
    {"qwen3_moe",
     R"({"model_type": "qwen3_moe", "head_dim": 12, "num_experts": 6, "num_experts_per_tok": 3,
         "moe_intermediate_size": 20, "norm_topk_prob": true, "mlp_only_layers": [0]})",
     "model.layers.1.mlp.experts.5.down_proj.weight", kLlamaModules},
    {"qwen3_5",
     R"({"model_type": "qwen3_5_text", "head_dim": 16, "full_attention_interval": 2,
         "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
         "linear_value_head_dim": 6})",
     "model.layers.0.linear_attn.A_log",
     "down_proj gate_proj in_proj_a in_proj_b in_proj_qkv in_proj_z k_proj o_proj out_proj q_proj "
     "up_proj v_proj"},
    {"qwen3_next",
     R"({"model_type": "qwen3_next", "head_dim": 16, "full_attention_interval": 2,
         "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
         "linear_value_head_dim": 6, "num_experts": 5, "num_experts_per_tok": 2,
         "moe_intermediate_size": 20, "shared_expert_intermediate_size": 12})",
     "model.layers.1.mlp.experts.4.down_proj.weight",
     "down_proj gate_proj in_proj_ba in_proj_qkvz k_proj o_proj out_proj q_proj shared_expert_gate "
     "up_proj v_proj"},
    {"apertus", R"({"model_type": "apertus", "hidden_act": "xielu", "head_dim": 12})",
     "model.layers.1.mlp.act_fn.eps", "down_proj k_proj o_proj q_proj up_proj v_proj"},
    {"lfm2", R"({"model_type": "lfm2", "full_attn_idxs": [1], "block_multiple_of": 4})",
     "model.layers.0.conv.conv.weight", "in_proj k_proj out_proj q_proj v_proj w1 w2 w3"},
    {"granite_hybrid",
     R"({"model_type": "granitemoehybrid", "shared_intermediate_size": 40, "num_local_experts": 0,
         "layer_types": ["attention", "attention"], "position_embedding_type": "rope",
         "tie_word_embeddings": true})",
     "model.layers.1.shared_mlp.input_linear.weight",
     "input_linear k_proj o_proj output_linear q_proj v_proj"},
    {"gpt_oss", R"({"model_type": "gpt_oss", "head_dim": 12, "num_local_experts": 5,
                    "num_experts_per_tok": 2, "sliding_window": 20})",
     "model.layers.1.mlp.experts.gate_up_proj_bias", "k_proj o_proj q_proj v_proj"},
    {"granitemoe",
     R"({"model_type": "granitemoe", "num_local_experts": 5, "num_experts_per_tok": 2})",
     "model.layers.1.block_sparse_moe.input_linear.weight", "k_proj o_proj q_proj v_proj"},
    {"glm4_moe",
     R"({"model_type": "glm4_moe", "head_dim": 12, "n_routed_experts": 6, "num_experts_per_tok": 3,
         "n_group": 3, "topk_group": 2, "moe_intermediate_size": 20})",
     "model.layers.1.mlp.gate.e_score_correction_bias", kLlamaModules},
};

class Families : public ::testing::TestWithParam<Family> {
 protected:
  Families() {
    write_tiny_shape(folder_, "shape");
    json config = json::parse(kTinyConfig);
    config.update(json::parse(GetParam().fields));
    folder_.write("shape/config.json", config.dump());
    folder_.write("data.jsonl", kTinyData);
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  BinaryRun train(const std::string& words) const {
    return run_snug(joined({"train", "data=" + path("data.jsonl"), "max_length=160", "threads=2",
                            "per_device_train_batch_size=2", "max_steps=4", "save_steps=2"},
                           words_of(words)));
  }

  testing::TemporaryFolder folder_;
};

// The last parts of the names of the modules that an adapter holds, sorted.
std::string adapted_modules(const std::filesystem::path& file) {
  constexpr std::string_view kSuffix = ".lora_A.weight";
  std::set<std::string> modules;
  const formats::SafetensorsFile adapter(file);
  for (const formats::TensorInfo& tensor : adapter.tensors()) {
    if (!tensor.name.ends_with(kSuffix)) continue;
    const std::string module = tensor.name.substr(0, tensor.name.size() - kSuffix.size());
    modules.insert(module.substr(module.rfind('.') + 1));
  }
  return fmt::format("{}", fmt::join(modules, " "));
}

TEST_P(Families, TrainSaveAdaptResumeAndGenerate) {
  const BinaryRun full =
      train("method=full init=random model=" + path("shape") + " output_dir=" + path("base"));
  ASSERT_EQ(full.exit_code, 0) << full.err;
  const formats::SafetensorsFile saved(path("base/model/model.safetensors"));
  EXPECT_NE(saved.find(GetParam().tensor), nullptr) << GetParam().tensor;

  const std::string lora = "method=lora lora_r=2 lora_dropout=0.1 model=" + path("base/model");
  const BinaryRun tuned = train(lora + " output_dir=" + path("tuned"));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const std::string file = "adapter/adapter_model.safetensors";
  EXPECT_EQ(adapted_modules(folder_ / "tuned" / file), GetParam().target_modules);
  // To PEFT all-linear means experts too, which Snug does not adapt: there names are written.
  const std::string_view fields = GetParam().fields;
  const bool has_experts = fields.find("experts_per_tok") != std::string_view::npos ||
                           fields.find("top_k_experts") != std::string_view::npos;
  const json config = json::parse(contents_of(folder_ / "tuned/adapter/adapter_config.json"));
  EXPECT_EQ(config["target_modules"].is_string(), !has_experts) << config["target_modules"];

  // Half of it, then the rest from the checkpoint: the same bits.
  std::filesystem::create_directories(folder_ / "again");
  const BinaryRun resumed = train(lora + " output_dir=" + path("again") +
                                  " resume_from_checkpoint=" + path("tuned/checkpoint-2"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(contents_of(folder_ / "again" / file), contents_of(folder_ / "tuned" / file));

  const std::vector<std::string> adapted{"model=" + path("base/model"),
                                         "adapter=" + path("tuned/adapter"), "threads=2"};
  const BinaryRun generated = run_snug(
      joined(joined({"generate", "prompt=Say a.", "max_new_tokens=30"}, adapted), {"--json"}));
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
  const BinaryRun scored = run_snug(joined({"score", "ids=1 5 9 7"}, adapted));
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
}

// A folder in 4 bits is the same base as the 16-bit one that is quantised while it is read. The
// reference has bf16 on every processor, so the folder is one of 16 bits.
TEST_P(Families, QuantizeTuneAndScoreIn4Bits) {
  const BinaryRun full =
      train("method=full init=random backend=reference compute_dtype=bf16 model=" + path("shape") +
            " output_dir=" + path("base"));
  ASSERT_EQ(full.exit_code, 0) << full.err;
  const BinaryRun quantised =
      run_snug({"quantize", "model=" + path("base/model"), "output_dir=" + path("nf4")});
  ASSERT_EQ(quantised.exit_code, 0) << quantised.err;

  const std::string file = "adapter/adapter_model.safetensors";
  for (const auto& [model, output] : {std::pair{"nf4", "stored"}, {"base/model", "made"}}) {
    const BinaryRun tuned =
        train("method=qlora lora_r=2 model=" + path(model) + " output_dir=" + path(output));
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  }
  EXPECT_EQ(adapted_modules(folder_ / "stored" / file), GetParam().target_modules);
  EXPECT_EQ(contents_of(folder_ / "stored" / file), contents_of(folder_ / "made" / file));

  const auto score = [&](const std::string& words) {
    const BinaryRun run = run_snug(joined({"score", "ids=1 5 9 7", "threads=2", "--json"},
                                          words_of("adapter=" + path("stored/adapter") + words)));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(score(" model=" + path("nf4")),
            score(" load_in_4bit=true model=" + path("base/model")));
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(kFamilies),
                         [](const auto& test) { return std::string(test.param.name); });

// What transformers and bitsandbytes saved is tuned and scored as it is; data of token ids needs no
// tokenizer.
TEST(BitsandbytesFolder, IsTunedAndScored) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path data =
      folder.write("data.jsonl", "{\"input_ids\": [1, 5, 9, 7, 3, 2, 8]}\n");
  for (const char* name : {"double", "plain"}) {
    const std::string model = std::string("model=tests/goldens/nf4/") + name;
    const std::string output = (folder / name).string();
    const BinaryRun tuned =
        run_snug({"train", model, "method=qlora", "data=" + data.string(), "output_dir=" + output,
                  "max_length=16", "max_steps=20", "learning_rate=0.02", "lora_dropout=0"});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const auto loss = [&](const std::vector<std::string>& words) {
      const BinaryRun run =
          run_snug(joined({"score", model, "ids=1 5 9 7 3 2 8", "--json"}, words));
      EXPECT_EQ(run.exit_code, 0) << run.err;
      return json::parse(run.out)["loss"].get<double>();
    };
    EXPECT_LT(loss({"adapter=" + output + "/adapter"}), 0.5 * loss({}));
  }
}

// Short documents are short however many of them share a row; one long document makes all long.
TEST(Longrope, FactorsFollowTheLongestDocument) {
  const testing::TemporaryFolder folder;
  std::string documents;
  for (int first = 1; first <= 4; ++first)
    documents +=
        json{{"input_ids", {first, first + 7, first + 14, first + 21, first + 2}}}.dump() + "\n";
  folder.write("short.jsonl", documents);
  json longer = json::array();
  for (int id = 1; id <= 17; ++id) longer.push_back(id);  // the model's original positions are 16
  folder.write("long.jsonl", documents + json{{"input_ids", longer}}.dump() + "\n");
  const auto first_loss = [&](const char* data, const char* rows) {
    const BinaryRun run = run_snug(
        joined({"train", "model=tests/goldens/phi3_long/model", "data=" + (folder / data).string(),
                "output_dir=" + (folder / (std::string(data) + rows)).string(), "method=lora",
                "shuffle=false", "compute_dtype=fp32", "max_steps=1", "lora_dropout=0"},
               words_of(rows)));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.err.find(data == std::string("short.jsonl") ? "short factors" : "long factors"),
              std::string::npos)
        << run.err;
    const std::string metrics = contents_of(folder / (std::string(data) + rows) / "metrics.jsonl");
    return json::parse(metrics.substr(0, metrics.find('\n')))["loss"].get<double>();
  };
  EXPECT_NEAR(
      first_loss("short.jsonl", "max_length=20 max_segments=4 per_device_train_batch_size=1"),
      first_loss("short.jsonl", "max_length=5 per_device_train_batch_size=4"), 1e-6);
  first_loss("long.jsonl", "max_length=64 per_device_train_batch_size=1");
}

}  // namespace
}  // namespace snug::cli
