// What to do with a folder, or a data set of the hub, that holds no file that is read.
#pragma once

#include <string>
#include <vector>

namespace snug::formats {

// The error for a folder whose `files` hold no data; `download` as in DataSetRequest.
std::string no_data_text(const std::string& name, const std::vector<std::string>& files,
                         const std::string& download);

}  // namespace snug::formats
