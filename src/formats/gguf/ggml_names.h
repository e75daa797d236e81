// The names of all element types that GGUF files have had, for messages: those that Snug does not
// read, too.
#pragma once

#include <cstdint>
#include <string>

namespace snug::formats {

// "IQ4_XS"; "number 77" for a type that Snug has never heard of.
std::string ggml_type_name(uint32_t number);

}  // namespace snug::formats
