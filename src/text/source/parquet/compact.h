// Reads the compact protocol of Thrift, in which Parquet writes its headers: structs of numbered
// fields, of which those that nobody asks for are skipped. Throws Damaged for bytes that end too
// early or are none.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace snug::text::parquet {

// What is wrong with a file, in words.
class Damaged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// The bytes end within a header: with more of the file it may be whole.
class CutOff : public Damaged {
 public:
  CutOff() : Damaged("a header is cut off") {}
};

class CompactReader {
 public:
  explicit CompactReader(std::string_view bytes) : bytes_(bytes) {}

  enum class Type : uint8_t {
    stop = 0,
    boolean_true = 1,
    boolean_false = 2,
    byte = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12,
  };
  struct Field {
    int16_t id = 0;
    Type type = Type::stop;
  };

  // Calls take(field) for each field of a struct; what it returns says whether it has read the
  // field, which is skipped otherwise.
  template <typename Take>
  void read_struct(const Take& take) {
    const Nesting nesting(*this);
    Field field;
    while (next_field(field))
      if (!take(field)) skip(field.type);
  }
  // Calls take() for each item of a list; it has to read the item.
  template <typename Take>
  void read_list(const Take& take) {
    const Nesting nesting(*this);
    for (int64_t left = list_size(); left > 0; --left) take();
  }
  int64_t read_integer();  // of any width
  int32_t read_i32();
  std::string read_binary();
  bool read_boolean(const Field& field) const { return field.type == Type::boolean_true; }

  size_t at() const { return at_; }  // bytes read

 private:
  // Bounds how deep values nest.
  class Nesting {
   public:
    explicit Nesting(CompactReader& reader);
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --reader_.depth_; }

   private:
    CompactReader& reader_;
  };

  bool next_field(Field& field);
  int64_t list_size();
  void skip(Type type);
  void skip_item(Type type);
  uint8_t byte();
  uint64_t varint();
  void pass(uint64_t bytes);

  std::string_view bytes_;
  size_t at_ = 0;
  int depth_ = 0;
  Type item_ = Type::stop;  // of the list whose size was read last
};

}  // namespace snug::text::parquet
