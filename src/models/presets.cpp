// Built-in shapes of public models: planned without a file, measured with random weights. The
// figures are those of each model's published config.json.
#include <algorithm>
#include <array>

#include "models/config.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

struct Preset {
  std::string_view name;
  int64_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_position;
  float norm_epsilon;
  double theta;
  double llama3_factor;  // 0: no rope scaling
  bool tied;
  std::string_view type = "llama";
  int64_t window = 0;  // of every layer
};

constexpr std::array kPresets{
    Preset{"codellama-13b", 5120, 40, 40, 40, 128, 13824, 32016, 16384, 1e-5F, 1e6, 0, false},
    Preset{"codellama-34b", 8192, 48, 64, 8, 128, 22016, 32000, 16384, 1e-5F, 1e6, 0, false},
    Preset{"llama-13b", 5120, 40, 40, 40, 128, 13824, 32000, 2048, 1e-6F, 1e4, 0, false},
    Preset{"llama-2-13b", 5120, 40, 40, 40, 128, 13824, 32000, 4096, 1e-5F, 1e4, 0, false},
    Preset{"llama-2-70b", 8192, 80, 64, 8, 128, 28672, 32000, 4096, 1e-5F, 1e4, 0, false},
    Preset{"llama-2-7b", 4096, 32, 32, 32, 128, 11008, 32000, 4096, 1e-5F, 1e4, 0, false},
    Preset{"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 1e-5F, 5e5, 0, false},
    Preset{"llama-3.1-70b", 8192, 80, 64, 8, 128, 28672, 128256, 131072, 1e-5F, 5e5, 8, false},
    Preset{"llama-3.1-8b", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 1e-5F, 5e5, 8, false},
    Preset{"llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 1e-5F, 5e5, 32, true},
    Preset{"llama-3.2-3b", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 1e-5F, 5e5, 32, true},
    Preset{"llama-30b", 6656, 60, 52, 52, 128, 17920, 32000, 2048, 1e-6F, 1e4, 0, false},
    Preset{"llama-65b", 8192, 80, 64, 64, 128, 22016, 32000, 2048, 1e-5F, 1e4, 0, false},
    Preset{"llama-7b", 4096, 32, 32, 32, 128, 11008, 32000, 2048, 1e-6F, 1e4, 0, false},
    Preset{"mistral-7b-v0.1", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e-5F, 1e4, 0, false,
           "mistral", 4096},
    Preset{"mistral-7b-v0.2", 4096, 32, 32, 8, 128, 14336, 32000, 32768, 1e-5F, 1e6, 0, false,
           "mistral"},
    Preset{"mistral-7b-v0.3", 4096, 32, 32, 8, 128, 14336, 32768, 32768, 1e-5F, 1e6, 0, false,
           "mistral"},
    Preset{"phi-3-medium-4k", 5120, 40, 40, 10, 128, 17920, 32064, 4096, 1e-5F, 1e4, 0, false,
           "phi3", 2047},
    Preset{"phi-3-mini-128k", 3072, 32, 32, 32, 96, 8192, 32064, 131072, 1e-5F, 1e4, 0, false,
           "phi3", 262144},
    Preset{"phi-3-mini-4k", 3072, 32, 32, 32, 96, 8192, 32064, 4096, 1e-5F, 1e4, 0, false, "phi3",
           2047},
    Preset{"qwen2-7b", 3584, 28, 28, 4, 128, 18944, 152064, 131072, 1e-6F, 1e6, 0, false, "qwen2"},
    Preset{"qwen2.5-0.5b", 896, 24, 14, 2, 64, 4864, 151936, 32768, 1e-6F, 1e6, 0, true, "qwen2"},
    Preset{"qwen2.5-1.5b", 1536, 28, 12, 2, 128, 8960, 151936, 131072, 1e-6F, 1e6, 0, true,
           "qwen2"},
    Preset{"qwen2.5-14b", 5120, 48, 40, 8, 128, 13824, 152064, 131072, 1e-5F, 1e6, 0, false,
           "qwen2"},
    Preset{"qwen2.5-32b", 5120, 64, 40, 8, 128, 27648, 152064, 131072, 1e-5F, 1e6, 0, false,
           "qwen2"},
    Preset{"qwen2.5-3b", 2048, 36, 16, 2, 128, 11008, 151936, 32768, 1e-6F, 1e6, 0, true, "qwen2"},
    Preset{"qwen2.5-72b", 8192, 80, 64, 8, 128, 29568, 152064, 131072, 1e-5F, 1e6, 0, false,
           "qwen2"},
    Preset{"qwen2.5-7b", 3584, 28, 28, 4, 128, 18944, 152064, 131072, 1e-6F, 1e6, 0, false,
           "qwen2"},
    Preset{"qwen3-0.6b", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1e-6F, 1e6, 0, true, "qwen3"},
    Preset{"qwen3-1.7b", 2048, 28, 16, 8, 128, 6144, 151936, 40960, 1e-6F, 1e6, 0, true, "qwen3"},
    Preset{"qwen3-14b", 5120, 40, 40, 8, 128, 17408, 151936, 40960, 1e-6F, 1e6, 0, false, "qwen3"},
    Preset{"qwen3-32b", 5120, 64, 64, 8, 128, 25600, 151936, 40960, 1e-6F, 1e6, 0, false, "qwen3"},
    Preset{"qwen3-4b", 2560, 36, 32, 8, 128, 9728, 151936, 40960, 1e-6F, 1e6, 0, true, "qwen3"},
    Preset{"qwen3-8b", 4096, 36, 32, 8, 128, 12288, 151936, 40960, 1e-6F, 1e6, 0, false, "qwen3"},
    Preset{"smollm2-135m", 576, 30, 9, 3, 64, 1536, 49152, 8192, 1e-5F, 1e5, 0, true},
    Preset{"smollm2-360m", 960, 32, 15, 5, 64, 2560, 49152, 8192, 1e-5F, 1e5, 0, true},
    Preset{"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e-5F, 1e4, 0, false},
    Preset{"yi-34b", 7168, 60, 56, 8, 128, 20480, 64000, 4096, 1e-5F, 5e6, 0, false},
};

// longrope's divisors of Phi-3-mini-128k: 48 = head_dim / 2 each, to fp32's digits.
constexpr std::array kPhi3MiniShort{
    1.05, 1.05, 1.05, 1.1, 1.1, 1.15, 1.2,  1.25, 1.3,  1.35, 1.5, 2.0, 2.0,  2.0,  2.0,  2.0,
    2.0,  2.0,  2.0,  2.0, 2.0, 2.0,  2.0,  2.0,  2.0,  2.0,  2.0, 2.0, 2.0,  2.0,  2.0,  2.0,
    2.05, 2.05, 2.05, 2.1, 2.1, 2.1,  2.15, 2.15, 2.35, 2.55, 2.6, 2.6, 2.75, 2.85, 2.85, 2.95};
constexpr std::array kPhi3MiniLong{
    1.03,      1.05,      1.05,      1.0799999,  1.2299999, 1.2299999, 1.3,       1.4499999,
    1.5999999, 1.6499999, 1.8999999, 2.86,       3.6899998, 5.4199996, 5.49,      5.49,
    9.09,      11.58,     15.66,     15.7699995, 15.79,     18.36,     21.99,     23.08,
    30.009998, 32.350002, 32.590004, 35.560005,  39.950005, 53.840004, 56.200005, 57.950005,
    59.290005, 59.770004, 59.920006, 61.190006,  61.960007, 62.500008, 63.370007, 63.480007,
    63.480007, 63.660007, 63.850006, 64.08001,   64.76001,  64.80001,  64.81001,  64.81001};

void set_longrope(ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.scaling = RopeScaling::longrope;
  rope.original_max_position = 4096;
  rope.short_factors.assign(kPhi3MiniShort.begin(), kPhi3MiniShort.end());
  rope.long_factors.assign(kPhi3MiniLong.begin(), kPhi3MiniLong.end());
  const double factor = static_cast<double>(config.max_position) / 4096.0;
  rope.attention_factor = longrope_attention_factor(factor, rope.original_max_position);
}

ModelConfig to_config(const Preset& preset) {
  ModelConfig config;
  config.model_type = preset.type;
  config.hidden_size = preset.hidden;
  config.num_layers = preset.layers;
  config.num_heads = preset.heads;
  config.num_kv_heads = preset.kv_heads;
  config.head_dim = preset.head_dim;
  config.intermediate_size = preset.intermediate;
  config.vocab_size = preset.vocab;
  config.max_position = preset.max_position;
  config.norm_epsilon = preset.norm_epsilon;
  config.rope.theta = preset.theta;
  config.tied_embeddings = preset.tied;
  if (preset.llama3_factor > 0) {
    config.rope.scaling = RopeScaling::llama3;
    config.rope.factor = preset.llama3_factor;
  }
  if (preset.window > 0) config.windows.assign(static_cast<size_t>(preset.layers), preset.window);
  if (preset.name == "phi-3-mini-128k") set_longrope(config);
  find_family(preset.type)->set_traits(config);
  return config;
}

}  // namespace

std::optional<ModelConfig> preset(std::string_view name) {
  for (const Preset& entry : kPresets)
    if (entry.name == name) return to_config(entry);
  return std::nullopt;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  names.reserve(kPresets.size());
  for (const Preset& entry : kPresets) names.emplace_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace snug::models
