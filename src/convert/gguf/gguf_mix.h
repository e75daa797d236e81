// The kinds of GGUF files that people use, such as q4_k_m, and the type that each tensor has in
// them, which is the one that llama.cpp's quantiser chooses. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "formats/gguf/ggml_type.h"
#include "models/config/config.h"
#include "models/gguf/architecture.h"

namespace snug::convert {

// The values are those of general.file_type.
enum class GgufMix : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q8_0 = 7,
  q5_0 = 8,
  q5_1 = 9,
  q3_k_m = 12,
  q4_k_s = 14,
  q4_k_m = 15,
  q5_k_s = 16,
  q5_k_m = 17,
  q6_k = 18,
  bf16 = 32,
  mxfp4 = 38,
};
constexpr auto words_of(GgufMix /*mix*/) {
  return base::words<GgufMix>({{GgufMix::f32, "f32"},
                               {GgufMix::f16, "f16"},
                               {GgufMix::bf16, "bf16"},
                               {GgufMix::q8_0, "q8_0"},
                               {GgufMix::q6_k, "q6_k"},
                               {GgufMix::q5_k_m, "q5_k_m"},
                               {GgufMix::q5_k_s, "q5_k_s"},
                               {GgufMix::q5_1, "q5_1"},
                               {GgufMix::q5_0, "q5_0"},
                               {GgufMix::q4_k_m, "q4_k_m"},
                               {GgufMix::q4_k_s, "q4_k_s"},
                               {GgufMix::q4_1, "q4_1"},
                               {GgufMix::q4_0, "q4_0"},
                               {GgufMix::q3_k_m, "q3_k_m"},
                               {GgufMix::mxfp4, "mxfp4"}});
}

// Parses "q8_0,q4_k_m", or a list as recipes have it ("[q8_0, q4_k_m]"): in lower or upper case,
// each once. q4_k, q5_k and q3_k are their _m forms. Throws UserError that names all kinds.
std::vector<GgufMix> parse_mixes(std::string_view text);

// The type of each tensor of the model, in its order.
std::vector<formats::GgmlType> mixed_types(GgufMix mix, const models::GgufModel& model,
                                           const models::ModelConfig& config);

}  // namespace snug::convert
