// Documents to look at before they are learned: the first one, the longest, the shortest, and some
// chosen by a hash, so that the same data and seed show the same ones. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/audit/decoded_pieces.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct DocumentSample {
  int64_t document = 0;  // of the store, from 0
  std::string why{};     // "the first", "the longest", "by chance"
  // What an encoder reads, none of which is learned; none without an encoder.
  std::vector<DecodedPiece> input{};
  std::vector<DecodedPiece> pieces{};
  std::vector<int32_t> ids{};  // of the pieces
  int32_t tokens = 0;          // in all streams
  int32_t trained = 0;
};

// Units of a store (see content_scan.h) by the place of their first document, with why they were
// chosen; each once, `by_chance` of them by a hash.
struct ChosenUnit {
  int64_t document = 0;
  std::string why{};
};
std::vector<ChosenUnit> choose_units(const DocumentStore& documents, DocumentRange range,
                                     int32_t group, int64_t by_chance, uint64_t seed);

DocumentSample sample_of(const DocumentStore& documents, int64_t document,
                         const Tokenizer* tokenizer);

// At most so many documents of a range, in order and evenly spread.
std::vector<int64_t> spread_documents(DocumentRange range, int64_t most);

}  // namespace snug::text
