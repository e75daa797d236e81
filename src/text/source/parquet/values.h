// The values of a page, one after the other, in each of Parquet's encodings. Those that are null
// are not among them. Throws Damaged where the bytes end too early or make no sense.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/source/parquet/metadata.h"

namespace snug::text::parquet {

// A value of a column. Bytes are those of the page or the reader: they stay until the next value is
// read, and those of a dictionary as long as it.
struct Scalar {
  union {
    int64_t integer = 0;  // of booleans and integers
    double real;          // of float64
    float single;         // of float32
  };
  std::string_view bytes{};  // of byte_array, fixed_bytes and int96
};

class ValueReader {
 public:
  ValueReader() = default;
  ValueReader(const ValueReader&) = delete;
  ValueReader& operator=(const ValueReader&) = delete;
  virtual ~ValueReader() = default;
  virtual Scalar next() = 0;
};

// Of a page's values that are not null, `values` at most. `dictionary`: of the column, or null.
// What is given must outlive it. Throws Damaged for encodings that are none of the column's type.
std::unique_ptr<ValueReader> value_reader(Encoding encoding, const SchemaElement& column,
                                          std::string_view bytes, int64_t values,
                                          const std::vector<Scalar>* dictionary);

}  // namespace snug::text::parquet
