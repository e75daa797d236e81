#include "models/gguf/imported_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/gguf/gguf_family.h"

namespace snug::models {
namespace {

using formats::GgmlType;
using formats::GgufFile;
using formats::GgufTensorInfo;
using formats::MetadataView;

// A tensor of divisors, one for each pair of the rotated elements; empty if the file has none.
std::vector<float> divisors_of(const GgufFile& file, std::string_view name, int64_t pairs) {
  const GgufTensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return {};
  const MetadataView view(file.metadata(), file.path().string());
  if (tensor->type != GgmlType::f32 || tensor->elements() != pairs)
    base::throw_user_error(
        "{}: tensor '{}' does not hold {} values in F32, one for each pair of rotated elements",
        file.path().string(), name, pairs);
  std::vector<float> values(static_cast<size_t>(pairs));
  file.read_range(*tensor, 0, std::as_writable_bytes(std::span(values)));
  for (const float value : values)
    if (!(value > 0) || !std::isfinite(value))
      base::throw_user_error("{}: tensor '{}' holds {}; divisors of frequencies are above 0",
                             file.path().string(), name, value);
  return values;
}

class RopeImport {
 public:
  RopeImport(const GgufFile& file, const MetadataView& metadata, const std::string& architecture,
             ModelConfig& config)
      : file_(file), metadata_(metadata), prefix_(architecture + ".rope."), config_(config) {}

  void import() {
    if (gguf_family(config_.model_type).factors_of_full_layers) return import_full_layers();
    import_width();
    config_.rope.theta = number("freq_base", 10000.0);
    if (!(config_.rope.theta > 0)) metadata_.fail(prefix_ + "freq_base", "is not above 0");
    if (config_.model_type == "gemma3_text")
      config_.local_rope.emplace().theta = number("freq_base_swa", 10000.0);
    if (config_.model_type == "phi3") return import_longrope();
    import_scaling();
    const std::vector<float> divisors = divisors_of(file_, "rope_freqs.weight", pairs());
    if (!divisors.empty()) import_divisors(divisors);
  }

 private:
  double number(const char* key, double absent) const {
    return metadata_.number_or(prefix_ + key, absent);
  }
  int64_t pairs() const { return config_.rotary_width() / 2; }

  // The number of rotated elements becomes a share of the head, which must give the same number.
  void import_width() {
    const std::string key = prefix_ + "dimension_count";
    const int64_t width = metadata_.integer_or(key, config_.head_dim);
    if (width < 2 || width > config_.head_dim || width % 2 != 0)
      metadata_.fail(key, fmt::format("is {}; heads have {} elements, of which an even number of 2 "
                                      "or more is rotated",
                                      width, config_.head_dim));
    const std::string& type = config_.model_type;
    if (width < config_.head_dim && !gguf_family(type).rotates_part)
      metadata_.fail(key, fmt::format("is {} of the {} elements of a head; Snug's {} rotates whole "
                                      "heads",
                                      width, config_.head_dim, type));
    config_.partial_rotary_factor =
        static_cast<double>(width) / static_cast<double>(config_.head_dim);
    if (config_.rotary_width() < width)  // rounding went below the integer
      config_.partial_rotary_factor = std::nextafter(config_.partial_rotary_factor, 2.0);
  }

  // Layers without a window have a tensor of divisors, which are one number for the pairs that
  // rotate, and so large for the pairs after these that they stay where they are.
  void import_full_layers() {
    constexpr float kLeastOfNoRotation = 1e20F;
    config_.local_rope.emplace().theta = number("freq_base_swa", 10000.0);
    RopeConfig& rope = config_.rope;
    rope.theta = number("freq_base", 10000.0);
    if (!(rope.theta > 0)) metadata_.fail(prefix_ + "freq_base", "is not above 0");
    require_width("dimension_count", config_.full_head_dim);
    require_width("dimension_count_swa", config_.head_dim);
    const std::vector<float> divisors =
        divisors_of(file_, "rope_freqs.weight", config_.full_head_dim / 2);
    const auto rotated = static_cast<size_t>(std::ranges::count_if(
        divisors, [](float divisor) { return divisor < kLeastOfNoRotation; }));
    const float factor = rotated > 0 ? divisors.front() : 1.0F;
    for (size_t pair = 0; pair < rotated; ++pair)
      if (divisors[pair] != factor || factor < 1.0F)
        base::throw_user_error(
            "{}: tensor 'rope_freqs.weight' divides frequencies in another way than by one number "
            "of at least 1 for the pairs that rotate, which come first, as Snug's {} does",
            file_.path().string(), config_.model_type);
    if (divisors.empty()) return;
    rope.scaling = RopeScaling::proportional;
    rope.factor = factor;
    rope.rotated_part = static_cast<double>(rotated) / static_cast<double>(divisors.size());
    const auto pairs_of = [&](double part) {
      return std::floor(part * static_cast<double>(config_.full_head_dim) / 2);
    };
    if (pairs_of(rope.rotated_part) < static_cast<double>(rotated))
      rope.rotated_part = std::nextafter(rope.rotated_part, 2.0);
  }

  void require_width(const char* name, int64_t head_dim) const {
    const std::string key = prefix_ + name;
    if (metadata_.integer_or(key, head_dim) != head_dim)
      metadata_.fail(key, fmt::format("is not {}, the elements of a head, which Snug's {} rotates "
                                      "whole",
                                      head_dim, config_.model_type));
  }

  void import_scaling() {
    RopeConfig& rope = config_.rope;
    const std::string key = prefix_ + "scaling.type";
    const std::string type = metadata_.has(key) ? metadata_.text(key) : "linear";
    const double factor = number("scaling.factor", number("scale_linear", 1.0));
    if (type == "none" || (type == "linear" && (factor == 1.0 || factor == 0.0))) return;
    if (type != "linear" && type != "yarn")
      metadata_.fail(key, fmt::format("is '{}'; Snug's {} has none, linear and yarn", type,
                                      config_.model_type));
    if (!(factor >= 1.0))
      metadata_.fail(prefix_ + "scaling.factor", fmt::format("is {}, below 1", factor));
    rope.factor = factor;
    rope.scaling = type == "yarn" ? RopeScaling::yarn : RopeScaling::linear;
    if (rope.scaling == RopeScaling::yarn) import_yarn();
  }

  int64_t original_positions() const {
    const std::string key = prefix_ + "scaling.original_context_length";
    const int64_t positions = metadata_.integer_or(key, config_.max_position);
    if (positions < 1 || positions > (int64_t{1} << 30))
      metadata_.fail(key, fmt::format("is {}; expected a number of positions", positions));
    return positions;
  }

  // The factor of the table is what llama.cpp multiplies it by, unless the converter kept the
  // model's own.
  void import_yarn() {
    RopeConfig& rope = config_.rope;
    rope.original_max_position = original_positions();
    rope.beta_fast = number("scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = number("scaling.yarn_beta_slow", 1.0);
    rope.truncate = config_.model_type != "gpt_oss";  // of which published models have no rounding
    const auto grown = [&](double scale) { return 0.1 * scale * std::log(rope.factor) + 1.0; };
    const double shrunk = grown(number("scaling.yarn_log_multiplier", 0.0));
    const double theirs = grown(1.0) / shrunk * number("scaling.attn_factor", 1.0);
    rope.attention_factor = number("scaling.yarn_attn_factor", theirs);
  }

  void import_longrope() {
    RopeConfig& rope = config_.rope;
    const std::vector<float> longs = divisors_of(file_, "rope_factors_long.weight", pairs());
    const std::vector<float> shorts = divisors_of(file_, "rope_factors_short.weight", pairs());
    rope.original_max_position = original_positions();
    if (longs.empty() && shorts.empty()) return;
    if (longs.empty() || shorts.empty())
      base::throw_user_error(
          "{}: of the tensors rope_factors_long.weight and rope_factors_short.weight the file has "
          "one; a model has both or neither",
          file_.path().string());
    rope.scaling = RopeScaling::longrope;
    const auto written = [](const std::vector<float>& values) {
      std::vector<double> list;
      list.reserve(values.size());
      for (const float value : values) list.push_back(std::stod(fmt::format("{}", value)));
      return list;
    };
    rope.long_factors = written(longs);
    rope.short_factors = written(shorts);
    const double factor =
        static_cast<double>(config_.max_position) / static_cast<double>(rope.original_max_position);
    rope.attention_factor = number("scaling.attn_factor",
                                   longrope_attention_factor(factor, rope.original_max_position));
  }

  void import_divisors(const std::vector<float>& divisors) {
    if (std::ranges::all_of(divisors, [](float divisor) { return divisor == 1.0F; })) return;
    const auto scaling = llama3_scaling(divisors, config_.rope.theta);
    if (!scaling || config_.rope.scaling != RopeScaling::none ||
        !gguf_family(config_.model_type).rotary_factors)
      base::throw_user_error(
          "{}: tensor 'rope_freqs.weight' divides the rotary frequencies in another way than "
          "Llama 3's scaling, which is the one that Snug's {} has",
          file_.path().string(), config_.model_type);
    config_.rope = *scaling;
  }

  const GgufFile& file_;
  const MetadataView& metadata_;
  std::string prefix_;
  ModelConfig& config_;
};

// The divisors that a scaling gives, by the family's own rule.
std::vector<float> divisors_by(const RopeConfig& scaling, size_t pairs) {
  Rotary rotary;
  rotary.width = static_cast<int64_t>(2 * pairs);
  rotary.rope = scaling;
  const std::vector<float> scaled = inverse_frequencies(rotary);
  rotary.rope.scaling = RopeScaling::none;
  std::vector<float> divisors = inverse_frequencies(rotary);
  for (size_t i = 0; i < pairs; ++i) divisors[i] /= scaled[i];
  return divisors;
}

bool gives(const RopeConfig& scaling, const std::vector<float>& divisors) {
  constexpr float kTolerance = 2e-5F;  // converters compute them in fp32
  const std::vector<float> given = divisors_by(scaling, divisors.size());
  for (size_t i = 0; i < divisors.size(); ++i)
    if (!(std::abs(given[i] - divisors[i]) <= kTolerance * divisors[i])) return false;
  return true;
}

// The ramp between the bands is a straight line over the frequency: its slope and where it crosses
// zero give both ends, in frequencies at which a band begins.
struct Ramp {
  double low = 0;   // up to this frequency the whole factor divides
  double high = 0;  // from this frequency on nothing does
};

std::vector<Ramp> fitted_ramps(const std::vector<float>& divisors, double factor, double theta) {
  double count = 0;
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  double above = INFINITY;  // the lowest frequency that nothing divides
  double below = 0;         // the highest that the whole factor divides
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double x =
        std::pow(theta, -static_cast<double>(i) / static_cast<double>(divisors.size()));
    const double y = (1.0 / static_cast<double>(divisors[i]) - 1.0 / factor) / (1.0 - 1.0 / factor);
    if (y > 1.0 - 1e-6) above = std::min(above, x);
    if (y < 1e-6) below = std::max(below, x);
    if (y > 1.0 - 1e-6 || y < 1e-6) continue;
    ++count;
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const double spread = count * sum_xx - sum_x * sum_x;
  if (count >= 2 && spread > 0) {
    const double slope = (count * sum_xy - sum_x * sum_y) / spread;
    const double offset = (sum_y - slope * sum_x) / count;
    return {{-offset / slope, (1.0 - offset) / slope}};
  }
  std::vector<Ramp> ramps;
  if (count == 1)  // any ratio of both ends has a ramp through one point
    for (const double ratio : {4.0, 8.0, 2.0, 3.0, 6.0, 1.5, 1.25, 16.0, 1.0625}) {
      const double low = sum_x / ((ratio - 1.0) * sum_y + 1.0);
      ramps.push_back({low, ratio * low});
    }
  if (count == 0 && std::isfinite(above)) ramps.push_back({below, above});
  return ramps;
}

// Sets the numbers behind the ramp; false where they do not give the divisors.
bool with_ramp(RopeConfig& rope, const Ramp& ramp, const std::vector<float>& divisors) {
  if (!(ramp.low > 0) || !(ramp.high > ramp.low)) return false;
  const double positions = 2.0 * std::numbers::pi / ramp.low;  // for a low_freq_factor of 1
  if (!(positions < 1e12)) return false;
  for (int multiple = 1; multiple <= 64; ++multiple) {
    rope.low_freq_factor = multiple;
    rope.high_freq_factor = multiple * ramp.high / ramp.low;
    if (const double rounded = std::round(rope.high_freq_factor * 64) / 64;
        std::abs(rounded - rope.high_freq_factor) < 1e-3 * rounded)
      rope.high_freq_factor = rounded;
    rope.original_max_position = std::llround(positions * multiple);
    if (rope.original_max_position >= 1 && gives(rope, divisors)) return true;
  }
  return false;
}

}  // namespace

std::optional<RopeConfig> llama3_scaling(const std::vector<float>& divisors, double theta) {
  RopeConfig rope;
  rope.theta = theta;
  rope.scaling = RopeScaling::llama3;
  rope.factor = std::stod(fmt::format("{}", *std::ranges::max_element(divisors)));
  if (!(rope.factor > 1.0)) return std::nullopt;
  // What Llama 3.1 and 3.2 have, whose numbers are then exact.
  rope.original_max_position = 8192;
  if (gives(rope, divisors)) return rope;
  for (const Ramp& ramp : fitted_ramps(divisors, rope.factor, theta))
    if (with_ramp(rope, ramp, divisors)) return rope;
  return std::nullopt;
}

void import_rope(const GgufFile& file, const MetadataView& metadata,
                 const std::string& architecture, ModelConfig& config) {
  if (config.positions == Positions::rotary)
    RopeImport(file, metadata, architecture, config).import();
}

}  // namespace snug::models
