// Tensors that no file holds: their values follow from config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config/config.h"

namespace snug::models {

// Every such tensor that a program of the model may read, with its values: rotary frequencies, and
// ones where heads are normed without a weight.
struct ComputedTensor {
  std::string name;
  std::vector<float> values;
};
std::vector<ComputedTensor> computed_tensors(const ModelConfig& config);

// The name of the tensor of `width` ones, which stand where a norm has no weight.
std::string ones_name(int64_t width);

}  // namespace snug::models
