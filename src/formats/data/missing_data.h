// What to do where an entry of data leads to nothing that is there.
#pragma once

#include <string>

namespace snug::formats {

// Advice for a path that is not there, to follow an error that says so: "; did you mean ...?"; how
// a data set of the hub, or what lies behind a URL, is fetched. Empty where nothing is known.
std::string missing_data_advice(const std::string& path);

}  // namespace snug::formats
