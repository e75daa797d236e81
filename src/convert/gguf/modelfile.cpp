#include "convert/gguf/modelfile.h"

#include <fmt/format.h>

#include "convert/gguf/folder_tokenizer.h"
#include "convert/gguf/go_template.h"
#include "text/chat/chat_settings.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {
namespace {

// A value in quotes, as a Modelfile has them; one with a quote or a line break in it stands in
// three.
std::string quoted(const std::string& text) {
  const bool is_plain = text.find_first_of("\"\n") == std::string::npos;
  return is_plain ? fmt::format("\"{}\"", text) : fmt::format("\"\"\"{}\"\"\"", text);
}

// TEMPLATE, and the ends that were trained.
void add_prompts(const std::filesystem::path& folder, int64_t rows, Modelfile& result) {
  const auto tokenizer = text::Tokenizer::from_folder(folder.string(), rows);
  const auto form = go_template(tokenizer);
  if (form)
    result.text += fmt::format("TEMPLATE \"\"\"{}\"\"\"\n", form->source());
  else if (!tokenizer.chat_settings().templates.empty())
    result.notes.emplace_back(
        "the Modelfile has no TEMPLATE, since the prompts of this chat template cannot be written "
        "in Ollama's language for templates with a system message, questions and answers alone; "
        "Ollama recognises many templates of GGUF files by itself, else add one");
  for (const int32_t id : tokenizer.stop_ids())
    if (const auto token = tokenizer.token_of(id))
      result.text += fmt::format("PARAMETER stop {}\n", quoted(std::string(*token)));
}

}  // namespace

Modelfile modelfile(const std::filesystem::path& folder, int64_t rows, const std::string& file) {
  Modelfile result{.text = fmt::format("FROM ./{}\n", file)};
  add_prompts(folder, rows, result);
  return result;
}

Modelfile adapter_modelfile(const std::filesystem::path& base,
                            const std::filesystem::path& tokenizer, int64_t rows,
                            const std::string& file) {
  const std::string from = std::filesystem::absolute(base).lexically_normal().string();
  Modelfile result{.text = fmt::format("FROM {}\nADAPTER ./{}\n", from, file)};
  if (has_tokenizer(tokenizer)) add_prompts(tokenizer, rows, result);
  result.notes.push_back(
      fmt::format("the Modelfile takes the base from {}, which Ollama reads for llama, mistral, "
                  "gemma and phi3; write the base's GGUF file, or the name under which Ollama has "
                  "it, after FROM where it is another or is to be shared",
                  from));
  return result;
}

}  // namespace snug::convert
