#include "formats/folder/checksums.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using base::JsonObject;
using nlohmann::json;

constexpr size_t kDigits = 16;

// Calls f(piece, checksum) over the first `bytes` of a file.
template <typename F>
void read_pieces(const base::File& file, int64_t bytes, std::span<std::byte> buffer, F&& f) {
  SNUG_CHECK(std::ssize(buffer) >= base::kChecksumPieceBytes, "a buffer of {} bytes",
             buffer.size());
  size_t piece = 0;
  for (int64_t done = 0; done < bytes; done += base::kChecksumPieceBytes) {
    const int64_t count = std::min(bytes - done, base::kChecksumPieceBytes);
    file.read_at(done, buffer.data(), count);
    f(piece++, base::checksum(buffer.data(), count));
  }
}

}  // namespace

FileChecksums checksums_of_file(const fs::path& path, const TensorChecksums& tensors,
                                std::span<std::byte> buffer) {
  FileChecksums result;
  const base::File file = base::File::open_for_reading(path);
  result.bytes = file.size();
  if (path.extension() == ".safetensors") {
    const SafetensorsFile contents(path);
    result.bytes = contents.header_bytes();
    for (const TensorInfo& tensor : contents.tensors()) {
      const auto found = tensors.find(tensor.name);
      SNUG_CHECK(found != tensors.end(), "{} has no checksums", tensor.name);
      SNUG_CHECK_EQ(std::ssize(found->second), base::checksum_pieces(tensor.bytes()));
      result.tensors.emplace(*found);
    }
  }
  read_pieces(file, result.bytes, buffer,
              [&](size_t, uint64_t checksum) { result.pieces.push_back(checksum); });
  return result;
}

FileChecksums checksums_of_bytes(const fs::path& path, std::span<std::byte> buffer) {
  FileChecksums result;
  const base::File file = base::File::open_for_reading(path);
  result.bytes = file.size();
  result.pieces.reserve(static_cast<size_t>(base::checksum_pieces(result.bytes)));
  read_pieces(file, result.bytes, buffer,
              [&](size_t, uint64_t checksum) { result.pieces.push_back(checksum); });
  return result;
}

namespace {

std::vector<uint64_t> parse_pieces(const JsonObject& object, std::string_view key) {
  const std::string text = object.text(key);
  std::vector<uint64_t> pieces;
  pieces.reserve(text.size() / kDigits);
  for (size_t first = 0; first < text.size(); first += kDigits) {
    const char* const begin = text.data() + first;
    const char* const end = text.data() + std::min(text.size(), first + kDigits);
    uint64_t checksum = 0;
    const auto [stop, error] = std::from_chars(begin, end, checksum, 16);
    if (error != std::errc() || stop != begin + kDigits)
      object.fail(key, "must be checksums of sixteen hexadecimal digits each");
    pieces.push_back(checksum);
  }
  return pieces;
}

FileChecksums parse_file(const JsonObject& object) {
  FileChecksums file;
  file.bytes = object.integer("bytes");
  file.pieces = parse_pieces(object, "pieces");
  if (file.bytes < 0 || std::ssize(file.pieces) != base::checksum_pieces(file.bytes))
    object.fail("bytes",
                fmt::format("is {}, which {} pieces do not make", file.bytes, file.pieces.size()));
  if (!object.has("tensors")) return file;
  const JsonObject tensors = object.object("tensors");
  for (const auto& [name, unused] : tensors.value().items())
    file.tensors.emplace(name, parse_pieces(tensors, name));
  return file;
}

}  // namespace

FolderChecksums checksums_of(const fs::path& folder, const TensorChecksums& tensors,
                             std::span<std::byte> buffer) {
  FolderChecksums result;
  for (const auto& entry : base::list_folder(folder))
    if (entry.is_regular_file())
      result.files.emplace(entry.path().filename().string(),
                           checksums_of_file(entry.path(), tensors, buffer));
  size_t found = 0;
  for (const auto& [name, file] : result.files) found += file.tensors.size();
  if (found != tensors.size())
    base::throw_user_error("{}: files were removed while they were written; write it again",
                           folder.string());
  return result;
}

std::string to_json(const FileChecksums& checksums) {
  std::string text = fmt::format("{{\"bytes\": {}, \"pieces\": \"{}\"", checksums.bytes,
                                 base::checksum_text(checksums.pieces));
  const char* before = ", \"tensors\": {\n";
  for (const auto& [name, pieces] : checksums.tensors)
    fmt::format_to(std::back_inserter(text), "{}    {}: \"{}\"", std::exchange(before, ",\n"),
                   json(name).dump(), base::checksum_text(pieces));
  text += checksums.tensors.empty() ? "}" : "}}";
  return text;
}

std::string to_json(const FolderChecksums& checksums) {
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : checksums.files) files.emplace(name, to_json(file));
  return to_json(std::move(files));
}

std::string to_json(std::map<std::string, std::string> files) {
  size_t bytes = 0;
  for (const auto& [name, file] : files) bytes += name.size() + file.size() + 8;
  std::string text = fmt::format("{{\"piece_bytes\": {}, \"files\": {{", base::kChecksumPieceBytes);
  text.reserve(text.size() + bytes + 8);
  for (const char* before = "\n"; !files.empty(); files.erase(files.begin()))
    text.append(std::exchange(before, ",\n"))
        .append("  " + json(files.begin()->first).dump() + ": ")
        .append(files.begin()->second);
  text += "}}\n";
  return text;
}

FolderChecksums parse_checksums(std::string_view text, const std::string& file) {
  const json document = base::parse_json(text, file);
  const JsonObject object(document, file);
  if (const int64_t bytes = object.integer("piece_bytes"); bytes != base::kChecksumPieceBytes)
    object.fail("piece_bytes", fmt::format("is {}; this Snug reads pieces of {} bytes", bytes,
                                           base::kChecksumPieceBytes));
  FolderChecksums checksums;
  const JsonObject files = object.object("files");
  for (const auto& [name, unused] : files.value().items())
    checksums.files.emplace(name, parse_file(files.object(name)));
  return checksums;
}

void verify_files(const fs::path& folder, const FolderChecksums& checksums,
                  std::span<std::byte> buffer) {
  for (const auto& entry : checksums.files) {
    const auto& expected = entry.second;
    if (!base::is_there(folder / entry.first))
      throw base::DamagedFile(fmt::format(
          "{}: the file is missing, so what it belongs to is incomplete; use an earlier "
          "or another copy",
          (folder / entry.first).string()));
    const base::File file = base::File::open_for_reading(folder / entry.first);
    read_pieces(file, expected.bytes, buffer, [&](size_t piece, uint64_t checksum) {
      if (checksum == expected.pieces[piece]) return;
      throw base::DamagedFile(fmt::format(
          "{}: the bytes from {} on are not those that were written, so "
          "the file is damaged; use an earlier or another copy",
          file.path().string(), static_cast<int64_t>(piece) * base::kChecksumPieceBytes));
    });
  }
}

std::span<const uint64_t> checksums_of(const FolderChecksums& checksums, const TensorIndex& index,
                                       const IndexedTensor& tensor) {
  const fs::path& path = index.path_of(tensor);
  const auto file = checksums.files.find(path.filename().string());
  if (file != checksums.files.end()) {
    const auto found = file->second.tensors.find(tensor.info->name);
    if (found != file->second.tensors.end() &&
        std::ssize(found->second) == base::checksum_pieces(tensor.info->bytes()))
      return found->second;
  }
  throw base::DamagedFile(
      fmt::format("{}: tensor '{}' is none that was written here, so the folder is "
                  "damaged; use an earlier or another copy",
                  path.string(), tensor.info->name));
}

}  // namespace snug::formats
