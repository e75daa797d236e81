// Finds NVIDIA's libraries in Python environments, for machines that have them only there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace snug::backends::cuda {

// The folders {lib, local/lib}/python*/{site-packages, dist-packages}/nvidia/*/lib below
// `environment` (the value of VIRTUAL_ENV or CONDA_PREFIX, or Python's sys.prefix, such as /usr)
// that contain `library`, sorted by name; none where `environment` is empty or not such a folder.
std::vector<std::filesystem::path> python_library_folders(const std::string& environment,
                                                          const std::string& library);

}  // namespace snug::backends::cuda
