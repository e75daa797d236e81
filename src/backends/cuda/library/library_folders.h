// Where NVIDIA's libraries lie in a Python environment, for machines that have them from there
// alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace snug::backends::cuda {

// The folders {lib, local/lib}/python*/{site-packages, dist-packages}/nvidia/*/lib below
// `environment` (what VIRTUAL_ENV or CONDA_PREFIX names, or Python's sys.prefix: /usr is one) that
// hold `library`, in the order of their names; none where `environment` is empty or no such folder.
std::vector<std::filesystem::path> python_library_folders(const std::string& environment,
                                                          const std::string& library);

}  // namespace snug::backends::cuda
