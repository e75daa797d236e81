#include "text/audit/near_duplicates.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/checksum.h"
#include "base/random.h"

namespace snug::text {
namespace {

constexpr size_t kRun = 3;  // tokens
// Two documents with a share of 0.8 have an equal band with a probability of 1 - (1 - 0.8^6)^12 =
// 0.97; at 0.5 it is 0.17, and then they are compared in vain.
constexpr size_t kBands = 12;
constexpr size_t kBandRows = 6;
constexpr size_t kHashes = kBands * kBandRows;

constexpr int64_t kBoilerplateSample = 512;
constexpr int64_t kLeastBoilerplate = 8;  // documents that have a run before it can be boilerplate
constexpr size_t kMostRunsCounted = size_t{1} << 20;
// Of documents with fewer runs left, one token more or less decides too much.
constexpr size_t kLeastRuns = 5;
// Of documents with an equal band so many are compared with each one.
constexpr size_t kMostCompared = 8;

using Runs = std::vector<uint32_t>;  // sorted, each once
using Boilerplate = std::unordered_set<uint32_t>;

uint32_t run_hash(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  return static_cast<uint32_t>(value);
}

class RunReader {
 public:
  explicit RunReader(const DocumentStore& documents) : reader_(documents) {}

  // The fingerprints of the runs of a document's tokens, those of an encoder's input too.
  void read(int64_t document, const Boilerplate& boilerplate, Runs& runs) {
    runs.clear();
    for (const TokenStream stream : {TokenStream::encoder, TokenStream::decoder})
      add(reader_.words(document, stream), boilerplate, runs);
    std::ranges::sort(runs);
    runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  }

  uint64_t fingerprint(int64_t document) {
    uint64_t value = 0;
    for (const TokenStream stream : {TokenStream::encoder, TokenStream::decoder}) {
      const auto words = reader_.words(document, stream);
      value = value * 31 + base::checksum(words.data(), static_cast<int64_t>(words.size_bytes()));
    }
    return value;
  }

 private:
  static void add(std::span<const int32_t> words, const Boilerplate& boilerplate, Runs& runs) {
    // A text of fewer tokens than a run has is one run.
    for (size_t end = std::min(kRun, words.size()); end <= words.size() && end > 0; ++end) {
      const uint32_t hash = run_hash(run_before(words, end));
      if (!boilerplate.contains(hash)) runs.push_back(hash);
    }
  }

  static uint64_t run_before(std::span<const int32_t> words, size_t end) {
    uint64_t run = 0;
    for (const int32_t word : words.first(end).last(std::min(kRun, end)))
      run = run * 0x100000001b3ULL + static_cast<uint64_t>(DocumentStore::id_of(word));
    return run;
  }

  DocumentReader reader_;
};

double shared_share(const Runs& one, const Runs& other) {
  size_t equal = 0;
  for (size_t i = 0, j = 0; i < one.size() && j < other.size();) {
    if (one[i] == other[j]) ++equal;
    const bool first_next = one[i] <= other[j];
    const bool second_next = other[j] <= one[i];
    if (first_next) ++i;
    if (second_next) ++j;
  }
  const size_t all = one.size() + other.size() - equal;
  return all == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(all);
}

class NearFinder {
 public:
  NearFinder(const DocumentStore& documents, DocumentRange range, int32_t group)
      : runs_(documents) {
    result_.documents = range.size() / group;
    choose(range, group);
    find_boilerplate();
    make_keys();
  }

  NearDuplicates find() {
    repeats_.assign(places_.size(), false);
    for (size_t band = 0; band < kBands; ++band) compare_band(band);
    result_.looked_at = std::ssize(places_);
    result_.near = std::ranges::count(repeats_, true);
    return result_;
  }

 private:
  // Equal documents are there once, and those that are looked at are evenly spread.
  void choose(DocumentRange range, int32_t group) {
    const int64_t step = (result_.documents + kMostLookedAt - 1) / kMostLookedAt;
    std::vector<std::pair<uint64_t, int64_t>> found;
    for (int64_t unit = 0; unit < result_.documents; unit += std::max<int64_t>(1, step)) {
      const int64_t document = range.begin + unit * group;
      found.emplace_back(runs_.fingerprint(document), document);
    }
    std::ranges::sort(found);
    for (size_t i = 0; i < found.size(); ++i)
      if (i == 0 || found[i].first != found[i - 1].first) places_.push_back(found[i].second);
    std::ranges::sort(places_);
  }

  void find_boilerplate() {
    const int64_t most = std::min(std::ssize(places_), kBoilerplateSample);
    std::unordered_map<uint32_t, int32_t> documents_with;
    int64_t count = 0;
    for (; count < most && documents_with.size() < kMostRunsCounted; ++count) {
      const auto at = static_cast<size_t>(count * std::ssize(places_) / most);
      runs_.read(places_[at], {}, one_);
      for (const uint32_t run : one_) ++documents_with[run];
    }
    for (const auto& [run, documents] : documents_with)
      if (documents > kLeastBoilerplate && documents > count / 10) boilerplate_.insert(run);
  }

  void make_keys() {
    keys_.resize(places_.size() * kBands);
    for (size_t i = 0; i < places_.size(); ++i) {
      runs_.read(places_[i], boilerplate_, one_);
      add_keys(i);
    }
  }

  // The least of the runs' values under each of kHashes functions, in bands; 0: too few are left.
  void add_keys(size_t place) {
    static const auto kFactors = [] {
      std::array<uint32_t, 2 * kHashes> factors{};
      for (uint32_t i = 0; i < factors.size(); ++i)
        factors[i] = base::philox({i, 0, 0, 0}, {7, 9})[0] | 1U;
      return factors;
    }();
    std::array<uint32_t, kHashes> least;
    least.fill(std::numeric_limits<uint32_t>::max());
    for (const uint32_t run : one_)
      for (size_t h = 0; h < kHashes; ++h) {
        uint32_t value = (run ^ kFactors[kHashes + h]) * kFactors[h];
        value ^= value >> 15;
        least[h] = std::min(least[h], value);
      }
    for (size_t band = 0; band < kBands; ++band) {
      uint64_t key = base::checksum(&least[band * kBandRows], kBandRows * sizeof(uint32_t));
      keys_[place * kBands + band] = one_.size() < kLeastRuns ? 0 : static_cast<uint32_t>(key) | 1U;
    }
  }

  void compare_band(size_t band) {
    std::vector<uint32_t> order(places_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto key = [&](uint32_t i) { return keys_[i * kBands + band]; };
    std::ranges::sort(
        order, [&](uint32_t a, uint32_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
    for (size_t first = 0; first < order.size();) {
      size_t end = first + 1;
      while (end < order.size() && key(order[end]) == key(order[first])) ++end;
      if (end - first > 1 && key(order[first]) != 0)
        compare(std::span(order).subspan(first, end - first));
      first = end;
    }
  }

  // Each with the first ones that repeat none themselves.
  void compare(std::span<const uint32_t> alike) {
    std::vector<uint32_t> kept;
    for (const uint32_t candidate : alike) {
      if (repeats_[candidate]) continue;
      runs_.read(places_[candidate], boilerplate_, one_);
      for (const uint32_t earlier : kept)
        if (!repeats_[candidate]) compare_two(earlier, candidate);
      if (!repeats_[candidate] && kept.size() < kMostCompared) kept.push_back(candidate);
    }
  }

  void compare_two(uint32_t earlier, uint32_t candidate) {
    runs_.read(places_[earlier], boilerplate_, other_);
    if (shared_share(one_, other_) < kNearShare) return;
    repeats_[candidate] = true;
    if (result_.one >= 0) return;
    result_.one = places_[earlier];
    result_.other = places_[candidate];
  }

  RunReader runs_;
  NearDuplicates result_;
  std::vector<int64_t> places_;  // the documents that are looked at
  Boilerplate boilerplate_;
  std::vector<uint32_t> keys_;  // (documents, kBands)
  std::vector<bool> repeats_;
  Runs one_;
  Runs other_;
};

}  // namespace

NearDuplicates find_near_duplicates(const DocumentStore& documents, DocumentRange range,
                                    int32_t group) {
  if (range.size() < 2 * int64_t{group}) return {.documents = range.size() / group};
  return NearFinder(documents, range, group).find();
}

}  // namespace snug::text
