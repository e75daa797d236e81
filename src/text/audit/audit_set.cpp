#include "text/audit/audit_set.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "text/record/record_form.h"

namespace snug::text {
namespace {

DocumentRange all_of(const DocumentStore& documents) { return {0, documents.size()}; }

bool has_prompts(const SetToAudit& given, const DatasetAudit& loaded) {
  return !given.trains_on_prompt && loaded.form != name_of(RecordForm::text);
}

void add_samples(const SetToAudit& given, AuditedSet& set) {
  const auto chosen = choose_units(given.documents, all_of(given.documents), set.group,
                                   given.depth.by_chance, given.seed);
  for (const ChosenUnit& unit : chosen)
    for (int32_t member = 0; member < set.group; ++member) {
      set.samples.push_back(sample_of(given.documents, unit.document + member, given.tokenizer));
      set.samples.back().why = unit.why;
    }
}

// Of longer documents the beginning is read.
std::span<const int32_t> words_to_look_at(std::span<const int32_t> words) {
  constexpr size_t kMostTokens = 8192;
  return words.first(std::min(words.size(), kMostTokens));
}

void add_signs(const SetToAudit& given, AuditedSet& set) {
  if (given.tokenizer == nullptr) return;
  DocumentReader reader(given.documents);
  int64_t tokens = 0;
  for (const int64_t document : spread_documents(all_of(given.documents), given.depth.looked_at)) {
    if (tokens > given.depth.tokens_looked_at) return;
    std::vector<DecodedPiece> pieces;
    for (const TokenStream stream : {TokenStream::encoder, TokenStream::decoder}) {
      const auto words = words_to_look_at(reader.words(document, stream));
      tokens += std::ssize(words);
      std::vector<DecodedPiece> own = decode_pieces(words, given.tokenizer);
      std::ranges::move(own, std::back_inserter(pieces));
    }
    set.signs.add(document, pieces);
  }
}

void add_sources(const DocumentStore& documents, AuditedSet& set) {
  for (AuditedSource& source : set.sources)
    for (int64_t document = source.range.begin; document < source.range.end; ++document) {
      for (const TokenStream stream : documents.streams())
        source.tokens += documents.length(document, stream);
      source.trained += documents.targets(document);
    }
}

}  // namespace

void audit_set(const SetToAudit& given, AuditedSet& set, const AuditedSet* training) {
  // What the answers end with is written into the result as an end (train/trained_chat.h).
  for (const int32_t id : set.loaded.ends.ids()) set.ends.push_back(id);
  const ScanOptions options{
      .ends = set.ends,
      .bos = given.tokenizer == nullptr ? std::nullopt : given.tokenizer->bos_id(),
      .group = set.group,
      .has_prompts = has_prompts(given, set.loaded)};
  set.scan = scan_contents(given.documents, all_of(given.documents), options);
  if (training != nullptr)
    set.overlap = overlap_with(training->scan, given.documents, all_of(given.documents), options);
  if (given.depth.finds_near)
    set.near = find_near_duplicates(given.documents, all_of(given.documents), set.group);
  if (given.depth.shows_samples) add_samples(given, set);
  add_signs(given, set);
  add_sources(given.documents, set);
}

}  // namespace snug::text
