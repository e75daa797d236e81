// Keys of config.json that are named because nothing here knows of them.
#include "models/config/unknown_keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace snug::models {
namespace {

TEST(UnknownKeys, AreNoneOfThoseThatTransformersWrites) {
  int count = 0;
  for (const auto& folder : std::filesystem::directory_iterator("tests/goldens"))
    for (const char* name : {"config.json", "config_v4.json"}) {
      const auto path = folder.path() / "model" / name;
      if (!std::filesystem::exists(path)) continue;
      EXPECT_EQ(unknown_keys(base::read_json_file(path)), std::vector<std::string>{}) << path;
      ++count;
    }
  EXPECT_GT(count, 50);
}

TEST(UnknownKeys, AreNamedWhereTheySaySomething) {
  const nlohmann::json config{
      {"model_type", "llama"},     {"scale_depth", 1.4},
      {"dim_model_base", 256},     {"rope_interleaved", false},
      {"residual_scale", nullptr}, {"heads_dropped", nlohmann::json::array()},
      {"unsloth_fixed", true},     {"pretraining_tp", 2}};
  EXPECT_EQ(unknown_keys(config), (std::vector<std::string>{"dim_model_base", "scale_depth"}));
}

}  // namespace
}  // namespace snug::models
