#include "models/config/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <variant>

#include "models/config/config_keys.h"
#include "models/families/families.h"

namespace snug::models {

using base::JsonObject;

namespace {

constexpr const char* kThetaKey = "rope_theta";
constexpr const char* kPartialKey = "partial_rotary_factor";
constexpr const char* kParametersKey = "rope_parameters";
constexpr const char* kScalingKey = "rope_scaling";

}  // namespace

std::optional<JsonObject> rope_object(const JsonObject& json) {
  for (const char* key : {kScalingKey, kParametersKey})
    if (json.has(key) && !json.value().at(key).empty()) return json.object(key);
  return std::nullopt;
}

namespace {

void refuse_partial(const JsonObject& json) {
  if (json.number_or(kPartialKey, 1.0) != 1.0)
    json.fail(kPartialKey, "is not 1; this family rotates whole heads");
}

double parse_theta(const JsonObject& json, double fallback, const char* key = kThetaKey) {
  const double theta = json.number_or(key, fallback);
  if (!(theta > 0)) json.fail(key, fmt::format("is {}; expected a number above 0", theta));
  return theta;
}

// The key may be inside the scaling object or next to it; transformers 5 prefers the latter, and
// transformers 4 ignores it there.
int64_t parse_original_positions(const JsonObject& json, const JsonObject& scaling) {
  constexpr const char* kKey = "original_max_position_embeddings";
  if (!json.has(kKey)) return positive(scaling, kKey);
  const int64_t outside = positive(json, kKey);
  const int64_t within = positive_or(scaling, kKey, outside);
  if (within != outside)
    json.fail(kKey, fmt::format("is {}, but the scaling of rope says {}", outside, within));
  return within;
}

// The factor by which yarn multiplies cosines and sines.
double yarn_attention_factor(double factor, double scale = 1.0) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

// A larger factor must be a mistake: published models have 1 to 2.
constexpr double kMaxAttentionFactor = 1000;

// Names the key that the file has: if it gives no attention_factor, the factor was computed from
// mscale.
[[noreturn]] void fail_attention_factor(const JsonObject& scaling, double factor) {
  constexpr const char* kKey = "attention_factor";
  const std::string expected =
      fmt::format("expected a number above 0 and below {}", kMaxAttentionFactor);
  if (scaling.has(kKey)) scaling.fail(kKey, fmt::format("is {}; {}", factor, expected));
  scaling.fail("mscale", fmt::format("and mscale_all_dim make an attention factor of {}; {}",
                                     factor, expected));
}

// The type of scaling, and the key that gives it, which earlier files call "type".
struct ScalingType {
  const char* key;
  std::string name;
};
ScalingType parse_scaling_type(const JsonObject& scaling) {
  const char* key = key_present(scaling, {"rope_type", "type"}).data();
  return {key, scaling.text_or(key, std::string(base::word_of(RopeScaling::none)))};
}

void parse_yarn(const JsonObject& scaling, RopeConfig& rope) {
  rope.beta_fast = scaling.number_or("beta_fast", 32.0);
  rope.beta_slow = scaling.number_or("beta_slow", 1.0);
  if (!(rope.beta_slow > 0)) scaling.fail("beta_slow", "must be above 0");
  if (!(rope.beta_fast >= rope.beta_slow)) scaling.fail("beta_fast", "must be at least beta_slow");
  const bool is_null = scaling.value().contains("truncate") && !scaling.has("truncate");
  rope.truncate = !is_null && scaling.boolean_or("truncate", true);  // null is false
  const double of_all = scaling.number_or("mscale_all_dim", 0.0);
  const double scale = scaling.number_or("mscale", 0.0);
  rope.attention_factor = yarn_attention_factor(rope.factor);
  if (scale != 0 && of_all != 0)
    rope.attention_factor =
        yarn_attention_factor(rope.factor, scale) / yarn_attention_factor(rope.factor, of_all);
  rope.attention_factor = scaling.number_or("attention_factor", rope.attention_factor);
  if (!(rope.attention_factor > 0 && rope.attention_factor < kMaxAttentionFactor))
    fail_attention_factor(scaling, rope.attention_factor);
}

// `theta_key`: the key that gives theta next to the scaling object, which may contain another
// theta.
void parse_scaling(const JsonObject& json, const char* theta_key, const JsonObject& scaling,
                   RopeConfig& rope) {
  rope.theta = parse_theta(scaling, rope.theta);
  const auto [type_key, type] = parse_scaling_type(scaling);
  const auto form = base::from_word<RopeScaling>(type);
  if (form == RopeScaling::none) return;
  if (!form || form == RopeScaling::longrope || form == RopeScaling::proportional)
    scaling.fail(type_key,
                 fmt::format("is \"{}\", which is not built for this family; it has default, "
                             "linear, dynamic, llama3 and yarn",
                             type));
  rope.factor = scaling.number("factor");
  if (!(rope.factor >= 1.0)) scaling.fail("factor", "must be at least 1");
  rope.scaling = *form;
  if (form == RopeScaling::linear || form == RopeScaling::dynamic) return;
  rope.original_max_position = parse_original_positions(json, scaling);
  if (form == RopeScaling::yarn) {
    const bool within = scaling.has(kThetaKey);
    if (!(rope.theta > 1))
      (within ? scaling : json)
          .fail(within ? kThetaKey : theta_key,
                fmt::format("is {}; yarn needs more than 1", rope.theta));
    return parse_yarn(scaling, rope);
  }
  rope.low_freq_factor = scaling.number("low_freq_factor");
  rope.high_freq_factor = scaling.number("high_freq_factor");
  if (!(rope.low_freq_factor > 0)) scaling.fail("low_freq_factor", "must be above 0");
  if (!(rope.high_freq_factor > rope.low_freq_factor))
    scaling.fail("high_freq_factor", "must be above low_freq_factor");
}

// Llama 3.1's smooth scaling, computed as in transformers (modeling_rope_utils, "llama3").
double llama3_frequency(double frequency, const RopeConfig& rope) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(rope.original_max_position);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

// Computed as in transformers (modeling_rope_utils, "yarn"): frequencies with indices below the
// ramp are kept, and those above it are divided by the factor. The ramp runs over the frequencies
// that make beta_fast to beta_slow rotations within the original positions.
double yarn_frequency(double frequency, int64_t index, const Rotary& rotary) {
  const RopeConfig& rope = rotary.rope;
  const auto width = static_cast<double>(rotary.width);
  const auto frequency_with = [&](double rotations) {
    const double length = static_cast<double>(rope.original_max_position);
    return width * std::log(length / (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(rope.theta));
  };
  double low = frequency_with(rope.beta_fast);
  double high = frequency_with(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1.0);
  if (low == high) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(index) - low) / (high - low), 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1.0 - ramp);
}

std::vector<double> parse_factors(const JsonObject& scaling, const char* key, int64_t count) {
  std::vector<double> factors = scaling.numbers(key);
  if (static_cast<int64_t>(factors.size()) != count)
    scaling.fail(
        key, fmt::format("holds {} factors; expected {}, half of the elements of a head that are "
                         "rotated",
                         factors.size(), count));
  for (const double factor : factors)
    if (!(factor > 0)) scaling.fail(key, fmt::format("holds {}; factors are above 0", factor));
  return factors;
}

void parse_long_scaling(const JsonObject& scaling, const ModelConfig& config, RopeConfig& rope) {
  rope.theta = parse_theta(scaling, rope.theta);
  const auto [type_key, type] = parse_scaling_type(scaling);
  const auto form = base::from_word<RopeScaling>(type);
  if (form == RopeScaling::none) return;
  // Earlier files of Phi-3 call longrope "su" or "yarn".
  if (form != RopeScaling::longrope && form != RopeScaling::yarn && type != "su")
    scaling.fail(
        type_key,
        fmt::format("is \"{}\", which is not built for this family; it has default and longrope",
                    type));
  rope.scaling = RopeScaling::longrope;
  rope.short_factors = parse_factors(scaling, "short_factor", config.rotary_width() / 2);
  rope.long_factors = parse_factors(scaling, "long_factor", config.rotary_width() / 2);
  const double factor =
      scaling.number_or("factor", static_cast<double>(config.max_position) /
                                      static_cast<double>(rope.original_max_position));
  rope.attention_factor = scaling.number_or(
      "attention_factor", longrope_attention_factor(factor, rope.original_max_position));
  if (!(rope.attention_factor > 0 && rope.attention_factor < kMaxAttentionFactor))
    scaling.fail(
        "attention_factor",
        fmt::format("is {}, or follows as that from original_max_position_embeddings = "
                    "{}; expected a number above 0 and below {}",
                    rope.attention_factor, rope.original_max_position, kMaxAttentionFactor));
}

// Writes only the three keys that transformers 4 allows; it computes the table's factor from
// max_position_embeddings.
void describe_longrope(const RopeConfig& rope, nlohmann::json& json) {
  json["original_max_position_embeddings"] = rope.original_max_position;
  json["rope_scaling"] = {{"type", base::word_of(RopeScaling::longrope)},
                          {"short_factor", rope.short_factors},
                          {"long_factor", rope.long_factors}};
}

void describe_yarn(const RopeConfig& rope, nlohmann::json& scaling) {
  scaling["original_max_position_embeddings"] = rope.original_max_position;
  scaling["attention_factor"] = rope.attention_factor;
  scaling["beta_fast"] = rope.beta_fast;
  scaling["beta_slow"] = rope.beta_slow;
  scaling["truncate"] = rope.truncate;
}

// For one type of layers: whole heads are rotated, or a part of the frequencies.
RopeConfig parse_typed_rope(const JsonObject& scaling, RopeConfig rope) {
  rope.theta = parse_theta(scaling, rope.theta);
  const auto [type_key, type] = parse_scaling_type(scaling);
  const auto form = base::from_word<RopeScaling>(type);
  if (form == RopeScaling::none) {
    refuse_partial(scaling);
    return {.theta = rope.theta};
  }
  if (form != RopeScaling::proportional)
    scaling.fail(type_key, fmt::format("is \"{}\", which is not built for this family; it has "
                                       "default and proportional",
                                       type));
  rope.scaling = RopeScaling::proportional;
  rope.factor = scaling.number_or("factor", 1.0);
  if (!(rope.factor >= 1.0)) scaling.fail("factor", "must be at least 1");
  rope.rotated_part = scaling.number_or(kPartialKey, 1.0);
  if (!(rope.rotated_part >= 0 && rope.rotated_part <= 1))
    scaling.fail(kPartialKey,
                 fmt::format("is {}; expected a number from 0 to 1", rope.rotated_part));
  return rope;
}

nlohmann::json describe_typed_rope(const RopeConfig& rope) {
  nlohmann::json scaling{{"rope_type", base::word_of(rope.scaling)}, {"rope_theta", rope.theta}};
  if (rope.scaling == RopeScaling::none) return scaling;
  scaling[kPartialKey] = rope.rotated_part;
  if (rope.factor != 1.0) scaling["factor"] = rope.factor;
  return scaling;
}

constexpr const char* kFullLayers = "full_attention";
constexpr const char* kWindowLayers = "sliding_attention";

// The frequency of a pair of elements: pairs after the rotated part do not rotate.
double proportional_frequency(double frequency, int64_t pair, const Rotary& rotary) {
  const double part = rotary.rope.rotated_part * static_cast<double>(rotary.width);
  const auto rotated = static_cast<int64_t>(std::floor(part / 2));
  return pair < rotated ? frequency / rotary.rope.factor : 0.0;
}

}  // namespace

RopeConfig parse_rope(const JsonObject& json, const RopeKeys& keys) {
  RopeConfig rope;
  rope.theta = parse_theta(json, keys.absent_theta, keys.theta);
  if (!keys.partial) refuse_partial(json);
  if (const auto object = rope_object(json)) {
    if (!keys.partial) refuse_partial(*object);
    parse_scaling(json, keys.theta, *object, rope);
  }
  return rope;
}

LayerRopes parse_layer_ropes(const JsonObject& json, double full_theta, double local_theta) {
  LayerRopes ropes;
  refuse_partial(json);
  ropes.full.theta = parse_theta(json, full_theta);
  ropes.local.theta = parse_theta(json, local_theta, "rope_local_base_freq");
  if (json.has(kScalingKey)) {
    if (json.has(kParametersKey))
      json.fail(kScalingKey,
                "stands next to rope_parameters, of which it changes a part; give one");
    const JsonObject scaling = json.object(kScalingKey);
    if (scaling.has("type") && !scaling.has("rope_type"))
      scaling.fail("type", "has no effect in transformers 5 for this family; call it rope_type");
    parse_scaling(json, kThetaKey, scaling, ropes.full);
  }
  if (!json.has(kParametersKey)) return ropes;
  const JsonObject parameters = json.object(kParametersKey);
  for (const auto& [type, rope] :
       {std::pair{kFullLayers, &ropes.full}, std::pair{kWindowLayers, &ropes.local}}) {
    if (!parameters.has(type)) json.fail(kParametersKey, fmt::format("says nothing of {}", type));
    refuse_partial(parameters.object(type));
    parse_scaling(json, kThetaKey, parameters.object(type), *rope);
  }
  if (ropes.local.scaling != RopeScaling::none)
    json.fail(kParametersKey, "scales the rotation of sliding_attention, which is not built");
  return ropes;
}

LayerRopes parse_typed_ropes(const JsonObject& json, const LayerRopes& absent) {
  if (json.has(kScalingKey))
    json.fail(kScalingKey,
              "is no key of this family; rope_parameters has an object for each type "
              "of layer");
  if (!json.has(kParametersKey)) return absent;
  const JsonObject parameters = json.object(kParametersKey);
  const auto of_type = [&](const char* type, const RopeConfig& unless_given) {
    if (!parameters.has(type)) json.fail(kParametersKey, fmt::format("says nothing of {}", type));
    return parse_typed_rope(parameters.object(type), {.theta = unless_given.theta});
  };
  return {of_type(kFullLayers, absent.full), of_type(kWindowLayers, absent.local)};
}

void describe_typed_ropes(const LayerRopes& ropes, nlohmann::json& json) {
  json.erase(kThetaKey);
  json.erase(kScalingKey);
  json[kParametersKey] = {{kFullLayers, describe_typed_rope(ropes.full)},
                          {kWindowLayers, describe_typed_rope(ropes.local)}};
}

double parse_partial_rotary(const JsonObject& json, int64_t head_dim, double absent,
                            const char* key) {
  const auto object = rope_object(json);
  const bool within = object && object->has(kPartialKey);
  const JsonObject holder = within ? *object : json;
  if (within) key = kPartialKey;
  const double factor = holder.number_or(key, absent);
  if (!(factor > 0 && factor <= 1))
    holder.fail(key, fmt::format("is {}; expected a number above 0, at most 1", factor));
  const int64_t rotated = rotated_elements(head_dim, factor);
  if (rotated >= 2 && rotated % 2 == 0) return factor;
  const bool given = holder.has(key);
  holder.fail(key,
              fmt::format("is {}{}, which rotates {} of the {} elements of a head; expected an "
                          "even number of at least 2",
                          given ? "" : "absent and stands for ", factor, rotated, head_dim));
}

double longrope_attention_factor(double factor, int64_t original_max_position) {
  if (factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original_max_position)));
}

RopeConfig parse_longrope(const JsonObject& json, const ModelConfig& config) {
  RopeConfig rope;
  rope.theta = parse_theta(json, rope.theta);
  // transformers reads this key from the top level, whatever the scaling object says.
  rope.original_max_position = positive_or(json, "original_max_position_embeddings", 4096);
  if (const auto object = rope_object(json)) parse_long_scaling(*object, config, rope);
  return rope;
}

void describe_rope(const RopeConfig& rope, nlohmann::json& json) {
  json["rope_theta"] = rope.theta;
  json["rope_scaling"] = nullptr;
  if (rope.scaling == RopeScaling::none) return;
  if (rope.scaling == RopeScaling::longrope) return describe_longrope(rope, json);
  nlohmann::json& scaling = json["rope_scaling"];
  scaling["rope_type"] = base::word_of(rope.scaling);
  scaling["factor"] = rope.factor;
  if (rope.scaling == RopeScaling::linear || rope.scaling == RopeScaling::dynamic) return;
  if (rope.scaling == RopeScaling::yarn) return describe_yarn(rope, scaling);
  scaling["low_freq_factor"] = rope.low_freq_factor;
  scaling["high_freq_factor"] = rope.high_freq_factor;
  scaling["original_max_position_embeddings"] = rope.original_max_position;
}

std::string local_frequencies_name() { return "inverse_frequencies.local"; }

std::string frequencies_name(const Rotary& rotary, int64_t sequence_tokens) {
  return rotary.rope.uses_long_factors(sequence_tokens) ? "inverse_frequencies.long"
                                                        : "inverse_frequencies";
}

// Dynamic scaling does not change the frequencies here: no sequence is longer than
// max_position_embeddings.
std::vector<float> inverse_frequencies(const Rotary& rotary, int64_t sequence_tokens) {
  std::vector<float> result;
  const RopeConfig& rope = rotary.rope;
  const auto& factors =
      rope.uses_long_factors(sequence_tokens) ? rope.long_factors : rope.short_factors;
  for (int64_t i = 0; i < rotary.width / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(rotary.width);
    double frequency = 1.0 / std::pow(rope.theta, exponent);
    if (rope.scaling == RopeScaling::linear) frequency /= rope.factor;
    if (rope.scaling == RopeScaling::llama3) frequency = llama3_frequency(frequency, rope);
    if (rope.scaling == RopeScaling::yarn) frequency = yarn_frequency(frequency, i, rotary);
    if (rope.scaling == RopeScaling::proportional)
      frequency = proportional_frequency(frequency, i, rotary);
    if (rope.scaling == RopeScaling::longrope) frequency /= factors[static_cast<size_t>(i)];
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

std::vector<float> inverse_frequencies(const ModelConfig& config, int64_t sequence_tokens) {
  return inverse_frequencies(stack_of(config).rotary, sequence_tokens);
}

bool reads_rotary(const Stack& stack, base::TokenStream stream, bool local) {
  const bool is_encoder = stream == base::TokenStream::encoder;
  for (int64_t index = 0; index < stack.layer_count(); ++index)
    for (const Branch& branch : stack.layer(index).branches) {
      const auto* attention = std::get_if<AttentionBlock>(&branch.block);
      if (attention == nullptr || !attention->rotated || attention->local_rotary != local) continue;
      if (index < stack.encoder_layers() ? is_encoder : !is_encoder || attention->reads_encoder)
        return true;
    }
  return false;
}

}  // namespace snug::models
