// The merges of a tokenizer.json that are implicit in the pieces of a SentencePiece model, which
// merges any two neighbours that form a piece together. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "text/tokenizer/sentencepiece_model.h"

namespace snug::text {

// Every pair of pieces that form a piece together, in the order of that piece; with `by_score`,
// only normal pieces, in descending order of score. Throws UserError that names `file` for pieces
// that consist of each other in too many ways.
nlohmann::json merges_of_pieces(const std::vector<SentencePieceModel::Piece>& pieces, bool by_score,
                                const std::string& file);

// The places inside a text where it can be divided between characters.
std::vector<size_t> inner_places(const std::string& text);

}  // namespace snug::text
