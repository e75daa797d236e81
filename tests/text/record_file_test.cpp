// Data files that are packed, or tables: the text that records are read from.
#include "text/source/record_file.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/record_reader.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

std::string text_of(const std::string& path, int64_t block = int64_t{64} << 10) {
  RecordFile file(path);
  std::string text;
  std::string piece(static_cast<size_t>(block), '\0');
  while (const int64_t bytes = file.read_at(std::ssize(text), piece.data(), block))
    text.append(piece, 0, static_cast<size_t>(bytes));
  return text;
}

std::string gzipped(const std::string& text) {
  z_stream state{};
  deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&state, text.size()) + 64, '\0');
  std::string input = text;
  state.next_in = reinterpret_cast<Bytef*>(input.data());
  state.avail_in = static_cast<uInt>(input.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  deflate(&state, Z_FINISH);
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

std::string zstd_packed(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Long runs, so that little of the file becomes much text.
std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "{\"text\": \"" + std::string(static_cast<size_t>(i % 300), 'a') + "\"}\n";
  return text;
}

TEST(RecordFile, UnpacksGzipAndZstd) {
  const TemporaryFolder folder;
  for (const int count : {1, 10, 5000}) {
    const std::string text = lines(count);
    EXPECT_EQ(text_of(folder.write("a.jsonl.gz", gzipped(text))), text);
    EXPECT_EQ(text_of(folder.write("a.jsonl.zst", zstd_packed(text))), text);
    // Several of them, one after the other, are one text.
    EXPECT_EQ(text_of(folder.write("b.jsonl.gz", gzipped(text) + gzipped("x") + gzipped(""))),
              text + "x");
    EXPECT_EQ(text_of(folder.write("b.jsonl.zst", zstd_packed(text) + zstd_packed("x"))),
              text + "x");
    EXPECT_EQ(text_of(folder.write("c.json.GZ", gzipped(text) + std::string(1000, '\0')), 7), text);
  }
}

TEST(RecordFile, SaysThatAPackedFileIsCutOrDamaged) {
  const TemporaryFolder folder;
  const std::string text = lines(3000);
  for (const auto& [name, packed] :
       {std::pair{"a.jsonl.gz", gzipped(text)}, std::pair{"a.jsonl.zst", zstd_packed(text)}}) {
    const auto error = [&, given = std::string(name)](const std::string& bytes) {
      return user_error_of([&] { text_of(folder.write(given, bytes)); });
    };
    EXPECT_TRUE(contains(error(packed.substr(0, packed.size() - 9)), "ends before its contents"));
    EXPECT_TRUE(contains(error(packed.substr(0, packed.size() / 2)), "ends before its contents"));
    EXPECT_TRUE(contains(error(""), "ends before its contents"));
    EXPECT_TRUE(contains(error("nothing of the sort"), "it is no "));
    std::string damaged = packed;
    damaged[packed.size() / 2] = static_cast<char>(~damaged[packed.size() / 2]);
    EXPECT_FALSE(error(damaged).empty());
  }
}

TEST(RecordFile, RefusesOtherNames) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& name) {
    return user_error_of([&] { text_of(folder.write(name, "x")); });
  };
  EXPECT_TRUE(contains(error("a.arrow"), "pandas.read_feather"));
  EXPECT_TRUE(contains(error("a.jsonl.bz2"), "bunzip2 -k"));
  EXPECT_TRUE(contains(error("a.parquet.gz"), "expected a data file named"));
  EXPECT_TRUE(contains(user_error_of([] { text_of("nowhere.jsonl"); }), "no such data file"));
}

TEST(RecordFile, MakesJsonLinesOfATable) {
  const TemporaryFolder folder;
  const auto made = [&](const std::string& name, const std::string& table) {
    return text_of(folder.write(name, table));
  };
  EXPECT_EQ(made("a.csv", "q,a\n1,\"x, \"\"y\"\"\"\n2,\n"),
            "\n{\"q\":\"1\",\"a\":\"x, \\\"y\\\"\"}\n{\"q\":\"2\",\"a\":\"\"}\n");
  EXPECT_EQ(made("a.tsv", "q\ta\r\n1\tx, y\r\n"), "\n{\"q\":\"1\",\"a\":\"x, y\"}\n");
  EXPECT_EQ(made("b.csv", "\xEF\xBB\xBF\"q\",a\n1,2"), "\n{\"q\":\"1\",\"a\":\"2\"}\n");
  // A row stands in the line that it has in the table.
  EXPECT_EQ(made("c.csv", "q,a\n\"1\n1\",2\n\n3,4\n"),
            "\n{\"q\":\"1\\n1\",\"a\":\"2\"}\n\n\n{\"q\":\"3\",\"a\":\"4\"}\n");
  EXPECT_EQ(text_of(folder.write("d.csv.gz", gzipped("q\nx\n"))), "\n{\"q\":\"x\"}\n");
  EXPECT_EQ(made("e.csv", "q,a\n"), "");
}

TEST(RecordFile, SaysWhatIsWrongWithATable) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& table) {
    return user_error_of([&] { text_of(folder.write("a.csv", table)); });
  };
  EXPECT_TRUE(
      contains(error("q,a\n1,2\n1,2,3\n"), "a.csv:3: the row that begins here has 3 cells"));
  EXPECT_TRUE(contains(error("q,a\n1\n"), "a.csv:2: the row that begins here has 1 cells"));
  EXPECT_TRUE(contains(error("q,q\n1,2\n"), "two columns are called 'q'"));
  EXPECT_TRUE(contains(error("q,a\n1,\"2\n3,4\n"), "a.csv:2: a quote is opened"));
  EXPECT_TRUE(contains(error("q,a\n1,\"" + std::string(3 << 20, 'x') + "\"\n"),
                       "a.csv:2: the row that begins here has more than"));
}

TEST(RecordFile, ReadsParquetAsPyarrowDoes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/goldens/parquet")) {
    if (entry.path().extension() != ".parquet") continue;
    SCOPED_TRACE(entry.path().string());
    std::filesystem::path expected = entry.path();
    std::ifstream golden(expected.replace_extension(".jsonl"));
    std::istringstream read(text_of(entry.path().string()));
    std::string line;
    for (std::string wanted; std::getline(golden, wanted);) {
      ASSERT_TRUE(std::getline(read, line));
      // Numbers of 32 bits are written with fewer digits, which mean the same number.
      nlohmann::json one = nlohmann::json::parse(wanted);
      nlohmann::json other = nlohmann::json::parse(line);
      if (one.contains("f32") && !one["f32"].is_null()) {
        EXPECT_EQ(one["f32"].get<float>(), other["f32"].get<float>());
        one.erase("f32");
        other.erase("f32");
      }
      EXPECT_EQ(one, other);
    }
    EXPECT_FALSE(std::getline(read, line));
    ++files;
  }
  EXPECT_EQ(files, 12);
}

TEST(RecordFile, SaysThatAParquetFileIsDamaged) {
  const TemporaryFolder folder;
  std::ifstream stream("tests/goldens/parquet/chat-zstd.parquet", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_GT(whole.size(), 1000U);
  const auto error = [&](const std::string& bytes) {
    return user_error_of([&] { text_of(folder.write("a.parquet", bytes)); });
  };
  EXPECT_TRUE(contains(error(""), "too short"));
  EXPECT_TRUE(contains(error("PAR1 and no more"), "it does not end as one does"));
  EXPECT_TRUE(contains(error(whole.substr(0, whole.size() - 100)), "downloaded whole"));
  EXPECT_TRUE(contains(error(whole.substr(0, whole.size() - 4) + "PARE"), "encrypted"));
  std::string no_pages = whole;
  std::fill_n(no_pages.begin() + 4, 400, '\0');
  EXPECT_TRUE(contains(error(no_pages), "a.parquet: the Parquet file cannot be read: "));
  // Whatever the damage, it is an error or other values, and never a crash.
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    try {
      text_of(folder.write("b.parquet", damaged));
    } catch (const UserError&) {
    }
  }
}

TEST(RecordFile, RecordsOfATableHaveItsLines) {
  const TemporaryFolder folder;
  RecordReader reader(folder.write("a.csv", "q,a\n1,\"2\n2\"\n3,4\n"));
  RawRecord record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(record.line, 2);
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(record.number, 2);
  EXPECT_EQ(record.line, 4);
  EXPECT_FALSE(reader.next(record));
}

}  // namespace
}  // namespace snug::text
