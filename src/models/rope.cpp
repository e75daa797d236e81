#include "models/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "models/config_keys.h"

namespace snug::models {
namespace {

using base::JsonObject;

void refuse_partial(const JsonObject& json) {
  if (json.number_or("partial_rotary_factor", 1.0) != 1.0)
    json.fail("partial_rotary_factor", "is not 1; snug rotates whole heads only");
}

double parse_theta(const JsonObject& json, double fallback) {
  const double theta = json.number_or("rope_theta", fallback);
  if (!(theta > 0)) json.fail("rope_theta", fmt::format("is {}; expected a number above 0", theta));
  return theta;
}

void parse_scaling(const JsonObject& scaling, RopeConfig& rope) {
  rope.theta = parse_theta(scaling, rope.theta);
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    scaling.fail("rope_type",
                 fmt::format("is \"{}\", which is not built for this family; it has default, "
                             "linear and llama3",
                             type));
  rope.factor = scaling.number("factor");
  if (!(rope.factor >= 1.0)) scaling.fail("factor", "must be at least 1");
  rope.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::llama3;
  if (rope.scaling == RopeScaling::linear) return;
  rope.low_freq_factor = scaling.number("low_freq_factor");
  rope.high_freq_factor = scaling.number("high_freq_factor");
  rope.original_max_position = positive(scaling, "original_max_position_embeddings");
  if (!(rope.high_freq_factor > rope.low_freq_factor))
    scaling.fail("high_freq_factor", "must be above low_freq_factor");
}

// Llama 3.1's smooth scaling, as transformers computes it (modeling_rope_utils, "llama3").
double llama3_frequency(double frequency, const RopeConfig& rope) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(rope.original_max_position);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

std::vector<double> parse_factors(const JsonObject& scaling, const char* key, int64_t count) {
  std::vector<double> factors = scaling.numbers(key);
  if (static_cast<int64_t>(factors.size()) != count)
    scaling.fail(
        key, fmt::format("holds {} factors; expected head_dim / 2 = {}", factors.size(), count));
  for (const double factor : factors)
    if (!(factor > 0)) scaling.fail(key, fmt::format("holds {}; factors are above 0", factor));
  return factors;
}

void parse_long_scaling(const JsonObject& scaling, const ModelConfig& config, RopeConfig& rope) {
  rope.theta = parse_theta(scaling, rope.theta);
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (type == "default") return;
  if (type != "longrope" && type != "su" && type != "yarn")
    scaling.fail(
        "rope_type",
        fmt::format("is \"{}\", which is not built for this family; it has default and longrope",
                    type));
  rope.scaling = RopeScaling::longrope;
  rope.short_factors = parse_factors(scaling, "short_factor", config.head_dim / 2);
  rope.long_factors = parse_factors(scaling, "long_factor", config.head_dim / 2);
  const double factor =
      scaling.number_or("factor", static_cast<double>(config.max_position) /
                                      static_cast<double>(rope.original_max_position));
  rope.attention_factor = scaling.number_or(
      "attention_factor", longrope_attention_factor(factor, rope.original_max_position));
}

// Three keys and no more, which is what transformers 4 allows; the factor of the table follows from
// max_position_embeddings.
void describe_longrope(const RopeConfig& rope, nlohmann::json& json) {
  json["original_max_position_embeddings"] = rope.original_max_position;
  json["rope_scaling"] = {{"type", "longrope"},
                          {"short_factor", rope.short_factors},
                          {"long_factor", rope.long_factors}};
}

}  // namespace

RopeConfig parse_rope(const JsonObject& json) {
  RopeConfig rope;
  rope.theta = parse_theta(json, rope.theta);
  refuse_partial(json);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!json.has(key)) continue;
    refuse_partial(json.object(key));
    parse_scaling(json.object(key), rope);
  }
  return rope;
}

double longrope_attention_factor(double factor, int64_t original_max_position) {
  if (factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original_max_position)));
}

RopeConfig parse_longrope(const JsonObject& json, const ModelConfig& config) {
  RopeConfig rope;
  rope.theta = parse_theta(json, rope.theta);
  // transformers takes this from the top, whatever the scaling says.
  rope.original_max_position = positive_or(json, "original_max_position_embeddings", 4096);
  refuse_partial(json);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!json.has(key)) continue;
    refuse_partial(json.object(key));
    parse_long_scaling(json.object(key), config, rope);
  }
  return rope;
}

void describe_rope(const RopeConfig& rope, nlohmann::json& json) {
  json["rope_theta"] = rope.theta;
  json["rope_scaling"] = nullptr;
  if (rope.scaling == RopeScaling::none) return;
  if (rope.scaling == RopeScaling::longrope) return describe_longrope(rope, json);
  nlohmann::json& scaling = json["rope_scaling"];
  scaling["rope_type"] = rope.scaling == RopeScaling::linear ? "linear" : "llama3";
  scaling["factor"] = rope.factor;
  if (rope.scaling == RopeScaling::linear) return;
  scaling["low_freq_factor"] = rope.low_freq_factor;
  scaling["high_freq_factor"] = rope.high_freq_factor;
  scaling["original_max_position_embeddings"] = rope.original_max_position;
}

std::string frequencies_name(const ModelConfig& config, int64_t sequence_tokens) {
  return config.rope.uses_long_factors(sequence_tokens) ? "inverse_frequencies.long"
                                                        : "inverse_frequencies";
}

std::vector<float> inverse_frequencies(const ModelConfig& config, int64_t sequence_tokens) {
  std::vector<float> result;
  const RopeConfig& rope = config.rope;
  const auto& factors =
      rope.uses_long_factors(sequence_tokens) ? rope.long_factors : rope.short_factors;
  for (int64_t i = 0; i < config.head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double frequency = 1.0 / std::pow(rope.theta, exponent);
    if (rope.scaling == RopeScaling::linear) frequency /= rope.factor;
    if (rope.scaling == RopeScaling::llama3) frequency = llama3_frequency(frequency, rope);
    if (rope.scaling == RopeScaling::longrope) frequency /= factors[static_cast<size_t>(i)];
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

}  // namespace snug::models
