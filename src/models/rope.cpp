#include "models/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "models/config_keys.h"

namespace snug::models {
namespace {

using base::JsonObject;

void parse_scaling(const JsonObject& scaling, RopeConfig& rope) {
  rope.theta = scaling.number_or("rope_theta", rope.theta);
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (scaling.number_or("partial_rotary_factor", 1.0) != 1.0)
    scaling.fail("partial_rotary_factor", "is not 1; snug rotates whole heads only");
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

}  // namespace

RopeConfig parse_rope(const JsonObject& json) {
  RopeConfig rope;
  rope.theta = json.number_or("rope_theta", rope.theta);
  if (json.number_or("partial_rotary_factor", 1.0) != 1.0)
    json.fail("partial_rotary_factor", "is not 1; snug rotates whole heads only");
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (json.has(key)) parse_scaling(json.object(key), rope);
  return rope;
}

void describe_rope(const RopeConfig& rope, nlohmann::json& json) {
  json["rope_theta"] = rope.theta;
  json["rope_scaling"] = nullptr;
  if (rope.scaling == RopeScaling::none) return;
  nlohmann::json& scaling = json["rope_scaling"];
  scaling["rope_type"] = rope.scaling == RopeScaling::linear ? "linear" : "llama3";
  scaling["factor"] = rope.factor;
  if (rope.scaling == RopeScaling::linear) return;
  scaling["low_freq_factor"] = rope.low_freq_factor;
  scaling["high_freq_factor"] = rope.high_freq_factor;
  scaling["original_max_position_embeddings"] = rope.original_max_position;
}

std::vector<float> inverse_frequencies(const ModelConfig& config) {
  std::vector<float> result;
  for (int64_t i = 0; i < config.head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double frequency = 1.0 / std::pow(config.rope.theta, exponent);
    if (config.rope.scaling == RopeScaling::linear) frequency /= config.rope.factor;
    if (config.rope.scaling == RopeScaling::llama3)
      frequency = llama3_frequency(frequency, config.rope);
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

}  // namespace snug::models
