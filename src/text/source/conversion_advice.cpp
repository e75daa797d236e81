#include "text/source/conversion_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file_ending.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

struct Table {
  std::string_view ending;
  std::string_view reader;  // of pandas
};
constexpr std::array kTables{Table{".arrow", "read_feather('{}')"},
                             Table{".feather", "read_feather('{}')"},
                             Table{".xlsx", "read_excel('{}')"}};

struct Archive {
  std::string_view ending;
  std::string_view command;
};
constexpr std::array kArchives{Archive{".bz2", "bunzip2 -k"}, Archive{".xz", "unxz -k"}};

// First bytes by which a format is recognised when the name's ending is wrong. The commands of
// kArchives trust the ending and would overwrite such a file, so those here write to standard
// output.
struct Content {
  std::string_view begin;
  std::string_view kind;
  std::string_view reader;    // of pandas, or
  std::string_view unpacker;  // to standard output, or
  std::string_view ending;    // that the name of a file which is read has
};
constexpr std::array kContents{Content{"PAR1", "a Parquet file", "", "", ".parquet"},
                               Content{"ARROW1", "an Arrow file", "read_feather('{}')", "", ""},
                               Content{"\x1F\x8B", "a gzip file", "", "", ".gz"},
                               Content{"PK\x03\x04", "a zip file", "", "unzip -p", ""},
                               Content{"\x28\xB5\x2F\xFD", "a zstd file", "", "", ".zst"},
                               Content{"BZh", "a bzip2 file", "", "bunzip2 <", ""},
                               Content{"\xFD\x37zXZ", "an xz file", "", "unxz <", ""}};

// Puts the path within both kinds of quotes; a name that would need more is for the user to put in.
std::string in_quotes(const std::string& path, const char* otherwise) {
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char letter) {
    return std::string_view("\"'\\$`!").find(letter) == std::string_view::npos &&
           static_cast<unsigned char>(letter) >= ' ';
  });
  return is_plain ? path : otherwise;
}

std::string to_json_lines(std::string_view reader, const std::string& from, const std::string& to) {
  return fmt::format(
      "convert it: python3 -c \"import pandas; pandas.{}.to_json('{}', orient='records', "
      "lines=True)\"",
      fmt::format(fmt::runtime(reader), in_quotes(from, "FILE")), in_quotes(to, "FILE.jsonl"));
}

// The name of a file next to it that holds what it holds, unpacked: data.utf8.csv.
std::string next_to(const std::string& path, const char* mark) {
  std::filesystem::path to = path;
  if (!base::file_ending(path).packing.empty()) to.replace_extension();
  const std::string ending = to.extension().string();
  return to.replace_extension(mark + ending).string();
}

// The command `program` on what the file holds.
std::string unpacked_into(const std::string& path, std::string_view program) {
  const std::string file = fmt::format("'{}'", in_quotes(path, "FILE"));
  const std::string packing = base::file_ending(path).packing;
  if (packing.empty()) return fmt::format("{} < {}", program, file);
  const char* unpacker = packing == ".gz" ? "gzip -dc <" : "zstd -dc <";
  return fmt::format("{} {}{}{}", unpacker, file, program.empty() ? "" : " | ", program);
}

// What iconv calls the encoding of a text of two bytes a letter that begins so; null for others.
const char* utf16_of(std::string_view begin) {
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF")) return "UTF-16";
  constexpr size_t kLettersLookedAt = 4;
  if (begin.size() < 2 * kLettersLookedAt) return nullptr;
  std::array<size_t, 2> nuls{};
  for (size_t i = 0; i < 2 * kLettersLookedAt; ++i)
    if (begin[i] == '\0') ++nuls[i % 2];
  if (nuls[0] == 0 && nuls[1] == kLettersLookedAt) return "UTF-16LE";
  if (nuls[1] == 0 && nuls[0] == kLettersLookedAt) return "UTF-16BE";
  return nullptr;
}

}  // namespace

std::string conversion_advice(const std::string& path) {
  std::filesystem::path name = path;
  std::string ending = name.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const Archive& archive : kArchives)
    if (ending == archive.ending)
      return fmt::format("unpack it: {} '{}'", archive.command, in_quotes(path, "FILE"));
  for (const Table& table : kTables) {
    if (ending != table.ending) continue;
    return to_json_lines(table.reader, path, name.replace_extension(".jsonl").string());
  }
  return "rename it";
}

std::optional<std::string> encoding_advice(const std::string& path, std::string_view begin) {
  constexpr size_t kLooked = 64;
  begin = begin.substr(0, kLooked);
  if (begin.empty()) return std::nullopt;
  if (begin.find_first_not_of('\0') == std::string_view::npos)
    return fmt::format(
        "the file begins with {} NUL bytes, so it holds no text: was it written or downloaded "
        "whole? Copy or download it again",
        begin.size());
  if (const char* encoding = utf16_of(begin))
    return fmt::format("it is text in {}; convert it: {} > '{}'", encoding,
                       unpacked_into(path, fmt::format("iconv -f {} -t UTF-8", encoding)),
                       in_quotes(next_to(path, ".utf8"), "CONVERTED"));
  return std::nullopt;
}

std::optional<std::string> content_advice(const std::string& path, std::string_view begin) {
  const auto content = std::find_if(kContents.begin(), kContents.end(), [&](const Content& each) {
    return begin.starts_with(each.begin);
  });
  if (content == kContents.end()) return std::nullopt;
  if (!base::file_ending(path).packing.empty())
    return fmt::format("what is packed in it is {0}; unpack it: {1} > '{2}{3}'", content->kind,
                       unpacked_into(path, ""), in_quotes(next_to(path, ".unpacked"), "UNPACKED"),
                       content->ending);
  std::filesystem::path to = path;
  if (content->ending == ".parquet") to.replace_extension();
  if (!content->ending.empty())
    return fmt::format("the file is {}, whatever its name; rename it: mv '{}' '{}{}'",
                       content->kind, in_quotes(path, "FILE"), in_quotes(to.string(), "FILE"),
                       content->ending);
  const std::string ending = content->unpacker.empty() ? ".jsonl" : to.extension().string();
  to.replace_extension(content->unpacker.empty() ? ".converted" : ".unpacked") += ending;
  const std::string advice =
      content->unpacker.empty()
          ? to_json_lines(content->reader, path, to.string())
          : fmt::format("unpack it: {} '{}' > '{}'", content->unpacker, in_quotes(path, "FILE"),
                        in_quotes(to.string(), "UNPACKED"));
  return fmt::format("the file is {}, whatever its name; {}", content->kind, advice);
}

std::optional<std::string> text_advice(std::string_view begin, bool is_whole) {
  constexpr int kLinesLookedAt = 3;
  int records = 0;
  while (records < kLinesLookedAt && !begin.empty()) {
    const size_t end = begin.find('\n');
    if (end == std::string_view::npos && !is_whole) break;
    const std::string_view line = begin.substr(0, end);
    begin.remove_prefix(end == std::string_view::npos ? begin.size() : end + 1);
    if (is_blank(line)) continue;
    if (line[line.find_first_not_of(" \t")] != '{' || !nlohmann::json::accept(line))
      return std::nullopt;
    ++records;
  }
  if (records == 0) return std::nullopt;
  return "its lines are JSON objects, which a .txt file is not read as: braces and names of fields "
         "would be learned; call it .jsonl";
}

}  // namespace snug::text
