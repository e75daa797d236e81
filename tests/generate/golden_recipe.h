// What the tests of this folder share: recipes of golden models, golden tensors, random ids.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/inference.h"
#include "engine/request_shape.h"
#include "formats/folder/safetensors_file.h"
#include "formats/recipe/recipe.h"

namespace snug::testing {

using engine::Ids;

inline const std::string kGoldens = "tests/goldens/";

// A recipe in fp32 with these words, which win.
inline formats::Recipe recipe_of(std::vector<std::string> words) {
  std::vector<std::string> all{"compute_dtype=fp32"};
  for (std::string& word : words) {
    std::erase_if(all, [&](const std::string& known) {
      return known.substr(0, known.find('=')) == word.substr(0, word.find('='));
    });
    all.push_back(std::move(word));
  }
  return formats::load_recipe("", all);
}

inline formats::Recipe golden_recipe(const std::string& model,
                                     std::vector<std::string> words = {}) {
  words.insert(words.begin(), "model=" + kGoldens + model + "/model");
  return recipe_of(std::move(words));
}

template <typename T>
std::vector<T> golden_values(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::TensorInfo& tensor = file.at(name);
  std::vector<T> values(static_cast<size_t>(tensor.bytes()) / sizeof(T));
  file.read(tensor, values.data());
  return values;
}

inline engine::Ids random_ids(size_t count, int64_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  engine::Ids ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<unsigned>(vocab));
  return ids;
}

// ‖a - b‖ / ‖b‖
inline double relative_error(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace snug::testing
