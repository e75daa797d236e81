// hoist: what a program of inference makes of weights alone, small next to what it costs
// (Recomputing::kept), is made once after loading, by the program `prepare`, and lives for the run.
//
//   before   %n (4) f32 = row_norms(%w, %a, %b)
//            %y (8, 4) bf16 = scale_columns(%x, %m, %n)
//   after    tensor n (4) f32 scalar run
//            %y (8, 4) bf16 = scale_columns(%x, %m, %n)
//   once     %n = row_norms(%w, %a, %b)
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

struct Hoisted {
  program::Program program;
  program::Program once;  // `prepare`; has no operations where nothing can be hoisted
};

Hoisted hoist(program::Program program);

}  // namespace snug::passes
