// The file list .snug_files.json, with names and bytes, which is written into every folder that
// Snug produces as a whole (checkpoints, adapters, models). It identifies a folder as Snug's own,
// so that files that a user added or changed are never mistaken for Snug's. Such a folder may be
// moved and copied.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace snug::formats {

// Lists what the folder holds now, including its subfolders.
void write_file_list(const std::filesystem::path& folder);

// The first name, relative to the folder, that is not as Snug wrote it: a file that is not listed
// or has another number of bytes, or the list itself if it is missing. Nothing if everything is as
// Snug wrote it, or the folder is empty; listed files may be missing. A path that is not a folder,
// such as a link, counts as foreign as a whole: ".".
std::optional<std::string> foreign_entry(const std::filesystem::path& folder);

// The first listed name that is missing or has another number of bytes than when it was written, or
// the list itself where it cannot be read. Nothing if every listed file is there; others may be
// next to them.
std::optional<std::string> damaged_entry(const std::filesystem::path& folder);

}  // namespace snug::formats
