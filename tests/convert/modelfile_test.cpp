// Modelfiles for Ollama, whose templates are in the language of Go's text/template. Expected texts
// are those of the documentation of Ollama's templates, written on one line.
#include "convert/gguf/modelfile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "convert/gguf/go_template.h"
#include "convert/tokenizer_folder.h"
#include "text/chat/chat_forms.h"
#include "text/chat/chat_template.h"
#include "text/tiny_tokenizer.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A tokenizer with the tokens of a built-in template, which its folder has.
text::TinyTokenizer tokenizer_with(const std::string& form) {
  text::TinyTokenizer tiny;
  const text::ChatForm& found = *text::find_chat_form(form);
  for (const std::string_view token : found.tokens)
    if (std::ranges::find(tiny.added, token) == tiny.added.end()) tiny.added.emplace_back(token);
  tiny.config["chat_template"] = found.source;
  return tiny;
}

json begins_with(const char* token, int id) {
  const json first = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  return {{"type", "TemplateProcessing"},
          {"single", {first, text}},
          {"pair", {first, text}},
          {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

TEST(GoTemplate, WritesWhatTheTemplateWrites) {
  const std::map<std::string, std::string> sources = {
      {"chatml",
       "{{ range .Messages }}{{ if eq .Role \"system\" }}<|im_start|>system\n{{ .Content "
       "}}<|im_end|>\n{{ else if eq .Role \"user\" }}<|im_start|>user\n{{ .Content }}{{ else if "
       "eq .Role \"assistant\" }}<|im_end|>\n<|im_start|>assistant\n{{ .Content }}<|im_end|>\n{{ "
       "end }}{{ end }}<|im_end|>\n<|im_start|>assistant\n"},
      {"gemma",
       "{{ $first := false }}{{ range .Messages }}{{ if eq .Role \"system\" "
       "}}<start_of_turn>user\n{{ .Content }}\n\n{{ $first = true }}{{ else if eq .Role \"user\" "
       "}}{{ if $first }}{{ $first = false }}{{ else }}<start_of_turn>user\n{{ end }}{{ .Content "
       "}}{{ else if eq .Role \"assistant\" }}<end_of_turn>\n<start_of_turn>model\n{{ .Content "
       "}}<end_of_turn>\n{{ end }}{{ end }}<end_of_turn>\n<start_of_turn>model\n"},
  };
  for (const auto& [name, source] : sources) {
    SCOPED_TRACE(name);
    text::TinyTokenizer tiny = tokenizer_with(name);
    tiny.keys["post_processor"] = begins_with("<s>", 256);
    const auto form = go_template(tiny.make());
    ASSERT_TRUE(form);
    EXPECT_EQ(form->source(), source);
  }
}

// Each built-in template has a form, except those that move the system message to the last
// question.
TEST(GoTemplate, HasAFormForBuiltInTemplates) {
  std::string without;
  for (const char* name :
       {"chatml", "qwen-2.5", "qwen-3", "phi-4", "llama-3", "llama-3.1", "llama-2", "mistral-v1",
        "mistral-v3", "mistral-v3-tekken", "mistral-v7-tekken", "gemma", "command-r", "deepseek-v3",
        "zephyr", "phi-3", "alpaca", "vicuna", "plain"}) {
    text::TinyTokenizer tiny = tokenizer_with(name);
    const auto tokenizer = tiny.make();
    const auto form = go_template(tokenizer);
    if (!form) without += std::string(name) + " ";
  }
  EXPECT_EQ(without, "mistral-v3 mistral-v3-tekken ");
}

TEST(Modelfile, NamesFileTemplateAndEnds) {
  const text::TinyTokenizer tiny = tokenizer_with("chatml");
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  folder.write("generation_config.json", json{{"eos_token_id", {257, 259}}}.dump());
  const Modelfile file = modelfile(folder.path(), 260, "model-Q8_0.gguf");
  EXPECT_TRUE(file.text.starts_with("FROM ./model-Q8_0.gguf\nTEMPLATE \"\"\"{{ range"));
  EXPECT_TRUE(
      file.text.ends_with("\"\"\"\nPARAMETER stop \"</s>\"\nPARAMETER stop \"<|im_end|>\"\n"))
      << file.text;
  EXPECT_TRUE(file.notes.empty());
}

TEST(Modelfile, LeavesOutATemplateThatOllamaCannotWrite) {
  text::TinyTokenizer tiny;
  tiny.config["chat_template"] =
      "{% for m in messages %}{{ loop.index }} {{ m.content | upper }}{{ m.content }}{% endfor %}";
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  const Modelfile file = modelfile(folder.path(), 258, "m.gguf");
  EXPECT_EQ(file.text, "FROM ./m.gguf\nPARAMETER stop \"</s>\"\n");
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_TRUE(testing::contains(file.notes[0], "has no TEMPLATE"));
}

TEST(Modelfile, OfAnAdapterNamesItsBaseAndHasItsPrompts) {
  const text::TinyTokenizer tiny = tokenizer_with("chatml");
  const TokenizerFolder folder(tiny.document().dump(), tiny.config);
  const Modelfile file = adapter_modelfile(folder.path(), folder.path(), 260, "adapter.gguf");
  const std::string from = "FROM " + folder.path().string() + "\nADAPTER ./adapter.gguf\n";
  EXPECT_TRUE(file.text.starts_with(from + "TEMPLATE \"\"\"{{ range")) << file.text;
  EXPECT_TRUE(file.text.ends_with("PARAMETER stop \"</s>\"\n")) << file.text;
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_TRUE(testing::contains(file.notes[0], "takes the base from " + folder.path().string()));
}

TEST(Modelfile, OfAnAdapterHasThePromptsOfItsTokenizer) {
  const text::TinyTokenizer tiny = tokenizer_with("chatml");
  const TokenizerFolder adapter(tiny.document().dump(), tiny.config);
  const Modelfile file = adapter_modelfile("tests/goldens/basic/model", adapter.path(), 260, "a");
  EXPECT_TRUE(testing::contains(file.text, "ADAPTER ./a\nTEMPLATE \"\"\"{{ range"));
}

TEST(Modelfile, OfAnAdapterOnAModelWithoutTokenizerNamesItAlone) {
  const fs::path base = fs::absolute("tests/goldens/basic/model");
  EXPECT_EQ(
      adapter_modelfile("tests/goldens/basic/../basic/model", "no/adapter", 101, "a.gguf").text,
      "FROM " + base.string() + "\nADAPTER ./a.gguf\n");
}

}  // namespace
}  // namespace snug::convert
