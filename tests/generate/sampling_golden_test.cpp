// Which tokens can come, and how likely each is: as transformers' processors leave them
// (tests/goldens/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/penalties.h"
#include "engine/sampling.h"

namespace snug::testing {
namespace {

using engine::Candidate;
using engine::Sampler;
using engine::SamplingOptions;
using Json = nlohmann::json;

const Json& sampling_goldens() {
  static const Json goldens = Json::parse(std::ifstream("tests/goldens/sampling.json"));
  return goldens;
}

SamplingOptions options_of(const Json& c) {
  return {.temperature = c.value("temperature", 1.0),
          .top_k = c.value("top_k", int64_t{0}),
          .top_p = c.value("top_p", 1.0),
          .min_p = c.value("min_p", 0.0),
          .repetition_penalty = c.value("repetition_penalty", 1.0),
          .presence_penalty = c.value("presence_penalty", 0.0),
          .frequency_penalty = c.value("frequency_penalty", 0.0)};
}

std::vector<float> logits_of(const Json& row) {
  const auto unit = sampling_goldens()["unit"].get<float>();
  std::vector<float> logits;
  for (const Json& value : row)
    logits.push_back(value.is_null() ? -std::numeric_limits<float>::infinity()
                                     : value.get<float>() / unit);
  return logits;
}

// Logits and probabilities, likeliest first: of equally likely tokens at the border of top_p,
// transformers keeps others.
using Kept = std::vector<std::pair<double, double>>;

Kept in_order(Kept kept) {
  // Less than fp32 can tell from 0.
  std::erase_if(kept, [](const auto& token) { return token.second < 1e-37; });
  std::ranges::sort(kept, std::greater<>());
  return kept;
}

void expect_same(const Kept& found, const Kept& expected, const std::string& where) {
  ASSERT_EQ(found.size(), expected.size()) << where;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first) << where;
    EXPECT_NEAR(found[i].second, expected[i].second, 2e-6 * expected[i].second + 1e-7) << where;
  }
}

TEST(SamplingGolden, KeepsWhatTransformersKeeps) {
  size_t cases = 0;
  for (const Json& c : sampling_goldens()["small"]) {
    const SamplingOptions options = options_of(c);
    const std::vector<float> row = logits_of(sampling_goldens()["rows"][c["row"].get<size_t>()]);
    const auto read = c.value("read", std::vector<int32_t>());
    const auto answer = c.value("answer", std::vector<int32_t>());
    engine::Penalties penalties(options);
    const std::span<const float> logits = penalties.applied(row, {read, answer});
    Sampler sampler(options);
    const std::vector<Candidate> tokens = sampler.distribution(logits);
    Kept found;
    for (const Candidate& token : tokens)
      found.emplace_back(logits[static_cast<size_t>(token.id)], token.weight);
    Kept expected;
    for (const Json& token : c["kept"])
      expected.emplace_back(logits[token[0].get<size_t>()], token[1].get<double>());
    expect_same(in_order(found), in_order(expected), c.dump());
    ++cases;
  }
  EXPECT_GT(cases, 600U);
}

std::vector<float> large_row(const Json& c) {
  const auto step = c["step"].get<int64_t>();
  std::vector<float> row(c["size"].get<size_t>());
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(static_cast<int64_t>(i * 7919 % 65536) / step * step) / 8192;
  return row;
}

TEST(SamplingGolden, KeepsWhatTransformersKeepsOfThousands) {
  size_t cases = 0;
  for (const Json& c : sampling_goldens()["large"]) {
    const std::vector<float> row = large_row(c);
    Sampler sampler(options_of(c));
    const std::vector<Candidate> tokens = sampler.distribution(row);
    EXPECT_EQ(tokens.size(), c["count"].get<size_t>()) << c;
    double logits = 0;
    for (const Candidate& token : tokens) logits += row[static_cast<size_t>(token.id)];
    EXPECT_EQ(logits, c["logits"].get<double>()) << c;
    const auto [least, most] = std::ranges::minmax(tokens, {}, &Candidate::weight);
    // Sums of 30,000 weights in fp32 are off by 5e-6.
    EXPECT_NEAR(most.weight, c["most"].get<double>(), 1e-5 * most.weight) << c;
    EXPECT_NEAR(least.weight, c["least"].get<double>(), 1e-5 * least.weight) << c;
    ++cases;
  }
  EXPECT_GE(cases, 50U);
}

// Quantiles just before and just after the borders of the tokens' probabilities.
void expect_quantiles(const SamplingOptions& options, const std::vector<float>& row,
                      size_t at_most) {
  Sampler sampler(options);
  std::vector<Candidate> tokens = sampler.distribution(row);
  if (options.top_k > 0 || options.top_p < 1)
    std::ranges::sort(tokens, [&](const Candidate& a, const Candidate& b) {
      const float one = row[static_cast<size_t>(a.id)];
      const float other = row[static_cast<size_t>(b.id)];
      return one != other ? one > other : a.id < b.id;
    });
  const size_t stride = std::max<size_t>(1, tokens.size() / at_most);
  double before = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double share = tokens[i].weight;
    before += share;
    if (i % stride != 0 || share < 1e-9) continue;
    for (const double part : {1e-4, 1 - 1e-4})
      ASSERT_EQ(sampler.token_at(row, before - share * part), tokens[i].id) << i;
  }
  EXPECT_NEAR(before, 1, 1e-12);
}

TEST(SamplingGolden, EachTokenComesAtItsQuantiles) {
  for (const Json& c : sampling_goldens()["small"])
    if (c["row"].get<size_t>() % 9 == 1)
      expect_quantiles(options_of(c), logits_of(sampling_goldens()["rows"][c["row"].get<size_t>()]),
                       50);
  for (const Json& c : sampling_goldens()["large"])
    if (c["size"] == 9001) expect_quantiles(options_of(c), large_row(c), 4);
}

}  // namespace
}  // namespace snug::testing
