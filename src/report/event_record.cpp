// The numbers of fields are those of tensorflow/core/util/event.proto and
// tensorflow/core/framework/{summary,tensor,tensor_shape}.proto.
#include "report/event_record.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace snug::report {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// A protobuf message in its wire format, field by field.
class Message {
 public:
  Message& integer(int field, int64_t value) {
    key(field, kVarint);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& number(int field, double value) {
    key(field, kFixed64);
    bytes_ += bytes_of(value);
    return *this;
  }
  Message& number(int field, float value) {
    key(field, kFixed32);
    bytes_ += bytes_of(value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, kLength);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr int kVarint = 0;
  static constexpr int kFixed64 = 1;
  static constexpr int kLength = 2;
  static constexpr int kFixed32 = 5;

  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message event(double unix_seconds, int64_t step) {
  Message event;
  event.number(1, unix_seconds);
  if (step != 0) event.integer(2, step);
  return event;
}

std::string masked_checksum(std::string_view bytes) {
  const uint32_t checksum = base::crc32c(bytes);
  return bytes_of(std::rotr(checksum, 15) + 0xA282EAD8U);
}

std::string framed(const Message& event) {
  const std::string length = bytes_of(static_cast<uint64_t>(event.bytes().size()));
  return length + masked_checksum(length) + event.bytes() + masked_checksum(event.bytes());
}

}  // namespace

std::string version_record(double unix_seconds) {
  return framed(event(unix_seconds, 0).text(3, "brain.Event:2"));
}

std::string restart_record(double unix_seconds, int64_t step) {
  constexpr int kStart = 1;  // SessionLog.SessionStatus
  return framed(event(unix_seconds, step).message(7, Message().integer(1, kStart)));
}

std::string scalars_record(double unix_seconds, int64_t step,
                           std::span<const EventScalar> scalars) {
  Message summary;
  for (const EventScalar& scalar : scalars)
    summary.message(1, Message().text(1, scalar.tag).number(2, scalar.value));
  return framed(event(unix_seconds, step).message(5, summary));
}

std::string text_record(double unix_seconds, int64_t step, std::string_view tag,
                        std::string_view text) {
  constexpr int kString = 7;  // DataType
  const Message shape = Message().message(2, Message().integer(1, 1));
  const Message tensor = Message().integer(1, kString).message(2, shape).text(8, text);
  const Message metadata = Message().message(1, Message().text(1, "text"));
  const Message value = Message().text(1, tag).message(8, tensor).message(9, metadata);
  return framed(event(unix_seconds, step).message(5, Message().message(1, value)));
}

}  // namespace snug::report
