// A line of a program's text as it is read, before names are looked up. Internal to the parser.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/ir/program.h"

namespace snug::program {

// A name and where it stands, for errors that show only once all lines are read.
struct NameInText {
  std::string name;
  base::Location place;
  std::string operand;  // the name that the kind gives it; empty: not written
};

struct Declaration {
  Tensor tensor;
  NameInText self;
  std::optional<TensorId> id;  // as written
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
