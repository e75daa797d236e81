#include "formats/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

using base::JsonObject;
using nlohmann::json;

namespace fs = std::filesystem;

constexpr int64_t kMaxElements = int64_t{1} << 53;
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

bool is_rank_file(const fs::path& path) {
  return path.extension() == ".safetensors" && path.stem().string().starts_with(kRankPrefix);
}

// Where the run of a checkpoint left its result, empty where it has not.
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

void merge(const Manifest& other, Manifest& into) {
  SNUG_CHECK_EQ(other.ranks, into.ranks);
  for (const auto& [name, tensor] : other.tensors) {
    const auto [entry, is_new] = into.tensors.emplace(name, tensor);
    if (is_new) continue;
    ManifestTensor& known = entry->second;
    SNUG_CHECK(known.dtype == tensor.dtype && known.shape == tensor.shape,
               "ranks have {} in different forms", name);
    known.parts.insert(known.parts.end(), tensor.parts.begin(), tensor.parts.end());
    sort_parts(known);
  }
}

std::string to_json(const Manifest& manifest) {
  json tensors = json::object();
  for (const auto& [name, tensor] : manifest.tensors) {
    json parts = json::array();
    for (const ManifestPart& part : tensor.parts)
      parts.push_back({{"file", part.file}, {"first", part.first}, {"count", part.count}});
    tensors[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"parts", std::move(parts)}};
  }
  return json{{"format_version", Manifest::kFormatVersion},
              {"ranks", manifest.ranks},
              {"tensors", std::move(tensors)}}
             .dump(2) +
         "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& file, bool is_whole) {
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
    if (is_whole) check_whole(tensor, entry);
    manifest.tensors.emplace(name, std::move(tensor));
  }
  return manifest;
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
