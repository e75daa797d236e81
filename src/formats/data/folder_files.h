// The files of a folder and of the folders in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

struct FolderWalk {
  int depth = 0;        // of folders, the first one counts; 0: any
  bool hidden = false;  // with what begins with a dot, and folders that begin with two underscores
};

// Paths below the folder, sorted by their bytes; links that lead nowhere too. A link to a folder is
// as the folder, each of which is read once, however many links lead to it. What a run of Snug
// wrote is no one's data, so a folder with its mark is passed over. Throws UserError for a folder
// that cannot be read, and for more files than data sets have.
std::vector<std::string> folder_files(const std::filesystem::path& folder,
                                      const FolderWalk& walk = {});

}  // namespace snug::formats
