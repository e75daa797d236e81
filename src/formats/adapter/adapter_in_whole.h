// An adapter of a model's text part as PEFT finds it in the whole model: what its tensors and
// modules are called there, and which modules of the whole it is for.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace snug::formats {

// The name that a tensor of an adapter's file has, where the whole calls the text part
// `text_module`. A name without PEFT's prefix is returned unchanged.
std::string tensor_in_whole(const std::string& tensor, std::string_view text_module);

// Makes target_modules of the folder's adapter_config.json a pattern that matches modules of the
// text part alone, since other parts have modules of the same names, and gives the modules that
// have ranks or scales of their own the names of the whole. `tensors`: of the adapter, by the names
// of the text part alone.
void target_part_of_whole(const std::filesystem::path& folder, std::string_view text_module,
                          std::span<const std::string> tensors);

}  // namespace snug::formats
