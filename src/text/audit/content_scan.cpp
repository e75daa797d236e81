#include "text/audit/content_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "base/checksum.h"

namespace snug::text {
namespace {

uint64_t fingerprint_of(std::span<const int32_t> words) {
  return base::checksum(words.data(), static_cast<int64_t>(words.size_bytes()));
}

uint64_t joined_fingerprint(uint64_t one, uint64_t other) {
  const std::array<uint64_t, 2> both{one, other};
  return base::checksum(both.data(), sizeof(both));
}

// What makes a unit of documents: their contents, and the prompt of the first one.
struct UnitPrints {
  uint64_t content = 0;
  std::optional<uint64_t> prompt{};
};

class UnitReader {
 public:
  UnitReader(const DocumentStore& documents, const ScanOptions& options)
      : reader_(documents), options_(options) {}

  // Calls take(document, words) for each document of the unit that begins at `first`.
  template <typename Take>
  UnitPrints read(int64_t first, const Take& take) {
    UnitPrints prints;
    for (int32_t member = 0; member < options_.group; ++member) {
      const std::span<const int32_t> input = reader_.words(first + member, TokenStream::encoder);
      const std::span<const int32_t> words = reader_.words(first + member);
      const uint64_t content = joined_fingerprint(fingerprint_of(input), fingerprint_of(words));
      prints.content = member == 0 ? content : joined_fingerprint(prints.content, content);
      if (member == 0) prints.prompt = prompt_of(input, words);
      take(first + member, words);
    }
    return prints;
  }

 private:
  std::optional<uint64_t> prompt_of(std::span<const int32_t> input,
                                    std::span<const int32_t> words) const {
    if (!options_.has_prompts) return std::nullopt;
    if (!input.empty()) return fingerprint_of(input);
    const auto first = std::ranges::find_if(words, DocumentStore::is_target);
    const auto size = static_cast<size_t>(first - words.begin());
    if (size < static_cast<size_t>(kLeastPrompt)) return std::nullopt;
    return fingerprint_of(words.first(size));
  }

  DocumentReader reader_;
  const ScanOptions& options_;
};

class Scanner {
 public:
  Scanner(ContentScan& scan, const ScanOptions& options) : scan_(scan), options_(options) {}

  void take(int64_t document, std::span<const int32_t> words) {
    ++scan_.documents;
    scan_.tokens += std::ssize(words);
    targets_.clear();
    bool has_end = false;
    for (const int32_t word : words) {
      if (!DocumentStore::is_target(word)) continue;
      const int32_t id = DocumentStore::id_of(word);
      targets_.push_back(id);
      has_end = has_end || std::ranges::find(options_.ends, id) != options_.ends.end();
    }
    scan_.trained += std::ssize(targets_);
    if (targets_.empty()) ++scan_.untrained_documents;
    if (has_end) ++scan_.with_end;
    if (begins_twice(words)) ++scan_.with_two_bos;
    if (options_.has_prompts) take_answer(document);
  }

 private:
  bool begins_twice(std::span<const int32_t> words) const {
    return options_.bos && words.size() >= 2 && DocumentStore::id_of(words[0]) == *options_.bos &&
           DocumentStore::id_of(words[1]) == *options_.bos;
  }

  void take_answer(int64_t document) {
    if (targets_.empty()) return;
    scan_.answers.add(std::ssize(targets_));
    scan_.whole_answers.add(fingerprint_of(targets_), document);
    if (targets_.size() > 2 * static_cast<size_t>(kBeginningTokens))
      scan_.beginnings.add(fingerprint_of(std::span(targets_).first(kBeginningTokens)), document);
  }

  ContentScan& scan_;
  const ScanOptions& options_;
  std::vector<int32_t> targets_;
};

}  // namespace

Fingerprints::Fingerprints(int64_t units) {
  uint64_t parts = 1;
  while (units / static_cast<int64_t>(parts) > kMostFingerprints) parts *= 2;
  mask_ = parts - 1;
  values_.reserve(static_cast<size_t>(units / static_cast<int64_t>(parts)));
}

void Fingerprints::add(uint64_t fingerprint) {
  // A part holds its share within a few in a thousand: the list never grows beyond twice that.
  if (is_kept(fingerprint)) values_.push_back(fingerprint);
}

void Fingerprints::finish() { std::ranges::sort(values_); }

int64_t Fingerprints::repeated() const {
  int64_t count = 0;
  for (size_t i = 1; i < values_.size(); ++i)
    if (values_[i] == values_[i - 1]) ++count;
  return of_all(count);
}

int64_t Fingerprints::most_equal() const {
  int64_t most = values_.empty() ? 0 : 1;
  int64_t run = 1;
  for (size_t i = 1; i < values_.size(); ++i) {
    run = values_[i] == values_[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

bool Fingerprints::has(uint64_t fingerprint) const {
  return std::ranges::binary_search(values_, fingerprint);
}

ContentScan scan_contents(const DocumentStore& documents, DocumentRange range,
                          const ScanOptions& options) {
  ContentScan scan;
  scan.units = range.size() / options.group;
  scan.contents = Fingerprints(scan.units);
  scan.prompts = Fingerprints(scan.units);
  Scanner scanner(scan, options);
  UnitReader reader(documents, options);
  for (int64_t unit = range.begin; unit < range.end; unit += options.group) {
    const UnitPrints prints =
        reader.read(unit, [&](int64_t document, auto words) { scanner.take(document, words); });
    scan.contents.add(prints.content);
    if (prints.prompt) scan.prompts.add(*prints.prompt);
  }
  scan.contents.finish();
  scan.prompts.finish();
  return scan;
}

Overlap overlap_with(const ContentScan& scanned, const DocumentStore& others, DocumentRange range,
                     const ScanOptions& options) {
  Overlap overlap{.units = range.size() / options.group};
  UnitReader reader(others, options);
  for (int64_t unit = range.begin; unit < range.end; unit += options.group) {
    const UnitPrints prints = reader.read(unit, [](int64_t, auto) {});
    if (scanned.contents.has(prints.content)) ++overlap.equal;
    if (prints.prompt && scanned.prompts.has(*prints.prompt)) ++overlap.equal_prompts;
  }
  overlap.equal = scanned.contents.of_all(overlap.equal);
  overlap.equal_prompts = scanned.prompts.of_all(overlap.equal_prompts);
  return overlap;
}

}  // namespace snug::text
