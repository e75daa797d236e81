// Data files that are packed, or tables: the text that records are read from.
#include "text/source/record_file.h"

#include <fmt/format.h>
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
#include "text/source/parquet/compact.h"
#include "text/source/parquet/schema.h"

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
  // Carriage returns end lines, too, as pandas has it.
  EXPECT_EQ(made("f.csv", "q,a\r1,2\r\r3,\"4\r5\"\r"),
            "\n{\"q\":\"1\",\"a\":\"2\"}\n\n{\"q\":\"3\",\"a\":\"4\\r5\"}\n");
  // In a table of one column an empty cell is a row, and an empty line is none.
  // As spreadsheets write them where the comma stands in numbers.
  EXPECT_EQ(made("h.csv", "q;a\n1,5;2\n"), "\n{\"q\":\"1,5\",\"a\":\"2\"}\n");
  EXPECT_EQ(made("i.csv", "\"q;r\"\ta\n1\t2\n"), "\n{\"q;r\":\"1\",\"a\":\"2\"}\n");
  EXPECT_EQ(made("g.csv", "q\n\"\"\n\nx\n"), "\n{\"q\":\"\"}\n\n{\"q\":\"x\"}\n");
}

// Each record of a file, with its line and why it cannot be read.
std::vector<std::string> records_of(const std::string& path) {
  RecordReader reader(path);
  std::vector<std::string> found;
  for (RawRecord record; reader.next(record);)
    found.push_back(
        fmt::format("{}: {}", record.line, record.problem.empty() ? record.text : record.problem));
  return found;
}

TEST(RecordFile, ARowThatCannotBeReadSaysWhy) {
  const TemporaryFolder folder;
  const std::string table =
      "q,a\n1,2\n1\n\"1\n2\",3,4\n5,\xFF\n\"" + std::string(size_t{3} << 20, 'x') + "\",1\n7,8\n";
  const auto records = records_of(folder.write("a.csv", table));
  ASSERT_EQ(records.size(), 6U);
  EXPECT_EQ(records[0], "2: {\"q\":\"1\",\"a\":\"2\"}");
  EXPECT_TRUE(contains(records[1], "3: the row has 1 cells, and the first row names 2"));
  EXPECT_TRUE(contains(records[2], "4: the row has 3 cells, and the first row names 2"));
  EXPECT_TRUE(contains(records[3], "6: its text is not valid UTF-8"));
  EXPECT_TRUE(contains(records[4], "7: the row has 3145"));
  EXPECT_EQ(records[5], "8: {\"q\":\"7\",\"a\":\"8\"}");
}

TEST(RecordFile, SaysWhatIsWrongWithATable) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& table) {
    return user_error_of([&] { text_of(folder.write("a.csv", table)); });
  };
  EXPECT_TRUE(contains(error("q,q\n1,2\n"), "two columns are called 'q'"));
  EXPECT_TRUE(contains(error("q,a\n1,\"2\n3,4\n"), "a.csv:2: a quote is opened"));
  EXPECT_TRUE(contains(error("q,\"" + std::string(3 << 20, 'x') + "\"\n1,2\n"),
                       "a.csv:1: the first row, which names the columns, has 3145"));
  EXPECT_TRUE(contains(error(std::string(5000, ',')), "and 5001 cells"));
}

// What a file holds that is no text, whatever it is called.
TEST(RecordFile, SaysWhatIsNoText) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& name, const std::string& contents) {
    return user_error_of([&] { records_of(folder.write(name, contents)); });
  };
  const std::string table = "q,a\n1,2\n3,4\n";
  std::string wide;
  for (const char c : table) wide += std::string{c, '\0'};
  EXPECT_TRUE(contains(error("a.csv", "\xFF\xFE" + wide),
                       "it is text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 < '"));
  EXPECT_TRUE(contains(error("a.csv", wide), "iconv -f UTF-16LE -t UTF-8 < '"));
  EXPECT_TRUE(contains(error("a.jsonl", '\0' + wide), "/a.utf8.jsonl'"));
  EXPECT_TRUE(contains(error("a.txt", wide), "UTF-16LE"));
  EXPECT_TRUE(contains(error("a.csv.gz", gzipped(wide)), "gzip -dc < '"));
  EXPECT_TRUE(contains(error("a.csv.gz", gzipped(wide)), " | iconv -f UTF-16LE"));
  EXPECT_TRUE(contains(error("a.csv", "PAR1 and more"), "a.parquet'"));
  for (const char* name : {"a.csv.gz", "a.jsonl.gz"}) {
    const std::string message = error(name, gzipped(gzipped(table)));
    EXPECT_TRUE(contains(message, "what is packed in it is a gzip file; unpack it: gzip -dc < '"));
    EXPECT_TRUE(contains(message, std::string("/a.unpacked.") + (name + 2) + "'")) << message;
  }
  EXPECT_TRUE(contains(error("a.csv", std::string(1000, '\0')), "begins with 64 NUL bytes"));
  EXPECT_TRUE(
      contains(error("a.jsonl", "{\"text\":\"a\"}\r{\"text\":\"b\"}\r"), "tr '\\r' '\\n' <"));
}

std::string packed_with_window(const std::string& text, int bits) {
  ZSTD_CCtx* state = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(state, ZSTD_c_windowLog, bits);
  std::string packed(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_outBuffer to{packed.data(), packed.size(), 0};
  // In two steps, so that the size of the text is not known when the frame begins.
  ZSTD_compressStream2(state, &to, &from, ZSTD_e_flush);
  ZSTD_compressStream2(state, &to, &from, ZSTD_e_end);
  ZSTD_freeCCtx(state);
  packed.resize(to.pos);
  return packed;
}

// The plan counts the window that a file was packed with, up to what zstd itself takes.
TEST(RecordFile, HoldsTheWindowOfAPackedFile) {
  const TemporaryFolder folder;
  const std::string text = lines(100);
  const auto bytes = [&](int bits) {
    return making_bytes(folder.write("a.jsonl.zst", packed_with_window(text, bits)));
  };
  EXPECT_EQ(bytes(20), bytes(23));
  EXPECT_EQ(bytes(27) - bytes(23), int64_t{120} << 20);
  EXPECT_EQ(text_of(folder.write("a.jsonl.zst", packed_with_window(text, 27))), text);
  const std::string foreign("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);  // is passed over
  const std::string path = folder.write("b.jsonl.zst", foreign + packed_with_window(text, 26));
  EXPECT_EQ(making_bytes(path), bytes(26));
  EXPECT_EQ(text_of(path), text);
  const std::string error =
      user_error_of([&] { text_of(folder.write("c.jsonl.zst", packed_with_window(text, 28))); });
  EXPECT_TRUE(contains(error, "a window of more than 128 MiB"));
  EXPECT_TRUE(contains(error, "zstd -dc --long=31"));
}

// As gunzip has it.
TEST(RecordFile, LeavesWhatFollowsAGzipFile) {
  const TemporaryFolder folder;
  const std::string text = lines(1000);
  for (const char* rest : {"rest", "\x1E", "\x1F and more", "\r\n"})
    EXPECT_EQ(text_of(folder.write("a.jsonl.gz", gzipped(text) + gzipped("x") + rest)), text + "x");
  const std::string member = gzipped(text);
  EXPECT_TRUE(
      contains(user_error_of([&] {
                 text_of(folder.write("a.jsonl.gz", member + member.substr(0, member.size() / 2)));
               }),
               "ends before its contents"));
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
      if (one.contains("f32") && one["f32"].is_number()) {
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
    // Hundreds of files, which need not outlive a loss of power, as folder.write() has it.
    std::ofstream(folder / "b.parquet", std::ios::binary) << damaged;
    try {
      text_of(folder / "b.parquet");
    } catch (const UserError&) {
    }
  }
}

TEST(RecordFile, LeavesColumnsOfParquetThatNothingReads) {
  const std::string path = "tests/goldens/parquet/deep-zstd.parquet";
  const std::vector<std::string> unread{"lists", "nowhere"};
  RecordReader all(path);
  RecordReader some(path, unread);
  RawRecord one;
  RawRecord other;
  int records = 0;
  for (; all.next(one); ++records) {
    ASSERT_TRUE(some.next(other));
    nlohmann::json expected = nlohmann::json::parse(one.text);
    ASSERT_TRUE(expected.contains("lists"));
    expected["lists"] = nullptr;
    EXPECT_EQ(nlohmann::json::parse(other.text), expected);
  }
  EXPECT_EQ(records, 7);
  EXPECT_FALSE(some.next(other));
}

// Whose keys JSON has not, though the schema may call them text.
TEST(RecordFile, RefusesAMapOfOtherKeys) {
  using namespace parquet;
  const auto schema = [](Physical keys, const std::string& second) {
    FileMetadata file;
    file.schema = {{.name = "schema", .children = 2},
                   {.name = "map", .children = 1, .meaning = Meaning::map},
                   {.repetition = Repetition::repeated, .name = "entries", .children = 2},
                   {.physical = keys, .name = "key", .meaning = Meaning::text},
                   {.physical = Physical::int32, .name = "value"},
                   {.physical = Physical::int32, .name = second}};
    return schema_of(file).leaves.size();
  };
  EXPECT_EQ(schema(Physical::byte_array, "other"), 3U);
  EXPECT_THROW(schema(Physical::float32, "other"), Damaged);
  EXPECT_THROW(schema(Physical::byte_array, "map"), Damaged);  // two columns of one name
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
