// The tensors of golden models as their files hold them.
#pragma once

#include <map>
#include <string>

#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "models/weights.h"
#include "runtime/storage/tensor_part.h"

namespace snug::testing {

// The bytes of a tensor as its file stores them.
inline std::string stored(const formats::TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::string bytes(static_cast<size_t>(tensor.info->bytes()), '\0');
  index.read(tensor, bytes.data());
  return bytes;
}

// Every weight of a model, by name, in fp32.
inline std::map<std::string, formats::TensorSpec> specs_of(const models::ModelConfig& config) {
  std::map<std::string, formats::TensorSpec> specs;
  for (const models::Weight& weight : models::weights_of(config))
    specs[weight.name] = {weight.name, base::DType::f32, runtime::dims_of(weight.shape)};
  return specs;
}

}  // namespace snug::testing
