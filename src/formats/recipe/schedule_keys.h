// Which keys of a recipe each schedule of the learning rate reads, with transformers' names.
// What it does with them stands in train/lr_schedule.h.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "formats/recipe/choices.h"

namespace snug::formats {

struct ScheduleKeys {
  Schedule schedule;
  std::span<const std::string_view> keys = {};
};

const ScheduleKeys& schedule_keys_of(Schedule schedule);
// Whether only some schedules read it.
bool is_schedule_key(std::string_view key);
// The schedules that read it.
std::vector<std::string_view> schedules_with(std::string_view key);

}  // namespace snug::formats
