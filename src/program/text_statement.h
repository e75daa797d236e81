// A line of a program's text as it is read, before names are looked up. Internal to the parser.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"

namespace snug::program {

// A name and where it stands, for errors that show only once all lines are read.
struct Reference {
  std::string name;
  base::Location place;
  std::string operand;  // the name that the kind gives it; empty: not written
};

struct Declaration {
  Tensor tensor;
  Reference self;
  std::optional<TensorId> id;  // as written
  bool inherits_layer = true;
  std::optional<Reference> base;
};

struct Statement {
  Operation operation;
  std::vector<Reference> reads;
  std::vector<Reference> writes;
  std::vector<Reference> updates;
  std::optional<Reference> workspace;
};

}  // namespace snug::program
