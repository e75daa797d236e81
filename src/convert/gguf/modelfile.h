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

// An adapter on the model in the folder `base`. Chat template and ends are those of the folder
// `tokenizer`, if it has one. `file`: the adapter's GGUF file, next to the Modelfile. A note says
// what may be written after FROM instead of the folder.
Modelfile adapter_modelfile(const std::filesystem::path& base,
                            const std::filesystem::path& tokenizer, int64_t rows,
                            const std::string& file);

}  // namespace snug::convert
