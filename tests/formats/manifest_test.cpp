#include "formats/folder/manifest.h"

#include <utility>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "formats/adapter/lora_config.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/hf_folder.h"
#include "formats/folder/tensor_index.h"

namespace snug::formats {
namespace {

using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

constexpr const char* kFirst = "rank-00000-of-00002.safetensors";
constexpr const char* kSecond = "rank-00001-of-00002.safetensors";

Manifest two_ranks() {
  Manifest manifest;
  manifest.ranks = 2;
  manifest.tensors["w"] = {"F32", {300, 4}, {{kFirst, 0, 768}, {kSecond, 768, 432}}};
  manifest.tensors["norm"] = {"BF16", {8}, {{kFirst, 0, 8}}};
  manifest.tensors["step"] = {"I64", {}, {{kSecond, 0, 1}}};
  return manifest;
}

// The text of the manifest above with one passage exchanged.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_json(two_ranks());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { parse_manifest(text, "c/manifest.json"); });
}

void expect_refused(const std::string& from, const std::string& to, const std::string& why) {
  const std::string error = error_of(changed(from, to));
  EXPECT_TRUE(contains(error, "c/manifest.json"));
  EXPECT_TRUE(contains(error, why));
}

TEST(Manifest, IsReadAsItWasWritten) {
  EXPECT_EQ(parse_manifest(to_json(two_ranks()), "manifest.json"), two_ranks());
}

TEST(Manifest, IsMadeOfWhatEachRankTells) {
  const Manifest all = two_ranks();
  Manifest empty = all;
  std::map<std::string, std::vector<TensorRange>> ranges;
  for (auto& [name, tensor] : empty.tensors) {
    for (const ManifestPart& part : all.tensors.at(name).parts)
      ranges[part.file].push_back({name, part.first, part.count});
    tensor.parts.clear();
  }
  // Whichever comes first.
  for (const auto& [first, second] : {std::pair{kFirst, kSecond}, std::pair{kSecond, kFirst}}) {
    Manifest made = empty;
    add_parts(to_lines(ranges[first]), first, made);
    EXPECT_NE(error_of(to_json(made)), "(no error)");
    add_parts(to_lines(ranges[second]), second, made);
    sort_parts(made);
    EXPECT_EQ(made, all);
  }
  Manifest odd;
  odd.tensors["a 1 \"2\""] = {"F32", {3}, {}};
  add_parts(to_lines(std::vector<TensorRange>{{"a 1 \"2\"", 0, 3}}), kFirst, odd);
  EXPECT_EQ(parse_manifest(to_json(odd), "manifest.json"), odd);
}

TEST(Manifest, IsWrittenToAFileAsItsText) {
  const TemporaryFolder folder;
  Manifest many = two_ranks();
  for (int i = 0; i < 5000; ++i) {
    const std::string name = fmt::format("layers.{}.weight", i);
    many.tensors[name] = {"F32", {300, 4}, {{kFirst, 0, 768}, {kSecond, 768, 432}}};
  }
  write_manifest(folder / "manifest.json", many);
  EXPECT_EQ(base::read_text_file(folder / "manifest.json"), to_json(many));
  EXPECT_EQ(parse_manifest(to_json(many), "manifest.json"), many);
}

TEST(Manifest, OfAnotherVersionIsNotRead) {
  expect_refused("\"format_version\": 1", "\"format_version\": 2", "this Snug reads 1");
  expect_refused("\"format_version\": 1", "\"format_version\": \"1\"", "format_version");
  expect_refused("\"format_version\": 1", "\"other\": 1", "format_version");
}

TEST(Manifest, ThatIsDamagedIsRefused) {
  const std::string text = to_json(two_ranks());
  for (size_t size = 0; size + 1 < text.size(); size += 7)
    EXPECT_NE(error_of(text.substr(0, size)), "(no error)") << "cut after " << size << " bytes";
  for (const char* other : {"[]", "null", "{}", "7"}) EXPECT_NE(error_of(other), "(no error)");
  expect_refused("\"ranks\": 2", "\"ranks\": -2", "ranks");
  expect_refused("\"ranks\": 2", "\"ranks\": 1e300", "ranks");
  expect_refused("\"shape\"", "\"sharp\"", "shape");
  expect_refused("\"parts\"", "\"ports\"", "parts");
  expect_refused("\"dtype\"", "\"type\"", "dtype");
}

TEST(Manifest, PartsMakeAllOfATensorOnce) {
  expect_refused("\"first\": 768", "\"first\": 769", "from element 769; expected 768");
  expect_refused("\"first\": 768", "\"first\": 767", "from element 767; expected 768");
  expect_refused("\"count\": 432", "\"count\": 431", "end at element 1199 of 1200");
  expect_refused("\"count\": 432", "\"count\": 433", "end at element 1201 of 1200");
  expect_refused("\"count\": 432", "\"count\": -432", "count");
  expect_refused("\"first\": 768", "\"first\": 9223372036854775807", "first");
  Manifest without = two_ranks();
  without.tensors["w"].parts.pop_back();
  EXPECT_TRUE(contains(error_of(to_json(without)), "end at element 768 of 1200"));
  without.tensors["w"].parts.clear();
  EXPECT_TRUE(contains(error_of(to_json(without)), "end at element 0 of 1200"));
}

TEST(Manifest, CountsElementsWithoutOverflow) {
  Manifest manifest = two_ranks();
  manifest.tensors["w"].shape = {int64_t{1} << 32, int64_t{1} << 32};
  EXPECT_TRUE(contains(error_of(to_json(manifest)), "more elements than can be counted"));
  manifest.tensors["w"].shape = {300, -4};
  EXPECT_TRUE(contains(error_of(to_json(manifest)), "must be a list of sizes"));
}

TEST(Manifest, NamesFilesOfItsFolderAlone) {
  expect_refused(kSecond, "../other.safetensors", "in the same folder");
  expect_refused(kSecond, "/etc/passwd", "in the same folder");
  expect_refused(kSecond, "", "in the same folder");
  expect_refused(kSecond, "..", "in the same folder");
}

// A checkpoint of several ranks, as a user may give it for a model or an adapter.
class RankCheckpoint : public ::testing::Test {
 protected:
  RankCheckpoint() {
    folder_.write("run/checkpoint-5/manifest.json", to_json(two_ranks()));
    folder_.write(std::string("run/checkpoint-5/") + kFirst, "");
  }
  std::filesystem::path path() const { return folder_ / "run/checkpoint-5"; }
  void expect_named(const std::string& error) const {
    EXPECT_TRUE(contains(error, path().string()));
    EXPECT_TRUE(contains(error, "a checkpoint of a run on several ranks"));
  }
  TemporaryFolder folder_;
};

TEST_F(RankCheckpoint, GivenAsAModelIsNamed) {
  const std::string error = user_error_of([&] { TensorIndex index(path()); });
  expect_named(error);
  EXPECT_TRUE(contains(error, "resume_from_checkpoint=" + path().string()));
  expect_named(user_error_of([&] { HfFolder model(path()); }));
}

TEST_F(RankCheckpoint, GivenAsAnAdapterIsNamed) {
  expect_named(user_error_of([&] { read_lora_config(path()); }));
  folder_.write("run/checkpoint-5/adapter_config.json",
                R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]})");
  expect_named(user_error_of([&] { PeftAdapter adapter(path()); }));
}

TEST_F(RankCheckpoint, TheResultOfItsRunIsOffered) {
  folder_.write("run/adapter/adapter_config.json", "{}");
  EXPECT_TRUE(contains(user_error_of([&] { TensorIndex index(path()); }),
                       "Give " + std::filesystem::canonical(folder_ / "run/adapter").string()));
}

TEST_F(RankCheckpoint, OtherFoldersAreNone) {
  const TemporaryFolder other;
  other.write("manifest.json", "{}");
  EXPECT_TRUE(contains(user_error_of([&] { TensorIndex index(other.path()); }),
                       "neither model.safetensors nor"));
}

}  // namespace
}  // namespace snug::formats
