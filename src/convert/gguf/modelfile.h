// The text of a Modelfile, from which `ollama create` makes a model of a GGUF file or of an
// adapter's. Pure functions, any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace snug::convert {

struct Modelfile {
  std::string text{};
  std::vector<std::string> notes{};
};

// `folder`: the model's, with its tokenizer, of whose ids `rows` have a row; `file`: the GGUF
// file's name, next to the Modelfile. The chat template is written in Ollama's language where that
// can write the same prompts, else it is left out and a note says so.
Modelfile modelfile(const std::filesystem::path& folder, int64_t rows, const std::string& file);

// An adapter upon `base`, the name of a model that Ollama has, or the path of a GGUF file.
Modelfile adapter_modelfile(const std::string& base, const std::string& file);

}  // namespace snug::convert
