// How positions rotate queries and keys: the frequencies of a rotary embedding as config.json says
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/words.h"

namespace snug::models {

enum class RopeScaling : uint8_t {
  none,
  linear,    // every frequency divided by `factor` (Code Llama's and Llama 2's long forms)
  llama3,    // low frequencies divided, high ones kept, smooth in between (Llama 3.1, 3.2)
  yarn,      // fast frequencies kept, slow ones divided, a ramp between (Peng et al. 2023)
  longrope,  // each frequency divided by a factor of its own (Phi-3's 128k form)
  dynamic,   // theta grows with a sequence that is longer than max_position_embeddings, and only
             // then
};

// What config.json calls them.
constexpr auto words_of(RopeScaling /*type*/) {
  return base::words<RopeScaling>({{RopeScaling::none, "default"},
                                   {RopeScaling::linear, "linear"},
                                   {RopeScaling::llama3, "llama3"},
                                   {RopeScaling::yarn, "yarn"},
                                   {RopeScaling::longrope, "longrope"},
                                   {RopeScaling::dynamic, "dynamic"}});
}

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // yarn: rotations within the original positions, from which on a frequency is kept, and up to
  // which it is divided.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // the ramp begins and ends at whole frequencies
  int64_t original_max_position = 8192;
  // longrope: half as many divisors as a head has elements. The long ones hold for a job whose
  // sequences may be longer than original_max_position, the short ones for every other.
  std::vector<double> short_factors;
  std::vector<double> long_factors;
  double attention_factor = 1.0;  // of the rotary table: scores grow by its square

  bool uses_long_factors(int64_t sequence_tokens) const {
    return scaling == RopeScaling::longrope && sequence_tokens > original_max_position;
  }
};

// How many elements of a head are rotated, where this part of it is.
inline int64_t rotated_elements(int64_t head_dim, double factor) {
  return static_cast<int64_t>(static_cast<double>(head_dim) * factor);
}

}  // namespace snug::models
