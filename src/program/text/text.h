// The text form of a program: what `snug explain` shows and what passes are tested with. Every
// program with unique tensor names can be printed, and parses back to the same tables, ids
// included. The grammar is in docs/program_text.md.
//
//   program micro
//   tensor x (8, 4) bf16 batch step
//   tensor layers.0.w (4, 4) bf16 weight run layer 0
//   layers.0.y (8, 4) bf16 = matmul(x, layers.0.w) {transpose_b} layer 0
//
// Pure functions without shared state.
#pragma once

#include <string>
#include <string_view>

#include "program/ir/program.h"

namespace snug::program {

struct TextOptions {
  // Merges consecutive layers that differ only in their index into one `layer x32 from 0 {...}`.
  bool fold = true;
  // Prints ids (`%17 name`) for tensors that are not declared in the order of their ids. Without
  // ids the text is easier to read and to write, and parses to the same program with renumbered
  // tensors.
  bool ids = true;
};

std::string to_text(const Program& program, const TextOptions& options = {});

// Throws base::UserError with line and column. `file` names the text in errors. Operands and bases
// of views may be declared after their use. Shape rules are not checked here but by the verifier.
Program parse_text(std::string_view text, const std::string& file = "program");

}  // namespace snug::program
