// The t5 family: T5 1.0 (Raffel et al. 2020), whose mlps have no gate and whose head is the
// embedding, with its input scaled; and T5 1.1 with its descendants FLAN-T5 (Chung et al. 2022) and
// T0 (Sanh et al. 2022), which have gates and a separate head.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/families/families.h"
#include "models/families/t5_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

// In files of transformers 4, tie_word_embeddings also says whether the head's input is scaled.
// Files of transformers 5 call every head tied, even where they hold a separate head
// (stored_head.h).
ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_t5_shape(json, {.feed_forward = "relu", .tied_embeddings = true});
  constexpr const char* kScales = "scale_decoder_outputs";
  const bool is_null = json.value().contains(kScales) && !json.has(kScales);  // null means false
  config.scaled_head = !is_null && json.boolean_or(kScales, config.tied_embeddings);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_t5_shape(config, json);
  json["scale_decoder_outputs"] = config.scaled_head;
}

void version_1_0(ModelConfig& config) {
  set_published_t5(config, false);
  config.scaled_head = true;
}

void version_1_1(ModelConfig& config) { set_published_t5(config, true); }

constexpr int64_t kAny = kMaxPositions;

constexpr std::array kPresets{
    Preset{"flan-t5-base", 768, 12, 12, 12, 64, 2048, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
    Preset{"flan-t5-large", 1024, 24, 16, 16, 64, 2816, 32128, kAny, 1e-6F, 1e4, false,
           version_1_1},
    Preset{"flan-t5-small", 512, 8, 6, 6, 64, 1024, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
    Preset{"flan-t5-xl", 2048, 24, 32, 32, 64, 5120, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
    Preset{"flan-t5-xxl", 4096, 24, 64, 64, 64, 10240, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
    Preset{"t0-3b", 2048, 24, 32, 32, 64, 5120, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
    Preset{"t5-11b", 1024, 24, 128, 128, 128, 65536, 32128, kAny, 1e-6F, 1e4, true, version_1_0},
    Preset{"t5-3b", 1024, 24, 32, 32, 128, 16384, 32128, kAny, 1e-6F, 1e4, true, version_1_0},
    Preset{"t5-base", 768, 12, 12, 12, 64, 3072, 32128, kAny, 1e-6F, 1e4, true, version_1_0},
    Preset{"t5-large", 1024, 24, 16, 16, 64, 4096, 32128, kAny, 1e-6F, 1e4, true, version_1_0},
    Preset{"t5-small", 512, 6, 8, 8, 64, 2048, 32128, kAny, 1e-6F, 1e4, true, version_1_0},
    Preset{"t5-v1_1-xxl", 4096, 24, 64, 64, 64, 10240, 32128, kAny, 1e-6F, 1e4, false, version_1_1},
};

}  // namespace

const Family kT5{"t5",
                 "T5ForConditionalGeneration",
                 t5_stack,
                 parse,
                 describe,
                 kPresets,
                 "T5, FLAN-T5, T0",
                 FamilyForm::encoder_decoder};

}  // namespace snug::models
