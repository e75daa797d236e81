// The small files of a folder that is made of a model and an adapter.
#pragma once

#include <filesystem>
#include <span>

namespace snug::convert {

// Copies the tokenizer, chat template, generation config and other small files of the model's
// folder (formats/folder/hf_folder.h) to an existing folder, and over them those of the other
// folders, in their order. As when an adapter is applied, a chat template of one of these replaces
// all of the model's, and one that brings none leaves the model's. Code that the model's config
// names (auto_map) is copied too.
void copy_companions(const std::filesystem::path& model,
                     std::span<const std::filesystem::path> others,
                     const std::filesystem::path& folder);

}  // namespace snug::convert
