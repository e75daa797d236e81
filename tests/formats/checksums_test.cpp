#include "formats/folder/checksums.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/checksum.h"
#include "formats/folder/safetensors_writer.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

// A tensor of a piece and a bit, a short one, and a file of another kind.
class Checksums : public ::testing::Test {
 protected:
  Checksums() : buffer_(base::kChecksumPieceBytes) {
    const std::vector<TensorSpec> specs{{"long", base::DType::u8, {base::kChecksumPieceBytes + 5}},
                                        {"short", base::DType::u8, {3}}};
    SafetensorsWriter writer(folder_ / "model.safetensors", specs);
    for (const TensorSpec& spec : specs) {
      std::string bytes(static_cast<size_t>(spec.bytes()), 'x');
      writer.write(spec.name, bytes.data(), spec.bytes());
      for (int64_t done = 0; done < spec.bytes(); done += base::kChecksumPieceBytes)
        tensors_[spec.name].push_back(base::checksum(
            bytes.data() + done, std::min(base::kChecksumPieceBytes, spec.bytes() - done)));
    }
    writer.finish();
    folder_.write("config.json", "{}");
  }

  TemporaryFolder folder_;
  std::vector<std::byte> buffer_;
  TensorChecksums tensors_;
};

TEST_F(Checksums, ReadBack) {
  const FolderChecksums checksums = checksums_of(folder_.path(), tensors_, buffer_);
  EXPECT_EQ(checksums.files.size(), 2U);
  EXPECT_EQ(checksums.files.at("config.json").bytes, 2);
  EXPECT_EQ(checksums.files.at("model.safetensors").tensors, tensors_);
  EXPECT_EQ(parse_checksums(to_json(checksums), "f"), checksums);
  const TensorIndex index(folder_.path());
  EXPECT_EQ(checksums_of(checksums, index, index.at("long")).size(), 2U);
}

TEST_F(Checksums, NameTheFileThatDiffers) {
  const FolderChecksums checksums = checksums_of(folder_.path(), tensors_, buffer_);
  EXPECT_NO_THROW(verify_files(folder_.path(), checksums, buffer_));
  folder_.write("config.json", "{ ");
  EXPECT_TRUE(contains(user_error_of([&] { verify_files(folder_.path(), checksums, buffer_); }),
                       "config.json: "));
  folder_.write("config.json", "{}");
  std::string text = base::read_text_file(folder_ / "model.safetensors");
  text[20] = static_cast<char>(text[20] ^ 4);
  folder_.write("model.safetensors", text);
  EXPECT_THROW(verify_files(folder_.path(), checksums, buffer_), base::DamagedFile);
}

// A folder that is removed while it is written, or afterwards in part, is none to go on from.
TEST_F(Checksums, OfFilesThatAreRemoved) {
  const FolderChecksums checksums = checksums_of(folder_.path(), tensors_, buffer_);
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_TRUE(contains(user_error_of([&] { checksums_of(folder_.path(), tensors_, buffer_); }),
                       "removed while they were written"));
  EXPECT_THROW(verify_files(folder_.path(), checksums, buffer_), base::DamagedFile);
}

TEST_F(Checksums, OfTensorsThatAreNotThere) {
  FolderChecksums checksums = checksums_of(folder_.path(), tensors_, buffer_);
  const TensorIndex index(folder_.path());
  checksums.files.at("model.safetensors").tensors.at("long").pop_back();
  EXPECT_THROW(checksums_of(checksums, index, index.at("long")), base::DamagedFile);
  checksums.files.erase("model.safetensors");
  EXPECT_THROW(checksums_of(checksums, index, index.at("short")), base::DamagedFile);
}

TEST(ChecksumsText, OfAnotherForm) {
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({"piece_bytes": 5, "files": {}})", "piece_bytes"},
           {R"({"piece_bytes": 1048576})", "files"},
           {R"({"piece_bytes": 1048576, "files": {"a": {"bytes": 1, "pieces": "0g"}}})", "pieces"},
           {R"({"piece_bytes": 1048576, "files": {"a": {"bytes": 1, "pieces": ""}}})", "bytes"},
           {R"({"piece_bytes": 1048576, "files": {"a": {"bytes": -1, "pieces": ""}}})", "bytes"}})
    EXPECT_TRUE(contains(user_error_of([&] { parse_checksums(text, "f"); }), part));
}

}  // namespace
}  // namespace snug::formats
