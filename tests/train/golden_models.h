// The names of the goldens that are models (tests/goldens/README.md): what is checked for one is
// checked for all.
#pragma once

#include <array>

namespace snug::test {

inline constexpr std::array kGoldenModels{"basic",
                                          "grouped_tied",
                                          "biases",
                                          "head_dim",
                                          "rope_llama3",
                                          "rope_linear",
                                          "mistral",
                                          "qwen2",
                                          "qwen3",
                                          "phi3",
                                          "phi3_long",
                                          "phi3_short",
                                          "olmo2",
                                          "rope_yarn",
                                          "gemma",
                                          "gemma2",
                                          "gemma3",
                                          "stablelm",
                                          "phi",
                                          "gpt_neox",
                                          "gpt_neox_in_turn",
                                          "gpt2",
                                          "bloom",
                                          "falcon",
                                          "falcon_grouped",
                                          "falcon_rw",
                                          "mixtral",
                                          "qwen3_moe",
                                          "gpt_oss",
                                          "phi4_mini",
                                          "granite",
                                          "smollm3",
                                          "olmo3",
                                          "seed_oss",
                                          "exaone4",
                                          "glm4",
                                          "hunyuan",
                                          "ernie4_5",
                                          "cohere2",
                                          "ministral3",
                                          "qwen2_moe",
                                          "olmoe",
                                          "granitemoe",
                                          "glm4_moe",
                                          "qwen3_5",
                                          "gemma4",
                                          "gemma4_sharing",
                                          "gemma4_moe",
                                          "granite_hybrid"};

}  // namespace snug::test
