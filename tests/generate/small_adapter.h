// An adapter of the example's model, examples/wordnet, for tests of who chooses it.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "formats/adapter/peft_adapter.h"

namespace snug::testing {

// One whose addition is large, in a folder that is made.
inline void write_adapter(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  formats::LoraConfig config;
  config.r = 2;
  config.alpha = 2;
  config.target_modules = {"down_proj"};
  formats::write_lora_config(folder, config);
  std::vector<formats::LoraModule> modules;
  for (int layer = 0; layer < 4; ++layer)
    modules.push_back({fmt::format("model.layers.{}.mlp.down_proj", layer), 704, 256});
  const auto tensors = formats::adapter_tensors(modules, 2, base::DType::f32);
  formats::SafetensorsWriter writer(folder / formats::kAdapterWeightsName, tensors);
  for (const formats::TensorSpec& tensor : tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.bytes() / 4));
    for (size_t j = 0; j < values.size(); ++j)
      values[j] = static_cast<float>(j * 7919 % 13) / 2.0F - 3.0F;
    writer.write(tensor.name, values.data(), tensor.bytes());
  }
  writer.finish();
}

}  // namespace snug::testing
