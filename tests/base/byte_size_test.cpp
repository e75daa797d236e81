#include "base/byte_size.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace snug::base {
namespace {

TEST(ByteSize, ReadsUnits) {
  EXPECT_EQ(parse_byte_size("80GiB"), int64_t{80} << 30);
  EXPECT_EQ(parse_byte_size("24GB"), 24'000'000'000);
  EXPECT_EQ(parse_byte_size("512 MiB"), int64_t{512} << 20);
  EXPECT_EQ(parse_byte_size("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(parse_byte_size("7kB"), 7000);
  EXPECT_EQ(parse_byte_size("1048576"), 1048576);
  EXPECT_EQ(parse_byte_size("0"), 0);
  EXPECT_EQ(parse_byte_size("12B"), 12);
}

TEST(ByteSize, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "-1", "-3GiB", "80Gib", "80 gigs", "1e9", "1.5", "1.2.3GiB",
                           "80  GiB", "9999999TiB", "9223372036854775808", "nan", "."})
    EXPECT_EQ(parse_byte_size(text), std::nullopt) << text;
}

TEST(ByteSize, PrintsWhatReadsBack) {
  EXPECT_EQ(exact_byte_size(int64_t{80} << 30), "80GiB");
  EXPECT_EQ(exact_byte_size(24'000'000'000), "23437500KiB");
  EXPECT_EQ(exact_byte_size(1001), "1001");
  EXPECT_EQ(exact_byte_size(0), "0");
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{3} << 29, INT64_MAX})
    EXPECT_EQ(parse_byte_size(exact_byte_size(bytes)), bytes);
}

TEST(ByteSize, PrintsForPeople) {
  EXPECT_EQ(readable_byte_size(312), "312 B");
  EXPECT_EQ(readable_byte_size(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(readable_byte_size(-(int64_t{1} << 20)), "-1.00 MiB");
}

}  // namespace
}  // namespace snug::base
