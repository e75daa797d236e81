// An identity of the running build: two builds whose code differs have different identities, even
// when they report the same version.
#pragma once

#include <string>

namespace snug::base {

// The identity that the linker gave the running program (the GNU build id of its ELF notes), in
// hexadecimal digits; without one, a checksum of the program's file. Throws UserError where that
// cannot be read.
std::string build_id();

}  // namespace snug::base
