#include "text/audit/audit_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug::text {

double AuditedSet::fill() const {
  const auto room = static_cast<double>(rows.rows * rows.tokens.sum());
  return room == 0 ? 0 : static_cast<double>(rows.filled) / room;
}

double AuditedSet::trained_share() const {
  return loaded.tokens == 0
             ? 0
             : static_cast<double>(loaded.trained_tokens) / static_cast<double>(loaded.tokens);
}

double AuditedSet::repeated_share() const {
  return scan.units == 0
             ? 0
             : static_cast<double>(scan.contents.repeated()) / static_cast<double>(scan.units);
}

int64_t AuditReport::warnings() const {
  int64_t count = 0;
  for (const AuditedSet& set : sets)
    count += std::ranges::count_if(set.findings, &Finding::is_warning);
  return count;
}

std::string rows_text(const AuditedSet& set) {
  if (set.rows.rows == 0) return "";
  const base::PerStream<int64_t>& tokens = set.rows.tokens;
  return fmt::format("{} rows of {} tokens{}, {} full", set.rows.rows, tokens.sum(),
                     tokens.has_encoder()
                         ? fmt::format(" ({} of prompts, {} of answers)",
                                       tokens[TokenStream::encoder], tokens.decoder())
                         : "",
                     percent(set.fill()));
}

std::string repeated_text(const AuditedSet& set) {
  const int64_t repeated = set.scan.contents.repeated();
  if (repeated == 0) return "no record repeats another one";
  return fmt::format("{}{} of {} records ({}) repeat another one",
                     set.scan.contents.is_part() ? "about " : "", repeated, set.scan.units,
                     percent(repeated, set.scan.units));
}

std::string near_text(const AuditedSet& set) {
  if (!set.near || set.near->looked_at == 0) return "";
  const NearDuplicates& near = *set.near;
  const bool is_part = near.looked_at < near.documents - set.scan.contents.repeated();
  return fmt::format(
      "{} of {} different records{} share {} of their runs of three tokens with another one (an "
      "estimate from below)",
      near.near, near.looked_at, is_part ? fmt::format(", a sample of {},", near.documents) : "",
      percent(kNearShare));
}

std::string member_name(const AuditedSet& set, const DocumentSample& sample) {
  if (set.group < 2) return "";
  const bool is_first = sample.document % set.group == 0;
  if (set.loaded.examples == 0) return is_first ? "chosen" : "rejected";
  return is_first ? "its own answer" : "the answer of another example";
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string percent(int64_t part, int64_t whole) {
  return percent(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace snug::text
