// A line of a program's text before names are resolved. Internal to the parser.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/ir/program.h"

namespace snug::program {

// A name with its place in the text, for errors that are found only after all lines are read.
struct NameInText {
  std::string name;
  base::Location place;
  std::string operand;  // the kind's name for the operand; empty: not written
};

struct Declaration {
  Tensor tensor;
  NameInText self;
  std::optional<TensorId> id;  // if written
  bool inherits_layer = true;
  std::optional<NameInText> base;
};

struct OperationText {
  Operation operation;
  std::vector<NameInText> reads;
  std::vector<NameInText> writes;
  std::vector<NameInText> updates;
  std::optional<NameInText> workspace;
};

}  // namespace snug::program
