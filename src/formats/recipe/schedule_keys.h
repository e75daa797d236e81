// The keys that each learning-rate schedule reads, with transformers' names. train/lr_schedule.h
// says what the schedules do with them.
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
// Whether only some schedules read the key.
bool is_schedule_key(std::string_view key);
// The schedules that read the key.
std::vector<std::string_view> schedules_with(std::string_view key);

}  // namespace snug::formats
