// A file as a hostile or unlucky world leaves it.
#pragma once

#include <random>
#include <string>

namespace snug::hostile {

// One to three damages: bits flipped, bytes replaced, cut out, doubled or zeroed, the end cut off,
// pieces exchanged, a number replaced by an extreme one, brackets a hundred thousand deep. Half of
// them are in the first two KiB, where formats say what follows.
std::string mutated(std::string text, std::mt19937_64& random);

}  // namespace snug::hostile
