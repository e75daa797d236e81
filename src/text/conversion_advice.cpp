#include "text/conversion_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace snug::text {
namespace {

struct Table {
  std::string_view ending;
  std::string_view reader;  // of pandas
};
constexpr std::array kTables{
    Table{".csv", "read_csv('{}')"},         Table{".tsv", "read_csv('{}', sep='\\t')"},
    Table{".parquet", "read_parquet('{}')"}, Table{".arrow", "read_feather('{}')"},
    Table{".feather", "read_feather('{}')"}, Table{".xlsx", "read_excel('{}')"}};

struct Archive {
  std::string_view ending;
  std::string_view command;
};
constexpr std::array kArchives{Archive{".gz", "gunzip -k"}, Archive{".zst", "zstd -d"},
                               Archive{".bz2", "bunzip2 -k"}, Archive{".xz", "unxz -k"}};

// Within both kinds of quotes; a name that would need more is for the user to put in.
std::string in_quotes(const std::string& path, const char* otherwise) {
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char letter) {
    return std::string_view("\"'\\$`!").find(letter) == std::string_view::npos &&
           static_cast<unsigned char>(letter) >= ' ';
  });
  return is_plain ? path : otherwise;
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
    const std::string from = in_quotes(path, "FILE");
    const std::string to = in_quotes(name.replace_extension(".jsonl").string(), "FILE.jsonl");
    return fmt::format(
        "convert it: python3 -c \"import pandas; pandas.{}.to_json('{}', orient='records', "
        "lines=True)\"",
        fmt::format(fmt::runtime(table.reader), from), to);
  }
  return "rename it";
}

}  // namespace snug::text
