#include "formats/data/no_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/lower_case.h"
#include "formats/data/file_kinds.h"
#include "formats/folder/hub_cache.h"

namespace snug::formats {
namespace {

std::string counts_of_endings(const std::vector<std::string>& files) {
  std::map<std::string, int> counts;
  for (const std::string& file : files) ++counts[std::filesystem::path(file).extension().string()];
  std::vector<std::string> texts;
  texts.reserve(counts.size());
  for (const auto& [ending, count] : counts)
    texts.push_back(fmt::format("{} {}", count, ending.empty() ? "without an ending" : ending));
  return listed(texts);
}

bool has_ending(const std::vector<std::string>& files, std::string_view ending) {
  return std::ranges::any_of(
      files, [&](const std::string& file) { return base::lower_case(file).ends_with(ending); });
}

std::string advice_for(const std::vector<std::string>& files, const std::string& name) {
  for (const char* ending : {".zip", ".tar", ".tgz", ".tar.gz", ".7z", ".rar"})
    if (has_ending(files, ending)) return "; unpack the archives in it";
  if (has_ending(files, ".safetensors")) return "; it looks like the folder of a model";
  if (has_ending(files, ".arrow"))
    return fmt::format(
        "; what save_to_disk of `datasets` wrote is made Parquet with: python3 -c \"from datasets "
        "import load_from_disk; load_from_disk('{}').to_parquet('data.parquet')\" (of a "
        "DatasetDict, load_from_disk(...)['train'])",
        name);
  return "";
}

bool is_script_of(const HubName& hub, const std::vector<std::string>& files) {
  return std::ranges::find(files, hub.name + ".py") != files.end();
}

}  // namespace

std::string no_data_text(const std::string& name, const std::vector<std::string>& files,
                         const std::string& download) {
  const auto hub = parse_hub_name(name, HubKind::dataset);
  if (!download.empty() && hub && is_script_of(*hub, files))
    return fmt::format(
        "\"{}\" is a program ({}.py) that makes the data, and holds none. The hub keeps what most "
        "such programs make as Parquet: '{} --revision refs/convert/parquet', and then "
        "{}@refs/convert/parquet as data",
        name, hub->name, download, hub->repository());
  const std::string found = files.empty() ? "it is empty" : "it holds " + counts_of_endings(files);
  const std::string fetch =
      download.empty() ? "" : fmt::format("; fetch all of it with '{}'", download);
  return fmt::format(
      "\"{}\" has no file that is read (.json, .jsonl, .ndjson, .txt, .csv, .tsv, also .gz or "
      ".zst, "
      "and .parquet): {}{}{}",
      name, found, advice_for(files, name), fetch);
}

}  // namespace snug::formats
