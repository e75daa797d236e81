#include "formats/folder/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

using base::JsonObject;
using nlohmann::json;

namespace fs = std::filesystem;

constexpr int64_t kMaxElements = int64_t{1} << 53;
// Size of the blocks in which the file is written.
constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr std::string_view kRankPrefix = "rank-";

int64_t amount(const JsonObject& object, std::string_view key) {
  const int64_t value = object.integer(key);
  if (value < 0 || value > kMaxElements)
    object.fail(key, fmt::format("is {}; expected a number of elements", value));
  return value;
}

ManifestPart parse_part(const json& document, const std::string& file) {
  const JsonObject object(document, file);
  ManifestPart part{object.text("file"), amount(object, "first"), amount(object, "count")};
  if (part.file.empty() || part.file == "." || part.file == ".." ||
      fs::path(part.file).filename() != part.file)
    object.fail("file", "must be the name of a file in the same folder");
  return part;
}

ManifestTensor parse_tensor(const JsonObject& object, const std::string& file) {
  ManifestTensor tensor;
  tensor.dtype = object.text("dtype");
  const json& value = object.value();
  if (!value.contains("shape") || !value["shape"].is_array())
    object.fail("shape", "must be a list of sizes");
  int64_t elements = 1;
  for (const json& dim : value["shape"]) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 0)
      object.fail("shape", "must be a list of sizes");
    const auto size = dim.get<int64_t>();
    if (size > 0 && elements > kMaxElements / size)
      object.fail("shape", "has more elements than can be counted");
    elements *= size;
    tensor.shape.push_back(size);
  }
  if (!value.contains("parts") || !value["parts"].is_array())
    object.fail("parts", "must be a list of ranges");
  for (const json& part : value["parts"]) tensor.parts.push_back(parse_part(part, file));
  return tensor;
}

void sort_parts(ManifestTensor& tensor) {
  std::sort(tensor.parts.begin(), tensor.parts.end(),
            [](const ManifestPart& a, const ManifestPart& b) { return a.first < b.first; });
}

void check_whole(const ManifestTensor& tensor, const JsonObject& object) {
  int64_t next = 0;
  for (const ManifestPart& part : tensor.parts) {
    if (part.first != next)
      object.fail("parts",
                  fmt::format("have a range from element {}; expected {}", part.first, next));
    next += part.count;
  }
  if (next != tensor.elements())
    object.fail("parts", fmt::format("end at element {} of {}", next, tensor.elements()));
}

// Passes the document to sink(text) in short pieces.
template <typename Sink>
void write_json(const Manifest& manifest, const Sink& sink) {
  sink(fmt::format("{{\"format_version\": {}, \"ranks\": {}, \"tensors\": {{",
                   Manifest::kFormatVersion, manifest.ranks));
  const char* before_tensor = "\n";
  for (const auto& [name, tensor] : manifest.tensors) {
    sink(fmt::format("{}  {}: {{\"dtype\": {}, \"shape\": [{}], \"parts\": [",
                     std::exchange(before_tensor, ",\n"), json(name).dump(),
                     json(tensor.dtype).dump(), fmt::join(tensor.shape, ", ")));
    const char* before_part = "\n";
    for (const ManifestPart& part : tensor.parts)
      sink(fmt::format("{}    {{\"file\": {}, \"first\": {}, \"count\": {}}}",
                       std::exchange(before_part, ",\n"), json(part.file).dump(), part.first,
                       part.count));
    sink("]}");
  }
  sink("}}\n");
}

bool is_rank_file(const fs::path& path) {
  return path.extension() == ".safetensors" && path.stem().string().starts_with(kRankPrefix);
}

// The folder with the final result of the run to which a checkpoint belongs; empty if there is
// none.
fs::path result_near(const fs::path& checkpoint) {
  std::error_code error;
  const fs::path run = fs::weakly_canonical(checkpoint, error).parent_path();
  for (const char* name : {"model", "adapter"})
    if (fs::is_directory(run / name, error)) return run / name;
  return {};
}

}  // namespace

int64_t ManifestTensor::elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

std::string rank_stem(int64_t rank, int64_t ranks) {
  return fmt::format("{}{:05}-of-{:05}", kRankPrefix, rank, ranks);
}

std::string to_lines(std::span<const TensorRange> ranges) {
  std::string lines;
  for (const TensorRange& range : ranges)
    fmt::format_to(std::back_inserter(lines), "{} {} {}\n", range.first, range.count, range.name);
  return lines;
}

void add_parts(std::string_view lines, const std::string& file, Manifest& manifest) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    SNUG_CHECK(end != std::string_view::npos, "ranges of {} are cut short", file);
    ManifestPart part{file, 0, 0};
    const char* const stop = lines.data() + end;
    const auto first = std::from_chars(lines.data(), stop, part.first);
    const auto count = std::from_chars(std::min(first.ptr + 1, stop), stop, part.count);
    SNUG_CHECK(count.ec == std::errc() && count.ptr < stop, "ranges of {}: {}", file,
               lines.substr(0, end));
    const std::string name(count.ptr + 1, stop);
    const auto tensor = manifest.tensors.find(name);
    SNUG_CHECK(tensor != manifest.tensors.end(), "{} has {}, which the first rank has not", file,
               name);
    tensor->second.parts.push_back(std::move(part));
    lines.remove_prefix(end + 1);
  }
}

void sort_parts(Manifest& manifest) {
  for (auto& [name, tensor] : manifest.tensors) sort_parts(tensor);
}

std::string to_json(const Manifest& manifest) {
  std::string text;
  write_json(manifest, [&](std::string_view piece) { text += piece; });
  return text;
}

void write_manifest(const fs::path& path, const Manifest& manifest) {
  base::File file = base::File::create(path);
  int64_t written = 0;
  std::string block;
  const auto flush = [&] {
    file.write_at(written, block.data(), std::ssize(block));
    written += std::ssize(block);
    block.clear();
  };
  write_json(manifest, [&](std::string_view piece) {
    block += piece;
    if (block.size() >= kBlockBytes) flush();
  });
  flush();
  file.sync();
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  const json document = base::parse_json(text, file);
  const JsonObject object(document, file);
  if (const int64_t version = object.integer("format_version"); version != Manifest::kFormatVersion)
    object.fail("format_version", fmt::format("is {}; this Snug reads {}. Resume with the Snug "
                                              "that wrote it",
                                              version, Manifest::kFormatVersion));
  Manifest manifest;
  manifest.ranks = amount(object, "ranks");
  const JsonObject tensors = object.object("tensors");
  for (const auto& [name, unused] : tensors.value().items()) {
    const JsonObject entry = tensors.object(name);
    ManifestTensor tensor = parse_tensor(entry, file);
    sort_parts(tensor);
    check_whole(tensor, entry);
    manifest.tensors.emplace(name, std::move(tensor));
  }
  return manifest;
}

std::string advice_on_run_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"adapter", "model"}) {
    if (!fs::is_directory(folder / name, error)) continue;
    const bool is_adapter = fs::exists(folder / name / "adapter_config.json", error);
    if (!is_adapter && !fs::exists(folder / name / "config.json", error)) continue;
    return fmt::format("; it is a run's folder: give {}={}", is_adapter ? "adapter" : "model",
                       (folder / name).string());
  }
  if (fs::exists(folder / "recipe.yaml", error) && fs::exists(folder / "run.log", error))
    return "; it is the folder of a run that has not ended: its result will be in its folder "
           "adapter or model";
  return "";
}

void refuse_rank_checkpoint(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kManifestName, error)) return;
  const auto entries = base::list_folder(folder);
  if (std::none_of(entries.begin(), entries.end(),
                   [](const auto& entry) { return is_rank_file(entry.path()); }))
    return;
  const fs::path result = result_near(folder);
  base::throw_user_error(
      "{}: this is a checkpoint of a run on several ranks, each of which wrote its share of every "
      "tensor (rank-*.safetensors); only a run that resumes reads it. Give {}",
      folder.string(),
      result.empty() ? fmt::format("the folder model or adapter that its run writes at its end: "
                                   "resume_from_checkpoint={} goes on to there, on one device too",
                                   folder.string())
                     : fmt::format("{} instead, which its run wrote at its end", result.string()));
}

}  // namespace snug::formats
