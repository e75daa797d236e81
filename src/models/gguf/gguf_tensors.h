// The tensors of a model's GGUF file, from its blocks.
#pragma once

#include <vector>

#include "models/gguf/architecture.h"
#include "models/gguf/gguf_family.h"

namespace snug::models {

std::vector<GgufTensor> gguf_tensors(const GgufFamily& family, const ModelConfig& config,
                                     const Stack& stack);

}  // namespace snug::models
