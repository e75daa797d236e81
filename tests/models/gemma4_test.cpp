// What Gemma 4's published shapes mean for rotation and for layers that share keys.
#include <gtest/gtest.h>

#include <cmath>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "models/config/config.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::models {
namespace {

// Only a quarter of the frequencies of wide heads rotate; the others are zero, not absent.
TEST(Gemma4, RotatesAPartOfWideHeads) {
  const std::vector<float> frequencies = inverse_frequencies(preset("gemma-4-31b").value());
  ASSERT_EQ(frequencies.size(), 256U);
  EXPECT_GT(frequencies[63], 0.0F);
  EXPECT_EQ(frequencies[64], 0.0F);
  EXPECT_FLOAT_EQ(frequencies[1], static_cast<float>(std::pow(1e6, -2.0 / 512.0)));
}

// The layers of Gemma 4 E2B that read keys and values of another one read those of the last layer
// of their own window that has any, and have no weights for keys.
TEST(Gemma4, SharesKeysOfTheLastLayerOfTheirWindow) {
  const Stack stack = stack_of(preset("gemma-4-e2b").value());
  const auto attention = [&](int64_t layer) {
    return std::get<AttentionBlock>(stack.layer(layer).branches.front().block);
  };
  EXPECT_FALSE(attention(14).keys_of_layer);
  for (int64_t layer = 15; layer < 35; ++layer) {
    EXPECT_EQ(attention(layer).keys_of_layer, attention(layer).window == 0 ? 14 : 13) << layer;
    EXPECT_EQ(attention(layer).query_key_value.parts.size(), 1U);
  }
  EXPECT_TRUE(is_ignorable("model.layers.20.self_attn.k_proj.weight", stack));
  EXPECT_EQ(std::get<GatedMlp>(stack.layer(14).branches[1].block).down.in, 6144);
  EXPECT_EQ(std::get<GatedMlp>(stack.layer(15).branches[1].block).down.in, 2 * 6144);
}

// transformers pads the numbers of layers where there are more than ten.
TEST(Gemma4, ReadsHeadsByLayerInBothForms) {
  const auto config_with = [](const std::string& keys) {
    std::string types;
    for (int layer = 0; layer < 12; ++layer)
      types += layer % 6 == 5 ? "\"full_attention\"," : "\"sliding_attention\",";
    types.pop_back();
    return parse_config(
        R"({"model_type": "gemma4_text", "hidden_size": 32, "intermediate_size": 16,
            "num_hidden_layers": 12, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 8, "vocab_size": 61, "hidden_size_per_layer_input": 0,
            "num_kv_shared_layers": 0, "layer_types": [)" +
            types + R"(], "per_layer_config": {)" + keys + "}}",
        "config.json");
  };
  EXPECT_EQ(config_with(R"("05": {"head_dim": 16}, "11": {"head_dim": 16})").full_head_dim, 16);
  EXPECT_EQ(config_with(R"("5": {"head_dim": 16}, "11": {"head_dim": 16})").full_head_dim, 16);
  for (const char* wrong : {R"("12": {"head_dim": 16})", R"("five": {"head_dim": 16})",
                            R"("5": {"head_dim": 16}, "05": {"head_dim": 16})"})
    EXPECT_NE(testing::user_error_of([&] { config_with(wrong); }).find("per_layer_config"),
              std::string::npos)
        << wrong;
}

}  // namespace
}  // namespace snug::models
