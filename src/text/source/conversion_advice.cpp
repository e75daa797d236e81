#include "text/source/conversion_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

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

std::optional<std::string> content_advice(const std::string& path, std::string_view begin) {
  const auto content = std::find_if(kContents.begin(), kContents.end(), [&](const Content& each) {
    return begin.starts_with(each.begin);
  });
  if (content == kContents.end()) return std::nullopt;
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
