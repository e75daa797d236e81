// How positions rotate queries and keys: the settings of a rotary embedding in config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "base/words.h"

namespace snug::models {

enum class RopeScaling : uint8_t {
  none,
  linear,    // every frequency is divided by `factor` (Code Llama's and Llama 2's long forms)
  llama3,    // low frequencies divided, high ones kept, smooth in between (Llama 3.1, 3.2)
  yarn,      // fast frequencies are kept, slow ones divided, with a ramp between (Peng et al. 2023)
  longrope,  // each frequency is divided by a factor of its own (Phi-3's 128k form)
  // Theta grows, but only for sequences longer than max_position_embeddings.
  dynamic,
  // Only the fastest frequencies rotate; pairs after these stay as they are, and all frequencies
  // are divided by `factor` (Gemma 4).
  proportional,
};

// Their names in config.json.
constexpr auto words_of(RopeScaling /*type*/) {
  return base::words<RopeScaling>({{RopeScaling::none, "default"},
                                   {RopeScaling::linear, "linear"},
                                   {RopeScaling::llama3, "llama3"},
                                   {RopeScaling::yarn, "yarn"},
                                   {RopeScaling::longrope, "longrope"},
                                   {RopeScaling::dynamic, "dynamic"},
                                   {RopeScaling::proportional, "proportional"}});
}

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // For yarn: a frequency that makes at least beta_fast rotations within the original positions is
  // kept, and one that makes at most beta_slow is divided.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // the ramp begins and ends at integer indices
  int64_t original_max_position = 8192;
  // For longrope: divisors, one for each pair of a head's elements. The long ones apply to a job
  // whose sequences may be longer than original_max_position, the short ones to every other job.
  std::vector<double> short_factors{};
  std::vector<double> long_factors{};
  double attention_factor = 1.0;  // factor of the rotary table: scores grow by its square
  double rotated_part = 1.0;      // for proportional: of the frequencies
  // Queries at position p are multiplied by 1 + query_beta ln(1 + floor(p /
  // original_max_position)).
  double query_beta = 0;

  bool uses_long_factors(int64_t sequence_tokens) const {
    return scaling == RopeScaling::longrope && sequence_tokens > original_max_position;
  }
};

// The number of a head's elements that are rotated, for this rotated part.
inline int64_t rotated_elements(int64_t head_dim, double factor) {
  return static_cast<int64_t>(static_cast<double>(head_dim) * factor);
}

}  // namespace snug::models
