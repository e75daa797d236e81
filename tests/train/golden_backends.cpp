#include "golden_case.h"

namespace snug::test {

std::vector<std::string> golden_backends() { return {"reference", "cpu"}; }

}  // namespace snug::test
