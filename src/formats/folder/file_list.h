// The list of files that every folder carries which Snug makes as a whole (checkpoints, adapters,
// models): .snug_files.json, names with bytes. By it a folder is known as Snug's own, and what a
// user put into one or changed in it is never taken for Snug's. A folder may be moved and copied.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace snug::formats {

// Lists what the folder holds now, its subfolders too.
void write_file_list(const std::filesystem::path& folder);

// The first name, relative to the folder, that is not as Snug wrote it: a file that is not listed
// or has other bytes, or the list itself where there is none. Nothing when all is as Snug wrote it,
// or when the folder is empty; files of the list may be missing. What is no folder, a link among
// them, is foreign as a whole: ".".
std::optional<std::string> foreign_entry(const std::filesystem::path& folder);

}  // namespace snug::formats
