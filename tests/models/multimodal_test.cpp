// What is said of models that hold a text model next to others.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "base/error.h"
#include "models/config/config.h"

namespace snug::models {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Multimodal, ModelsAreNamedWithTheirTextPart) {
  const auto says = [](const std::string& text, std::initializer_list<const char*> words) {
    const std::string error = refusal_of(text);
    for (const char* word : words)
      EXPECT_NE(error.find(word), std::string::npos) << word << " in " << error;
  };
  says(
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}, "vision_config": {}})",
      {"'model_type' is \"gemma3\", a multimodal model (with vision_config)",
       "its text part, \"gemma3_text\" in text_config, is: take it out", "docs/multimodal.md"});
  says(R"({"model_type": "llava", "text_config": {"model_type": "llama"}, "vision_config": {}})",
       {"\"llama\" in text_config, is: take it out"});
  says(R"({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2"}})",
       {"a multimodal model, which", "\"qwen2\" in llm_config, is: take it out"});
  says(
      R"({"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text"}, "vision_config": {}})",
      {"\"qwen2_5_vl_text\" in text_config, is not built either; snug has"});
  says(
      R"({"model_type": "omni", "thinker_config": {"text_config": {"model_type": "qwen3"}, "audio_config": {}}})",
      {"\"qwen3\" in thinker_config.text_config, is: take it out"});
  says(R"({"model_type": "qwen2_vl", "vision_config": {}, "hidden_size": 8})",
       {"\"qwen2_vl\", a multimodal model (with vision_config)", "docs/multimodal.md"});
  says(R"({"model_type": "mamba"})", {"is \"mamba\", which is not built; snug has"});
}

}  // namespace
}  // namespace snug::models
