#include "formats/folder/safetensors_header.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

constexpr std::string_view kGood =
    R"({"__metadata__":{"format":"pt"},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[24,30]},)"
    R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("empty":{"dtype":"I64","shape":[0,5],"data_offsets":[24,24]},)"
    R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[30,31]}}   )";
constexpr int64_t kGoodBytes = 31;

TEST(SafetensorsHeader, ReadsTensorsInTheOrderOfTheirData) {
  const SafetensorsHeader header = parse_safetensors_header(kGood, kGoodBytes, "f");
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[0].dtype, base::DType::f32);
  EXPECT_EQ(header.tensors[1].name, "empty");
  EXPECT_EQ(header.tensors[1].elements(), 0);
  EXPECT_EQ(header.tensors[2].name, "b");
  EXPECT_EQ(header.tensors[2].bytes(), 6);
  EXPECT_EQ(header.tensors[3].elements(), 1);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.data_bytes, kGoodBytes);
}

TEST(SafetensorsHeader, KeepsElementTypesItDoesNotComputeWith) {
  const SafetensorsHeader header =
      parse_safetensors_header(R"({"m":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},)"
                               R"("q":{"dtype":"F4","shape":[4],"data_offsets":[4,6]}})",
                               6, "f");
  EXPECT_EQ(header.tensors[0].dtype, std::nullopt);
  EXPECT_EQ(header.tensors[0].stored_dtype, "F8_E4M3");
}

struct BadHeader {
  const char* name;
  const char* json;
  int64_t data_bytes;
  const char* message;
};

class SafetensorsHeaderError : public ::testing::TestWithParam<BadHeader> {};

TEST_P(SafetensorsHeaderError, IsNamed) {
  const BadHeader& bad = GetParam();
  const std::string error =
      user_error_of([&] { parse_safetensors_header(bad.json, bad.data_bytes, "m.safetensors"); });
  EXPECT_TRUE(contains(error, bad.message));
  EXPECT_TRUE(contains(error, "m.safetensors: "));
  EXPECT_EQ(error.find('\n'), std::string::npos) << "one paragraph";
}

#define SNUG_TENSOR(shape, offsets) \
  R"({"t":{"dtype":"F32","shape":)" shape R"(,"data_offsets":)" offsets "}}"

constexpr BadHeader kBadHeaders[] = {
    {"empty", "", 0, "does not begin with '{'"},
    {"list", "[]", 0, "does not begin with '{'"},
    {"space_first", " {}", 0, "does not begin with '{'"},
    {"not_json", R"({"t":{"dtype":"F32",,)", 0, "is not valid JSON at byte 28 of the file"},
    {"torn", R"({"t":{"dtype":"F3)", 0, "is not valid JSON"},
    {"surplus_text", "{}x", 0, "is not valid JSON"},
    {"bad_utf8", "{\"\xff\":{}}", 0, "is not valid JSON"},
    {"tensor_twice",
     R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
     R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     1, "names the tensor 't' twice"},
    {"field_twice", R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
     "gives 'dtype' twice in tensor 't'"},
    {"metadata_twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "metadata key 'a' twice"},
    {"metadata_number", R"({"__metadata__":{"a":1}})", 0, "__metadata__ at 'a'; expected text"},
    {"metadata_nested", R"({"__metadata__":{"a":{}}})", 0, "__metadata__ at 'a'; expected text"},
    {"no_dtype", R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1,
     "gives no 'dtype' for tensor 't'"},
    {"no_shape", R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1, "gives no 'shape' for tensor"},
    {"no_offsets", R"({"t":{"dtype":"U8","shape":[1]}})", 1, "gives no 'data_offsets' for tensor"},
    {"unknown_field", R"({"t":{"kind":"U8"}})", 1, "has the unknown key 'kind' in tensor 't'"},
    {"unknown_dtype", R"({"t":{"dtype":"F31","shape":[1],"data_offsets":[0,1]}})", 1,
     "gives tensor 't' the unknown dtype 'F31'"},
    {"dtype_number", R"({"t":{"dtype":7}})", 1, "expected text"},
    {"tensor_is_text", R"({"t":"x"})", 0, "holds text for 't'; expected an object"},
    {"tensor_is_list", R"({"t":[1]})", 0, "holds a list for 't'; expected an object"},
    {"negative_size", SNUG_TENSOR("[-1]", "[0,4]"), 4, "the number -1 in 'shape' of tensor 't'"},
    {"fractional_size", SNUG_TENSOR("[1.5]", "[0,4]"), 4, "the number 1.5 in 'shape'"},
    {"huge_size", SNUG_TENSOR("[18446744073709551615]", "[0,4]"), 4, "the number 1844674407370955"},
    {"huger_size", SNUG_TENSOR("[99999999999999999999]", "[0,4]"), 4, "in 'shape' of tensor 't'"},
    {"nested_size", SNUG_TENSOR("[[1]]", "[0,4]"), 4, "a list in 'shape' of tensor 't'"},
    {"null_size", SNUG_TENSOR("[null]", "[0,4]"), 4, "null in 'shape' of tensor 't'"},
    {"overflow", SNUG_TENSOR("[4294967296,4294967296]", "[0,4]"), 4, "which is too large"},
    {"one_offset", SNUG_TENSOR("[1]", "[0]"), 4, "gives 1 data_offsets for tensor 't'"},
    {"three_offsets", SNUG_TENSOR("[1]", "[0,4,8]"), 4, "gives 3 data_offsets for tensor 't'"},
    {"backwards", SNUG_TENSOR("[1]", "[4,0]"), 4, "end at byte 0 before it begins at byte 4"},
    {"wrong_bytes", SNUG_TENSOR("[2,3]", "[0,20]"), 20,
     "gives tensor 't' 20 bytes (data_offsets 0 to 20), but F32 of shape [2, 3] takes 24"},
    {"hole_first", SNUG_TENSOR("[1]", "[4,8]"), 8, "a hole of 4 bytes before tensor 't'"},
    {"past_the_end", SNUG_TENSOR("[2]", "[0,8]"), 6,
     "tensor 't' ends at byte 8 of the data, but the file holds only 6; the file is truncated"},
    {"surplus_data", SNUG_TENSOR("[1]", "[0,4]"), 6,
     "describes 4 bytes of data, but the file holds 6"},
    {"overlap",
     R"({"s":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("t":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12, "lets tensors 's' and 't' overlap"},
    {"hole_between",
     R"({"s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("t":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "a hole of 4 bytes before tensor 't'"},
    {"half_bytes", R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1,
     "does not fill whole bytes"},
};
#undef SNUG_TENSOR

INSTANTIATE_TEST_SUITE_P(All, SafetensorsHeaderError, ::testing::ValuesIn(kBadHeaders),
                         [](const auto& test) { return test.param.name; });

TEST(SafetensorsHeader, PrintsWhatReadsBack) {
  SafetensorsHeader header = parse_safetensors_header(kGood, kGoodBytes, "f");
  header.metadata["quote\"d"] = "new\nline";
  header.tensors[0].name = "naïve \"name\"";
  const std::string text = make_safetensors_header(header);
  EXPECT_EQ(text.size() % 8, 0U);
  uint64_t length = 0;
  for (int byte = 7; byte >= 0; --byte)
    length = length << 8 | static_cast<unsigned char>(text[static_cast<size_t>(byte)]);
  EXPECT_EQ(length, text.size() - 8);

  const SafetensorsHeader again = parse_safetensors_header(text.substr(8), kGoodBytes, "f");
  EXPECT_EQ(again.metadata, header.metadata);
  ASSERT_EQ(again.tensors.size(), header.tensors.size());
  for (size_t i = 0; i < again.tensors.size(); ++i) {
    EXPECT_EQ(again.tensors[i].name, header.tensors[i].name);
    EXPECT_EQ(again.tensors[i].shape, header.tensors[i].shape);
    EXPECT_EQ(again.tensors[i].begin, header.tensors[i].begin);
    EXPECT_EQ(again.tensors[i].dtype, header.tensors[i].dtype);
  }
}

// Random changes to a good header are refused or give tensors that still tile the data.
TEST(SafetensorsHeader, SurvivesRandomChanges) {
  std::mt19937 random(42);
  const std::string_view alphabet = "{}[]\",:0123456789-.eE \\truefalsnBF16dtype_ofs\xc3\x28";
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text(kGood);
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes && !text.empty(); ++i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 24));
          break;
        default:
          text[at] = static_cast<char>(random());
      }
    }
    try {
      const SafetensorsHeader header = parse_safetensors_header(text, kGoodBytes, "f");
      int64_t end = 0;
      for (const TensorInfo& tensor : header.tensors) {
        ASSERT_EQ(tensor.begin, end) << text;
        end = tensor.end;
      }
      ASSERT_EQ(end, kGoodBytes) << text;
      ++accepted;
    } catch (const base::UserError&) {
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 15'000);
}

}  // namespace
}  // namespace snug::formats
