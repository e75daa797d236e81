// Where the sources lie, for tests that read pages and results of the repository. One file is
// compiled with the path, so that a compiler cache shares the objects of all others among
// checkouts.
#pragma once

#include <string>

namespace snug::test {

// The path of the repository, without a slash at its end.
std::string source_folder();

}  // namespace snug::test
