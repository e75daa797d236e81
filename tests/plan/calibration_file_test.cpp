// Calibration files: written and read back, found or refused.
#include "plan/time/calibration_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

namespace fs = std::filesystem;

// An empty cache folder, where find_calibration looks.
class CalibrationFile : public ::testing::Test {
 protected:
  CalibrationFile() {
    fs::create_directories(folder_ / "snug");
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~CalibrationFile() override { unsetenv("XDG_CACHE_HOME"); }

  Calibration measured() const {
    return {.machine = identify_machine(target_),
            .samples = {{"cast f32 > bf16", {600}, Work::bytes, 600, 1.25e-6},
                        {"matmul n t f32 f32 > f32", {8, 4, 2}, Work::flops, 128, 3e-7},
                        {"copy", {32}, Work::link_bytes, 32, 2e-7}}};
  }
  void write(const fs::path& path, const Calibration& calibration) const {
    base::write_file_atomically(path, to_json(calibration));
  }
  std::string error_of(const fs::path& path, const std::string& text) const {
    base::write_file_atomically(path, text);
    try {
      read_calibration(path);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  }

  const testing::TemporaryFolder folder_;
  NullTarget target_;
  formats::Recipe recipe_;
};

TEST_F(CalibrationFile, ReadsWhatItWrote) {
  const Calibration written = measured();
  write(folder_ / "c.json", written);
  const Calibration read = read_calibration(folder_ / "c.json");
  EXPECT_TRUE(read.machine.same_machine(written.machine));
  EXPECT_EQ(read.machine.date, written.machine.date);
  ASSERT_EQ(read.samples.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.samples[i].name, written.samples[i].name);
    EXPECT_EQ(read.samples[i].shape, written.samples[i].shape);
    EXPECT_EQ(read.samples[i].unit, written.samples[i].unit);
    EXPECT_EQ(read.samples[i].work, written.samples[i].work);
    EXPECT_EQ(read.samples[i].seconds, written.samples[i].seconds);
    EXPECT_EQ(read.samples[i].multiplies, written.samples[i].multiplies);
  }
}

// What was measured before names said how adapters are multiplied, or that scores are capped, goes
// on pricing it. Files of that time had neither a grid nor a load.
TEST_F(CalibrationFile, OfAnOlderBuildIsReadAsItIs) {
  base::write_file_atomically(folder_ / "old.json", R"({
"format": "snug calibration 4",
"machine": {"cpu": "x", "target": "cpu", "libraries": "y", "date": "2025-01-31T00:00:00Z"},
"samples": [
{"operation":"attention bf16 bf16 bf16 > bf16 f32","shape":[16384.0,524288.0,128.0,4.0],"unit":"flops","work":2e12,"seconds":0.5,"multiplies":"bf16"},
{"operation":"attention bf16 bf16 bf16 > bf16 f32 few","shape":[16384.0,524288.0,128.0,4.0],"unit":"flops","work":2e12,"seconds":0.25,"multiplies":"f32"},
{"operation":"all_gather 2 ranks","shape":[2000000.0],"unit":"interconnect_bytes","work":2e6,"seconds":0.003},
{"operation":"matmul n t bf16 bf16 bf16 bf16 > bf16","shape":[64.0,16.0,32.0],"unit":"flops","work":81920.0,"seconds":0.002,"multiplies":"bf16"}
]
})");
  const Rates rates(read_calibration(folder_ / "old.json").samples);
  const std::string adapted =
      "tensor x (64, 32) bf16\ntensor w (16, 32) bf16\ntensor h (64, 8) bf16\n"
      "tensor b (16, 8) bf16\ny (64, 16) bf16 = matmul(x, w, h, b) {transpose_b, augmented, "
      "low_transpose_b, products 2 low_algorithm few_rows, algorithm library}";
  EXPECT_DOUBLE_EQ(seconds_of(rates, adapted), 0.002);
  const std::string capped = attention(128, ", softcap 50");
  EXPECT_DOUBLE_EQ(seconds_of(rates, capped), 0.5 * key_of(capped).work / 2e12);
  const std::string few = attention(128, ", softcap 50, kernel few_queries 16384");
  EXPECT_DOUBLE_EQ(seconds_of(rates, few), 0.25 * key_of(few).work / 2e12);
  EXPECT_DOUBLE_EQ(seconds_of(rates,
                              "tensor all (1000000) f32 staging pinned_host\nall_gather() updates "
                              "(all) {ranks 2, in_place} channel interconnect"),
                   0.003);
}

// Small as it is, a copy says nothing of what it costs to start an operation.
TEST_F(CalibrationFile, CopiesInItAreNoLaunches) {
  write(folder_ / "c.json", measured());
  const Rates rates(read_calibration(folder_ / "c.json").samples);
  EXPECT_DOUBLE_EQ(rates.roofline().launch_seconds, 3e-7);
}

TEST_F(CalibrationFile, IsFoundInTheCacheOfThisMachine) {
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::assumed);
  Calibration calibration = measured();
  const fs::path path = calibration_path(recipe_, calibration.machine);
  EXPECT_EQ(path.parent_path(), folder_ / "snug");
  write(path, calibration);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::calibrated);
  calibration.machine.libraries = "others";
  write(path, calibration);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::assumed);
}

TEST_F(CalibrationFile, QuickOneIsUsedWhereThereIsNoFullOne) {
  Calibration quick = measured();
  quick.quick = true;
  const fs::path path = quick_calibration_path(quick.machine);
  EXPECT_EQ(path.parent_path(), folder_ / "snug");
  write(path, quick);
  EXPECT_TRUE(read_calibration(path).quick);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::calibrated_quickly);
  write(calibration_path(recipe_, quick.machine), measured());
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::calibrated);
}

// Nobody made it who could be told to make it again.
TEST_F(CalibrationFile, DamagedQuickOneIsAsGoodAsNone) {
  base::write_file_atomically(quick_calibration_path(measured().machine), "not JSON");
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::assumed);
  base::write_file_atomically(calibration_path(recipe_, measured().machine), "not JSON");
  EXPECT_THROW(find_calibration(recipe_, target_), base::UserError);
}

// Others ran meanwhile: it would be wrong on every later day.
TEST_F(CalibrationFile, QuickOneOfABusyMachineIsAsGoodAsNone) {
  Calibration calibration = measured();
  calibration.quick = true;
  const fs::path path = quick_calibration_path(calibration.machine);
  write(path, calibration);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::calibrated_quickly);
  EXPECT_FALSE(remove_if_busy(path));
  calibration.busy = true;
  write(path, calibration);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::assumed);
  EXPECT_TRUE(remove_if_busy(path));
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(CalibrationFile, NamedFileIsUsedWhateverItsMachine) {
  Calibration calibration = measured();
  calibration.machine.processor = "another";
  recipe_.calibration = (folder_ / "there.json").string();
  write(recipe_.calibration, calibration);
  EXPECT_EQ(rates_for(recipe_, target_).basis(), Basis::calibrated);
}

TEST_F(CalibrationFile, NamedFileThatIsMissingIsAnError) {
  recipe_.calibration = (folder_ / "missing.json").string();
  EXPECT_THROW(find_calibration(recipe_, target_), base::UserError);
}

TEST_F(CalibrationFile, RefusesWhatIsNoCalibration) {
  const fs::path path = folder_ / "bad.json";
  const std::string good = to_json(measured());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_NE(error_of(path, "{}").find("format"), std::string::npos);
  EXPECT_NE(error_of(path, good.substr(0, good.size() / 2)).find("bad.json"), std::string::npos);
  EXPECT_NE(error_of(path, replaced("snug calibration 4", "snug calibration 9")).find("calibrate"),
            std::string::npos);
  EXPECT_NE(error_of(path, replaced("[600.0]", "[-600.0]")).find("shape"), std::string::npos);
  EXPECT_NE(error_of(path, replaced("[600.0]", "[]")).find("shape"), std::string::npos);
  EXPECT_NE(error_of(path, replaced("\"bytes\"", "\"pounds\"")).find("unit"), std::string::npos);
  EXPECT_NE(error_of(path, replaced("1.25e-06", "0")).find("seconds"), std::string::npos);
  EXPECT_NE(error_of(path, replaced("\"multiplies\":\"f32\"", "\"multiplies\":\"i32\""))
                .find("multiplies"),
            std::string::npos);
  EXPECT_NE(error_of(path, replaced("matmul n t f32 f32 > f32", "cast f32 > bf16")).find("sizes"),
            std::string::npos);
}

}  // namespace
}  // namespace snug::plan
