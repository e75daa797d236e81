// The tokenizer and the chat templates of a GGUF file as files of a Hugging Face folder. Threading:
// none of its own.
#pragma once

#include <filesystem>

#include "formats/gguf/metadata.h"

namespace snug::convert {

// Writes tokenizer.json, tokenizer_config.json, generation_config.json and, where the file has
// templates, chat_template.jinja and additional_chat_templates/NAME.jinja. Throws UserError, which
// names the key, for a tokenizer that Snug does not read and for values that do not fit together.
void write_tokenizer(const formats::Metadata& metadata, const std::filesystem::path& folder);

}  // namespace snug::convert
