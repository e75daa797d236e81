// The names of GGUF files, as programs that list them expect: the kind in capitals, after a dash.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <string>
#include <string_view>

#include "convert/gguf/gguf_mix.h"

namespace snug::convert {

// "NAME-Q4_K_M.gguf", and "NAME-F32-LoRA.gguf" with the ending "-LoRA".
inline std::string gguf_file_name(const std::string& name, GgufMix mix,
                                  std::string_view ending = {}) {
  std::string kind(base::word_of(mix));
  for (char& letter : kind)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return fmt::format("{}-{}{}.gguf", name, kind, ending);
}

}  // namespace snug::convert
