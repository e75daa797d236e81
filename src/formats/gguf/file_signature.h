// What a file is by its first bytes, for a message about one that is not what its name says: a
// download that brought a web page or a Git LFS pointer, another format of weights, an archive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snug::formats {

// "is a safetensors file; ...": what it is, and what to do where a GGUF file was wanted. `begin`:
// the first bytes, up to 512 of them. Pure.
std::string described_by_signature(std::string_view begin, int64_t file_bytes);

}  // namespace snug::formats
