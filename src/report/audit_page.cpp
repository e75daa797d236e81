#include "report/audit_page.h"

#include <fmt/format.h>

#include <vector>

#include "base/shown_text.h"
#include "report/charts.h"
#include "report/html.h"

namespace snug::report {
namespace {

using text::AuditedSet;
using text::AuditReport;
using text::percent;

// Of a longer document the middle is left out, so that the page stays one that browsers like.
constexpr size_t kMostPieces = 400;

std::string heading_of(const AuditedSet& set, std::string_view what) {
  return fmt::format("{}: {}", set.name, what);
}

void add_audit_figures(const AuditedSet& set, Page& page) {
  const text::DatasetAudit& loaded = set.loaded;
  page.heading(fmt::format("{}: {}", set.name, set.path));
  std::vector<Figure> figures{{"records", std::to_string(loaded.records)},
                              {"left out", std::to_string(loaded.bad)},
                              {"documents", std::to_string(loaded.documents)},
                              {"tokens", std::to_string(loaded.tokens)},
                              {"of them trained", percent(set.trained_share())},
                              {"documents cut", std::to_string(loaded.truncated)}};
  if (set.rows.rows > 0) figures.push_back({"rows", percent(set.fill()) + " full"});
  figures.push_back({"repeated", percent(set.repeated_share())});
  if (set.overlap)
    figures.push_back({"also in training", percent(set.overlap->equal, set.overlap->units)});
  page.figures(figures);
  page.paragraph(fmt::format(
      "Records of the form {}{}{}.", loaded.form,
      loaded.chat_template.empty() ? "" : fmt::format(", {} template", loaded.chat_template),
      loaded.chat_field.empty()
          ? ""
          : fmt::format(", conversations for their '{}'", loaded.chat_field)));
  if (!loaded.bad_told.empty()) page.paragraph(base::shown_text(loaded.bad_told));
  if (const std::string rows = text::rows_text(set); !rows.empty()) page.paragraph(rows + ".");
  page.paragraph(text::repeated_text(set) + ".");
  if (const std::string near = text::near_text(set); !near.empty()) page.paragraph(near + ".");
}

void add_findings(const AuditReport& report, Page& page) {
  page.heading("What is probably wrong");
  bool is_any = false;
  for (const AuditedSet& set : report.sets)
    for (const text::Finding& finding : set.findings) {
      is_any = true;
      page.paragraph(fmt::format("{} ({}): {}.", finding.is_warning ? "WARNING" : "Note", set.name,
                                 base::shown_text(finding.what)));
      page.paragraph(fmt::format("\u2192 {}.", base::shown_text(finding.remedy)));
    }
  if (!is_any) page.paragraph("Nothing looks wrong.");
}

void add_lengths(const AuditReport& report, const AuditedSet& set, Page& page) {
  constexpr int64_t kBins = 20;
  const text::LengthCounts& lengths = set.loaded.lengths;
  if (lengths.size() == 0) return;
  std::vector<Bar> bars;
  for (const auto& bin : lengths.bins(kBins))
    bars.push_back({fmt::format("{} to {}", bin.first, bin.last), static_cast<double>(bin.count),
                    std::to_string(bin.count)});
  page.heading(heading_of(set, "tokens of a record"));
  page.chart(bar_chart(bars));
  std::vector<std::vector<std::string>> rows{{"max_length", "records that it holds"}};
  for (const double share : text::kHeldShares)
    rows.push_back(
        {std::to_string(share == 1 ? set.loaded.longest : lengths.holding(share)), percent(share)});
  if (report.max_length > 0 && set.loaded.form != "text")
    rows.push_back({fmt::format("{} (this recipe)", report.max_length),
                    percent(set.loaded.documents - set.loaded.truncated, set.loaded.documents)});
  page.table(rows);
}

void add_sources(const AuditedSet& set, Page& page) {
  if (set.sources.empty()) return;
  std::vector<std::vector<std::string>> rows{
      {"source", "documents", "an epoch takes", "tokens", "trained"}};
  for (const text::AuditedSource& source : set.sources)
    rows.push_back({source.name, std::to_string(source.range.size()), std::to_string(source.taken),
                    std::to_string(source.tokens), percent(source.trained, source.tokens)});
  page.heading(heading_of(set, "where the documents come from"));
  page.table(rows);
}

std::vector<MarkedText> marked(const std::vector<text::DecodedPiece>& pieces) {
  std::vector<MarkedText> parts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces.size() > kMostPieces && i == kMostPieces / 2) {
      const size_t left_out = pieces.size() - kMostPieces;
      parts.push_back({fmt::format("\n[... {} pieces ...]\n", left_out), false, true});
      i += left_out;
    }
    parts.push_back({base::shown_text(pieces[i].text), pieces[i].is_trained,
                     pieces[i].is_added && !pieces[i].is_trained});
  }
  return parts;
}

void add_samples(const AuditedSet& set, Page& page) {
  if (set.samples.empty()) return;
  page.heading(heading_of(set, "samples, what is trained is marked"));
  for (const text::DocumentSample& sample : set.samples) {
    const std::string member = text::member_name(set, sample);
    page.paragraph(fmt::format("Document {} of {} ({}{}{}): {} tokens, {} of them trained.",
                               sample.document + 1, set.scan.documents, sample.why,
                               member.empty() ? "" : ", ", member, sample.tokens, sample.trained));
    if (!sample.input.empty()) page.marked_text(marked(sample.input));
    page.marked_text(marked(sample.pieces));
  }
}

}  // namespace

std::string audit_page(const AuditReport& report) {
  Page page(fmt::format("The data of {}", report.model));
  add_findings(report, page);
  for (const AuditedSet& set : report.sets) {
    add_audit_figures(set, page);
    add_lengths(report, set, page);
    add_sources(set, page);
    add_samples(set, page);
  }
  return page.text();
}

}  // namespace snug::report
