// A SentencePiece model file (tokenizer.model, spiece.model): a ModelProto in Protocol Buffers'
// wire format, of which only the fields that affect ids are read. The field numbers are from
// sentencepiece_model.proto. Plain values, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

enum class PieceKind {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    PieceKind kind = PieceKind::normal;
  };
  std::vector<Piece> pieces;  // by id
  bool is_bpe = false;        // otherwise unigram
  bool byte_fallback = false;
  std::string unknown = "<unk>";
  // The table that "Precompiled" in a tokenizer.json contains in base64.
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Throws UserError that names `file` if `bytes` is not such a model, or is a model of words or
// characters.
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file);

}  // namespace snug::text
