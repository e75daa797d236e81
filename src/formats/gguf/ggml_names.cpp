#include "formats/gguf/ggml_names.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace snug::formats {
namespace {

// By number; those that were given up, and never used, have no name.
constexpr std::array<std::string_view, 43> kTypeNames{
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0",
    "Q2_0"};

}  // namespace

std::string ggml_type_name(uint32_t number) {
  if (number < kTypeNames.size()) return std::string(kTypeNames[number]);
  return fmt::format("of type number {}", number);
}

}  // namespace snug::formats
