#include "engine/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace snug::engine {
namespace {

// A list of so many tokens is sorted; longer ones are ranked in buckets.
constexpr int64_t kSorted = 1024;
// The likeliest tokens that are looked at first where top_p decides how many are kept.
constexpr size_t kFirst = 256;

// Uniform in [0, 1) with 53 random bits: 24 bits are too few for a vocabulary of 10^5 tokens.
double uniform_of(int64_t seed, const Draw& draw) {
  const auto key = static_cast<uint64_t>(seed);
  const auto prompt = static_cast<uint64_t>(draw.prompt);
  const auto token = static_cast<uint64_t>(draw.token);
  constexpr uint32_t kPurpose = 0x67656e65U;  // keeps these draws apart from those of training
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(token), static_cast<uint32_t>(prompt),
                    static_cast<uint32_t>(prompt >> 32), kPurpose},
                   {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

int32_t finite_likeliest(const BlockMaxima& maxima, std::span<const float> logits) {
  const int32_t best = maxima.likeliest();
  if (best < 0 || !std::isfinite(logits[static_cast<size_t>(best)])) refuse_logits();
  return best;
}

}  // namespace

void refuse_logits() {
  base::throw_user_error(
      "the model gives logits that are not finite, so no token can be chosen or scored; its "
      "weights "
      "or its adapter are damaged, or compute_dtype=fp32 is needed");
}

int32_t argmax(std::span<const float> logits) {
  BlockMaxima maxima;
  maxima.find(logits);
  return finite_likeliest(maxima, logits);
}

void check_sampling(const SamplingOptions& options) {
  const auto check = [](const char* name, auto value, bool is_right, const char* range) {
    if (!is_right) base::throw_user_error("{} is {}; it must be {}", name, value, range);
  };
  const auto is_in = [](double value, double least, double most) {
    return value >= least && value <= most;
  };
  constexpr double kMost = std::numeric_limits<float>::max();
  const SamplingOptions& o = options;
  check("temperature", o.temperature, is_in(o.temperature, 0, kMost), "0 or more");
  check("top_k", o.top_k, o.top_k >= 0, "0 or more");
  check("top_p", o.top_p, o.top_p > 0 && o.top_p <= 1, "above 0 and at most 1");
  check("min_p", o.min_p, is_in(o.min_p, 0, 1), "from 0 to 1");
  check("repetition_penalty", o.repetition_penalty,
        o.repetition_penalty > 0 && o.repetition_penalty <= kMost, "above 0");
  constexpr double kPenalty = 1000;  // far from any logit
  const auto check_penalty = [&](const char* name, double value) {
    check(name, value, is_in(value, -kPenalty, kPenalty), "from -1000 to 1000");
  };
  check_penalty("presence_penalty", o.presence_penalty);
  check_penalty("frequency_penalty", o.frequency_penalty);
}

int64_t candidates_of(const SamplingOptions& options) {
  if (options.penalizes()) return 0;
  if (options.temperature == 0 || options.top_k == 1) return 1;
  return options.top_k <= kMaxCandidates ? options.top_k : 0;
}

int32_t Sampler::pick(std::span<const float> logits, const Draw& draw) {
  return token_at(logits, uniform_of(options_.seed, draw));
}

int32_t Sampler::pick(const Likeliest& likeliest, const Draw& draw) {
  best_ = likeliest.ids.front();
  if (best_ < 0 || !std::isfinite(likeliest.logits.front())) refuse_logits();
  if (is_greedy()) return best_;
  weights_ = TokenWeights(likeliest.logits.front(), options_.temperature);
  candidates_.clear();
  for (size_t i = 0; i < likeliest.ids.size() && likeliest.ids[i] >= 0; ++i)
    candidates_.push_back({likeliest.logits[i], likeliest.ids[i]});
  cut_list();
  return of_list(uniform_of(options_.seed, draw));
}

int32_t Sampler::token_at(std::span<const float> logits, double quantile) {
  switch (cut(logits)) {
    case Kept::best:
      return best_;
    case Kept::list:
      return of_list(quantile);
    case Kept::ranked: {
      const int32_t id = ranked_.token_at(quantile * end_.weight, end_);
      return id < 0 ? best_ : id;
    }
    case Kept::all:
      break;
  }
  return of_all(logits, quantile);
}

std::vector<Candidate> Sampler::distribution(std::span<const float> logits) {
  std::vector<Candidate> tokens;
  const Kept kept = cut(logits);
  if (kept == Kept::best) tokens = {{1, best_}};
  if (kept == Kept::list) tokens = candidates_;
  if (kept == Kept::ranked) tokens = ranked_.tokens(end_);
  if (kept == Kept::all) {
    maxima_.all_from(-std::numeric_limits<float>::infinity(), tokens);
    for (Candidate& token : tokens) token.weight = weights_.of(static_cast<float>(token.weight));
  }
  double total = 0;
  for (const Candidate& token : tokens) total += token.weight;
  for (Candidate& token : tokens) token.weight /= total;
  std::ranges::sort(tokens, {}, &Candidate::id);
  return tokens;
}

Sampler::Kept Sampler::cut(std::span<const float> logits) {
  maxima_.find(logits);
  best_ = finite_likeliest(maxima_, logits);
  if (is_greedy()) return Kept::best;
  weights_ = TokenWeights(logits[static_cast<size_t>(best_)], options_.temperature);
  if (options_.top_k > kSorted) return rank(logits);
  if (options_.top_k > 0) {
    maxima_.likeliest_and_equals(static_cast<size_t>(options_.top_k), candidates_);
    cut_list();
    return Kept::list;
  }
  if (options_.top_p < 1) return cut_by_top_p(logits) ? Kept::list : rank(logits);
  if (options_.min_p > 0) {
    maxima_.all_from(weights_.least_logit(options_.min_p), candidates_);
    weigh_list();
    return Kept::list;
  }
  total_ = weights_.sum(logits, block_sums_);
  return Kept::all;
}

Sampler::Kept Sampler::rank(std::span<const float> logits) {
  ranked_.rank(logits, logits[static_cast<size_t>(best_)], weights_);
  end_ = options_.top_k > 0 ? ranked_.likeliest(options_.top_k) : ranked_.all();
  if (options_.top_p < 1) end_ = std::min(end_, ranked_.reaching(options_.top_p * end_.weight));
  if (options_.min_p > 0) end_ = std::min(end_, ranked_.from(weights_.least_logit(options_.min_p)));
  return Kept::ranked;
}

// Cuts candidates_, which are in order and have their logits, by top_p of the sum of their weights
// and by min_p.
void Sampler::cut_list() {
  const size_t above = count_above_min_p();
  const double total = weigh_list();
  size_t kept = candidates_.size();
  if (options_.top_p < 1) kept = count_reaching(options_.top_p * total).value_or(kept);
  candidates_.resize(std::min(above, kept));
}

// Keeps the likeliest tokens that reach top_p of the row; returns false where they are not found
// among the first.
bool Sampler::cut_by_top_p(std::span<const float> logits) {
  maxima_.likeliest(kFirst, candidates_);
  const size_t above = count_above_min_p();
  weigh_list();
  const std::optional<size_t> kept =
      count_reaching(options_.top_p * weights_.sum(logits, block_sums_));
  if (!kept && candidates_.size() == kFirst) return false;
  candidates_.resize(std::min(above, kept.value_or(candidates_.size())));
  return true;
}

// Of candidates_, which have their logits.
size_t Sampler::count_above_min_p() const {
  if (options_.min_p == 0) return candidates_.size();
  const double least = weights_.least_logit(options_.min_p);
  const auto is_above = [&](const Candidate& candidate) { return candidate.weight >= least; };
  return static_cast<size_t>(std::ranges::partition_point(candidates_, is_above) -
                             candidates_.begin());
}

// Replaces logits by weights, and returns their sum.
double Sampler::weigh_list() {
  double total = 0;
  for (Candidate& candidate : candidates_)
    total += candidate.weight = weights_.of(static_cast<float>(candidate.weight));
  return total;
}

// The fewest candidates, at least one, whose weights reach the sum; nothing where all of them
// together do not.
std::optional<size_t> Sampler::count_reaching(double sum) const {
  double reached = 0;
  size_t count = 0;
  while (count < candidates_.size() && reached < sum) reached += candidates_[count++].weight;
  if (reached < sum) return std::nullopt;
  return std::max<size_t>(count, 1);
}

int32_t Sampler::of_list(double quantile) const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = quantile * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return best_;  // where rounding of the sum leaves no token
}

int32_t Sampler::of_all(std::span<const float> logits, double quantile) const {
  double left = quantile * total_;
  size_t block = 0;
  while (block < block_sums_.size() && left >= block_sums_[block]) left -= block_sums_[block++];
  std::array<double, TokenWeights::kBlock> weights;
  for (; block < block_sums_.size(); ++block) {
    const size_t begin = block * weights.size();
    const size_t size = std::min(weights.size(), logits.size() - begin);
    weights_.of(logits.subspan(begin, size), weights.data());
    for (size_t i = 0; i < size; ++i)
      if ((left -= weights[i]) < 0) return static_cast<int32_t>(begin + i);
  }
  return best_;
}

}  // namespace snug::engine
