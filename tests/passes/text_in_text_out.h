// Text in, text out: a pass applied to a program's text.
#pragma once

#include <string>
#include <string_view>

#include "program/ir/program.h"
#include "program/text/text.h"
#include "program/verify/verify.h"

namespace snug::passes {

inline program::Program parse(std::string_view text) { return program::parse_text(text, "test"); }

// The operations and tensors that remain, in the form people write.
inline std::string print(const program::Program& program) {
  return program::to_text(program, {.fold = false, .ids = false});
}

}  // namespace snug::passes
