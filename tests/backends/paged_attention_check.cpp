#include "paged_attention_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../base/captured_stream.h"
#include "operation_case.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::test {
namespace {

using program::Attention;
using program::TensorId;

// What the keys of a sequence take in its table: [begin, end) of kCapacity places.
struct Sequence {
  int64_t queries, begin, end;
};
constexpr int64_t kCapacity = 192;
constexpr int32_t kPageTokens[]{3, 16, 64};

// One query each; few of them; chunks of prompts, which end within blocks of queries. An unused
// sequence, and some whose first pages were given back.
const std::vector<std::vector<Sequence>> kBatches{
    {{1, 0, 150}},
    {{70, 0, 100}},
    {{1, 0, 37}, {1, 48, 165}, {0, 0, 0}, {1, 0, 1}, {1, 100, 192}},
    {{17, 0, 17}, {3, 64, 160}, {0, 0, 0}, {33, 0, 64}, {70, 30, 131}, {1, 3, 90}}};

struct Form {
  const char* name;
  Attention attention;
  int64_t buckets = 0;
};

std::vector<Form> forms() {
  std::vector<Form> all{
      {"4 heads on 2 of 16", {.heads = 4, .kv_heads = 2, .head_dim = 16}},
      {"3 heads on 1 of 5", {.heads = 3, .kv_heads = 1, .head_dim = 5}},
      {"9 heads on 1 of 64, window", {.heads = 9, .kv_heads = 1, .head_dim = 64, .window = 40}},
      {"2 heads on 1 of 128, not causal",
       {.heads = 2, .kv_heads = 1, .head_dim = 128, .causal = false}},
      {"softcap", {.heads = 2, .kv_heads = 2, .head_dim = 40, .softcap = 1.5F}},
      {"ALiBi", {.heads = 3, .kv_heads = 3, .head_dim = 32, .alibi_scale = 1.0F}},
      {"sinks, window", {.heads = 4, .kv_heads = 1, .head_dim = 64, .window = 70, .sinks = true}},
      {"bias",
       {.heads = 4, .kv_heads = 2, .head_dim = 16, .relative_bias = true, .max_distance = 128},
       32},
      {"wide", {.heads = 2, .kv_heads = 1, .head_dim = 256}},
      {"in 8 bits", {.heads = 3, .kv_heads = 1, .head_dim = 64, .quantized = true}}};
  for (Form& form : all)
    form.attention.scale = 1.0F / std::sqrt(static_cast<float>(form.attention.head_dim));
  return all;
}

// Sequences with random queries, keys and values. Keys are rows of kCapacity for each sequence;
// what none of them holds is no number.
class Batch {
 public:
  Batch(const Form& form, const Types& types, const std::vector<Sequence>& sequences,
        Random& random)
      : form_(form), types_(types), random_(random), sequences_(sequences) {
    order_.resize(sequences.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    for (const Sequence& sequence : sequences) q_tokens_ += sequence.queries;
    q_ = normal(random, q_tokens_ * q_width());
    for (Keys* const keys : {&k_, &v_}) {
      keys->rows = form.attention.quantized
                       ? integers(random, rows() * k_width(), 0, 255)
                       : with_nan_outside(normal(random, rows() * k_width()), k_width());
      const int64_t heads = form.attention.kv_heads;
      if (form.attention.quantized)
        keys->scales = with_nan_outside(normal(random, rows() * heads, 0.02, 0.004), heads);
    }
    sinks_ = normal(random, form.attention.heads, 1.0, 3.0);
    bias_ = normal(random, form.buckets * form.attention.heads);
  }

  // The order of the sequences in the batch, by number; those left away have no tokens.
  void set_order(std::vector<size_t> order) { order_ = std::move(order); }
  const std::vector<Sequence>& sequences() const { return sequences_; }

  // o and lse of each sequence, as stored.
  using Outputs = std::vector<std::vector<std::byte>>;
  Outputs in_rows(Backend& backend) { return run(backend, 0, false); }
  Outputs in_pages(Backend& backend, int32_t page_tokens, bool shuffled) {
    return run(backend, page_tokens, shuffled);
  }

 private:
  int64_t q_width() const { return form_.attention.heads * form_.attention.head_dim; }
  int64_t k_width() const { return form_.attention.kv_heads * form_.attention.head_dim; }
  int64_t rows() const { return static_cast<int64_t>(sequences_.size()) * kCapacity; }

  // Keys or values, and where they have 8 bits the scales of each row's heads.
  struct Keys {
    Values rows, scales;
  };

  Values with_nan_outside(Values values, int64_t width) const {
    for (int64_t row = 0; row < rows(); ++row) {
      const Sequence& sequence = sequences_[static_cast<size_t>(row / kCapacity)];
      if (row % kCapacity >= sequence.begin && row % kCapacity < sequence.end) continue;
      std::fill_n(values.begin() + row * width, width, std::numeric_limits<double>::quiet_NaN());
    }
    return values;
  }

  // Which page holds each page of the rows; as many again hold no numbers.
  std::vector<int64_t> places(int32_t page_tokens, bool shuffled) {
    std::vector<int64_t> pages(static_cast<size_t>(2 * rows() / page_tokens));
    std::iota(pages.begin(), pages.end(), int64_t{0});
    if (shuffled) std::shuffle(pages.begin(), pages.end(), random_);
    return pages;
  }

  // What lies in no page that is used is no number, or of 8 bits the largest.
  Values pool(const Values& values, int32_t page_tokens, const std::vector<int64_t>& places) const {
    const int64_t size = page_tokens * (std::ssize(values) / rows());
    const bool are_codes = form_.attention.quantized && size == page_tokens * k_width();
    Values pool(static_cast<size_t>(size) * places.size(),
                are_codes ? 127 : std::numeric_limits<double>::quiet_NaN());
    for (int64_t page = 0; page < rows() / page_tokens; ++page)
      std::copy_n(values.begin() + page * size, size,
                  pool.begin() + places[static_cast<size_t>(page)] * size);
    return pool;
  }

  // (rows, columns) as (columns, rows).
  static Values transposed(const Values& values, int64_t columns) {
    const int64_t count = std::ssize(values) / columns;
    Values turned(values.size());
    for (int64_t row = 0; row < count; ++row)
      for (int64_t column = 0; column < columns; ++column)
        turned[static_cast<size_t>(column * count + row)] =
            values[static_cast<size_t>(row * columns + column)];
    return turned;
  }

  // Of the sequences in their order; what none of their keys lies in is no page.
  Values table(int32_t page_tokens, const std::vector<int64_t>& places) const {
    constexpr double kNoPage = -7;
    const int64_t pages = kCapacity / page_tokens;
    Values table(sequences_.size() * static_cast<size_t>(pages), kNoPage);
    for (size_t segment = 0; segment < order_.size(); ++segment) {
      const Sequence& sequence = sequences_[order_[segment]];
      for (int64_t page = 0; page < pages; ++page)
        if (page * page_tokens < sequence.end && (page + 1) * page_tokens > sequence.begin)
          table[segment * static_cast<size_t>(pages) + static_cast<size_t>(page)] =
              static_cast<double>(
                  places[order_[segment] * static_cast<size_t>(pages) + static_cast<size_t>(page)]);
    }
    return table;
  }

  // The queries of all sequences in their order, the bounds of these, and of their keys.
  struct Tokens {
    Values q, q_bounds, k_bounds;
    std::vector<int64_t> firsts;  // of each sequence
  };
  Tokens tokens(bool paged) const {
    Tokens all{Values(q_.size()), Values(sequences_.size() * 2), Values(sequences_.size() * 2),
               std::vector<int64_t>(sequences_.size())};
    int64_t next = 0;
    for (size_t segment = 0; segment < order_.size(); ++segment) {
      const size_t number = order_[segment];
      const Sequence& sequence = sequences_[number];
      std::copy_n(q_.begin() + first_query(number) * q_width(), sequence.queries * q_width(),
                  all.q.begin() + next * q_width());
      all.firsts[number] = next;
      if (sequence.queries == 0) continue;
      const int64_t base = paged ? 0 : static_cast<int64_t>(number) * kCapacity;
      for (size_t side = 0; side < 2; ++side) {
        all.q_bounds[2 * segment + side] =
            static_cast<double>(side == 0 ? next : next + sequence.queries);
        all.k_bounds[2 * segment + side] =
            static_cast<double>(base + (side == 0 ? sequence.begin : sequence.end));
      }
      next += sequence.queries;
    }
    return all;
  }

  Outputs run(Backend& backend, int32_t page_tokens, bool shuffled) {
    CaseBuilder builder(types_, random_);
    const bool paged = page_tokens > 0;
    const Tokens all = tokens(paged);
    const std::vector<int64_t> where =
        paged ? places(page_tokens, shuffled) : std::vector<int64_t>();
    const auto count = static_cast<int64_t>(sequences_.size());
    const auto type = types_.activation;
    const bool quantized = form_.attention.quantized;
    const int64_t pool_rows = paged ? 2 * rows() : rows();
    const auto in_pool = [&](const Values& values) {
      return paged ? pool(values, page_tokens, where) : values;
    };
    const auto keys = [&](const Keys& of) {
      return builder.input({pool_rows, k_width()}, quantized ? program::DType::u8 : type,
                           in_pool(of.rows));
    };
    const auto scales = [&](const Keys& of) {
      const int64_t heads = form_.attention.kv_heads;
      return builder.measure({heads, pool_rows}, transposed(in_pool(of.scales), heads));
    };
    std::vector<TensorId> reads{builder.input({q_tokens_, q_width()}, type, all.q), keys(k_),
                                keys(v_), builder.index({count, 2}, all.q_bounds),
                                builder.index({count, 2}, all.k_bounds)};
    Attention attention = form_.attention;
    attention.paged = paged;
    attention.page_tokens = page_tokens;
    if (attention.sinks) reads.push_back(builder.input({attention.heads}, type, sinks_));
    if (attention.relative_bias)
      reads.push_back(builder.input({form_.buckets, attention.heads}, types_.weight, bias_));
    if (paged)
      reads.push_back(builder.index({count, kCapacity / page_tokens}, table(page_tokens, where)));
    if (quantized) reads.insert(reads.end(), {scales(k_), scales(v_)});
    const auto o = builder.output({q_tokens_, q_width()}, type);
    const auto lse = builder.output_measure({attention.heads, q_tokens_});
    const OperationCase made = builder.finish("pages", attention, reads, {o, lse});
    EXPECT_EQ(program::shape_error(made.view()), "");
    EXPECT_TRUE(backend.runs(made.view())) << "does not run here, and must";
    const RunResult result = guarded_run(backend, made.program, made.inputs);
    for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
    return by_sequence(result.bytes.at(o), result.bytes.at(lse), all.firsts);
  }

  int64_t first_query(size_t number) const {
    int64_t first = 0;
    for (size_t before = 0; before < number; ++before) first += sequences_[before].queries;
    return first;
  }

  Outputs by_sequence(const std::vector<std::byte>& o, const std::vector<std::byte>& lse,
                      const std::vector<int64_t>& firsts) const {
    Outputs outputs(sequences_.size());
    const int64_t row_bytes = static_cast<int64_t>(o.size()) / q_tokens_;
    for (const size_t number : order_) {
      const int64_t queries = sequences_[number].queries;
      const auto append = [&](const std::vector<std::byte>& bytes, int64_t at, int64_t length) {
        outputs[number].insert(outputs[number].end(), bytes.begin() + at,
                               bytes.begin() + at + length);
      };
      append(o, firsts[number] * row_bytes, queries * row_bytes);
      constexpr int64_t kLseBytes = sizeof(float);
      for (int64_t head = 0; head < form_.attention.heads; ++head)
        append(lse, (head * q_tokens_ + firsts[number]) * kLseBytes, queries * kLseBytes);
    }
    return outputs;
  }

  const Form& form_;
  const Types& types_;
  Random& random_;
  const std::vector<Sequence>& sequences_;
  std::vector<size_t> order_;
  int64_t q_tokens_ = 0;
  Values q_, sinks_, bias_;
  Keys k_, v_;
};

template <typename F>
void for_each_batch(F f) {
  Random random(test_seed());
  for (const Types& types : {kAllTypes[0], kAllTypes[1]})
    for (const Form& form : forms())
      for (const std::vector<Sequence>& sequences : kBatches) {
        SCOPED_TRACE(fmt::format("{} in {}, {} sequences, SNUG_TEST_SEED={}", form.name, types.name,
                                 sequences.size(), test_seed()));
        Batch batch(form, types, sequences, random);
        f(batch, form.attention);
      }
}

}  // namespace

void check_pages(Backend& backend, RowsWithoutPages rows) {
  for_each_batch([&](Batch& batch, const Attention& attention) {
    const Batch::Outputs in_order = batch.in_pages(backend, kCapacity, false);
    const bool same = rows == RowsWithoutPages::same_bits ||
                      (batch.sequences().size() == 1 && attention.window == 0 &&
                       !attention.quantized);  // which a card has a kernel of its own for in pages
    if (same) {
      EXPECT_EQ(batch.in_rows(backend), in_order) << "against rows without pages";
    }
    for (const int32_t page_tokens : kPageTokens)
      EXPECT_EQ(batch.in_pages(backend, page_tokens, true), in_order) << "pages of " << page_tokens;
  });
}

void check_wrong_tables(Backend& backend) {
  Random random(test_seed());
  const auto attend = [&](double page, double last, double end) {
    CaseBuilder builder(kAllTypes[0], random);
    const auto k = builder.activation({64, 16});
    const auto o = builder.output_activation({1, 16});
    const OperationCase made = builder.finish(
        "wrong",
        Attention{.heads = 1, .kv_heads = 1, .head_dim = 16, .paged = true, .page_tokens = 16},
        {builder.activation({1, 16}), k, k, builder.index({1, 2}, {0, 1}),
         builder.index({1, 2}, {0, end}), builder.index({1, 3}, {0, page, last})},
        {o, builder.output_measure({1, 1})});
    (void)guarded_run(backend, made.program, made.inputs);
  };
  attend(3, -1, 32);
  EXPECT_TRUE(snug::testing::dies([&] { attend(4, -1, 32); }, "page 4 of 4"));
  EXPECT_TRUE(snug::testing::dies([&] { attend(-1, -1, 32); }, "page -1 of 4"));
  EXPECT_TRUE(snug::testing::dies([&] { attend(3, -1, 33); }, "page -1 of 4"));
  EXPECT_TRUE(snug::testing::dies([&] { attend(3, 2, 49); }, "that has 3 pages of 16"));
}

void check_neighbours(Backend& backend) {
  for_each_batch([&](Batch& batch, const Attention&) {
    const size_t count = batch.sequences().size();
    if (count == 1) return;
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    constexpr int32_t kTokens = 16;
    const Batch::Outputs together = batch.in_pages(backend, kTokens, true);
    std::reverse(order.begin(), order.end());
    batch.set_order(order);
    EXPECT_EQ(batch.in_pages(backend, kTokens, true), together) << "in another order";
    for (const size_t alone : order) {
      if (batch.sequences()[alone].queries == 0) continue;
      batch.set_order({alone});
      EXPECT_EQ(batch.in_pages(backend, kTokens, true)[alone], together[alone])
          << "sequence " << alone << " alone";
    }
  });
}

}  // namespace snug::backends::test
