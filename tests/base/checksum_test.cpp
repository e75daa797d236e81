#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace snug::base {
namespace {

// Of the algorithm's description: files written by one build are read by every other.
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum_text(checksum("")), "2d06800538d394c2");
  EXPECT_NE(checksum("a"), checksum("b"));
  EXPECT_EQ(checksum_text(std::vector<uint64_t>{1, 0xabcdef0123456789}),
            "0000000000000001abcdef0123456789");
}

// The library takes other paths for a few bytes and for many.
TEST(Checksum, EveryBitCounts) {
  for (const size_t bytes : {1U, 16U, 128U, 240U, 241U, 5000U}) {
    std::string text(bytes, 'x');
    const uint64_t whole = checksum(text);
    for (size_t bit = 0; bit < 8 * bytes; ++bit) {
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
      ASSERT_NE(checksum(text), whole) << bit << " of " << bytes;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    }
  }
}

TEST(Checksum, OfPartsIsThatOfTheWhole) {
  const std::string text(300'000, 'x');
  ChecksumStream stream;
  for (const size_t part : {1U, 100U, 4096U, 300'000U}) {
    for (size_t done = 0; done < text.size(); done += part)
      stream.add(text.data() + done, static_cast<int64_t>(std::min(part, text.size() - done)));
    EXPECT_EQ(stream.take(), checksum(text)) << part;
  }
}

TEST(Checksum, PiecesCoverEveryByte) {
  EXPECT_EQ(checksum_pieces(0), 0);
  EXPECT_EQ(checksum_pieces(1), 1);
  EXPECT_EQ(checksum_pieces(kChecksumPieceBytes), 1);
  EXPECT_EQ(checksum_pieces(kChecksumPieceBytes + 1), 2);
}

}  // namespace
}  // namespace snug::base
