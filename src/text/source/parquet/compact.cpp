#include "text/source/parquet/compact.h"

#include <limits>
#include <utility>

namespace snug::text::parquet {

CompactReader::Nesting::Nesting(CompactReader& reader) : reader_(reader) {
  constexpr int kMaxHeaderDepth = 32;
  if (++reader_.depth_ > kMaxHeaderDepth) throw Damaged("its header nests too deeply");
}

uint8_t CompactReader::byte() {
  if (at_ == bytes_.size()) throw CutOff();
  return static_cast<uint8_t>(bytes_[at_++]);
}

void CompactReader::pass(uint64_t bytes) {
  if (bytes > bytes_.size() - at_) throw CutOff();
  at_ += bytes;
}

uint64_t CompactReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= static_cast<uint64_t>(next & 0x7F) << shift;
    if ((next & 0x80) == 0) return value;
  }
  throw Damaged("a number of its header has too many bytes");
}

int64_t CompactReader::read_integer() {
  const uint64_t zigzag = varint();
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

int32_t CompactReader::read_i32() {
  const int64_t value = read_integer();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    throw Damaged("a number of its header is too large");
  return static_cast<int32_t>(value);
}

std::string CompactReader::read_binary() {
  const uint64_t size = varint();
  const size_t begin = at_;
  pass(size);
  return std::string(bytes_.substr(begin, size));
}

// Ids count from 0 in each struct; that of the struct around comes back at the end.
bool CompactReader::next_field(Field& field) {
  const uint8_t head = byte();
  field.type = static_cast<Type>(head & 0x0F);
  if (field.type == Type::stop) return false;
  if (field.type > Type::structure) throw Damaged("its header holds a field of an unknown type");
  const int delta = head >> 4;
  field.id =
      delta != 0 ? static_cast<int16_t>(field.id + delta) : static_cast<int16_t>(read_integer());
  return true;
}

int64_t CompactReader::list_size() {
  const uint8_t head = byte();
  item_ = static_cast<Type>(head & 0x0F);
  const uint64_t size = (head >> 4) == 15 ? varint() : static_cast<uint64_t>(head >> 4);
  if (size > bytes_.size() - at_) throw CutOff();  // an item has a byte at least
  return static_cast<int64_t>(size);
}

// In a list a boolean has a byte.
void CompactReader::skip_item(Type type) {
  if (type == Type::boolean_true || type == Type::boolean_false)
    pass(1);
  else
    skip(type);
}

void CompactReader::skip(Type type) {
  switch (type) {
    case Type::boolean_true:
    case Type::boolean_false:
      return;
    case Type::byte:
      return pass(1);
    case Type::i16:
    case Type::i32:
    case Type::i64:
      varint();
      return;
    case Type::real:
      return pass(8);
    case Type::binary:
      return pass(varint());
    case Type::list:
    case Type::set: {
      const Nesting nesting(*this);
      int64_t left = list_size();
      const Type item = item_;
      for (; left > 0; --left) skip_item(item);
      return;
    }
    case Type::map: {
      const Nesting nesting(*this);
      const uint64_t size = varint();
      if (size == 0) return;
      const uint8_t types = byte();
      if (size > bytes_.size() - at_) throw CutOff();
      for (uint64_t i = 0; i < size; ++i) {
        skip_item(static_cast<Type>(types >> 4));
        skip_item(static_cast<Type>(types & 0x0F));
      }
      return;
    }
    case Type::structure:
      return read_struct([](const Field&) { return false; });
    case Type::stop:
      break;
  }
  throw Damaged("its header holds a value of an unknown type");
}

}  // namespace snug::text::parquet
