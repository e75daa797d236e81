// What the runtime performs: which programs of such operations are right, and what is wrong with
// others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program/kinds/kind.h"
#include "program/text/text.h"
#include "program/verify/verify.h"
#include "program/work/rate_key.h"

namespace snug::program {
namespace {

using Problems = std::vector<std::string>;

// A weight of 3 blocks, the last one partial, in the forms in which it is stored.
constexpr const char* kTensors =
    "program load\n"
    "tensor slot (64) u8 staging pinned_host\n"
    "tensor values (64) u8 staging\n"
    "tensor a (8, 4) bf16 weight run\n"
    "tensor b (8, 4) f32 master run\n"
    "tensor codes (80, 1) u8 weight run\n"
    "tensor absmax (3) f32 quant_state run\n"
    "tensor small (3) u8 quant_state run\n"
    "tensor nested (1) f32 quant_state run\n"
    "tensor map (256) f32 quant_state run\n"
    "tensor offset (1) f32 quant_state run\n"
    "tensor frequencies (2) f32 scalar run\n"
    "tensor bounds (1, 2) i32 scalar run\n"
    "tensor of_batch (1, 2) i32 batch step\n"
    "tensor ids (4) i32 batch step\n"
    "tensor host (8, 4) bf16 weight pinned_host run\n"
    "tensor part (4, 4) bf16 weight run view of a at 0\n"
    "tensor scratch (64) u8\n";

Program program_of(const std::string& lines) { return parse_text(kTensors + lines); }
Problems problems_of(const std::string& lines) { return verify(program_of(lines)); }

constexpr const char* kRight =
    "a = read() updates (slot) channel storage\n"
    "b = read() updates (slot, values) {file_width 2} channel storage\n"
    "codes, absmax = read_nf4() updates (slot) channel storage\n"
    "codes, small, nested, map, offset = read_nf4() updates (slot) {nested, stored, file_width 0} "
    "channel storage\n"
    "a = fill() {form normal, scale 0.02, seed 42}\n"
    "codes, absmax = fill_nf4() updates (values) {scale 0.02}\n"
    "codes, small, nested, map, offset = fill_nf4() updates (slot) {nested}\n"
    "frequencies = put()\n"
    "bounds = put_bounds() {rows 160}\n"
    "write(a) updates (slot) {read_back} channel storage\n";

TEST(StorageKinds, ProgramsOfThemAreRight) { EXPECT_EQ(problems_of(kRight), Problems{}); }

TEST(StorageKinds, ReadTensorsThatTheHostHolds) {
  EXPECT_EQ(problems_of("host = read() updates (slot) channel storage\n"), Problems{});
}

TEST(StorageKinds, ReadBackFromTheirText) {
  const Program program = program_of(kRight);
  EXPECT_EQ(parse_text(to_text(program)), program);
  EXPECT_NE(to_text(program).find("fill() {form normal, scale 0.02, seed 42}"), std::string::npos)
      << to_text(program);
}

TEST(StorageKinds, RefuseWhatTheyCannotDo) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"a = read() updates (slot)", "(read) reaches files on another channel than storage"},
      {"a = fill() channel storage", "(fill) reaches no file, but runs on channel storage"},
      {"a = read() updates (scratch) channel storage", "(read) staging is not of role staging"},
      {"a = read() channel storage", "(read) has 0 updates, expected at least 1 (staging)"},
      {"ids = read() updates (slot) channel storage", "(read) tensor is neither of floats nor"},
      {"part = read() updates (slot) channel storage", "(read) tensor is not a whole one"},
      {"a = read() updates (slot) {file_width 9} channel storage", "(read) no type is of that"},
      {"a = read() updates (slot) {file_width 0} channel storage", "(read) no type is of that"},
      {"codes, absmax = read_nf4() updates (slot) {file_width 0} channel storage",
       "(read_nf4) no type is of that"},
      {"codes, absmax = read_nf4() updates (slot) {stored} channel storage",
       "(read_nf4) no type is of that"},
      {"codes, small = read_nf4() updates (slot) channel storage", "absmax 'small' is u8"},
      {"a, absmax = read_nf4() updates (slot) channel storage", "codes 'a' is bf16, expected u8"},
      {"codes, absmax = read_nf4() updates (slot) {nested} channel storage", "has 2 writes"},
      {"codes, nested = fill_nf4() updates (slot)", "absmax 'nested' has shape (1), expected (3)"},
      {"codes = fill()", "(fill) tensor 'codes' is u8"},
      {"a = put()", "(put) tensor 'a' is bf16, expected f32"},
      {"ids = put_bounds()", "(put_bounds) tensor 'ids' has shape (4), expected (1, 2)"},
      {"of_batch = put_bounds()",
       "(put_bounds) tensor is not a whole one of the device that lasts"},
      {"bounds = put_bounds() {rows 2147483648}", "(put_bounds) rows are not counted in 32 bits"},
      {"write(part) updates (slot) channel storage", "(write) tensor is not a whole one"},
      {"write(a) updates (slot)", "(write) reaches files on another channel than storage"}};
  for (const auto& [line, problem] : cases) {
    const Problems problems = problems_of(line);
    ASSERT_FALSE(problems.empty()) << line;
    EXPECT_NE(problems[0].find(problem), std::string::npos) << line << ": " << problems[0];
  }
}

// Staging memory is the host's and holds nothing between operations; all else keeps to its rules.
TEST(StorageKinds, OnlyTheirStagingLiesOnTheHost) {
  EXPECT_EQ(problems_of("y (64) bf16 = cast(slot)").size(), 2U);
}

// A weight of two blocks of scales, of which each of two ranks has one.
constexpr const char* kParts =
    "program load\n"
    "tensor slot (64) u8 staging pinned_host\n"
    "tensor absmax (512) f32 staging pinned_host\n"
    "tensor of_rank (256) f32 staging pinned_host view of absmax at 0 by 256\n"
    "tensor of_all (512) f32 staging pinned_host view of absmax at 0\n"
    "tensor part_of_all (256) f32 staging pinned_host view of absmax at 0\n"
    "tensor stage (64) u8 staging pinned_host\n"
    "tensor codes (8192) u8 weight run part of (16384, 1) by 8192\n"
    "tensor small (256) u8 quant_state run part of (512) by 256\n"
    "tensor nested (1) f32 quant_state run part of (2) by 1\n"
    "tensor map (256) f32 quant_state run\n"
    "tensor offset (1) f32 quant_state run\n";
constexpr const char* kReadPart = "codes, of_rank = read_nf4() updates (slot) channel storage\n";
constexpr const char* kFillPart = "codes, of_rank = fill_nf4() updates (slot)\n";
constexpr const char* kEncode = "small, nested, map, offset = encode_scales(of_all)\n";
constexpr const char* kGather =
    "all_gather() updates (of_all) {ranks 2, in_place} channel interconnect\n";
constexpr const char* kAwait = "await() updates (of_all) {in_place}\n";

Problems problems_of_parts(const std::string& lines) { return verify(parse_text(kParts + lines)); }

TEST(StorageKinds, LeaveScalesOfARanksPartToBeGathered) {
  const std::string ends = std::string(kGather) + kAwait + kEncode;
  EXPECT_EQ(problems_of_parts(kReadPart + ends + kFillPart + ends), Problems{});
  // Another operation may come before it, if it is one that leaves that memory alone.
  EXPECT_EQ(problems_of_parts(std::string(kReadPart) +
                              "offset = read() updates (slot) channel "
                              "storage\n" +
                              ends),
            Problems{});
  const std::string stored =
      "codes, small, nested, map, offset = read_nf4() updates (slot{}) {{nested, stored, "
      "file_width "
      "0}} channel storage\n";
  EXPECT_EQ(problems_of_parts(fmt::format(fmt::runtime(stored), "")), Problems{});
  const std::vector<std::pair<std::string, const char*>> cases{
      {"codes, small, nested, map, offset = read_nf4() updates (slot) {nested} channel storage\n",
       "(read_nf4) encodes scales of a rank's part, which takes those of all"},
      {"codes, of_all = read_nf4() updates (slot) channel storage\n",
       "(read_nf4) absmax 'of_all' has shape (512), expected (256)"},
      {std::string(kReadPart) + kGather + kEncode + kAwait,
       "(encode_scales) touches 'of_all' before its copy is awaited"},
      {kEncode, "(encode_scales) reads 'of_all', which was not gathered"},
      {std::string(kReadPart) + ends + kReadPart + kEncode,
       "(encode_scales) touches 'of_rank' before it is gathered"},
      {std::string(kReadPart) + kGather + kAwait +
           "offset = read() updates (absmax) channel storage\n" + kEncode,
       "(encode_scales) reads 'of_all', which was not gathered"},
      {std::string(kReadPart) + kGather + kAwait +
           "small, nested, map, offset = encode_scales(part_of_all)\n",
       "(encode_scales) has not the scales of the whole weight"},
      {std::string(kReadPart) + kGather + kAwait +
           "small, nested, map, offset = encode_scales(of_all) {staged}\n",
       "(encode_scales) has 0 updates, expected 1"},
      {"offset = fill() {scale 1}\n" + ends, "(all_gather) gathers 'of_all', where no part was"},
      {kReadPart, "(read_nf4) leaves its part in 'of_rank', which is never gathered"},
      {std::string(kReadPart) + kFillPart + ends,
       "(fill_nf4) touches 'of_rank' before it is gathered"},
      {std::string(kReadPart) + kGather, "begins to copy 'of_all', which is never awaited"},
      {std::string(kReadPart) + kGather +
           "offset = read() updates (slot, absmax) channel storage\n" + kAwait,
       "(read) writes 'of_all' while it is copied"}};
  for (const auto& [lines, problem] : cases) {
    const Problems problems = problems_of_parts(lines);
    ASSERT_FALSE(problems.empty()) << lines;
    EXPECT_NE(problems[0].find(problem), std::string::npos) << lines << ": " << problems[0];
  }
}

TEST(StorageKinds, EncodeScalesThatWereGathered) {
  const std::string staged =
      std::string(kReadPart) + kGather + kAwait +
      "small, nested, map, offset = encode_scales(of_all) updates (stage) {staged}\n";
  EXPECT_EQ(problems_of_parts(staged), Problems{});
  const Program program = parse_text(kParts + staged);
  EXPECT_EQ(parse_text(to_text(program)), program);
  const OperationView view{program, program.operations.back()};
  EXPECT_EQ(cost(view, {}).bytes, 4 * 512 + 256 + 4 + 4 * 256 + 4);
  EXPECT_EQ(rate_key(view, {}).unit, Work::host_bytes);
}

// What a file holds, whatever it becomes.
TEST(StorageKinds, CostTheBytesOfTheFile) {
  const Program program = program_of(kRight);
  const std::vector<double> bytes{
      64, 64, 320, 80 + 3 + 4 + 1024 + 4, 64, 80 + 12 + 640, 80 + 3 + 4 + 1024 + 4 + 640,
      8,  8,  128};
  ASSERT_EQ(program.operations.size(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const OperationView view{program, program.operations[i]};
    EXPECT_EQ(cost(view, {}).bytes, bytes[i]) << i;
    const bool reaches_files = view.operation.channel == Channel::storage;
    EXPECT_EQ(rate_key(view, {}).unit == Work::storage_bytes, reaches_files) << i;
  }
  EXPECT_EQ(rate_key({program, program.operations[2]}, {}).form.name(), "storage read");
  EXPECT_EQ(rate_key({program, program.operations[9]}, {}).form.name(), "storage write");
}

}  // namespace
}  // namespace snug::program
