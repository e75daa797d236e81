// Records of event files, byte by byte as TensorBoard's own writer and protobuf's library make them
// (tensorboard 2.21, tensorboard.summary.writer.record_writer).
#include "report/event_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"

namespace snug::report {
namespace {

constexpr double kWhen = 1764417600.5;

std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

TEST(EventRecords, AreThoseOfTensorBoardsWriter) {
  EXPECT_EQ(hex_of(version_record(kWhen)),
            "1800000000000000a37f4b220900002010b84ada411a0d627261696e2e4576656e743a32d890d822");
  EXPECT_EQ(hex_of(restart_record(kWhen, 41)),
            "0f000000000000006d532b090900002010b84ada4110293a020801c6a2ef5c");
  const std::vector<EventScalar> scalars{{"train/loss", 2.5F}, {"eval/loss", 0.0F}};
  EXPECT_EQ(
      hex_of(scalars_record(kWhen, 300, scalars)),
      "33000000000000000ca720560900002010b84ada4110ac022a250a110a0a747261696e2f6c6f737315000020"
      "400a100a096576616c2f6c6f737315000000000e770a93");
}

// Its lengths take two bytes each.
TEST(EventRecords, HoldTexts) {
  std::string text;
  std::string text_hex;
  for (int i = 0; i < 40; ++i) {
    text += "a: \u00e4\n";
    text_hex += "613a20c3a40a";
  }
  EXPECT_EQ(
      hex_of(text_record(kWhen, 0, "recipe", text)),
      "1f01000000000000579bd4ce0900002010b84ada412a93020a90020a0672656369706542fb01080712041202"
      "080142f001" +
          text_hex + "4a080a060a0474657874c0fd0930");
}

// The check value of CRC-32C that its catalogues give.
TEST(EventRecords, HaveCastagnolisChecksum) {
  EXPECT_EQ(base::crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(base::crc32c(""), 0U);
}

}  // namespace
}  // namespace snug::report
