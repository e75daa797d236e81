// Rotary embeddings of a model: how config.json says them, and the frequencies that follow.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/token_streams.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// What differs between families that say their rotation in the same keys.
struct RopeKeys {
  bool partial = false;              // the family may rotate a part of each head; others refuse it
  const char* theta = "rope_theta";  // what transformers 4 calls theta
  double absent_theta = 10000.0;     // what a file means that gives none
};

// Reads theta with rope_scaling (transformers 4) or rope_parameters (transformers 5), whose own
// rope_theta counts where both are given. Of a file that has both objects rope_scaling counts, as
// in transformers. Throws UserError for a form of scaling that is not built,
// naming those that are: default, linear, dynamic, llama3, yarn.
RopeConfig parse_rope(const base::JsonObject& json, const RopeKeys& keys = {});

// Reads which part of a head is rotated: a number above 0 and at most 1, of which the head's
// rotated elements follow (rotated_elements). transformers 5 writes it as partial_rotary_factor
// within rope_parameters, which counts where it is there; transformers 4 writes it at the top of
// the file, under `key`. `absent` is what a file means that has neither. Throws UserError, naming
// the key that the file has, unless an even number of at least 2 of the `head_dim` elements is
// rotated: they are rotated in pairs.
double parse_partial_rotary(const base::JsonObject& json, int64_t head_dim, double absent,
                            const char* key = "partial_rotary_factor");

// The forms of a family whose layers with a window rotate otherwise than those without: their theta
// is rope_local_base_freq (transformers 4), or rope_parameters has an object for each type of layer
// (5). Layers with a window have no scaling.
struct LayerRopes {
  RopeConfig full;
  RopeConfig local;
};
LayerRopes parse_layer_ropes(const base::JsonObject& json, double full_theta, double local_theta);

// Parses the form of a family that has default and longrope (Ding et al. 2024), which earlier files
// call su or yarn. Reads the shape from `config`.
RopeConfig parse_longrope(const base::JsonObject& json, const ModelConfig& config);
// sqrt(1 + ln(factor) / ln(original)), 1 where factor = max_position / original is not above 1:
// what makes up for scores that spread over more keys. It multiplies cosines and sines.
double longrope_attention_factor(double factor, int64_t original_max_position);

// Writes transformers 4's keys, which 5 reads too.
void describe_rope(const RopeConfig& rope, nlohmann::json& json);

// Inverse frequencies, width / 2 of them, with the model's scaling, for a job whose sequences have
// at most `sequence_tokens` tokens: longrope has two sets of factors and chooses by it.
std::vector<float> inverse_frequencies(const Rotary& rotary, int64_t sequence_tokens = 0);
std::vector<float> inverse_frequencies(const ModelConfig& config, int64_t sequence_tokens = 0);
// The tensor that holds them in a program: "inverse_frequencies", or "inverse_frequencies.long".
std::string frequencies_name(const Rotary& rotary, int64_t sequence_tokens);
// The name of the frequencies of the stack's second table.
std::string local_frequencies_name();

// Whether a block rotates rows of this stream by the stack's table, or by the second one.
bool reads_rotary(const Stack& stack, base::TokenStream stream, bool local);

// Every tensor of frequencies that some program of the model may read, with its values.
struct FrequencyTensor {
  std::string name;
  std::vector<float> values;
};
std::vector<FrequencyTensor> frequency_tensors(const ModelConfig& config);

}  // namespace snug::models
