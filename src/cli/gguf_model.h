// A GGUF file that is given as a model (`model=FILE.gguf`): all commands take it as the folder that
// `snug import gguf` makes of it. The folder is made once and kept in the cache
// (base/cache_folder.h); it is known by the file's path, size and time of its last change.
#pragma once

#include <filesystem>
#include <string>

namespace snug::cli {

// Whether this names a file that ends in .gguf.
bool is_gguf_model(const std::string& model);

// The folder of such a file. Where it is not there yet, says what it takes, where it is and what
// it holds, and makes it: whole or not at all, and once where several processes ask for it. Folders
// of the same path before the file was changed are removed. Throws UserError for what
// `snug import gguf` refuses, and for a disk that is too small.
std::filesystem::path folder_of_gguf(const std::filesystem::path& file);

}  // namespace snug::cli
