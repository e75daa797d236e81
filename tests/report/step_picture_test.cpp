// What is drawn of a step is what the memory reader and the clock say of it.
#include "report/step_picture.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planned_example.h"

namespace snug::report {
namespace {

const std::vector<std::string> kWords{"model=smollm2-135m", "method=lora", "max_length=128",
                                      "gradient_accumulation_steps=3", "recompute=layer"};

TEST(StepPicture, HoldsAsMuchAsThePlan) {
  const Example example(kWords);
  const StepPicture picture = picture_step(example.planned);
  const auto& moments = picture.memory[0];
  ASSERT_FALSE(moments.empty());
  const auto largest = std::ranges::max_element(
      moments, {}, [](const MemoryMoment& moment) { return moment.total(); });
  const plan::SpaceReport& report = example.planned.document.device.report;
  ASSERT_NE(report.peak_program.find("micro"), std::string::npos);
  int64_t planned_bytes = 0;
  for (const auto& [role, bytes] : report.by_role) planned_bytes += bytes;
  EXPECT_EQ(largest->total(), planned_bytes);
  for (size_t role = 0; role < largest->by_role.size(); ++role) {
    const std::string name(name_of(static_cast<program::Role>(role)));
    const auto planned = report.by_role.find(name);
    EXPECT_EQ(largest->by_role[role], planned == report.by_role.end() ? 0 : planned->second)
        << name;
  }
  EXPECT_TRUE(std::ranges::is_sorted(moments, {}, &MemoryMoment::seconds));
}

TEST(StepPicture, TakesAsLongAsTheClockSays) {
  const Example example(kWords);
  const StepPicture picture = picture_step(example.planned);
  double step = 0;
  for (const DrawnProgram& program : picture.programs)
    step += static_cast<double>(program.runs) * program.seconds;
  EXPECT_NEAR(step, example.planned.document.step_seconds,
              1e-9 * example.planned.document.step_seconds);
  // One channel: the spans follow each other.
  double busy = 0;
  double end = 0;
  for (const ChannelSpan& span : picture.spans) {
    EXPECT_GE(span.start_seconds, end - 1e-12);
    end = span.start_seconds + span.seconds;
    busy += span.seconds;
  }
  EXPECT_NEAR(busy, picture.seconds, 1e-3 * picture.seconds);
  std::set<program::Phase> phases;
  for (const ChannelSpan& span : picture.spans) phases.insert(span.phase);
  EXPECT_EQ(phases.size(), 4);
}

}  // namespace
}  // namespace snug::report
