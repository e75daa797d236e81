#include "text/tokenizer/sentencepiece_model.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// One field of a message: a number or bytes.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      // of a varint or a four-byte field
  std::string_view bytes;  // of a length-delimited field
};

// Iterates over the fields of a message.
class WireFields {
 public:
  WireFields(std::string_view message, const std::string& file) : rest_(message), file_(file) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    field = {.number = key >> 3, .value = 0, .bytes = {}};
    switch (key & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        fail();
    }
    if (field.number == 0) fail();
    return true;
  }

  [[noreturn]] void fail() const {
    throw base::UserError(
        "this is no SentencePiece model, or a damaged one; download it again, or let transformers "
        "write a tokenizer.json (AutoTokenizer.from_pretrained(...).save_pretrained(...))",
        {file_, 0, 0});
  }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  uint64_t fixed(size_t count) {
    const std::string_view bytes = take(count);
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::string_view rest_;
  const std::string& file_;
};

std::string text_of(const WireFields& fields, std::string_view bytes) {
  if (find_invalid_utf8(bytes) != std::string_view::npos) fields.fail();
  return std::string(bytes);
}

SentencePieceModel::Piece read_piece(std::string_view message, const std::string& file) {
  SentencePieceModel::Piece piece;
  WireFields fields(message, file);
  for (Field field; fields.next(field);) {
    if (field.number == 1) piece.text = text_of(fields, field.bytes);
    if (field.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6) fields.fail();
      piece.kind = static_cast<PieceKind>(field.value);
    }
  }
  return piece;
}

void read_trainer(std::string_view message, SentencePieceModel& model, const std::string& file) {
  WireFields fields(message, file);
  for (Field field; fields.next(field);) {
    if (field.number == 3) {
      model.is_bpe = field.value == 2;
      if (field.value < 1 || field.value > 2)
        throw base::UserError(
            "a SentencePiece model of words or characters is not supported; Snug reads unigram and "
            "BPE",
            {file, 0, 0});
    }
    if (field.number == 35) model.byte_fallback = field.value != 0;
    if (field.number == 45) model.unknown = text_of(fields, field.bytes);
  }
}

void read_normalizer(std::string_view message, SentencePieceModel& model, const std::string& file) {
  WireFields fields(message, file);
  for (Field field; fields.next(field);) {
    if (field.number == 2) model.charsmap = field.bytes;
    if (field.number == 3) model.add_dummy_prefix = field.value != 0;
    if (field.number == 4) model.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) model.escape_whitespaces = field.value != 0;
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& file) {
  SentencePieceModel model;
  WireFields fields(bytes, file);
  for (Field field; fields.next(field);) {
    if (field.number == 1) model.pieces.push_back(read_piece(field.bytes, file));
    if (field.number == 2) read_trainer(field.bytes, model, file);
    if (field.number == 3) read_normalizer(field.bytes, model, file);
  }
  if (model.pieces.empty()) fields.fail();
  return model;
}

}  // namespace snug::text
