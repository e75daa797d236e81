// The token streams of a batch. Every model has the decoder's stream; an encoder-decoder also reads
// one with its encoder. Each stream has rows of its own length, and its own tokens, positions and
// document bounds; document i of a row is segment i in every stream.
//
// Pure values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/words.h"

namespace snug::base {

enum class TokenStream : uint8_t { decoder, encoder };
constexpr auto words_of(TokenStream) {
  return words<TokenStream>({{TokenStream::decoder, "decoder"}, {TokenStream::encoder, "encoder"}});
}

// One value for each stream of a batch, the decoder's first. A single value belongs to the
// decoder's stream, when there is no other: `PerStream<int32_t> max_length = 64`.
template <typename T>
class PerStream {
 public:
  constexpr PerStream() = default;
  constexpr PerStream(T decoder) : values_{decoder} {}  // NOLINT: one stream is the usual case
  constexpr PerStream(T decoder, T encoder) : values_{decoder, encoder}, count_(2) {}

  constexpr bool has_encoder() const { return count_ == 2; }
  constexpr std::span<const TokenStream> streams() const {
    return std::span(kStreams).first(count_);
  }

  // Requires that the batch has this stream.
  const T& operator[](TokenStream stream) const {
    check(stream);
    return values_[static_cast<size_t>(stream)];
  }
  T& operator[](TokenStream stream) {
    check(stream);
    return values_[static_cast<size_t>(stream)];
  }
  constexpr const T& decoder() const { return values_[0]; }

  constexpr const T* begin() const { return values_.data(); }
  constexpr const T* end() const { return values_.data() + count_; }
  constexpr T sum() const { return std::accumulate(begin(), end(), T{}); }

  // The results of function(stream, value), or of function(value), for each stream.
  template <typename Function>
  constexpr auto each(const Function& function) const
      -> PerStream<decltype(function(TokenStream::decoder, T{}))> {
    if (!has_encoder()) return function(TokenStream::decoder, values_[0]);
    return {function(TokenStream::decoder, values_[0]), function(TokenStream::encoder, values_[1])};
  }
  template <typename Function>
  constexpr auto map(const Function& function) const {
    return each([&](TokenStream, const T& value) { return function(value); });
  }

  constexpr bool operator==(const PerStream& other) const {
    return count_ == other.count_ && values_ == other.values_;
  }

 private:
  void check(TokenStream stream) const {
    SNUG_CHECK(static_cast<size_t>(stream) < count_, "a batch without a stream of the {}",
               word_of(stream));
  }

  static constexpr std::array kStreams{TokenStream::decoder, TokenStream::encoder};

  std::array<T, 2> values_{};
  size_t count_ = 1;
};

}  // namespace snug::base
