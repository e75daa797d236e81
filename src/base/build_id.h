// Which build of this program runs: two that differ in code differ in it, whatever version they
// call themselves.
#pragma once

#include <string>

namespace snug::base {

// The identity that the linker gave the running program (the GNU build id of its ELF notes), in
// hexadecimal digits; without one, a checksum of the program's file. Throws UserError where that
// cannot be read.
std::string build_id();

}  // namespace snug::base
