#include "formats/recipe/schedule_keys.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace snug::formats {
namespace {

using std::string_view;

constexpr std::array<string_view, 2> kWarmUp{"warmup_ratio", "warmup_steps"};
constexpr std::array<string_view, 3> kOfCosine{"warmup_ratio", "warmup_steps", "num_cycles"};
constexpr std::array<string_view, 5> kOfCosineWithMin{"warmup_ratio", "warmup_steps", "num_cycles",
                                                      "min_lr", "min_lr_rate"};
constexpr std::array<string_view, 6> kOfCosineFromMin{
    "warmup_ratio", "warmup_steps", "num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"};
constexpr std::array<string_view, 4> kOfPolynomial{"warmup_ratio", "warmup_steps", "lr_end",
                                                   "power"};
constexpr std::array<string_view, 3> kOfInverseRoot{"warmup_ratio", "warmup_steps", "timescale"};
constexpr std::array<string_view, 8> kOfStable{"warmup_ratio",     "warmup_steps",    "num_cycles",
                                               "num_stable_steps", "num_decay_steps", "warmup_type",
                                               "decay_type",       "min_lr_ratio"};

constexpr std::array kScheduleTable{
    ScheduleKeys{Schedule::constant},
    ScheduleKeys{Schedule::constant_with_warmup, kWarmUp},
    ScheduleKeys{Schedule::linear, kWarmUp},
    ScheduleKeys{Schedule::cosine, kOfCosine},
    ScheduleKeys{Schedule::cosine_with_min_lr, kOfCosineWithMin},
    ScheduleKeys{Schedule::warmup_stable_decay, kOfStable},
    ScheduleKeys{Schedule::cosine_with_restarts, kOfCosine},
    ScheduleKeys{Schedule::cosine_warmup_with_min_lr, kOfCosineFromMin},
    ScheduleKeys{Schedule::polynomial, kOfPolynomial},
    ScheduleKeys{Schedule::inverse_sqrt, kOfInverseRoot}};

bool reads(const ScheduleKeys& row, string_view key) {
  return std::ranges::find(row.keys, key) != row.keys.end();
}

}  // namespace

const ScheduleKeys& schedule_keys_of(Schedule schedule) {
  const auto found = std::ranges::find(kScheduleTable, schedule, &ScheduleKeys::schedule);
  SNUG_CHECK(found != kScheduleTable.end(), "recipes say nothing of {}", base::word_of(schedule));
  return *found;
}

bool is_schedule_key(string_view key) {
  return std::ranges::any_of(kScheduleTable,
                             [&](const ScheduleKeys& row) { return reads(row, key); });
}

std::vector<string_view> schedules_with(string_view key) {
  std::vector<string_view> names;
  for (const ScheduleKeys& row : kScheduleTable)
    if (reads(row, key)) names.push_back(base::word_of(row.schedule));
  return names;
}

}  // namespace snug::formats
