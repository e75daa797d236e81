// Folding: consecutive layers whose text differs only in numbers that grow with the layer's index
// are printed as one block.
//
//   layer x2 from 1 {
//     layers.*.y (8, 4) bf16 = matmul(layers.<*-1>.y, layers.*.w) layer *
//   }
//
// Within a block `*` stands for the index of the layer and `<a*+b>` for a times the index plus b.
// Folding works on the text only: a block is made only if unfolding it gives the same lines again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/text/text_cursor.h"

namespace snug::program {

// A printed line and the layer that it belongs to; -1: no layer.
struct TextLine {
  std::string text;
  int32_t layer = -1;
};

std::vector<std::string> fold_layers(const std::vector<TextLine>& lines);

// The lines of a text with blocks unfolded, without comments and empty lines. Throws
// base::UserError for a malformed block.
std::vector<SourceLine> unfold_layers(std::string_view text, const std::string& file);

}  // namespace snug::program
