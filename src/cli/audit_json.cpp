#include <nlohmann/json.hpp>

#include <vector>

#include "cli/audit_text.h"

namespace snug::cli {
namespace {

using Json = nlohmann::ordered_json;
using text::AuditedSet;
using text::AuditReport;

Json pieces_of(const std::vector<text::DecodedPiece>& pieces) {
  Json list = Json::array();
  for (const text::DecodedPiece& piece : pieces)
    list.push_back({{"text", piece.text},
                    {"first_token", piece.begin},
                    {"tokens", piece.end - piece.begin},
                    {"trained", piece.is_trained}});
  return list;
}

Json samples_of(const AuditedSet& set) {
  Json list = Json::array();
  for (const text::DocumentSample& sample : set.samples) {
    Json item{{"document", sample.document}, {"why", sample.why},
              {"tokens", sample.tokens},     {"trained_tokens", sample.trained},
              {"ids", sample.ids},           {"pieces", pieces_of(sample.pieces)}};
    if (!sample.input.empty()) item["encoder_pieces"] = pieces_of(sample.input);
    list.push_back(std::move(item));
  }
  return list;
}

Json lengths_of(const text::LengthCounts& lengths, int64_t longest) {
  Json result{{"records", lengths.size()}, {"mean", lengths.mean()}, {"longest", longest}};
  for (const auto& [name, share] : {std::pair{"half", 0.5}, std::pair{"90_percent", 0.9},
                                    std::pair{"95_percent", 0.95}, std::pair{"99_percent", 0.99}})
    result[name] = lengths.holding(share);
  Json bins = Json::array();
  for (const auto& bin : lengths.bins(20))
    bins.push_back({{"from", bin.first}, {"to", bin.last}, {"records", bin.count}});
  result["histogram"] = std::move(bins);
  return result;
}

Json repeated_of(const AuditedSet& set) {
  Json result{{"units", set.scan.units},
              {"equal", set.scan.contents.repeated()},
              {"is_estimate", set.scan.contents.is_part()}};
  if (set.near)
    result["near"] = {{"share_of_runs", text::kNearShare},
                      {"looked_at", set.near->looked_at},
                      {"records", set.near->near}};
  return result;
}

Json signs_of(const text::SignCounts& signs) {
  Json result{{"looked_at", signs.looked_at}};
  for (const auto& word : base::kWordsOf<text::TextSign>)
    result[std::string(word.text)] = signs.of(word.value).documents;
  return result;
}

Json findings_of(const AuditedSet& set) {
  Json list = Json::array();
  for (const text::Finding& finding : set.findings)
    list.push_back({{"key", finding.key},
                    {"level", finding.is_warning ? "warning" : "note"},
                    {"what", finding.what},
                    {"remedy", finding.remedy}});
  return list;
}

Json sources_of(const AuditedSet& set) {
  Json list = Json::array();
  for (const text::AuditedSource& source : set.sources)
    list.push_back({{"source", source.name},
                    {"documents", source.range.size()},
                    {"taken_in_an_epoch", source.taken},
                    {"tokens", source.tokens},
                    {"trained_tokens", source.trained}});
  return list;
}

Json set_json(const AuditedSet& set) {
  const text::DatasetAudit& loaded = set.loaded;
  Json json{{"name", set.name},
            {"path", set.path},
            {"form", loaded.form},
            {"chat_template", loaded.chat_template},
            {"records", loaded.records},
            {"left_out", loaded.bad},
            {"left_out_why", loaded.bad_told},
            {"documents", loaded.documents},
            {"tokens", loaded.tokens},
            {"trained_tokens", loaded.trained_tokens},
            {"cut_documents", loaded.truncated},
            {"cut_tokens", loaded.cut_tokens},
            {"lengths", lengths_of(loaded.lengths, loaded.longest)}};
  json["rows"] = {{"rows", set.rows.rows},
                  {"tokens", set.rows.tokens.sum()},
                  {"fill", set.fill()},
                  {"packed", set.rows.is_packed}};
  json["ends_trained"] = set.scan.with_end;
  json["repeated"] = repeated_of(set);
  if (set.overlap)
    json["overlap"] = {{"records", set.overlap->units},
                       {"equal", set.overlap->equal},
                       {"equal_prompts", set.overlap->equal_prompts}};
  json["signs"] = signs_of(set.signs);
  if (!set.sources.empty()) json["sources"] = sources_of(set);
  json["samples"] = samples_of(set);
  json["findings"] = findings_of(set);
  return json;
}

}  // namespace

std::string audit_json(const AuditReport& report) {
  Json json{{"model", report.model}, {"max_length", report.max_length}};
  json["warnings"] = report.warnings();
  json["sets"] = Json::array();
  for (const AuditedSet& set : report.sets) json["sets"].push_back(set_json(set));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace snug::cli
