// The mt5 family (Xue et al. 2021) and mT0 (Muennighoff et al. 2023): T5 1.1 with a vocabulary of
// 101 languages.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/families/families.h"
#include "models/families/t5_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

ModelConfig parse(const JsonObject& json) {
  return parse_t5_shape(json, {.feed_forward = "gated-gelu", .tied_embeddings = false});
}

void published(ModelConfig& config) { set_published_t5(config, true); }

constexpr int64_t kAny = kMaxPositions;

constexpr std::array kPresets{
    Preset{"mt0-xxl", 4096, 24, 64, 64, 64, 10240, 250112, kAny, 1e-6F, 1e4, false, published},
    Preset{"mt5-base", 768, 12, 12, 12, 64, 2048, 250112, kAny, 1e-6F, 1e4, false, published},
    Preset{"mt5-large", 1024, 24, 16, 16, 64, 2816, 250112, kAny, 1e-6F, 1e4, false, published},
    Preset{"mt5-small", 512, 8, 6, 6, 64, 1024, 250112, kAny, 1e-6F, 1e4, false, published},
    Preset{"mt5-xl", 2048, 24, 32, 32, 64, 5120, 250112, kAny, 1e-6F, 1e4, false, published},
    Preset{"mt5-xxl", 4096, 24, 64, 64, 64, 10240, 250112, kAny, 1e-6F, 1e4, false, published},
};

}  // namespace

const Family kMt5{
    "mt5",      "MT5ForConditionalGeneration", t5_stack, parse, describe_t5_shape, kPresets,
    "mT5, mT0", FamilyForm::encoder_decoder};

}  // namespace snug::models
