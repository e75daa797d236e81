#include "text/audit/document_samples.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/random.h"

namespace snug::text {
namespace {

int64_t unit_tokens(const DocumentStore& documents, int64_t first, int32_t group) {
  int64_t tokens = 0;
  for (int32_t member = 0; member < group; ++member)
    for (const TokenStream stream : documents.streams())
      tokens += documents.length(first + member, stream);
  return tokens;
}

void add_unit(std::vector<ChosenUnit>& units, int64_t document, const char* why) {
  const auto known = std::ranges::find(units, document, &ChosenUnit::document);
  if (known == units.end())
    units.push_back({document, why});
  else if (known->why.find(why) == std::string::npos)
    known->why += std::string(", ") + why;
}

int64_t unit_by_chance(DocumentRange range, int32_t group, uint64_t seed, uint32_t draw) {
  const auto words = base::philox({draw, 0, 0, 0},
                                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t number = uint64_t{words[0]} << 32 | words[1];
  const auto units = static_cast<uint64_t>(range.size() / group);
  return range.begin + static_cast<int64_t>(number % units) * group;
}

}  // namespace

std::vector<ChosenUnit> choose_units(const DocumentStore& documents, DocumentRange range,
                                     int32_t group, int64_t by_chance, uint64_t seed) {
  std::vector<ChosenUnit> units;
  if (range.size() < group) return units;
  add_unit(units, range.begin, "the first");
  for (uint32_t draw = 0; draw < static_cast<uint32_t>(by_chance); ++draw)
    add_unit(units, unit_by_chance(range, group, seed, draw), "by chance");
  int64_t longest = range.begin;
  int64_t shortest = range.begin;
  for (int64_t unit = range.begin; unit + group <= range.end; unit += group) {
    const int64_t tokens = unit_tokens(documents, unit, group);
    if (tokens > unit_tokens(documents, longest, group)) longest = unit;
    if (tokens < unit_tokens(documents, shortest, group)) shortest = unit;
  }
  add_unit(units, longest, "the longest");
  add_unit(units, shortest, "the shortest");
  return units;
}

DocumentSample sample_of(const DocumentStore& documents, int64_t document,
                         const Tokenizer* tokenizer) {
  DocumentReader reader(documents);
  DocumentSample sample{.document = document};
  const std::span<const int32_t> input = reader.words(document, TokenStream::encoder);
  const std::span<const int32_t> words = reader.words(document);
  sample.input = decode_pieces(input, tokenizer);
  sample.pieces = decode_pieces(words, tokenizer);
  sample.tokens = static_cast<int32_t>(input.size() + words.size());
  for (const int32_t word : words) {
    sample.ids.push_back(DocumentStore::id_of(word));
    if (DocumentStore::is_target(word)) ++sample.trained;
  }
  return sample;
}

std::vector<int64_t> spread_documents(DocumentRange range, int64_t most) {
  std::vector<int64_t> documents;
  const int64_t count = std::min(range.size(), most);
  for (int64_t i = 0; i < count; ++i) documents.push_back(range.begin + i * range.size() / count);
  return documents;
}

}  // namespace snug::text
