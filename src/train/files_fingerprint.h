// Whether ranks that each read the same path have the same model there.
#pragma once

#include <filesystem>
#include <string>

namespace snug::train {

// A fingerprint of the safetensors files of a folder (`stem` as in formats/folder/tensor_index.h).
// It covers every tensor's name, type and shape, its first and last 4 KiB, and four blocks of as
// many between them, which a fixed seed and its name choose; and the size of each file. Models that
// were trained apart differ in those bytes of most of their tensors, and no rank reads all of a
// file, so more would cost what sharing the reading saves. Throws UserError for files that cannot
// be read.
std::string files_fingerprint(const std::filesystem::path& folder, const std::string& stem);

}  // namespace snug::train
