#include "engine/questions/evaluated_records.h"

#include "base/console.h"
#include "base/error.h"
#include "plan/spec/data_keys.h"

namespace snug::engine {

void EvaluatedRecords::check(const formats::Recipe& recipe, const std::string& path, bool has_any,
                             const std::string& why) const {
  const text::SkipLimits limits = plan::skip_limits(recipe);
  if (has_any || limits.refuses_any) bad.hold_against(limits, path, count);
  if (has_any) return;
  if (bad.count() == 0) throw base::UserError("the data file holds no records", {path, 0, 0});
  bad.fail(path, count, why);
}

void EvaluatedRecords::tell(const std::string& path, const text::RecordRules& rules) const {
  if (const std::string fields = unused.list(); !fields.empty())
    base::say("{}: fields that are not used: {}", path, fields);
  const std::string unmet =
      text::unmet_text(ignored.unmet({rules.ignored.begin(), rules.ignored.end()}));
  if (!unmet.empty()) base::say("{}: {}", path, unmet);
  if (bad.count() > 0) base::say("{}", bad.told(path, count));
}

}  // namespace snug::engine
