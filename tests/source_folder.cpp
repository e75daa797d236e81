#include "source_folder.h"

namespace snug::test {

std::string source_folder() { return SNUG_SOURCE_DIR; }

}  // namespace snug::test
