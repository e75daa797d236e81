#include "text/source/conversion_advice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/record_reader.h"

namespace snug::text {
namespace {

TEST(ConversionAdvice, GoesByTheFirstBytesUnderAnotherName) {
  const testing::TemporaryFolder folder;
  const auto read = [&](const std::string& name, const std::string& contents) {
    RawRecord record;
    const bool is_there = RecordReader(folder.write(name, contents)).next(record);
    if (!record.problem.empty()) base::throw_user_error("{}", record.problem);
    return is_there;
  };
  const auto expect = [&](const std::string& name, const std::string& begin,
                          const std::vector<std::string>& parts) {
    const std::string contents = begin + std::string("\x15\0\xFF\xFE", 4);
    const std::string message = testing::user_error_of([&] { read(name, contents); });
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << name << " gives: " << message;
  };
  for (const char* name : {"data.json", "data.jsonl", "data.txt"}) {
    expect(name, "PAR1", {name, "a Parquet file", "rename it: mv '", "data.parquet'"});
    expect(name, "ARROW1", {"an Arrow file", "pandas.read_feather('"});
    expect(name, "\x1F\x8B", {"a gzip file", "rename it: mv '", std::string(name) + ".gz'"});
    expect(name, "PK\x03\x04", {"a zip file", "unzip -p '"});
    expect(name, "\x28\xB5\x2F\xFD", {"a zstd file", std::string(name) + ".zst'"});
    expect(name, "BZh", {"a bzip2 file", "bunzip2 < '"});
    expect(name, "\xFD\x37zXZ", {"an xz file", "unxz < '"});
    expect(name, "\xFF", {"convert the file to UTF-8"});
  }
  // Text may begin so.
  EXPECT_TRUE(read("data.txt", "PAR1 is a word"));
}

TEST(ConversionAdvice, TextThatIsRecordsIsNamedSo) {
  const testing::TemporaryFolder folder;
  const auto error = [&](const std::string& contents) {
    return testing::user_error_of([&] {
      RawRecord record;
      RecordReader(folder.write("data.txt", contents)).next(record);
    });
  };
  for (const char* records :
       {"{\"text\": \"a\"}", "\xEF\xBB\xBF\n{\"text\": \"a\"}\n{\"text\": 3}\n"})
    EXPECT_NE(error(records).find("its lines are JSON objects"), std::string::npos) << records;
  for (const char* text : {"{\"text\": \"a\"}\nis a record", "{a}", "{", "[1]\n", "a {\"b\": 1}"})
    EXPECT_EQ(error(text), "(no error)");
}

}  // namespace
}  // namespace snug::text
