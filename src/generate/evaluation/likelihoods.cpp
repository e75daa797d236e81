#include "generate/evaluation/likelihoods.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "engine/cached_forward.h"
#include "engine/sampling.h"

namespace snug::generate {
namespace {

// Logits of a chunk lie both on the device and on the host: for this many tokens, both copies
// together take half the memory of one copy for plan::kPrefillTokens.
constexpr int64_t kChunkTokens = plan::kPrefillTokens / 4;

// A page of keys, so that texts which begin alike share all but a few tokens of it.
constexpr int32_t kPageTokens = 16;

// Texts that read the same ids: the longest continuation decides from where rows are looked at.
struct Group {
  size_t first = 0;
  size_t count = 0;
  std::span<const int32_t> read{};
  int64_t first_scored = 0;  // of the rows
};

std::vector<Group> groups_of(std::span<const ScoredIds> texts) {
  std::vector<Group> groups;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const int32_t> read = texts[i].read();
    if (groups.empty() || !std::ranges::equal(groups.back().read, read))
      groups.push_back({.first = i, .count = 0, .read = read, .first_scored = std::ssize(read)});
    Group& group = groups.back();
    ++group.count;
    group.first_scored = std::min(group.first_scored, std::ssize(read) - texts[i].scored);
  }
  return groups;
}

// Reads groups side by side, each in a sequence of its own, which the next group takes over. They
// enter in their order, and one whose beginning is just being read enters after that.
class GroupReader {
 public:
  GroupReader(engine::Inference& inference, std::span<const ScoredIds> texts)
      : forward_(inference.executor(), inference.shape()),
        texts_(texts),
        groups_(groups_of(texts)),
        places_(static_cast<size_t>(forward_.sequences())),
        results_(texts.size()) {}

  std::vector<Likelihood> run() {
    while (enter()) read_chunk();
    return std::move(results_);
  }

 private:
  struct Place {
    const Group* group = nullptr;
    int64_t read = 0;  // of its ids
  };

  // Gives groups to places that are free. Returns whether any place is taken.
  bool enter() {
    for (int64_t sequence = 0; sequence < forward_.sequences(); ++sequence)
      if (places_[static_cast<size_t>(sequence)].group == nullptr && !enter_next(sequence)) break;
    return std::ranges::any_of(places_, [](const Place& place) { return place.group != nullptr; });
  }

  bool enter_next(int64_t sequence) {
    if (next_ == groups_.size()) return false;
    const Group& group = groups_[next_];
    const engine::EnteringSequence entering{.prompt = group.read,
                                            .promised_tokens = std::ssize(group.read),
                                            .first_read = group.first_scored};
    if (forward_.is_being_read(entering)) return false;
    const std::optional<int64_t> known = forward_.enter(sequence, entering);
    SNUG_CHECK(known, "the pools hold every sequence of these texts");
    places_[static_cast<size_t>(sequence)] = {&group, *known};
    ++next_;
    return true;
  }

  void read_chunk() {
    std::vector<engine::SequencePart> parts;
    int64_t left = forward_.prefill_tokens();
    for (size_t s = 0; s < places_.size() && left > 0; ++s) {
      const Place& place = places_[s];
      if (place.group == nullptr) continue;
      const std::span<const int32_t> rest =
          place.group->read.subspan(static_cast<size_t>(place.read));
      const int64_t count = std::min(left, std::ssize(rest));
      parts.push_back({static_cast<int64_t>(s), rest.first(static_cast<size_t>(count))});
      left -= count;
    }
    forward_.prefill(parts);
    int64_t row = 0;
    for (const engine::SequencePart& part : parts) {
      Place& place = places_[static_cast<size_t>(part.sequence)];
      for (int64_t i = 0; i < std::ssize(part.ids); ++i)
        if (place.read + i >= place.group->first_scored)
          take(*place.group, place.read + i, row + i);
      row += std::ssize(part.ids);
      place.read += std::ssize(part.ids);
      if (place.read < std::ssize(place.group->read)) continue;
      forward_.release(part.sequence);
      place = {};
    }
  }

  // The row predicts the id after the `at`-th that was read.
  void take(const Group& group, int64_t at, int64_t row) {
    const std::span<const float> logits = forward_.logits(row);
    const int32_t likeliest = engine::argmax(logits);
    for (size_t i = group.first; i < group.first + group.count; ++i) {
      const std::span<const int32_t> targets = texts_[i].targets();
      const int64_t target = at - (std::ssize(group.read) - std::ssize(targets));
      if (target < 0) continue;
      const int32_t id = targets[static_cast<size_t>(target)];
      results_[i].log_probabilities.push_back(engine::log_probability(logits, id));
      results_[i].is_greedy = results_[i].is_greedy && id == likeliest;
    }
  }

  engine::CachedForward forward_;
  std::span<const ScoredIds> texts_;
  std::vector<Group> groups_;
  std::vector<Place> places_;
  std::vector<Likelihood> results_;
  size_t next_ = 0;
};

}  // namespace

double Likelihood::sum() const {
  return std::accumulate(log_probabilities.begin(), log_probabilities.end(), 0.0);
}

plan::InferenceShape likelihood_shape(std::span<const ScoredIds> texts, int64_t batch) {
  constexpr int64_t kStep = plan::kMinPrefillTokens;
  const std::vector<Group> groups = groups_of(texts);
  int64_t longest = 1;
  int64_t tokens = 0;
  for (const Group& group : groups) {
    longest = std::max(longest, std::ssize(group.read));
    tokens += std::ssize(group.read);
  }
  plan::InferenceShape shape{
      .sequences = std::clamp<int64_t>(std::ssize(groups), 1, batch),
      .capacity = longest,
      .prefill_tokens = std::min(kChunkTokens, (tokens + kStep - 1) / kStep * kStep),
      .all_logits = true,
      .page_tokens = kPageTokens};
  plan::add_small_sizes(shape);
  return shape;
}

std::vector<Likelihood> likelihoods(engine::Inference& inference,
                                    std::span<const ScoredIds> texts) {
  SNUG_CHECK(inference.shape().all_logits, "scoring needs the logits of every token");
  return GroupReader(inference, texts).run();
}

}  // namespace snug::generate
