// Rotary embeddings of a model: how config.json describes them, and the frequencies that follow
// from it.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/token_streams.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// Differences between families that describe their rotation with the same keys.
struct RopeKeys {
  bool partial = false;              // the family may rotate only a part of each head
  const char* theta = "rope_theta";  // transformers 4's key for theta
  double absent_theta = 10000.0;     // theta of a file that gives none
};

// The object that describes the rotation: like transformers, rope_scaling rather than
// rope_parameters where a file has both. Nothing where it has neither, or an empty one.
std::optional<base::JsonObject> rope_object(const base::JsonObject& json);

// Reads theta with rope_scaling (transformers 4) or rope_parameters (transformers 5), whose own
// rope_theta takes precedence. Where a file has both objects, rope_scaling is used, as in
// transformers. Throws UserError for a form of scaling that is not built, naming those that are:
// default, linear, dynamic, llama3, yarn.
RopeConfig parse_rope(const base::JsonObject& json, const RopeKeys& keys = {});

// Parses which part of a head is rotated: a number above 0 and at most 1, which gives the number of
// rotated elements (rotated_elements). transformers 5 writes it as partial_rotary_factor within
// rope_parameters, which takes precedence; transformers 4 writes it at the top of the file, under
// `key`. `absent` is the default. Elements are rotated in pairs, so throws UserError, naming the
// key that the file has, unless an even number of at least 2 of the `head_dim` elements is rotated.
double parse_partial_rotary(const base::JsonObject& json, int64_t head_dim, double absent,
                            const char* key = "partial_rotary_factor");

// For families whose layers with a window have another rotation than those without. Their theta is
// rope_local_base_freq (transformers 4), or rope_parameters has an object for each type of layer
// (transformers 5). Layers with a window have no scaling.
struct LayerRopes {
  RopeConfig full;
  RopeConfig local;
};
LayerRopes parse_layer_ropes(const base::JsonObject& json, double full_theta, double local_theta);

// For families whose rope_parameters always have an object for each type of layer, of which that
// for layers without a window may have the form proportional. Without the key both are `absent`.
LayerRopes parse_typed_ropes(const base::JsonObject& json, const LayerRopes& absent);
// Writes rope_parameters so.
void describe_typed_ropes(const LayerRopes& ropes, nlohmann::json& json);

// Parses the rotation of a family that supports the forms default and longrope (Ding et al. 2024),
// which earlier files call su or yarn. Takes the sizes, and the part of a head that is rotated,
// from `config`.
RopeConfig parse_longrope(const base::JsonObject& json, const ModelConfig& config);
// sqrt(1 + ln(factor) / ln(original)), or 1 where factor = max_position / original is at most 1. It
// multiplies cosines and sines, to compensate for scores that spread over more keys.
double longrope_attention_factor(double factor, int64_t original_max_position);

// Writes the keys of transformers 4, which transformers 5 reads too.
void describe_rope(const RopeConfig& rope, nlohmann::json& json);

// The inverse frequencies (width / 2), with the model's scaling, for a job whose sequences have at
// most `sequence_tokens` tokens: longrope has two sets of factors and chooses between them by this
// length.
std::vector<float> inverse_frequencies(const Rotary& rotary, int64_t sequence_tokens = 0);
std::vector<float> inverse_frequencies(const ModelConfig& config, int64_t sequence_tokens = 0);
// The name of their tensor in a program: "inverse_frequencies", or "inverse_frequencies.long".
std::string frequencies_name(const Rotary& rotary, int64_t sequence_tokens);
// The name of the tensor of frequencies of the stack's second rotary table.
std::string local_frequencies_name();

// Whether any block rotates rows of this stream by the stack's first table or, with `local`, by the
// second one.
bool reads_rotary(const Stack& stack, base::TokenStream stream, bool local);

}  // namespace snug::models
