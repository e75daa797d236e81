#include "models/families/missing_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace snug::models {
namespace {

constexpr std::string_view kLatent =
    "latent attention (MLA), whose keys and values come from one "
    "small vector of each token";
constexpr std::string_view kMamba = "layers of Mamba in the place of attention";
constexpr std::string_view kOwnNames =
    "a reader of its own names of tensors, which transformers has no class for; llama's network "
    "otherwise, so a folder converted to llama loads";

// Sorted by model_type.
constexpr std::array kMissing{
    MissingFamily{"afmoe", "Trinity",
                  "gates on attention from a projection of their own, in a mixture of experts with "
                  "four norms in each layer"},
    MissingFamily{"aquila", "Aquila, Aquila2", kOwnNames},
    MissingFamily{"arcee", "AFM 4.5B", "mlps without a gate, of squared relu"},
    MissingFamily{"baichuan", "Baichuan, Baichuan 2",
                  "projections fused as W_pack, and in 13B ALiBi with a normed head"},
    MissingFamily{"bailing_moe_v2", "Ling 2.0 mini and flash",
                  "projections fused as query_key_value in a mixture with routers of sigmoids"},
    MissingFamily{"bamba", "Bamba 9B", kMamba},
    MissingFamily{"chatglm", "ChatGLM 2 and 3, GLM-4 9B of 2024",
                  "a reader of its own names of tensors; THUDM's folders that end in -hf are of "
                  "the type glm"},
    MissingFamily{"cohere", "Command R 35B",
                  "cohere2's network with a rotation in every layer and, in R+, norms of heads "
                  "with weights of their own"},
    MissingFamily{"csm", "CSM 1B", "two decoders that read codes of sound"},
    MissingFamily{"deepseek", "DeepSeek MoE 16B",
                  "a dense first layer and shared experts in a mixture with llama's attention"},
    MissingFamily{"deepseek_v2", "DeepSeek V2 Lite", kLatent},
    MissingFamily{"deepseek_v3", "DeepSeek V3 and R1, Moonlight 16B-A3B, Kimi K2", kLatent},
    MissingFamily{"deepseek_v32", "DeepSeek V3.2",
                  "latent attention (MLA) with an indexer that chooses keys"},
    MissingFamily{"embedding_gemma2_text", "EmbeddingGemma 2",
                  "attention to later tokens, and an objective for embeddings of texts"},
    MissingFamily{"ernie4_5_moe", "ERNIE 4.5 21B-A3B",
                  "a mixture of experts whose rotation is in neighbouring pairs and whose softmax "
                  "router has corrections"},
    MissingFamily{"exaone", "EXAONE 3.0 and 3.5", kOwnNames},
    MissingFamily{"falcon_h1", "Falcon H1", "layers of Mamba next to attention"},
    MissingFamily{"gemma3n_text", "Gemma 3n E2B and E4B",
                  "several residual streams (AltUp), low-rank branches (LAuReL), embeddings of "
                  "every layer, layers that share keys and values, and sparse activations"},
    MissingFamily{"glm", "GLM-4 9B and GLM-Edge",
                  "glm4's network without the norms after attention and mlp"},
    MissingFamily{"glm4_moe_lite", "GLM-4.7 Flash 30B-A3B", kLatent},
    MissingFamily{"glm_moe_dsa", "GLM-5",
                  "latent attention (MLA) with an indexer that chooses keys"},
    MissingFamily{"gpt_bigcode", "StarCoder, SantaCoder",
                  "learned positions with one key head for all queries"},
    MissingFamily{"gptj", "GPT-J 6B",
                  "phi's parallel blocks with a rotation in neighbouring pairs"},
    MissingFamily{"granitemoeshared", "Granite MoE with shared experts",
                  "shared experts in granitemoe's mixture"},
    MissingFamily{"hunyuan_v1_moe", "Hunyuan A13B",
                  "shared experts, and norms of heads after the rotation, in a mixture"},
    MissingFamily{"hy_v3", "Hy3, Hy-MT2 30B-A3B",
                  "a mixture with routers of sigmoids, corrections and norms of heads"},
    MissingFamily{"internlm", "InternLM 7B and 20B", kOwnNames},
    MissingFamily{"internlm2", "InternLM 2 and 2.5",
                  "projections fused as wqkv, by groups, and names of their own"},
    MissingFamily{"internlm3", "InternLM 3 8B",
                  "llama's network with a bias of queries, keys and values and another key for it "
                  "(qkv_bias)"},
    MissingFamily{"jais", "Jais 13B and 30B", "ALiBi with gated mlps and scales of muP"},
    MissingFamily{"jais2", "Jais 2", "mlps without a gate, of squared relu, and layer norms"},
    MissingFamily{"kimi_linear", "Kimi Linear 48B-A3B",
                  "delta attention with a decay for each element of a key, next to latent "
                  "attention (MLA)"},
    MissingFamily{"laguna", "Laguna",
                  "gates on attention from a projection of their own, and numbers of heads that "
                  "differ by layer"},
    MissingFamily{"lfm2_moe", "LFM2 8B-A1B",
                  "gated short convolutions in the place of attention, and experts with "
                  "corrections of their scores"},
    MissingFamily{"llama4_text", "Llama 4 Scout and Maverick",
                  "attention in chunks, norms of heads without weights and routers that scale "
                  "what experts read"},
    MissingFamily{"minicpm", "MiniCPM 1B and 2B",
                  "scales of embeddings, residual and logits under keys of its own"},
    MissingFamily{"minicpm3", "MiniCPM 3 4B", kLatent},
    MissingFamily{"ministral", "Ministral 8B with windows that differ by layer",
                  "mistral's network with layer_types"},
    MissingFamily{"mistral4", "Mistral Small 4 119B", kLatent},
    MissingFamily{"mllama_text_model", "Llama 3.2 11B and 90B Vision",
                  "layers that attend to images, which the text model has among its own"},
    MissingFamily{"muse_glimmer_text", "Muse Glimmer 30B",
                  "norms of heads without weights, gates on attention from a projection of their "
                  "own, and layers counted from the last"},
    MissingFamily{"nemotron", "Nemotron 3 and 4, Minitron",
                  "mlps without a gate, of squared relu, and layer norms that multiply by 1 + w"},
    MissingFamily{"nemotron-nas", "Nemotron Super 49B",
                  "layers without attention or without an mlp, of sizes that differ"},
    MissingFamily{"nemotron_flash", "Nemotron Flash 1B", kMamba},
    MissingFamily{"nemotron_h", "Nemotron Nano 2 and 3", kMamba},
    MissingFamily{"olmo", "OLMo 1B and 7B of 2024", "layer norms without weights"},
    MissingFamily{"opt", "OPT",
                  "a table of positions that begins at 2; its class has projections of the "
                  "embedding, too"},
    MissingFamily{"orion", "Orion 14B",
                  "llama's network with layer norms, which transformers has "
                  "no class for"},
    MissingFamily{"phi3small", "Phi-3 small", "attention to blocks of keys, and a gated gelu"},
    MissingFamily{"phimoe", "Phi-3.5 MoE", "a router that samples (SparseMixer), and layer norms"},
    MissingFamily{"qwen3_vl_moe_text", "Qwen3-VL 30B-A3B",
                  "experts whose gate and up lie in one tensor (experts, in, out), one after the "
                  "other"},
    MissingFamily{"solar", "Solar Pro", "layers that read what much earlier layers gave"},
    MissingFamily{"starcoder2", "StarCoder 2",
                  "llama's attention with biases, layer norms and mlps without a gate (c_fc)"},
};

}  // namespace

std::span<const MissingFamily> missing_families() { return kMissing; }

const MissingFamily* find_missing_family(std::string_view model_type) {
  const auto* const found = std::ranges::find(kMissing, model_type, &MissingFamily::model_type);
  return found == kMissing.end() ? nullptr : found;
}

std::string say_missing(const MissingFamily& family) {
  return fmt::format("which is not built ({}). It needs {}. docs/models.md lists what Snug has",
                     family.models, family.needs);
}

}  // namespace snug::models
