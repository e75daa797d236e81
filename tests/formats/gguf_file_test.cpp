#include "formats/gguf/gguf_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "../base/temporary_folder.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/gguf/metadata_view.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

fs::path golden_gguf(const char* name) { return fs::path("tests/goldens/gguf") / name; }

template <typename T>
T value_at(const Metadata& metadata, std::string_view key) {
  const MetadataValue* value = metadata.find(key);
  if (value == nullptr || !std::holds_alternative<T>(*value)) {
    ADD_FAILURE() << key << " is missing or of another type";
    return T{};
  }
  return std::get<T>(*value);
}

std::vector<std::byte> data_of(const GgufFile& file, std::string_view name) {
  const GgufTensorInfo& tensor = *file.find(name);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  file.read_range(tensor, 0, bytes);
  return bytes;
}

TEST(GgufFile, ReadsEveryValueThatTheGgufPackageWrites) {
  const GgufFile file(golden_gguf("values.gguf"));
  const Metadata& metadata = file.metadata();
  EXPECT_EQ(value_at<std::string>(metadata, "general.architecture"), "llama");
  EXPECT_EQ(value_at<uint32_t>(metadata, "one.u32"), 4000000000U);
  EXPECT_EQ(value_at<int32_t>(metadata, "one.i32"), -2000000000);
  EXPECT_EQ(value_at<uint64_t>(metadata, "one.u64"), (uint64_t{1} << 63) + 5);
  EXPECT_EQ(value_at<int64_t>(metadata, "one.i64"), -(int64_t{1} << 62));
  EXPECT_EQ(value_at<float>(metadata, "one.f32"), 1e-5F);
  EXPECT_EQ(value_at<double>(metadata, "one.f64"), 0.1);
  EXPECT_TRUE(value_at<bool>(metadata, "one.true"));
  EXPECT_FALSE(value_at<bool>(metadata, "one.false"));
  EXPECT_EQ(value_at<std::string>(metadata, "one.text"), "grün 🙂");
  EXPECT_EQ(value_at<std::string>(metadata, "one.empty"), "");
  EXPECT_EQ(value_at<std::vector<uint32_t>>(metadata, "many.u32"),
            (std::vector<uint32_t>{1, 4000000000U}));
  EXPECT_EQ(value_at<std::vector<int32_t>>(metadata, "many.i32"), (std::vector<int32_t>{-1, 2}));
  EXPECT_EQ(value_at<std::vector<uint64_t>>(metadata, "many.u64"),
            (std::vector<uint64_t>{uint64_t{1} << 63}));
  EXPECT_EQ(value_at<std::vector<float>>(metadata, "many.f32"), (std::vector<float>{0.5F, -1e30F}));
  EXPECT_EQ(value_at<std::vector<bool>>(metadata, "many.bool"),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(value_at<std::vector<std::string>>(metadata, "many.text"),
            (std::vector<std::string>{"a", "", "Ġthe"}));
  EXPECT_EQ(value_at<std::vector<std::string>>(metadata, "tokens.damaged")[0], "\xff\xfe");
  ASSERT_EQ(file.tensors().size(), 4U);
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.find("c.blocks")->bytes(), 2 * 2 * 34);
  std::vector<float> matrix(6);
  std::memcpy(matrix.data(), data_of(file, "a.matrix").data(), 24);
  EXPECT_EQ(matrix, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(GgufFile, WidensNarrowIntegersAndTakesAnyAlignment) {
  const GgufFile file(golden_gguf("narrow.gguf"));
  const Metadata& metadata = file.metadata();
  EXPECT_EQ(value_at<uint32_t>(metadata, "narrow.u8"), 200U);
  EXPECT_EQ(value_at<int32_t>(metadata, "narrow.i8"), -100);
  EXPECT_EQ(value_at<uint32_t>(metadata, "narrow.u16"), 60000U);
  EXPECT_EQ(value_at<int32_t>(metadata, "narrow.i16"), -30000);
  EXPECT_EQ(value_at<std::vector<uint32_t>>(metadata, "narrow.bytes"),
            (std::vector<uint32_t>{0, 127, 255}));
  EXPECT_EQ(value_at<std::vector<int32_t>>(metadata, "narrow.i8s"), (std::vector<int32_t>{-1, 2}));
  for (const GgufTensorInfo& tensor : file.tensors()) EXPECT_EQ(tensor.begin % 128, 0);
  const GgufFile other(golden_gguf("values.gguf"));
  for (const GgufTensorInfo& tensor : file.tensors())
    EXPECT_EQ(data_of(file, tensor.name), data_of(other, tensor.name));
}

// Writes what was read to another file. The data come in pieces of `piece` bytes, across tensors.
void write_again(const GgufFile& from, const fs::path& path, size_t piece) {
  std::vector<GgufTensorSpec> specs;
  std::vector<std::byte> data;
  for (const GgufTensorInfo& tensor : from.tensors()) {
    specs.push_back({tensor.name, tensor.shape, tensor.type});
    const auto bytes = data_of(from, tensor.name);
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  GgufWriter writer(path, from.metadata(), specs);
  std::span<const std::byte> rest = data;
  while (!rest.empty()) {
    const size_t now = std::min(piece, rest.size());
    writer.write(rest.first(now));
    rest = rest.subspan(now);
  }
  EXPECT_FALSE(fs::exists(path)) << "it appears when it is whole";
  writer.finish();
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(path)), gguf_file_bytes(from.metadata(), specs));
}

TEST(GgufWriter, WritesTheBytesThatTheGgufPackageWrites) {
  const TemporaryFolder folder;
  const GgufFile golden(golden_gguf("values.gguf"));
  for (const size_t piece : {1, 7, 100000}) {
    const fs::path path = folder / "again.gguf";
    fs::remove(path);
    write_again(golden, path, piece);
    EXPECT_EQ(base::read_text_file(path), base::read_text_file(golden.path())) << piece;
  }
}

TEST(GgufWriter, LeavesNothingOfAFileThatWasNotFinished) {
  const TemporaryFolder folder;
  {
    GgufWriter writer(folder / "x.gguf", {}, {{"t", {2}, GgmlType::f32}});
    writer.write(std::vector<std::byte>(5));
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(GgufWriter, WritesEmptyArraysAndTensors) {
  const TemporaryFolder folder;
  Metadata metadata;
  metadata.set("none", std::vector<std::string>{});
  metadata.set("twice", 1U);
  metadata.set("twice", std::string("last"));
  GgufWriter writer(folder / "x.gguf", metadata,
                    {{"empty", {0, 32}, GgmlType::q8_0}, {"one", {}, GgmlType::f32}});
  const float one = 1;
  writer.write(std::as_bytes(std::span(&one, 1)));
  writer.finish();
  const GgufFile file(folder / "x.gguf");
  EXPECT_TRUE(value_at<std::vector<std::string>>(file.metadata(), "none").empty());
  EXPECT_EQ(value_at<std::string>(file.metadata(), "twice"), "last");
  EXPECT_EQ(file.metadata().pairs().size(), 2U);
  EXPECT_EQ(file.find("empty")->bytes(), 0);
  EXPECT_EQ(file.find("one")->elements(), 1);
}

// A file, byte by byte.
class Bytes {
 public:
  template <typename T>
  Bytes& number(T value) {
    std::array<char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(T));
    text_.append(bytes.data(), bytes.size());
    return *this;
  }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& u64(uint64_t value) { return number(value); }
  Bytes& text(std::string_view value) {
    u64(value.size());
    text_ += value;
    return *this;
  }
  Bytes& begin(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    text_ = "GGUF";
    return u32(version).u64(tensors).u64(pairs);
  }
  // A tensor of one axis.
  Bytes& tensor(std::string_view name, uint64_t size, uint32_t type, uint64_t place) {
    return text(name).u32(1).u64(size).u32(type).u64(place);
  }
  Bytes& data(size_t bytes) {
    text_.resize((text_.size() + 31) / 32 * 32 + bytes, '\0');
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

struct BadGguf {
  const char* name;
  std::string bytes;
  const char* message;
};

constexpr uint64_t kHuge = uint64_t{1} << 62;

std::vector<BadGguf> bad_ggufs() {
  using namespace std::string_literals;
  return {
      {"empty", "", "is empty"},
      {"cut_in_version", "GGUF\x03", "ends at byte 5 within the version"},
      {"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n",
       "is a Git LFS pointer"},
      {"page", "\r\n<!DOCTYPE html><html lang=\"en\">", "is a web page"},
      {"page_again", "<HTML><head>", "is a web page"},
      {"zip", "PK\x03\x04 and more", "is a zip archive"},
      {"gzip", "\x1f\x8b\x08", "is a packed file"},
      {"pickle", "\x80\x02}q", "is a pickle of Python"},
      {"old", "tjgg\x03\0\0\0"s, "format before GGUF"},
      {"safetensors", "\x10\0\0\0\0\0\0\0{\"a\": 1}        "s, "is a safetensors file"},
      {"zeros", std::string(100, '\0'), "download that was not finished"},
      {"json", "{\"model_type\": \"llama\"}", "is a text file"},
      {"unknown", "\x01\x02\x03\x04\x05", "begins with the bytes 01 02 03 04"},
      {"swapped_magic", "FUGG\0\0\0\x03"s, "big-endian"},
      {"big_endian", Bytes().begin(0, 0, 0x03000000).str(), "big-endian"},
      {"version_1", Bytes().begin(0, 0, 1).str(), "version 1"},
      {"version_9", Bytes().begin(0, 0, 9).str(), "version 9; Snug reads versions 2 and 3"},
      {"pairs", Bytes().begin(0, kHuge).str(), "pairs of metadata, for which the 0 bytes"},
      {"tensors", Bytes().begin(kHuge, 0).str(), "tensors, for which the 0 bytes"},
      {"key", Bytes().begin(0, 1).u64(kHuge).data(64).str(), "bytes of a key of the metadata"},
      {"long_key", Bytes().begin(0, 1).u64(70000).data(80000).str(),
       "more than the 65535 that the format allows"},
      {"text", Bytes().begin(0, 1).text("a").u32(8).u64(kHuge).str(), "bytes of a text"},
      {"array", Bytes().begin(0, 1).text("a").u32(9).u32(4).u64(kHuge).str(),
       "elements of an array"},
      {"texts", Bytes().begin(0, 1).text("a").u32(9).u32(8).u64(kHuge).str(), "texts of an array"},
      {"nested", Bytes().begin(0, 1).text("a").u32(9).u32(9).u64(1).str(), "array of arrays"},
      {"value_type", Bytes().begin(0, 1).text("a").u32(77).u64(1).str(), "is of type 77"},
      {"element_type", Bytes().begin(0, 1).text("a").u32(9).u32(77).u64(1).str(),
       "has elements of type 77"},
      {"key_twice",
       Bytes().begin(0, 2).text("a").u32(4).u32(1).text("a").u32(4).u32(2).data(0).str(),
       "have the key 'a' twice"},
      {"name", Bytes().begin(1, 0).text(std::string(2000, 'n')).data(64).str(),
       "more than the 1023"},
      {"axes", Bytes().begin(1, 0).text("t").u32(5).data(64).str(), "has 5 axes"},
      {"axis", Bytes().begin(1, 0).tensor("t", kHuge, 0, 0).str(), "an axis of"},
      {"product",
       Bytes().begin(1, 0).text("t").u32(2).u64(1 << 30).u64(1 << 30).u32(0).u64(0).str(),
       "an axis of"},
      {"type", Bytes().begin(1, 0).tensor("blk.0.ffn_up.weight", 256, 23, 0).data(512).str(),
       "tensor 'blk.0.ffn_up.weight' is IQ4_XS, which Snug does not read"},
      {"type_number", Bytes().begin(1, 0).tensor("t", 256, 99, 0).data(512).str(),
       "of type number 99"},
      {"rows", Bytes().begin(1, 0).tensor("t", 33, 8, 0).data(512).str(), "no whole blocks of 32"},
      {"place", Bytes().begin(1, 0).tensor("t", 4, 0, kHuge).str(), "outside of the file"},
      {"cut", Bytes().begin(1, 0).tensor("t", 400, 0, 0).data(512).str(), "it was cut off"},
      {"unaligned", Bytes().begin(1, 0).tensor("t", 4, 0, 3).data(512).str(), "no multiple of"},
      {"overlap", Bytes().begin(2, 0).tensor("t", 16, 0, 32).tensor("s", 16, 0, 0).data(512).str(),
       "tensors 's' and 't' overlap"},
      {"twice", Bytes().begin(2, 0).tensor("t", 8, 0, 0).tensor("t", 8, 0, 32).data(512).str(),
       "two tensors 't'"},
      {"alignment",
       Bytes().begin(1, 1).text("general.alignment").u32(4).u32(48).tensor("t", 4, 0, 0).str(),
       "general.alignment is 48, not a power of two"},
      {"alignment_0",
       Bytes().begin(1, 1).text("general.alignment").u32(4).u32(0).tensor("t", 4, 0, 0).str(),
       "general.alignment is 0"},
      {"alignment_text",
       Bytes().begin(1, 1).text("general.alignment").u32(8).text("32").tensor("t", 4, 0, 0).str(),
       "general.alignment is not an integer"},
  };
}

TEST(GgufFileError, SaysWhatTheFileIsOrWhereItBreaksOff) {
  const TemporaryFolder folder;
  for (const BadGguf& bad : bad_ggufs()) {
    const fs::path path = folder.write(std::string(bad.name) + ".gguf", bad.bytes);
    const std::string error = user_error_of([&] { GgufFile{path}; });
    EXPECT_TRUE(contains(error, bad.message)) << bad.name;
    EXPECT_TRUE(error.starts_with(path.string())) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << "one paragraph: " << error;
  }
}

TEST(GgufFileError, NamesTheCommandThatJoinsParts) {
  const TemporaryFolder folder;
  const std::string bytes = Bytes()
                                .begin(0, 2)
                                .text("split.count")
                                .u32(2)
                                .number(uint16_t{3})
                                .text("split.no")
                                .u32(2)
                                .number(uint16_t{1})
                                .str();
  const fs::path path = folder.write("m-00002-of-00003.gguf", bytes);
  const std::string error = user_error_of([&] { GgufFile{path}; });
  EXPECT_TRUE(contains(error, "part 2 of a model in 3 files"));
  EXPECT_TRUE(contains(error, fmt::format("llama-gguf-split --merge {} ",
                                          (folder / "m-00001-of-00003.gguf").string())));
}

TEST(GgufFileError, EveryCutOfAFileIsRefusedOrWhole) {
  const TemporaryFolder folder;
  const fs::path path = folder / "cut.gguf";
  fs::copy_file(golden_gguf("values.gguf"), path);
  const GgufTensorInfo last = GgufFile(path).tensors().back();
  for (int64_t size = static_cast<int64_t>(fs::file_size(path)); size >= 0; --size) {
    fs::resize_file(path, static_cast<uintmax_t>(size));
    const std::string error = user_error_of([&] { GgufFile{path}; });
    // Only the padding after the last tensor may be missing.
    EXPECT_EQ(error == "(no error)", size >= last.begin + last.bytes()) << size;
  }
}

TEST(MetadataView, NamesFileAndKey) {
  Metadata metadata;
  metadata.set("n", uint64_t{1} << 63);
  metadata.set("nan", std::numeric_limits<float>::quiet_NaN());
  metadata.set("eps", 1e-5F);
  metadata.set("layers", std::vector<int32_t>{2, 3});
  metadata.set("one", 7U);
  const MetadataView view(metadata, "m.gguf");
  EXPECT_TRUE(
      contains(user_error_of([&] { view.integer("n"); }), "m.gguf: the metadata's n is not"));
  EXPECT_TRUE(contains(user_error_of([&] { view.number("nan"); }), "is not a finite number"));
  EXPECT_TRUE(contains(user_error_of([&] { view.text("x"); }), "x is missing"));
  EXPECT_TRUE(contains(user_error_of([&] { view.integers("layers", 3); }), "nor an array of 3"));
  EXPECT_EQ(view.number("eps"), 1e-5) << "the decimal number, not the float's own";
  EXPECT_EQ(view.integers("layers", 2), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view.integers("one", 3), (std::vector<int64_t>{7, 7, 7}));
  EXPECT_EQ(view.number("one"), 7.0);
}

}  // namespace
}  // namespace snug::formats
