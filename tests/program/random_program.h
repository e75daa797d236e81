// Programs drawn at random, for properties that hold of every program.
#pragma once

#include <cstdint>

#include "program/ir/program.h"

namespace snug::program {

// A program without meaning: any names (spaces, quotes and digits too), any kinds with any
// attributes and lists of any length, tensors written in any order, views of anything.
Program random_program(uint64_t seed);

// A network of `layers` equal layers, forward and then backward, with names, views and attributes
// that grow with the index of the layer.
Program layered_program(int32_t layers);

}  // namespace snug::program
